/* look.c - what the queue will do if nobody interferes. */
#include "policy/shared/look.h"

#include <math.h>
#include <string.h>

#include "model/node_set.h"

#define NODE_NOWHERE UINT32_MAX

void look_clear(struct look *look, uint32_t gpu_count)
{
    look->node_count = look->end_count = look->queue_count = 0;
    look->gpu_count = gpu_count ? gpu_count : 1;
    look->now_s = look->watched_s = 0;
}

void look_copy(struct look *look, const struct look *from)
{
    look_clear(look, from->gpu_count);
    look->node_count = from->node_count;
    look->end_count = from->end_count;
    look->queue_count = from->queue_count;
    look->now_s = from->now_s;
    memcpy(look->nodes, from->nodes, from->node_count * sizeof *from->nodes);
    memcpy(look->ends, from->ends, from->end_count * sizeof *from->ends);
    memcpy(look->queue, from->queue, from->queue_count * sizeof *from->queue);
}

void look_add_end(struct look *look, struct look_end end)
{
    if (look->end_count == LOOK_ENDS_MAX)
        return;
    uint32_t at = look->end_count++;
    for (; at > 0 && look->ends[(at - 1) / 2].at_s > end.at_s; at = (at - 1) / 2)
        look->ends[at] = look->ends[(at - 1) / 2];
    look->ends[at] = end;
}

static struct look_end first_end(struct look *look)
{
    struct look_end first = look->ends[0];
    struct look_end last = look->ends[--look->end_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= look->end_count)
            break;
        if (child + 1 < look->end_count &&
            look->ends[child + 1].at_s < look->ends[child].at_s)
            child++;
        if (look->ends[child].at_s >= last.at_s)
            break;
        look->ends[at] = look->ends[child];
        at = child;
    }
    look->ends[at] = last;
    return first;
}

void look_add_job(struct look *look, struct look_job job)
{
    if (look->queue_count == LOOK_QUEUE_MAX)
        return;
    uint32_t at = look->queue_count++;
    for (; at > 0 && look->queue[at - 1].key > job.key; at--)
        look->queue[at] = look->queue[at - 1];
    look->queue[at] = job;
}

static uint32_t tightest(const struct look *look, const struct look_job *job)
{
    uint32_t best = NODE_NOWHERE;
    for (uint32_t n = 0; n < look->node_count; n++) {
        const struct look_node *node = &look->nodes[n];
        if (node->free >= job->each && (job->types >> node->type & 1) &&
            node_set_has(job->set, node->node) &&
            (best == NODE_NOWHERE || node->free < look->nodes[best].free))
            best = n;
    }
    return best;
}

bool look_seat(struct look *look, const struct look_job *job)
{
    uint32_t at[LOOK_PIECES_MAX];
    uint32_t placed = 0;
    for (; placed < job->pieces; placed++) {
        at[placed] = tightest(look, job);
        if (at[placed] == NODE_NOWHERE)
            break;
        look->nodes[at[placed]].free -= job->each;
    }
    bool whole = placed == job->pieces;
    for (uint32_t p = 0; p < placed; p++)
        if (whole)
            look_add_end(
                look, (struct look_end){ look->now_s + job->run_s, at[p], job->each });
        else
            look->nodes[at[p]].free += job->each;
    return whole;
}

static uint32_t most_free(const struct look *look)
{
    uint32_t most = 0;
    for (uint32_t n = 0; n < look->node_count; n++)
        most = look->nodes[n].free > most ? look->nodes[n].free : most;
    return most;
}

/* Whoever needs as much as somebody who did not fit, and is no less choosy. */
static bool is_hopeless(const struct look_job *job, const struct look_job *failed)
{
    return failed->each > 0 && job->each >= failed->each &&
           job->pieces >= failed->pieces && (job->types & ~failed->types) == 0 &&
           (!failed->set || job->set == failed->set);
}

/*
 * Start, in order, whatever fits; nobody fits who needs more than 'most' on a node.
 */
static double start_some(struct look *look, uint32_t most)
{
    struct look_job failed[2] = { 0 }; /* the last of one piece, and of several */
    uint32_t kept = 0;
    double sum_s = 0;
    if (most == 0)
        return 0;
    for (uint32_t i = 0; i < look->queue_count; i++) {
        const struct look_job job = look->queue[i];
        bool looks_good = job.each <= most && job.from_s <= look->now_s &&
                          !is_hopeless(&job, &failed[0]) &&
                          !is_hopeless(&job, &failed[1]);
        if (looks_good && look_seat(look, &job)) {
            sum_s += look->now_s + job.run_s;
            if (job.watched)
                look->watched_s = look->now_s;
            continue;
        }
        if (looks_good)
            failed[job.pieces > 1] = job;
        look->queue[kept++] = job;
    }
    look->queue_count = kept;
    return sum_s;
}

/*
 * The next moment at which room comes free, and whoever starts then.  Who did not fit
 * before can do so only where room has come free; an end of nothing stands for somebody
 * who waits from then on, and may fit anywhere.
 */
static double next_moment(struct look *look)
{
    uint32_t most = 0;
    look->now_s = fmax(look->now_s, look->ends[0].at_s);
    while (look->end_count > 0 && look->ends[0].at_s <= look->now_s) {
        struct look_end end = first_end(look);
        uint32_t free = look->nodes[end.node].free += end.gpus;
        if (end.gpus == 0)
            free = most_free(look);
        most = free > most ? free : most;
    }
    return start_some(look, most);
}

/* Beyond the horizon: one after the other, on all GPUs at once. */
static double add_up_rest(struct look *look)
{
    double work_s = 0;
    double sum_s = 0;
    for (uint32_t i = 0; i < look->end_count; i++)
        work_s += (look->ends[i].at_s - look->now_s) * look->ends[i].gpus;
    for (uint32_t i = 0; i < look->queue_count; i++) {
        const struct look_job *job = &look->queue[i];
        double start_s = look->now_s + work_s / look->gpu_count;
        sum_s += start_s + job->run_s;
        if (job->watched)
            look->watched_s = start_s;
        work_s += job->run_s * job->each * job->pieces;
    }
    return sum_s;
}

double look_play(struct look *look, uint32_t depth)
{
    double sum_s = start_some(look, most_free(look));
    for (uint32_t i = 0; i < depth && look->end_count > 0 && look->queue_count > 0; i++)
        sum_s += next_moment(look);
    return sum_s + add_up_rest(look);
}
