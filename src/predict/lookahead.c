/* lookahead.c - how a queue would develop without preemptions, by list scheduling. */
#include "predict/lookahead.h"

#include <string.h>

#include "model/node_set.h"

void lookahead_clear(struct lookahead *ahead, uint32_t gpu_count)
{
    ahead->node_count = ahead->end_count = ahead->job_count = ahead->queue_count = 0;
    ahead->open_count = 0;
    memset(ahead->free_gpus, 0, sizeof ahead->free_gpus);
    ahead->least_each = UINT32_MAX;
    ahead->gpu_count = gpu_count ? gpu_count : 1;
    ahead->now_s = ahead->watched_s = 0;
}

void lookahead_copy(struct lookahead *ahead, const struct lookahead *from)
{
    lookahead_clear(ahead, from->gpu_count);
    ahead->node_count = from->node_count;
    ahead->end_count = from->end_count;
    ahead->job_count = from->job_count;
    ahead->queue_count = from->queue_count;
    ahead->least_each = from->least_each;
    ahead->now_s = from->now_s;
    memcpy(ahead->nodes, from->nodes, from->node_count * sizeof *from->nodes);
    memcpy(ahead->free_gpus, from->free_gpus, sizeof from->free_gpus);
    memcpy(ahead->ends, from->ends, from->end_count * sizeof *from->ends);
    memcpy(ahead->jobs, from->jobs, from->job_count * sizeof *from->jobs);
    memcpy(ahead->queue, from->queue, from->queue_count * sizeof *from->queue);
}

uint32_t lookahead_add_node(struct lookahead *ahead, struct lookahead_node node)
{
    uint32_t at = ahead->node_count;
    if (at == LOOKAHEAD_NODES_MAX)
        return LOOKAHEAD_NOWHERE;
    ahead->free_gpus[node.type] += node.free;
    ahead->nodes[at] = node;
    return ahead->node_count++;
}

void lookahead_free(struct lookahead *ahead, uint32_t at, uint32_t gpus,
                    uint32_t cpu_milli, uint32_t mem_mib)
{
    struct lookahead_node *node = &ahead->nodes[at];
    node->free += gpus;
    ahead->free_gpus[node->type] += gpus;
    node->cpu_milli += cpu_milli;
    node->mem_mib += mem_mib;
}

void lookahead_take(struct lookahead *ahead, uint32_t at, uint32_t gpus,
                    uint32_t cpu_milli, uint32_t mem_mib)
{
    struct lookahead_node *node = &ahead->nodes[at];
    node->free -= gpus;
    ahead->free_gpus[node->type] -= gpus;
    node->cpu_milli -= cpu_milli;
    node->mem_mib -= mem_mib;
}

void lookahead_add_end(struct lookahead *ahead, struct lookahead_end end)
{
    if (ahead->end_count == LOOKAHEAD_ENDS_MAX)
        return;
    struct lookahead_end *ends = ahead->ends;
    uint32_t at = ahead->end_count++;
    for (; at > 0 && ends[(at - 1) / 2].at_s > end.at_s; at = (at - 1) / 2)
        ends[at] = ends[(at - 1) / 2];
    ends[at] = end;
}

static struct lookahead_end pop_first_end(struct lookahead *ahead)
{
    struct lookahead_end *ends = ahead->ends;
    uint32_t count = --ahead->end_count;
    struct lookahead_end first = ends[0];
    struct lookahead_end last = ends[count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count)
            child += ends[child + 1].at_s < ends[child].at_s;
        if (ends[child].at_s >= last.at_s)
            break;
        ends[at] = ends[child];
        at = child;
    }
    ends[at] = last;
    return first;
}

void lookahead_add_job(struct lookahead *ahead, const struct lookahead_job *job)
{
    if (ahead->job_count == LOOKAHEAD_QUEUE_MAX)
        return;
    uint32_t at = ahead->queue_count++;
    for (; at > 0 && ahead->jobs[ahead->queue[at - 1]].key > job->key; at--)
        ahead->queue[at] = ahead->queue[at - 1];
    ahead->queue[at] = (uint16_t)ahead->job_count;
    ahead->jobs[ahead->job_count++] = *job;
    if (job->each < ahead->least_each)
        ahead->least_each = job->each;
}

static bool has_room(const struct lookahead_node *node, const struct lookahead_job *job)
{
    return node->free >= job->each && node->cpu_milli >= job->cpu_milli &&
           node->mem_mib >= job->mem_mib && node_set_has(job->set, node->node);
}

/* --- open nodes: where a job can start that could not before ----------------------- */

/* All nodes with so many GPUs free. */
static void open_nodes(struct lookahead *ahead, uint32_t least)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < ahead->node_count; n++)
        if (ahead->nodes[n].free >= least)
            ahead->open[count++] = n;
    ahead->open_count = count;
}

static void open_node(struct lookahead *ahead, uint32_t node)
{
    for (uint32_t i = 0; i < ahead->open_count; i++)
        if (ahead->open[i] == node)
            return;
    ahead->open[ahead->open_count++] = node;
}

/* The largest number of GPUs that are free on one of them. */
static uint32_t most_open_gpus(const struct lookahead *ahead)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < ahead->open_count; i++) {
        uint32_t free = ahead->nodes[ahead->open[i]].free;
        most = free > most ? free : most;
    }
    return most;
}

/* The types of those that have room for a part of the job. */
static uint32_t open_types(const struct lookahead *ahead,
                           const struct lookahead_job *job)
{
    uint32_t types = 0;
    for (uint32_t i = 0; i < ahead->open_count; i++) {
        const struct lookahead_node *node = &ahead->nodes[ahead->open[i]];
        if (has_room(node, job))
            types |= 1u << node->type;
    }
    return types & job->types;
}

/* --- starting jobs ------------------------------------------------------------------ */

/* The node of these types with the fewest free GPUs that has room for a part of the job. */
static uint32_t find_tightest_node(const struct lookahead *ahead,
                                   const struct lookahead_job *job, uint32_t types)
{
    uint32_t best = LOOKAHEAD_NOWHERE;
    uint32_t best_free = UINT32_MAX;
    for (uint32_t n = 0; n < ahead->node_count; n++) {
        const struct lookahead_node *node = &ahead->nodes[n];
        if ((types >> node->type & 1) && node->free < best_free &&
            has_room(node, job)) {
            best = n;
            best_free = node->free;
        }
    }
    return best;
}

static bool has_enough_gpus(const struct lookahead *ahead,
                            const struct lookahead_job *job, uint32_t types)
{
    uint32_t gpus = 0;
    for (types &= (2u << TYPES_MAX) - 1; types; types &= types - 1)
        gpus += ahead->free_gpus[__builtin_ctz(types)];
    return gpus >= job->each * job->pieces;
}

/* Start the whole gang now on nodes of these types, if it fits. */
static bool start_on_types(struct lookahead *ahead, const struct lookahead_job *job,
                           uint32_t types, double run_s)
{
    uint32_t at[LOOKAHEAD_PIECES_MAX];
    uint32_t placed = 0;
    if (!has_enough_gpus(ahead, job, types))
        return false;
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

/* Which of two open nodes a job of one piece takes: the faster type, then fewer free GPUs. */
static bool is_better_node(const struct lookahead *ahead,
                           const struct lookahead_job *job, uint32_t a, uint32_t b)
{
    const struct lookahead_node *node = &ahead->nodes[a];
    const struct lookahead_node *other = &ahead->nodes[b];
    if (job->slowness && node->type != other->type) {
        double slowness = job->slowness[node->type];
        double than = job->slowness[other->type];
        return slowness < than || (!(slowness > than) && node->type < other->type);
    }
    return node->free != other->free ? node->free < other->free : a < b;
}

/* A job of one piece fits on an open node or on none. */
static double start_piece(struct lookahead *ahead, const struct lookahead_job *job)
{
    uint32_t best = LOOKAHEAD_NOWHERE;
    for (uint32_t i = 0; i < ahead->open_count; i++) {
        uint32_t n = ahead->open[i];
        const struct lookahead_node *node = &ahead->nodes[n];
        if ((job->types >> node->type & 1) && has_room(node, job) &&
            (best == LOOKAHEAD_NOWHERE || is_better_node(ahead, job, n, best)))
            best = n;
    }
    if (best == LOOKAHEAD_NOWHERE)
        return -1;
    double run_s = job->run_s;
    if (job->slowness)
        run_s += job->work_s * (job->slowness[ahead->nodes[best].type] - 1);
    lookahead_take(ahead, best, job->each, job->cpu_milli, job->mem_mib);
    lookahead_add_end(ahead,
                      (struct lookahead_end){ ahead->now_s + run_s, best, job->each,
                                              job->cpu_milli, job->mem_mib });
    return run_s;
}

/* On the fastest type; at least a part of it goes on an open node.  How long it runs, or -1. */
static double start_gang(struct lookahead *ahead, const struct lookahead_job *job)
{
    uint32_t types = open_types(ahead, job);
    if (types && !job->slowness)
        return start_on_types(ahead, job, job->types, job->run_s) ? job->run_s : -1;
    while (types) {
        uint32_t type = fastest_type(job, types);
        double run_s = job->run_s + job->work_s * (job->slowness[type] - 1);
        if (start_on_types(ahead, job, 1u << type, run_s))
            return run_s;
        types &= ~(1u << type);
    }
    return -1;
}

static double start_job(struct lookahead *ahead, const struct lookahead_job *job)
{
    return job->pieces == 1 ? start_piece(ahead, job) : start_gang(ahead, job);
}

double lookahead_start(struct lookahead *ahead, const struct lookahead_job *job)
{
    open_nodes(ahead, job->each);
    return start_job(ahead, job);
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

/* --- the queue: only jobs small enough for an open node are looked at ---------------- */

static uint32_t size_of(uint32_t gpus)
{
    uint32_t size = gpus > 0 ? 32 - (uint32_t)__builtin_clz(gpus) : 0;
    return size < LOOKAHEAD_SIZES ? size : LOOKAHEAD_SIZES - 1;
}

static uint32_t count_words(const struct lookahead *ahead)
{
    return (ahead->queue_count + 63) / 64;
}

/* All jobs wait; which of them are how small? */
static void open_queue(struct lookahead *ahead)
{
    uint32_t words = count_words(ahead);
    for (uint32_t size = 0; size < LOOKAHEAD_SIZES; size++)
        memset(&ahead->small[size], 0, words * sizeof(uint64_t));
    for (uint32_t i = 0; i < ahead->queue_count; i++) {
        uint32_t size = size_of(ahead->jobs[ahead->queue[i]].each);
        ahead->small[size].words[i / 64] |= UINT64_C(1) << i % 64;
    }
    for (uint32_t size = 1; size < LOOKAHEAD_SIZES; size++)
        for (uint32_t w = 0; w < words; w++)
            ahead->small[size].words[w] |= ahead->small[size - 1].words[w];
    ahead->waiting = ahead->small[LOOKAHEAD_SIZES - 1];
}

static bool is_queue_empty(const struct lookahead *ahead)
{
    uint64_t any = 0;
    for (uint32_t w = 0; w < count_words(ahead); w++)
        any |= ahead->waiting.words[w];
    return any == 0;
}

/* Start the waiting jobs that fit, in order; then no node is open. */
static double start_waiting_jobs(struct lookahead *ahead)
{
    static const struct lookahead_job none;
    const struct lookahead_job *failed[2] = {
        &none, &none
    }; /* of one piece, and of several */
    uint32_t words = count_words(ahead);
    uint32_t most = most_open_gpus(ahead);
    double sum_s = 0;
    if (most == 0)
        return 0;
    for (uint32_t w = 0; w < words && most >= ahead->least_each; w++) {
        const uint64_t *small = &ahead->small[size_of(most)].words[w];
        uint64_t *waiting = &ahead->waiting.words[w];
        for (uint64_t left = *waiting & *small; left;) {
            uint32_t bit = (uint32_t)__builtin_ctzll(left);
            const struct lookahead_job *job = &ahead->jobs[ahead->queue[w * 64 + bit]];
            left &= left - 1;
            if (job->each > most || job->from_s > ahead->now_s ||
                cannot_start_either(job, failed[0]) ||
                cannot_start_either(job, failed[1]))
                continue;
            double run_s = start_job(ahead, job);
            if (run_s < 0) {
                failed[job->pieces > 1] = job;
                continue;
            }
            *waiting &= ~(UINT64_C(1) << bit);
            sum_s += job->weight * (ahead->now_s + run_s);
            if (job->watched)
                ahead->watched_s = ahead->now_s;
            most = most_open_gpus(ahead);
            if (most < ahead->least_each)
                break;
            left &= ahead->small[size_of(most)].words[w];
        }
    }
    ahead->open_count = 0;
    return sum_s;
}

/*
 * Go to the next time at which GPUs become free, and start jobs.  Jobs that did not fit
 * before can fit only where GPUs have become free; after an end without GPUs, which
 * stands for a job that begins to wait, any free node is considered.
 */
static double advance_to_next_end(struct lookahead *ahead)
{
    if (ahead->ends[0].at_s > ahead->now_s)
        ahead->now_s = ahead->ends[0].at_s;
    while (ahead->end_count > 0 && ahead->ends[0].at_s <= ahead->now_s) {
        struct lookahead_end end = pop_first_end(ahead);
        lookahead_free(ahead, end.node, end.gpus, end.cpu_milli, end.mem_mib);
        if (end.gpus == 0)
            open_nodes(ahead, ahead->least_each);
        open_node(ahead, end.node);
    }
    return start_waiting_jobs(ahead);
}

/* Jobs beyond the horizon: one after the other, each on all GPUs. */
static double sum_beyond_horizon(struct lookahead *ahead)
{
    double work_s = 0;
    double sum_s = 0;
    for (uint32_t i = 0; i < ahead->end_count; i++)
        work_s += (ahead->ends[i].at_s - ahead->now_s) * ahead->ends[i].gpus;
    for (uint32_t i = 0; i < ahead->queue_count; i++) {
        if (!(ahead->waiting.words[i / 64] >> i % 64 & 1))
            continue;
        const struct lookahead_job *job = &ahead->jobs[ahead->queue[i]];
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
    open_queue(ahead);
    open_nodes(ahead, ahead->least_each);
    double sum_s = start_waiting_jobs(ahead);
    for (uint32_t i = 0; i < depth && ahead->end_count > 0 && !is_queue_empty(ahead);
         i++)
        sum_s += advance_to_next_end(ahead);
    return sum_s + sum_beyond_horizon(ahead);
}
