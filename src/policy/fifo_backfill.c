/*
 * fifo_backfill.c - first come, first served, filling gaps without delaying the first
 * job.
 *
 * EASY backfilling (Lifka, JSSPP 1995).  Jobs start in order of submission.  When the
 * first one, h, does not fit, it gets a reservation:
 *
 *     shadow(h) = earliest time at which h fits if all jobs end when expected
 *     nodes(h)  = where it will then run
 *
 * and a later job b may start ahead of it if it does not delay h:
 *
 *     now + run_time(b) <= shadow(h)      it has ended by then, or
 *     b uses no node of nodes(h)          it is not in the way
 *
 * Run times are estimates, on the slowest type that b may use: where they are too
 * short, h is delayed; where they are unknown, only the second rule helps.  The
 * reservation is computed once for each h and again only when something went other than
 * expected.
 *
 * Each distinct size keeps its jobs in order of submission with the shortest run time
 * below every tree node, so "the first of this size that ends in time" is one descent
 * of a tree.
 */
#include "policy/policy.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/tree.h"
#include "base/units.h"
#include "model/cluster.h"
#include "model/reasons.h"
#include "policy/shared/preempt.h"
#include "policy/shared/fifo_queue.h"
#include "policy/shared/sizes.h"

struct backfill {
    struct sizes sizes;        /* all waiting jobs by size; value: run time */
    struct fifo_queue waiting; /* the same in order of submission */
    struct tree_pool pool;
    struct tree running; /* by expected end */
    bool *runs;

    job_id head; /* the job of the reservation; JOB_NONE: none */
    uint32_t head_generation;
    int64_t shadow_ns;
    struct bits reserved; /* nodes */
    node_id *reserved_list;
    uint32_t reserved_count;
    struct preempt preempt;
};

static void leave_running(struct backfill *b, job_id job)
{
    if (b->runs[job])
        tree_remove(&b->pool, &b->running, job);
    b->runs[job] = false;
}

/* When a running job is expected to end. */
static int64_t done_ns(const struct view *view, job_id job)
{
    int64_t left_ns = view_remaining_ns(view, job);
    return left_ns == INT64_MAX ? left_ns : view->now_ns + left_ns;
}

static void enter_running(struct backfill *b, const struct view *view, job_id job)
{
    if (!job_can_be_stopped(&view->jobs[job]))
        return; /* it is about to continue with another size */
    int64_t at_ns = done_ns(view, job);
    if (b->runs[job] && b->pool.nodes[job].key == at_ns)
        return;
    leave_running(b, job);
    tree_insert(&b->pool, &b->running, job, at_ns, view->jobs[job].id, 0);
    b->runs[job] = true;
}

static void forget_reservation(struct backfill *b)
{
    b->head = JOB_NONE;
    while (b->reserved_count > 0)
        bits_clear(&b->reserved, b->reserved_list[--b->reserved_count]);
}

/* Something went other than the reservation assumed. */
static bool is_surprise(const struct backfill *b, const struct view *view,
                        const struct event *event)
{
    switch (event->kind) {
    case EVENT_FINISHED:
    case EVENT_FAILED:
        return b->runs[event->job] && b->pool.nodes[event->job].key != view->now_ns;
    case EVENT_LOADED:
    case EVENT_PROGRESS:
    case EVENT_RATED:
        return b->runs[event->job] &&
               b->pool.nodes[event->job].key != done_ns(view, event->job);
    case EVENT_LOST:
    case EVENT_STOPPED:
    case EVENT_NODE_DOWN:
    case EVENT_NODE_UP:
    case EVENT_FOREIGN:
    case EVENT_ADOPTED:
        return true;
    default:
        return false;
    }
}

static void backfill_observe(void *self, const struct view *view,
                             const struct event *event)
{
    struct backfill *b = self;

    if (is_surprise(b, view, event))
        forget_reservation(b);
    /* Jobs that may not be preempted count too: the head waits for their ends. */
    if (event->kind == EVENT_STARTED || event->kind == EVENT_RESIZED ||
        event->kind == EVENT_ADOPTED || event_changes_running(event, view))
        enter_running(b, view, event->job);
    else if (event_ends_running(event, view))
        leave_running(b, event->job);
    preempt_observe(&b->preempt, view, event);

    bool rated = event_rates_waiting(event, view);
    if (rated)
        sizes_remove(&b->sizes, view, event->job);
    if (event_makes_waiting(event, view) || rated) {
        const struct job *job = &view->jobs[event->job];
        int64_t run_ns = view_work_left_at_most_ns(view, event->job);
        if (run_ns < INT64_MAX)
            run_ns += job->load_ns;
        if (!rated)
            fifo_queue_add(&b->waiting, view, event->job);
        sizes_push(&b->sizes, view, event->job, job->submit_ns, run_ns);
    } else if (event_ends_waiting(event, view)) {
        fifo_queue_remove(&b->waiting, event->job);
        sizes_remove(&b->sizes, view, event->job);
    }
}

/* Jobs with a known end; a job that may run for ever never makes room. */
static bool will_be_done(const void *self, job_id job, int64_t claim)
{
    const struct backfill *b = self;
    return b->runs[job] && b->pool.nodes[job].key < INT64_MAX;
}

static job_id next_done(const void *self, job_id last, int64_t claim)
{
    const struct backfill *b = self;
    job_id job = last == JOB_NONE ? tree_first(&b->pool, &b->running)
                                  : tree_next(&b->pool, last);
    return job != TREE_NONE && will_be_done(self, job, claim) ? job : JOB_NONE;
}

static const struct preempt_rule first_done_first = { RULE_NONE, next_done,
                                                      will_be_done };

static int backfill_init(void *self, const struct view *view, uint64_t seed,
                         struct arena *run, struct error *err)
{
    struct backfill *b = self;
    fifo_queue_init(&b->waiting, run, view->job_max);
    sizes_init(&b->sizes, run, view->job_max);
    tree_pool_init(&b->pool, run, view->job_max);
    tree_init(&b->running);
    b->runs = arena_array(run, bool, view->job_max);
    b->head = JOB_NONE;
    bits_init(&b->reserved, run, view->cluster->node_count);
    b->reserved_list = arena_array(run, node_id, view->cluster->node_count);
    preempt_init(&b->preempt, run, view, &first_done_first, b);
    return 0;
}

/*
 * Compute when and where 'head' will fit: revoke running jobs one after the other, as
 * if they had ended, in a plan that is undone at once.
 */
static void make_reservation(struct backfill *b, const struct view *view,
                             struct plan *plan, job_id head)
{
    forget_reservation(b);
    b->head = head;
    b->head_generation = view->jobs[head].generation;
    b->shadow_ns = INT64_MAX;

    size_t mark = plan_mark(plan);
    if (preempt_for(&b->preempt, view, plan, head, 0)) {
        const struct change *grant = plan_change(plan, plan_change_count(plan) - 1);
        const struct seat *seats = plan_seats(plan, grant);
        for (uint32_t i = 0; i < grant->seat_count; i++) {
            bits_set(&b->reserved, seats[i].node);
            b->reserved_list[b->reserved_count++] = seats[i].node;
        }
        b->shadow_ns = view->now_ns;
        for (uint32_t i = 0; i < b->preempt.victim_count; i++) {
            int64_t at_ns = b->pool.nodes[b->preempt.victims[i]].key;
            if (at_ns > b->shadow_ns)
                b->shadow_ns = at_ns;
        }
    }
    plan_undo(plan, mark);
}

static bool is_reserved(const struct backfill *b, const struct view *view, job_id head)
{
    return b->head == head && b->head_generation == view->jobs[head].generation &&
           b->shadow_ns > view->now_ns;
}

/* Start jobs behind the head, in order of submission, that do not delay it. */
static void backfill_jobs(struct backfill *b, const struct view *view,
                          struct plan *plan)
{
    int64_t slack_ns =
        b->shadow_ns == INT64_MAX ? INT64_MAX : b->shadow_ns - view->now_ns;
    struct ask elsewhere = ASK_DEFAULT;
    elsewhere.avoid = &b->reserved;

    for (job_id job; (job = sizes_best(&b->sizes)) != JOB_NONE;) {
        if (plan_is_full(plan) && b->sizes.cpu_only_count == 0)
            break;
        if (view->jobs[job].gpus > plan_gpus_left(plan)) {
            sizes_skip(&b->sizes, job); /* nor does a shorter one of this size fit */
            continue;
        }
        bool gone_in_time = sizes_value(&b->sizes, job) <= slack_ns;
        if (plan_grant(plan, job, gone_in_time ? NULL : &elsewhere))
            sizes_take(&b->sizes, view, job);
        else if (gone_in_time)
            sizes_skip_larger(&b->sizes, view,
                              job); /* none of this size fits anywhere */
        else
            sizes_narrow(&b->sizes, job, slack_ns); /* but a shorter one may */
    }
    sizes_unskip(&b->sizes);
}

static int backfill_decide(void *self, const struct view *view, struct plan *plan,
                           struct arena *scratch, struct error *err)
{
    struct backfill *b = self;

    sizes_begin(&b->sizes, view);
    job_id head = b->waiting.first;
    for (; head != JOB_NONE && plan_grant(plan, head, NULL);
         head = fifo_queue_next(&b->waiting, head))
        sizes_take(&b->sizes, view, head);
    if (head == JOB_NONE || b->sizes.job_count < 2)
        return 0;
    if (head != b->waiting.first) {
        /* The ends of the jobs just granted are known once they have started. */
        plan_wake(plan, view->now_ns);
        return 0;
    }
    if (plan_is_full(plan) && b->sizes.cpu_only_count == 0)
        return 0;
    if (!is_reserved(b, view, head))
        make_reservation(b, view, plan, head);
    backfill_jobs(b, view, plan);
    return 0;
}

static void backfill_explain(const void *self, const struct view *view, job_id job,
                             struct reasons *reasons)
{
    const struct backfill *b = self;
    char when[32];
    job_id first = fifo_queue_ahead(&b->waiting, view, job, reasons);
    if (first == JOB_NONE)
        return;
    bool reserved = is_reserved(b, view, first) && b->shadow_ns < INT64_MAX;
    double in_s = reserved ? (double)(b->shadow_ns - view->now_ns) * 1e-9 : 0;
    if (reserved)
        reasons_add(reasons, "order",
                    "job %" PRIu64 " is first in line and expects room in %s; who "
                    "would delay it waits",
                    view->jobs[first].id, units_show_time(when, sizeof when, in_s));
    else
        reasons_add(reasons, "order",
                    "job %" PRIu64 " is first in line; who would delay it waits",
                    view->jobs[first].id);
}

const struct policy policy_fifo_backfill = {
    .name = "fifo-backfill",
    .brief = "first come, first served, filling holes that delay nobody (EASY)",
    .source = "Lifka, The ANL/IBM SP Scheduling System, JSSPP 1995",
    .self_size = sizeof(struct backfill),
    .init = backfill_init,
    .observe = backfill_observe,
    .decide = backfill_decide,
    .explain = backfill_explain,
    .fini = sizes_release,
};
