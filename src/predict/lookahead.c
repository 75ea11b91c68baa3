/* lookahead.c - how a queue would develop without preemptions, by list scheduling. */
#include "predict/lookahead.h"

#include <math.h>
#include <string.h>

#include "model/node_set.h"

void lookahead_clear(struct lookahead *ahead, uint32_t gpu_count)
{
    ahead->node_count = ahead->end_count = ahead->job_count = ahead->queue_count = 0;
    ahead->type_count = 0;
    ahead->least_each = UINT32_MAX;
    ahead->gpu_count = gpu_count ? gpu_count : 1;
    ahead->now_s = ahead->watched_s = 0;
}

void lookahead_copy(struct lookahead *ahead, const struct lookahead *from)
{
    lookahead_clear(ahead, from->gpu_count);
    ahead->node_count = from->node_count;
    ahead->type_count = from->type_count;
    ahead->end_count = from->end_count;
    ahead->job_count = from->job_count;
    ahead->queue_count = from->queue_count;
    ahead->least_each = from->least_each;
    ahead->now_s = from->now_s;
    memcpy(ahead->nodes, from->nodes, from->node_count * sizeof *from->nodes);
    for (uint32_t type = 0; type < from->type_count; type++) {
        ahead->first_node[type] = from->first_node[type];
        ahead->last_node[type] = from->last_node[type];
        ahead->most_free[type] = from->most_free[type];
    }
    memcpy(ahead->ends, from->ends, from->end_count * sizeof *from->ends);
    memcpy(ahead->jobs, from->jobs, from->job_count * sizeof *from->jobs);
    memcpy(ahead->queue, from->queue, from->queue_count * sizeof *from->queue);
}

uint32_t lookahead_add_node(struct lookahead *ahead, struct lookahead_node node)
{
    uint32_t at = ahead->node_count;
    if (at == LOOKAHEAD_NODES_MAX)
        return LOOKAHEAD_NOWHERE;
    for (; ahead->type_count <= node.type; ahead->type_count++) {
        ahead->first_node[ahead->type_count] = LOOKAHEAD_NOWHERE;
        ahead->most_free[ahead->type_count] = 0;
    }
    if (ahead->first_node[node.type] == LOOKAHEAD_NOWHERE)
        ahead->first_node[node.type] = at;
    else
        ahead->nodes[ahead->last_node[node.type]].next = at;
    ahead->last_node[node.type] = at;
    if (node.free > ahead->most_free[node.type])
        ahead->most_free[node.type] = node.free;
    node.next = LOOKAHEAD_NOWHERE;
    ahead->nodes[at] = node;
    return ahead->node_count++;
}

void lookahead_free(struct lookahead *ahead, uint32_t at, uint32_t gpus,
                    uint32_t cpu_milli, uint32_t mem_mib)
{
    struct lookahead_node *node = &ahead->nodes[at];
    node->free += gpus;
    node->cpu_milli += cpu_milli;
    node->mem_mib += mem_mib;
    if (node->free > ahead->most_free[node->type])
        ahead->most_free[node->type] = node->free;
}

void lookahead_take(struct lookahead *ahead, uint32_t at, uint32_t gpus,
                    uint32_t cpu_milli, uint32_t mem_mib)
{
    struct lookahead_node *node = &ahead->nodes[at];
    node->free -= gpus;
    node->cpu_milli -= cpu_milli;
    node->mem_mib -= mem_mib;
}

void lookahead_add_end(struct lookahead *ahead, struct lookahead_end end)
{
    if (ahead->end_count == LOOKAHEAD_ENDS_MAX)
        return;
    uint32_t at = ahead->end_count++;
    for (; at > 0 && ahead->ends[(at - 1) / 2].at_s > end.at_s; at = (at - 1) / 2)
        ahead->ends[at] = ahead->ends[(at - 1) / 2];
    ahead->ends[at] = end;
}

static struct lookahead_end pop_first_end(struct lookahead *ahead)
{
    struct lookahead_end first = ahead->ends[0];
    struct lookahead_end last = ahead->ends[--ahead->end_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= ahead->end_count)
            break;
        if (child + 1 < ahead->end_count &&
            ahead->ends[child + 1].at_s < ahead->ends[child].at_s)
            child++;
        if (ahead->ends[child].at_s >= last.at_s)
            break;
        ahead->ends[at] = ahead->ends[child];
        at = child;
    }
    ahead->ends[at] = last;
    return first;
}

void lookahead_add_job(struct lookahead *ahead, struct lookahead_job job)
{
    if (ahead->job_count == LOOKAHEAD_QUEUE_MAX)
        return;
    struct lookahead_place place = { (uint16_t)ahead->job_count,
                                     job.each < UINT16_MAX ? (uint16_t)job.each
                                                           : UINT16_MAX };
    uint32_t at = ahead->queue_count++;
    for (; at > 0 && ahead->jobs[ahead->queue[at - 1].job].key > job.key; at--)
        ahead->queue[at] = ahead->queue[at - 1];
    ahead->queue[at] = place;
    ahead->jobs[ahead->job_count++] = job;
    if (place.each < ahead->least_each)
        ahead->least_each = place.each;
}

/* Those of these types on which a node may have room for a part of the job. */
static uint32_t types_with_room(const struct lookahead *ahead, uint32_t types,
                                uint32_t each)
{
    uint32_t with_room = 0;
    types &= (2u << TYPES_MAX) - 1;
    for (; types && (uint32_t)__builtin_ctz(types) < ahead->type_count;
         types &= types - 1) {
        uint32_t type = (uint32_t)__builtin_ctz(types);
        if (ahead->most_free[type] >= each)
            with_room |= 1u << type;
    }
    return with_room;
}

static bool has_room(const struct lookahead_node *node, const struct lookahead_job *job)
{
    return node->free >= job->each && node->cpu_milli >= job->cpu_milli &&
           node->mem_mib >= job->mem_mib && node_set_has(job->set, node->node);
}

static uint32_t find_tightest_of_type(struct lookahead *ahead,
                                      const struct lookahead_job *job, uint32_t type)
{
    uint32_t best = LOOKAHEAD_NOWHERE;
    uint32_t best_free = UINT32_MAX;
    uint32_t most = 0;
    for (uint32_t n = ahead->first_node[type]; n != LOOKAHEAD_NOWHERE;
         n = ahead->nodes[n].next) {
        const struct lookahead_node *node = &ahead->nodes[n];
        most = node->free > most ? node->free : most;
        if (node->free < best_free && has_room(node, job)) {
            best = n;
            best_free = node->free;
        }
    }
    ahead->most_free[type] = most;
    return best;
}

/* The node with the fewest free GPUs that has room for a part of the job, of these types. */
static uint32_t find_tightest_node(struct lookahead *ahead,
                                   const struct lookahead_job *job, uint32_t types)
{
    uint32_t best = LOOKAHEAD_NOWHERE;
    for (types = types_with_room(ahead, types, job->each); types; types &= types - 1) {
        uint32_t n = find_tightest_of_type(ahead, job, (uint32_t)__builtin_ctz(types));
        if (n != LOOKAHEAD_NOWHERE &&
            (best == LOOKAHEAD_NOWHERE ||
             ahead->nodes[n].free < ahead->nodes[best].free ||
             (ahead->nodes[n].free == ahead->nodes[best].free && n < best)))
            best = n;
    }
    return best;
}

/* Start the whole job now on nodes of these types, if it fits. */
static bool start_on_types(struct lookahead *ahead, const struct lookahead_job *job,
                           uint32_t types, double run_s)
{
    uint32_t at[LOOKAHEAD_PIECES_MAX];
    uint32_t placed = 0;
    for (; placed < job->pieces; placed++) {
        at[placed] = find_tightest_node(ahead, job, types);
        if (at[placed] == LOOKAHEAD_NOWHERE)
            break;
        lookahead_take(ahead, at[placed], job->each, job->cpu_milli, job->mem_mib);
    }
    bool whole = placed == job->pieces;
    for (uint32_t p = 0; p < placed; p++)
        if (whole)
            lookahead_add_end(
                ahead, (struct lookahead_end){ ahead->now_s + run_s, at[p], job->each,
                                               job->cpu_milli, job->mem_mib });
        else
            lookahead_free(ahead, at[p], job->each, job->cpu_milli, job->mem_mib);
    return whole;
}

/* The fastest type for the job of those in the set. */
static uint32_t fastest_type(const struct lookahead_job *job, uint32_t types)
{
    uint32_t best = (uint32_t)__builtin_ctz(types);
    for (uint32_t left = types; left; left &= left - 1) {
        uint32_t type = (uint32_t)__builtin_ctz(left);
        if (job->slowness[type] < job->slowness[best])
            best = type;
    }
    return best;
}

double lookahead_start(struct lookahead *ahead, const struct lookahead_job *job)
{
    if (!job->slowness)
        return start_on_types(ahead, job, job->types, job->run_s) ? job->run_s : -1;
    for (uint32_t types = types_with_room(ahead, job->types, job->each); types;) {
        uint32_t type = fastest_type(job, types);
        double run_s = job->run_s + job->work_s * (job->slowness[type] - 1);
        if (start_on_types(ahead, job, 1u << type, run_s))
            return run_s;
        types &= ~(1u << type);
    }
    return -1;
}

static uint32_t most_free_gpus(const struct lookahead *ahead)
{
    uint32_t most = 0;
    for (uint32_t n = 0; n < ahead->node_count; n++)
        most = ahead->nodes[n].free > most ? ahead->nodes[n].free : most;
    return most;
}

/* The job needs at least as much as one that did not fit, on no other nodes. */
static bool cannot_start_either(const struct lookahead_job *job,
                                const struct lookahead_job *failed)
{
    return failed->each > 0 && job->each >= failed->each &&
           job->pieces >= failed->pieces && (job->types & ~failed->types) == 0 &&
           job->cpu_milli >= failed->cpu_milli && job->mem_mib >= failed->mem_mib &&
           (!failed->set || job->set == failed->set);
}

/* No node has more GPUs free than this. */
static uint32_t bound_of_free(const struct lookahead *ahead)
{
    uint32_t most = 0;
    for (uint32_t type = 0; type < ahead->type_count; type++)
        most = ahead->most_free[type] > most ? ahead->most_free[type] : most;
    return most;
}

/* Start the waiting jobs that fit, in order.  No node has more than 'most' GPUs free. */
static double start_waiting_jobs(struct lookahead *ahead, uint32_t most)
{
    static const struct lookahead_job none;
    const struct lookahead_job *failed[2] = {
        &none, &none
    }; /* of one piece, and of several */
    uint32_t kept = 0;
    uint32_t i = 0;
    double sum_s = 0;
    if (most == 0)
        return 0;
    for (; i < ahead->queue_count && most >= ahead->least_each; i++) {
        struct lookahead_place place = ahead->queue[i];
        const struct lookahead_job *job = &ahead->jobs[place.job];
        ahead->queue[kept++] = place;
        if (place.each > most || job->from_s > ahead->now_s ||
            cannot_start_either(job, failed[0]) || cannot_start_either(job, failed[1]))
            continue;
        double run_s = lookahead_start(ahead, job);
        uint32_t bound = bound_of_free(ahead);
        most = bound < most ? bound : most;
        if (run_s < 0) {
            failed[job->pieces > 1] = job;
            continue;
        }
        kept--;
        sum_s += job->weight * (ahead->now_s + run_s);
        if (job->watched)
            ahead->watched_s = ahead->now_s;
    }
    if (kept < i)
        memmove(&ahead->queue[kept], &ahead->queue[i],
                (ahead->queue_count - i) * sizeof *ahead->queue);
    ahead->queue_count -= i - kept;
    return sum_s;
}

/*
 * Go to the next time at which GPUs become free, and start jobs.  Jobs that did not fit
 * before can fit only where GPUs have become free; after an end without GPUs, which
 * stands for a job that begins to wait, any free node is considered.
 */
static double advance_to_next_end(struct lookahead *ahead)
{
    uint32_t most = 0;
    ahead->now_s = fmax(ahead->now_s, ahead->ends[0].at_s);
    while (ahead->end_count > 0 && ahead->ends[0].at_s <= ahead->now_s) {
        struct lookahead_end end = pop_first_end(ahead);
        lookahead_free(ahead, end.node, end.gpus, end.cpu_milli, end.mem_mib);
        uint32_t free = ahead->nodes[end.node].free;
        if (end.gpus == 0)
            free = most_free_gpus(ahead);
        most = free > most ? free : most;
    }
    return start_waiting_jobs(ahead, most);
}

/* Jobs beyond the horizon: one after the other, each on all GPUs. */
static double sum_beyond_horizon(struct lookahead *ahead)
{
    double work_s = 0;
    double sum_s = 0;
    for (uint32_t i = 0; i < ahead->end_count; i++)
        work_s += (ahead->ends[i].at_s - ahead->now_s) * ahead->ends[i].gpus;
    for (uint32_t i = 0; i < ahead->queue_count; i++) {
        const struct lookahead_job *job = &ahead->jobs[ahead->queue[i].job];
        double start_s = ahead->now_s + work_s / ahead->gpu_count;
        sum_s += job->weight * (start_s + job->run_s);
        if (job->watched)
            ahead->watched_s = start_s;
        work_s += job->run_s * job->each * job->pieces;
    }
    return sum_s;
}

double lookahead_run(struct lookahead *ahead, uint32_t depth)
{
    double sum_s = start_waiting_jobs(ahead, most_free_gpus(ahead));
    for (uint32_t i = 0; i < depth && ahead->end_count > 0 && ahead->queue_count > 0;
         i++)
        sum_s += advance_to_next_end(ahead);
    return sum_s + sum_beyond_horizon(ahead);
}
