/*
 * aged.c - jobs that have waited too long: no job starves.
 *
 * A job that has waited for 'age' and PATIENCE times its run time starts before all others but
 * trial jobs, the oldest first.  It preempts whatever is cheapest, so it waits only for jobs that
 * it may not preempt: trial jobs, others that started so, and jobs that stay until they end.
 * Meanwhile the nodes on which these end first are kept for it.  Which nodes these are depends on
 * no job that is later than it, so that later jobs cannot shift them.  On its nodes, later jobs
 * start only if they are certain to end before it starts.  On any node that it could use, jobs
 * that may not be preempted do not start, and no job is stopped in favour of another: it would
 * have to wait for them.
 *
 * Jobs that start so get a share of the GPU time, or else an overloaded cluster would run its
 * oldest jobs alone, which is first come, first served.  With h(t) the GPUs that they hold,
 *
 *     debt'(t) = h(t) - AGED_SHARE x GPUs          never below 0
 *
 * and the next one starts while the debt is 0 and they hold less than their share, or nothing: so
 * a gang larger than the share starts too, and the others then wait for what it had beyond it.
 * For the oldest one that cannot start then, nodes stay kept whatever others have.
 * While such jobs wait for nothing else they get that share at least, so one starts at the latest
 * when those that are older have had their GPU-seconds / (AGED_SHARE x GPUs).  Meanwhile it
 * has its place in the order of value like any other job.  Jobs without GPUs need no share.
 */
#include <math.h>

#include "base/arena.h"
#include "base/sort.h"
#include "model/calendar.h"
#include "model/cluster.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/placement.h"
#include "policy/berth/berth_internal.h"

struct kept_nodes {
    struct sort_item *nodes; /* by when they are ready, in seconds */
    uint32_t count;
    double ready_s; /* all of them */
};

/*
 * When a node has room for a part of the job's gang; INFINITY: not even when all jobs there have
 * ended.
 */
static double node_ready_s(const struct berth_policy *berth, const struct view *view,
                           const struct job *job, node_id node, uint32_t gpus)
{
    const struct node *full = &view->cluster->nodes[node];
    struct room_part need = placement_need(job, gpus);
    struct sort_item ends[NODE_GPUS_MAX];
    struct room_part parts[NODE_GPUS_MAX];
    uint32_t count = 0;
    uint32_t cursor = UINT32_MAX;
    struct room_part part;
    uint64_t barred = calendar_barred(view, (job_id)(job - view->jobs), node, 0);
    int64_t gpus_free =
        full->gpu_count - (int64_t)bits_count(view->foreign[node] | barred);
    if (barred == ~(uint64_t)0)
        return INFINITY;
    int64_t cpu_free = full->cpu_milli;
    int64_t mem_free = full->mem_mib;
    for (job_id id; (id = preempt_next_on_node(&berth->preempt, node, &cursor,
                                               &part)) != JOB_NONE;) {
        if (!job_can_be_stopped(&view->jobs[id]) ||
            berth->preempt.rule->may_preempt(berth, id, -1) || count == NODE_GPUS_MAX)
            continue;
        double end_s = (double)lazy_trees_key(berth->running, id) * 1e-9;
        uint32_t at = count++;
        for (; at > 0 && ends[at - 1].key > end_s; at--) {
            ends[at] = ends[at - 1];
            parts[at] = parts[at - 1];
        }
        ends[at] = (struct sort_item){ end_s, id };
        parts[at] = part;
        gpus_free -= bits_count(part.gpus);
        cpu_free -= part.cpu_milli;
        mem_free -= part.mem_mib;
    }
    double ready_s = (double)view->now_ns * 1e-9;
    for (uint32_t i = 0;; i++) {
        if (gpus_free >= gpus && cpu_free >= need.cpu_milli && mem_free >= need.mem_mib)
            return ready_s;
        if (i == count)
            return INFINITY;
        ready_s = fmax(ready_s, ends[i].key);
        gpus_free += bits_count(parts[i].gpus);
        cpu_free += parts[i].cpu_milli;
        mem_free += parts[i].mem_mib;
    }
}

static bool may_use_node(const struct view *view, const struct job *job, node_id node,
                         uint32_t type)
{
    return view->cluster->nodes[node].type == type && view->free->listed[node] &&
           node_set_has(job->set, node);
}

/* Add the nodes that are ready first for parts of a gang; false if there are not enough. */
static bool add_ready(const struct berth_policy *berth, const struct view *view,
                      struct arena *scratch, const struct job *job, uint32_t type,
                      uint32_t gpus, uint32_t count, const struct bits *avoid,
                      struct kept_nodes *kept)
{
    struct sort_item *spare =
        arena_array(scratch, struct sort_item, view->cluster->node_count + 1);
    struct sort_item *nodes = &kept->nodes[kept->count];
    uint32_t found = 0;
    for (node_id node = 0; node < view->cluster->node_count; node++) {
        bool chosen = false;
        if (!may_use_node(view, job, node, type) || (avoid && bits_test(avoid, node)))
            continue;
        for (uint32_t i = 0; i < kept->count && !chosen; i++)
            chosen = kept->nodes[i].value == node;
        double ready_s = chosen ? INFINITY : node_ready_s(berth, view, job, node, gpus);
        if (ready_s < INFINITY)
            nodes[found++] = (struct sort_item){ ready_s, node };
    }
    if (found < count)
        return false;
    sort_items(nodes, spare, found);
    kept->count += count;
    kept->ready_s = fmax(kept->ready_s, kept->nodes[kept->count - 1].key);
    return true;
}

/* The nodes of a type that are ready first for the whole gang. */
static bool find_ready(const struct berth_policy *berth, const struct view *view,
                       struct arena *scratch, const struct job *job, uint32_t type,
                       const struct bits *avoid, struct kept_nodes *ret_kept)
{
    uint32_t node_max =
        type == TYPE_NONE ? 0 : node_set_gpus_max(job->set, view->cluster, type);
    struct placement_parts parts = { job->gpus, 1, 0, 0 };
    if (type != TYPE_NONE && node_max == 0)
        return false;
    if (job->gpus > node_max || job->nodes > 1)
        parts = placement_parts(job->gpus, job->nodes, node_max);
    if (job->spread && !job->nodes && job->gpus > 0) /* any node with a GPU will do */
        parts =
            (struct placement_parts){ 1, (job->gpus + node_max - 1) / node_max, 0, 0 };
    *ret_kept = (struct kept_nodes){ .nodes = arena_array(
                                         scratch, struct sort_item,
                                         2 * (size_t)view->cluster->node_count + 1) };
    return add_ready(berth, view, scratch, job, type, parts.large, parts.large_count,
                     avoid, ret_kept) &&
           (parts.small_count == 0 ||
            add_ready(berth, view, scratch, job, type, parts.small, parts.small_count,
                      avoid, ret_kept));
}

static void clear_nodes(struct bits *nodes)
{
    while (nodes->count > 0)
        bits_clear(nodes, bits_next(nodes, 0));
}

/* Keep nodes for a job that cannot start now, unless it could not on an empty cluster. */
static bool keep_nodes(struct berth_policy *berth, const struct view *view,
                       struct arena *scratch, job_id id)
{
    const struct job *job = &view->jobs[id];
    struct kept_nodes best = { .ready_s = INFINITY };
    const struct bits *avoid = berth->any_kept ? &berth->claimed : NULL;
    uint32_t types = job->types | (job->gpus == 0 ? 1u << TYPE_NONE : 0);
    uint32_t possible = 0;
    for (uint32_t type = 0; type <= TYPE_NONE; type++) {
        struct kept_nodes found;
        if (!(types >> type & 1) ||
            !find_ready(berth, view, scratch, job, type, NULL, &found))
            continue;
        possible |= 1u << type;
        if ((!avoid || find_ready(berth, view, scratch, job, type, avoid, &found)) &&
            found.ready_s < best.ready_s)
            best = found;
    }
    if (possible == 0)
        return false;
    if (!berth->any_kept) {
        clear_nodes(&berth->kept);
        clear_nodes(&berth->claimed);
        for (node_id node = bits_next(&berth->aside, 0); node != BITS_NONE;
             node = bits_next(&berth->aside, node + 1)) {
            bits_set(&berth->kept, node);
            bits_set(&berth->claimed, node);
        }
    }
    berth->any_kept = true;
    berth->kept_types |= possible;
    for (uint32_t i = 0; i < best.count; i++)
        bits_set(&berth->kept, best.nodes[i].value);
    if (best.count > 0 && best.ready_s * 1e9 < (double)berth->kept_until_ns)
        berth->kept_until_ns = (int64_t)(best.ready_s * 1e9);
    for (node_id node = 0; node < view->cluster->node_count; node++)
        if ((possible >> view->cluster->nodes[node].type & 1) &&
            may_use_node(view, job, node, view->cluster->nodes[node].type))
            bits_set(&berth->claimed, node);
    return true;
}

/* --- their share of the GPU time ---------------------------------------------------------- */

static double share_gpus(const struct view *view)
{
    return AGED_SHARE * view->cluster->gpu_count;
}

static void renew_debt(struct berth_policy *berth, const struct view *view)
{
    double passed_s = (double)(view->now_ns - berth->aged_debt_ns) * 1e-9;
    double debt_gpu_s =
        berth->aged_debt_gpu_s + passed_s * (berth->aged_gpus - share_gpus(view));
    berth->aged_debt_gpu_s = debt_gpu_s > 1e-6 ? debt_gpu_s : 0;
    berth->aged_debt_ns = view->now_ns;
}

void aged_observe(struct berth_policy *berth, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    struct berth_job *mine = &berth->jobs[id];
    bool has = job->state == JOB_PLACED || job_holds_seats(job);
    uint32_t gpus = mine->by_age && has ? job->gpus_now : 0;
    if (gpus == mine->aged_gpus)
        return;
    renew_debt(berth, view);
    berth->aged_gpus += gpus - mine->aged_gpus;
    mine->aged_gpus = gpus;
}

int64_t aged_wake_ns(const struct berth_policy *berth, const struct view *view)
{
    double repaid_gpus = share_gpus(view) - berth->aged_gpus;
    if (berth->aged.job_count == 0 || berth->aged_debt_gpu_s <= 0 || repaid_gpus <= 0)
        return INT64_MAX;
    double wait_s = berth->aged_debt_gpu_s / repaid_gpus;
    int64_t at_ns =
        wait_s < 4e9 ? berth->aged_debt_ns + (int64_t)(wait_s * 1e9) + 1000 : INT64_MAX;
    return at_ns > view->now_ns ? at_ns : view->now_ns + 1000;
}

/* With so many GPUs held by those that started so, now and in this decision. */
static bool may_start(const struct berth_policy *berth, const struct view *view,
                      job_id id, uint32_t held)
{
    return view->jobs[id].gpus == 0 || berth->jobs[id].keeps ||
           (berth->aged_debt_gpu_s <= 0 && (held == 0 || held < share_gpus(view)));
}

/* --- the decision ------------------------------------------------------------------------- */

void aged_begin(struct berth_policy *berth, const struct view *view)
{
    renew_debt(berth, view);
    clear_nodes(&berth->aside);
    berth->any_kept = false;
    berth->kept_types = 0;
    berth->kept_until_ns = INT64_MAX;
    berth->preempt.avoid = NULL;
}

void aged_place(struct berth_policy *berth, const struct view *view, struct plan *plan,
                struct arena *scratch)
{
    uint32_t held = berth->aged_gpus;
    for (job_id id; (id = sizes_best(&berth->aged)) != JOB_NONE;) {
        if (!may_start(berth, view, id, held)) {
            sizes_skip(&berth->aged, id);
            continue;
        }
        struct ask ask = ASK_DEFAULT;
        ask.avoid = berth_nodes_to_avoid(berth);
        berth->preempt.avoid = berth->any_kept ? &berth->claimed : NULL;
        if (plan_grant(plan, id, &ask) ||
            preempt_for(&berth->preempt, view, plan, id, -1)) {
            sizes_take(&berth->aged, view, id);
            berth->jobs[id].by_age = true;
            held += view->jobs[id].gpus;
        } else {
            bool first = !berth->any_kept;
            if (keep_nodes(berth, view, scratch, id) && first)
                berth->jobs[id].keeps = true;
            sizes_skip(&berth->aged, id);
        }
    }
    sizes_unskip(&berth->aged);
    berth->preempt.avoid = berth->any_kept ? &berth->claimed : NULL;
    berth->cost_test.avoid = berth->preempt.avoid;
}

/* It can be preempted, and its declared work will be done before nodes are needed. */
static bool ends_in_time(const struct berth_policy *berth, const struct view *view,
                         job_id id)
{
    const struct job *job = &view->jobs[id];
    if (job->steps_total <= 0 || berth->jobs[id].reached >= job->steps_total)
        return false;
    int64_t work_ns = view_work_left_at_most_ns(view, id);
    return work_ns < INT64_MAX / 2 &&
           view->now_ns + job->load_ns + work_ns <= berth->kept_until_ns;
}

const struct bits *aged_kept_from(const struct berth_policy *berth,
                                  const struct view *view, job_id id)
{
    if (!berth->any_kept)
        return &berth->aside;
    if (view->jobs[id].stays)
        return &berth->claimed;
    return ends_in_time(berth, view, id) ? &berth->aside : &berth->kept;
}
