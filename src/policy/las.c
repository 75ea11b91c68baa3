/*
 * las.c - least attained service first, in discrete queues.
 *
 *     service(j) = GPU-time j has had, all its GPUs counted
 *     queue(j)   = 0 while service(j) < quantum, then one more each time the limit
 *                  grows by 'growth', up to the last
 *
 * Nothing need be known about how long a job will take: most jobs are short, so those
 * that have had little are probably nearly done.  A waiting job preempts jobs in later
 * queues; within a queue the order is that of submission and no job is preempted, so
 * two jobs cannot displace each other for ever.  Not for dear preemptions with small
 * quanta: it preempts often.
 *
 * Source: Gu et al., Tiresias, NSDI 2019 (two-dimensional, discretised LAS: queues=2
 * and quantum=3h or so are its operating point).  Their promotion of starving jobs is
 * 'promote': after waiting that many times as long as it ran, a job is back in queue 0.
 *
 * Running jobs move to the next queue at a known time, so that is a wake-up and not a
 * scan.
 */
#include "policy/policy.h"

#include "base/arena.h"
#include "base/timer_heap.h"
#include "base/tree.h"
#include "base/units.h"
#include "model/reasons.h"
#include "policy/shared/preempt.h"
#include "policy/shared/cost_test.h"
#include "policy/shared/sizes.h"

#define QUEUES_MAX 31

struct las {
    struct sizes waiting; /* by queue, then submission */
    int64_t quantum_ns;
    double growth;
    uint32_t queue_count;
    double promote;

    int64_t limits_ns[QUEUES_MAX]; /* service at which a queue ends */
    struct tree_pool pool;
    struct tree running; /* by queue, then start; the last is preempted first */
    struct timer_heap
        timers; /* next queue of a running job, promotion of a waiting one */
    struct las_job {
        int64_t forgiven_ns; /* service that no longer counts */
        uint8_t queue;
        bool runs;
    } * jobs;
    struct preempt preempt;
    struct cost_test cost_test;
};

/* One sort key: the queue, then a time. */
static int64_t rank_key(uint32_t queue, int64_t at_ns)
{
    return ((int64_t)queue << 58) + (at_ns >> 4);
}

static int64_t service_ns(const struct las *las, const struct view *view, job_id job)
{
    return job_served_ns(&view->jobs[job], view->now_ns) - las->jobs[job].forgiven_ns;
}

static uint32_t queue_of(const struct las *las, int64_t served_ns)
{
    uint32_t queue = 0;
    while (served_ns >= las->limits_ns[queue])
        queue++;
    return queue;
}

static void leave_running(struct las *las, job_id job)
{
    if (!las->jobs[job].runs)
        return;
    tree_remove(&las->pool, &las->running, job);
    las->jobs[job].runs = false;
    timer_heap_remove(&las->timers, job);
}

static void enter_running(struct las *las, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    leave_running(las, id);
    int64_t served_ns = service_ns(las, view, id);
    uint32_t queue = queue_of(las, served_ns);
    las->jobs[id].queue = (uint8_t)queue;
    las->jobs[id].runs = true;
    tree_insert(&las->pool, &las->running, id, rank_key(queue, job->since_ns), job->id,
                0);
    if (las->limits_ns[queue] < INT64_MAX && job->gpus_now > 0)
        timer_heap_set(&las->timers, id,
                       view->now_ns +
                           (las->limits_ns[queue] - served_ns + job->gpus_now - 1) /
                               job->gpus_now);
}

static void enter_waiting(struct las *las, const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    int64_t served_ns = service_ns(las, view, id);
    uint32_t queue = queue_of(las, served_ns);
    timer_heap_remove(&las->timers, id);
    las->jobs[id].queue = (uint8_t)queue;
    sizes_push(&las->waiting, view, id, rank_key(queue, job->submit_ns), 0);
    if (las->promote > 0 && queue > 0) {
        double ran_ns = (double)job->served_ns / (job->gpus ? job->gpus : 1);
        timer_heap_set(&las->timers, id,
                       view->now_ns + (int64_t)(las->promote * ran_ns));
    }
}

static void las_observe(void *self, const struct view *view, const struct event *event)
{
    struct las *las = self;

    if (event->kind == EVENT_SUBMITTED)
        las->jobs[event->job] = (struct las_job){ 0 };

    if (event_makes_running(event, view) || event->kind == EVENT_RESIZED)
        enter_running(las, view, event->job);
    else if (event_ends_running(event, view))
        leave_running(las, event->job);
    preempt_observe(&las->preempt, view, event);
    cost_test_observe(&las->cost_test, view, event);

    if (event_makes_waiting(event, view)) {
        enter_waiting(las, view, event->job);
    } else if (event_ends_waiting(event, view)) {
        sizes_remove(&las->waiting, view, event->job);
        timer_heap_remove(&las->timers, event->job);
    }
}

/* Candidates are jobs in later queues: the last queue and the latest start first. */
static bool is_later(const void *self, job_id job, int64_t claim)
{
    const struct las *las = self;
    return las->jobs[job].runs && las->jobs[job].queue > claim;
}

static job_id next_later(const void *self, job_id last, int64_t claim)
{
    const struct las *las = self;
    job_id job = last == JOB_NONE ? tree_last(&las->pool, &las->running)
                                  : tree_prev(&las->pool, last);
    return job != TREE_NONE && is_later(self, job, claim) ? job : JOB_NONE;
}

static const struct preempt_rule latest_first = { RULE_ORDER, next_later, is_later };

static int las_init(void *self, const struct view *view, uint64_t seed,
                    struct arena *run, struct error *err)
{
    struct las *las = self;
    double limit_ns = (double)las->quantum_ns;
    for (uint32_t i = 0; i < QUEUES_MAX; i++, limit_ns *= las->growth)
        las->limits_ns[i] = i + 1 >= las->queue_count || limit_ns > 9e18
                                ? INT64_MAX
                                : (int64_t)limit_ns;
    sizes_init(&las->waiting, run, view->job_max);
    tree_pool_init(&las->pool, run, view->job_max);
    tree_init(&las->running);
    timer_heap_init(&las->timers, run, view->job_max);
    las->jobs = arena_array(run, struct las_job, view->job_max);
    preempt_init(&las->preempt, run, view, &latest_first, las);
    cost_test_init(&las->cost_test, view, run);
    return 0;
}

/* Move running jobs to the next queue, and promote waiting ones to the first. */
static void run_timers(struct las *las, const struct view *view)
{
    while (timer_heap_next_ns(&las->timers) <= view->now_ns) {
        job_id job = timer_heap_pop(&las->timers);
        if (las->jobs[job].runs) {
            enter_running(las, view, job);
            preempt_touch(&las->preempt, job);
        } else {
            sizes_remove(&las->waiting, view, job);
            las->jobs[job].forgiven_ns = view->jobs[job].served_ns;
            enter_waiting(las, view, job);
        }
    }
}

/* Start a job that does not fit by preempting others, or skip it. */
static void preempt_or_skip(struct las *las, const struct view *view, struct plan *plan,
                            job_id job, int64_t queue)
{
    size_t mark = plan_mark(plan);
    bool found = preempt_for(&las->preempt, view, plan, job, queue);
    if (found && cost_test_pass(&las->cost_test, view, plan, mark, job)) {
        sizes_vacated(&las->waiting, job);
        sizes_take(&las->waiting, view, job);
    } else if (!found && las->preempt.lacks_room) {
        sizes_skip_larger(&las->waiting, view, job);
    } else {
        sizes_skip(&las->waiting, job);
    }
}

static int las_decide(void *self, const struct view *view, struct plan *plan,
                      struct arena *scratch, struct error *err)
{
    struct las *las = self;

    sizes_begin(&las->waiting, view);
    run_timers(las, view);
    for (job_id job; (job = sizes_best(&las->waiting)) != JOB_NONE;) {
        int64_t queue = las->jobs[job].queue;
        bool can_preempt = next_later(las, JOB_NONE, queue) != JOB_NONE;
        if (!can_preempt && plan_is_full(plan) && las->waiting.cpu_only_count == 0)
            break; /* nothing is free, and no further job is in an earlier queue */
        if (plan_grant(plan, job, NULL))
            sizes_take(&las->waiting, view, job);
        else if (!can_preempt)
            sizes_skip_larger(&las->waiting, view, job);
        else
            preempt_or_skip(las, view, plan, job, queue);
    }
    sizes_unskip(&las->waiting);
    return 0;
}

static int64_t las_wake_ns(const void *self, const struct view *view)
{
    const struct las *las = self;
    return las->waiting.job_count > 0 ? timer_heap_next_ns(&las->timers) : INT64_MAX;
}

static void las_explain(const void *self, const struct view *view, job_id job,
                        struct reasons *reasons)
{
    const struct las *las = self;
    char had[32];
    uint32_t count = sizes_ahead(&las->waiting, view, job, reasons);
    double served_s = (double)service_ns(las, view, job) * 1e-9;
    if (count > 0)
        reasons_add(reasons, "order",
                    "it has had %s of GPU-time and is in queue %u; %u others wait "
                    "before it",
                    units_show_time(had, sizeof had, served_s), las->jobs[job].queue,
                    count);
    cost_test_explain(&las->cost_test, view, job, reasons);
}

static const struct field las_params[] = {
    { "quantum", FIELD_TIME, offsetof(struct las, quantum_ns), "300s", "GPU-time",
      "service at which the first queue ends", 1e-3, 1e9 },
    { "growth", FIELD_NUMBER, offsetof(struct las, growth), "2", NULL,
      "each further queue ends at so many times as much", 1.01, 1e6 },
    { "queues", FIELD_COUNT, offsetof(struct las, queue_count), "12", NULL,
      "number of queues; 2 as in Tiresias", 1, QUEUES_MAX },
    { "promote", FIELD_NUMBER, offsetof(struct las, promote), "0", "times its run time",
      "a job that waited so long is back in the first queue; 0: never", 0, 1e6 },
    COST_TEST_PARAM(struct las, cost_test.choice),
    { NULL },
};

const struct policy policy_las = {
    .name = "las",
    .brief = "least attained service first, in queues by GPU-time had",
    .source = "Gu et al., Tiresias, NSDI 2019",
    .params = las_params,
    .self_size = sizeof(struct las),
    .init = las_init,
    .observe = las_observe,
    .decide = las_decide,
    .wake_ns = las_wake_ns,
    .explain = las_explain,
    .fini = sizes_release,
};
