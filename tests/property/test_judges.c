/*
 * Each policy against a plain version, which keeps nothing from one decision to the
 * next and examines everything every time: same world, same events.
 */
#include "support/random_world.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "model/free_index.h"
#include "model/node_set.h"
#include "model/plan.h"

#ifndef SEEDS
#define SEEDS 60
#endif
#define JOBS 70
#define JOBS_MAX 256
#define NODES_HERE 16

extern const struct policy policy_fifo, policy_fifo_backfill, policy_sjf, policy_srtf,
    policy_las;

/* --- waiting and running jobs, sorted anew ---------------------------------------- */

struct line {
    struct entry {
        job_id job;
        int64_t major, minor;
        uint64_t id;
    } entries[JOBS_MAX];
    uint32_t count;
};

static bool is_before(const struct entry *a, const struct entry *b)
{
    if (a->major != b->major)
        return a->major < b->major;
    return a->minor != b->minor ? a->minor < b->minor : a->id < b->id;
}

static void line_add(struct line *line, const struct view *view, job_id job,
                     int64_t major, int64_t minor)
{
    struct entry entry = { job, major, minor, view->jobs[job].id };
    uint32_t at = line->count++;
    assert_true(line->count <= JOBS_MAX);
    for (; at > 0 && is_before(&entry, &line->entries[at - 1]); at--)
        line->entries[at] = line->entries[at - 1];
    line->entries[at] = entry;
}

typedef void key_fn(const struct view *view, job_id job, int64_t *major,
                    int64_t *minor);

static void collect(struct line *line, const struct view *view, bool running,
                    key_fn *key)
{
    line->count = 0;
    for (job_id job = 0; job < view->job_max; job++) {
        const struct job *j = &view->jobs[job];
        int64_t major = 0, minor = 0;
        if (running ? !job_runs(j) : j->state != JOB_WAITING)
            continue;
        key(view, job, &major, &minor);
        line_add(line, view, job, major, minor);
    }
}

static void by_submission(const struct view *view, job_id job, int64_t *major,
                          int64_t *minor)
{
    *major = view->jobs[job].submit_ns;
}

static void by_remaining(const struct view *view, job_id job, int64_t *major,
                         int64_t *minor)
{
    *major = view_remaining_ns(view, job);
}

/* --- fifo, sjf --------------------------------------------------------------------------- */

static int naive_fifo(void *self, const struct view *view, struct plan *plan,
                      struct arena *scratch, struct error *err)
{
    struct line waiting;
    collect(&waiting, view, false, by_submission);
    for (uint32_t i = 0; i < waiting.count; i++)
        if (!plan_grant(plan, waiting.entries[i].job, NULL))
            break;
    return 0;
}

static int naive_sjf(void *self, const struct view *view, struct plan *plan,
                     struct arena *scratch, struct error *err)
{
    struct line waiting;
    collect(&waiting, view, false, by_remaining);
    for (uint32_t i = 0; i < waiting.count; i++)
        plan_grant(plan, waiting.entries[i].job, NULL);
    return 0;
}

/* --- preemption, plainly ---------------------------------------------------------- */

static bool grant_without(struct plan *plan, job_id job, const job_id *victims,
                          const bool *out, uint32_t count, const struct bits *avoid)
{
    struct ask ask = ASK_DEFAULT;
    ask.avoid = avoid;
    for (uint32_t i = 0; i < count; i++)
        if (out[i])
            plan_revoke(plan, victims[i], RULE_ORDER, job);
    return plan_grant(plan, job, &ask);
}

static bool is_used(const struct plan *plan, job_id victim)
{
    const struct change *grant = plan_change(plan, plan_change_count(plan) - 1);
    const struct pending_part *pending_shares = plan_pending(plan, grant);
    for (uint32_t i = 0; i < grant->pending_count; i++)
        if (pending_shares[i].victim == victim)
            return true;
    return false;
}

/* A gang over nodes: keep victims with GPUs it did not use, until all are used. */
static void spare_unused(struct plan *plan, job_id job, const job_id *victims,
                         bool *out, uint32_t count, size_t mark)
{
    for (bool spared = true; spared;) {
        spared = false;
        for (uint32_t i = 0; i < count; i++)
            if (out[i] && !is_used(plan, victims[i])) {
                out[i] = false;
                spared = true;
            }
        plan_undo(plan, mark);
        grant_without(plan, job, victims, out, count, NULL);
    }
}

/* On this node, from the least preferred on, keep victims that are not needed. */
static uint32_t spare_on(struct plan *plan, job_id job, const job_id *victims,
                         bool *out, uint32_t count, const struct bits *other_nodes)
{
    size_t mark = plan_mark(plan);
    uint32_t left = 0;
    for (uint32_t i = count; i-- > 0;) {
        out[i] = false;
        out[i] = !grant_without(plan, job, victims, out, count, other_nodes);
        left += out[i];
        plan_undo(plan, mark);
    }
    return left;
}

/*
 * Of the last victim's nodes that could hold the gang, the one with the fewest
 * victims.
 */
static void spare_one_by_one(const struct view *view, struct plan *plan, job_id job,
                             const job_id *victims, bool *out, uint32_t count,
                             struct arena *scratch)
{
    job_id last = victims[count - 1];
    size_t mark = plan_mark(plan);
    uint32_t best = UINT32_MAX;
    for (uint32_t s = 0; s < view->jobs[last].seats.count; s++) {
        bool stay_out[JOBS_MAX];
        struct bits others;
        bits_init(&others, scratch, view->cluster->node_count);
        for (node_id n = 0; n < view->cluster->node_count; n++)
            if (n != view_seats(view, last)[s].node)
                bits_set(&others, n);
        for (uint32_t i = 0; i < count; i++)
            stay_out[i] = true;
        bool fits = grant_without(plan, job, victims, stay_out, count, &others);
        plan_undo(plan, mark);
        if (!fits)
            continue;
        uint32_t left = spare_on(plan, job, victims, stay_out, count, &others);
        if (left < best) {
            best = left;
            memcpy(out, stay_out, count * sizeof *out);
        }
    }
    assert_true(best < UINT32_MAX);
    assert_true(grant_without(plan, job, victims, out, count, NULL));
}

/* The fewest candidates from the front that make room, without those not needed. */
static bool naive_preempt(const struct view *view, struct plan *plan, job_id id,
                          const job_id *victims, uint32_t count, struct arena *scratch)
{
    const struct job *job = &view->jobs[id];
    bool out[JOBS_MAX] = { false };
    size_t mark = plan_mark(plan);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = true;
        if (grant_without(plan, id, victims, out, i + 1, NULL)) {
            const struct change *grant = plan_change(plan, plan_change_count(plan) - 1);
            bool alone = grant->seat_count == 1 && !job->spread;
            if (alone) {
                plan_undo(plan, mark);
                spare_one_by_one(view, plan, id, victims, out, i + 1, scratch);
            } else {
                spare_unused(plan, id, victims, out, i + 1, mark);
            }
            return true;
        }
        plan_undo(plan, mark);
    }
    return false;
}

/* --- srtf ------------------------------------------------------------------------------------ */

static void by_work_left(const struct view *view, job_id job, int64_t *major,
                         int64_t *minor)
{
    *major = view_work_left_ns(view, job);
}

/* When its work would be done if it made steps from now on; loading is not counted. */
static void by_finish(const struct view *view, job_id job, int64_t *major,
                      int64_t *minor)
{
    int64_t left_ns = view_work_left_ns(view, job);
    *major = left_ns == INT64_MAX ? left_ns : view->now_ns + left_ns;
}

static int naive_srtf(void *self, const struct view *view, struct plan *plan,
                      struct arena *scratch, struct error *err)
{
    struct line waiting, running;
    collect(&waiting, view, false, by_work_left);
    collect(&running, view, true, by_finish);
    for (uint32_t i = 0; i < waiting.count; i++) {
        const struct entry *entry = &waiting.entries[i];
        int64_t finish_ns =
            entry->major == INT64_MAX ? INT64_MAX : view->now_ns + entry->major;
        job_id victims[JOBS_MAX];
        uint32_t count = 0;
        for (uint32_t k = running.count; k-- > 0;)
            if (running.entries[k].major > finish_ns &&
                !plan_changes(plan, running.entries[k].job))
                victims[count++] = running.entries[k].job;
        if (!plan_grant(plan, entry->job, NULL))
            naive_preempt(view, plan, entry->job, victims, count, scratch);
    }
    return 0;
}

/* --- las -------------------------------------------------------------------------------------- */

#define QUANTUM_NS INT64_C(60000000000)
#define LAS_SETTINGS "quantum=60s,growth=3,queues=4"

static int64_t limit_ns(uint32_t queue)
{
    static const int64_t limits[] = { QUANTUM_NS, 3 * QUANTUM_NS, 9 * QUANTUM_NS };
    return queue < 3 ? limits[queue] : INT64_MAX;
}

static uint32_t queue_of(const struct view *view, job_id job)
{
    int64_t served_ns = job_served_ns(&view->jobs[job], view->now_ns);
    uint32_t queue = 0;
    while (served_ns >= limit_ns(queue))
        queue++;
    return queue;
}

static void by_queue_and_submission(const struct view *view, job_id job, int64_t *major,
                                    int64_t *minor)
{
    *major = queue_of(view, job);
    *minor = view->jobs[job].submit_ns;
}

static void by_queue_and_start(const struct view *view, job_id job, int64_t *major,
                               int64_t *minor)
{
    *major = queue_of(view, job);
    *minor = view->jobs[job].since_ns;
}

/* When some running job will have used up its queue, if any job waits. */
static int64_t naive_las_wake_ns(const void *self, const struct view *view)
{
    struct line waiting, running;
    int64_t wake_ns = INT64_MAX;
    collect(&waiting, view, false, by_queue_and_submission);
    collect(&running, view, true, by_queue_and_start);
    for (uint32_t i = 0; i < running.count && waiting.count > 0; i++) {
        job_id id = running.entries[i].job;
        const struct job *job = &view->jobs[id];
        int64_t limit = limit_ns(queue_of(view, id));
        if (limit == INT64_MAX || job->gpus_now == 0)
            continue;
        int64_t left_ns = limit - job_served_ns(job, view->now_ns);
        int64_t at_ns = view->now_ns + (left_ns + job->gpus_now - 1) / job->gpus_now;
        wake_ns = at_ns < wake_ns ? at_ns : wake_ns;
    }
    return wake_ns;
}

static int naive_las(void *self, const struct view *view, struct plan *plan,
                     struct arena *scratch, struct error *err)
{
    struct line waiting, running;
    collect(&waiting, view, false, by_queue_and_submission);
    collect(&running, view, true, by_queue_and_start);
    for (uint32_t i = 0; i < waiting.count; i++) {
        const struct entry *entry = &waiting.entries[i];
        job_id victims[JOBS_MAX];
        uint32_t count = 0;
        for (uint32_t k = running.count; k-- > 0;)
            if (running.entries[k].major > entry->major &&
                !plan_changes(plan, running.entries[k].job))
                victims[count++] = running.entries[k].job;
        if (!plan_grant(plan, entry->job, NULL))
            naive_preempt(view, plan, entry->job, victims, count, scratch);
    }
    return 0;
}

/* --- fifo-backfill ------------------------------------------------------------------------------ */

static const struct seat *seats_of(const struct view *view, const struct plan *plan,
                                   job_id job, uint32_t *ret_count)
{
    for (size_t i = 0; i < plan_change_count(plan); i++) {
        const struct change *change = plan_change(plan, i);
        if (change->kind == CHANGE_GRANT && change->job == job) {
            *ret_count = change->seat_count;
            return plan_seats(plan, change);
        }
    }
    *ret_count = view->jobs[job].seats.count;
    return view_seats(view, job);
}

/* When a job that holds GPUs, or is granted some by this plan, should have ended. */
static int64_t done_at_ns(const struct view *view, const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    uint32_t count;
    uint32_t type = view->cluster->nodes[seats_of(view, plan, id, &count)->node].type;
    bool loads = job->state == JOB_WAITING || job->state == JOB_LOADING;
    int64_t from_ns = job->state == JOB_WAITING ? view->now_ns : job->anchor_ns;
    if (job->steps_total <= 0)
        return INT64_MAX;
    double rate_per_s = job->gpus
                            ? throughput_rate(view->rates, job, type, job->gpus, false)
                            : job->rate_best_per_s;
    double left = job->steps_total > job->steps ? job->steps_total - job->steps : 0;
    return from_ns + (loads ? job->load_ns : 0) +
           (int64_t)llround(left / rate_per_s * 1e9);
}

/* All jobs that hold GPUs or are granted some by this plan, by expected end. */
static void collect_holders(struct line *line, const struct view *view,
                            const struct plan *plan)
{
    line->count = 0;
    for (job_id job = 0; job < view->job_max; job++) {
        const struct job *j = &view->jobs[job];
        if (j->state == JOB_FREE || !plan_holds(plan, job))
            continue;
        line_add(line, view, job, done_at_ns(view, plan, job), 0);
    }
}

static bool holds(const struct view *view, const struct room *room, node_id node,
                  const struct job *job)
{
    uint32_t type = view->cluster->nodes[node].type;
    bool allowed = type == TYPE_NONE ? job->gpus == 0 : (job->types >> type & 1) != 0;
    allowed = allowed && node_set_has(job->set, node);
    return allowed && (uint32_t)__builtin_popcountll(room->gpus) >= job->gpus &&
           room->cpu_milli >= job->cpu_milli && room->mem_mib >= job->mem_mib;
}

/* If all jobs end when expected: the first node that then holds 'head', and when. */
static node_id shadow_of(const struct view *view, const struct plan *plan, job_id head,
                         int64_t *ret_shadow_ns)
{
    struct room rooms[NODES_HERE];
    struct line holders;
    collect_holders(&holders, view, plan);
    for (node_id n = 0; n < view->cluster->node_count; n++)
        plan_room(plan, n, &rooms[n]);
    *ret_shadow_ns = INT64_MAX;
    for (uint32_t i = 0; i < holders.count; i++) {
        uint32_t count;
        const struct seat *seats = seats_of(view, plan, holders.entries[i].job, &count);
        if (holders.entries[i].major == INT64_MAX)
            break;
        for (uint32_t s = 0; s < count; s++) {
            rooms[seats[s].node].gpus |= seats[s].gpus;
            rooms[seats[s].node].cpu_milli += seats[s].cpu_milli;
            rooms[seats[s].node].mem_mib += seats[s].mem_mib;
            if (!holds(view, &rooms[seats[s].node], seats[s].node, &view->jobs[head]))
                continue;
            *ret_shadow_ns = holders.entries[i].major;
            return seats[s].node;
        }
    }
    return NODE_NONE;
}

static int naive_backfill(void *self, const struct view *view, struct plan *plan,
                          struct arena *scratch, struct error *err)
{
    struct line waiting;
    struct bits reserved;
    uint32_t i = 0;
    assert_true(view->cluster->node_count <= NODES_HERE);
    collect(&waiting, view, false, by_submission);
    while (i < waiting.count && plan_grant(plan, waiting.entries[i].job, NULL))
        i++;
    if (i == waiting.count)
        return 0;

    int64_t shadow_ns;
    node_id node = shadow_of(view, plan, waiting.entries[i].job, &shadow_ns);
    bits_init(&reserved, scratch, view->cluster->node_count);
    if (node != NODE_NONE)
        bits_set(&reserved, node);
    if (shadow_ns < view->now_ns)
        shadow_ns = view->now_ns;
    struct ask elsewhere = ASK_DEFAULT;
    elsewhere.avoid = &reserved;
    for (i++; i < waiting.count; i++) {
        job_id job = waiting.entries[i].job;
        int64_t run_ns = view_work_left_at_most_ns(view, job);
        bool in_time = shadow_ns == INT64_MAX ||
                       (run_ns < INT64_MAX &&
                        view->now_ns + run_ns + view->jobs[job].load_ns <= shadow_ns);
        plan_grant(plan, job, in_time ? NULL : &elsewhere);
    }
    return 0;
}

/* --- the comparison -------------------------------------------------------------------------------- */

struct judge {
    const struct policy *policy;
    const char *settings;
    int (*decide)(void *self, const struct view *view, struct plan *plan,
                  struct arena *scratch, struct error *err);
    bool exact; /* compare every event, not only which job ran when */
    int64_t (*wake_ns)(const void *self, const struct view *view);
};

static void compare(const struct judge *judge, const struct random_world_setup *kinds,
                    uint32_t kind_count)
{
    struct policy naive = { .name = "naive",
                            .self_size = 8,
                            .decide = judge->decide,
                            .wake_ns = judge->wake_ns };
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct random_world world;
        struct engine_run real, stupid;
        random_world_make(&world, &kinds[seed.now % kind_count], seed.now);
        world.setup.unchecked = true;
        world.setup.policy = judge->policy;
        world.setup.settings = judge->settings;
        engine_run_play(&real, &world.setup);
        world.setup.policy = &naive;
        world.setup.settings = NULL;
        engine_run_play(&stupid, &world.setup);

        assert_true(real.ended > 0 || world.setup.faults.mtbf_ns);
        assert_false(real.gave_up != stupid.gave_up);
        assert_true(real.outcome == stupid.outcome);
        if (judge->exact)
            assert_true(real.hash == stupid.hash);
        engine_run_release(&real);
        engine_run_release(&stupid);
        random_world_release(&world);
    }
}

static const struct random_world_setup any[] = {
    { .jobs = JOBS, .plain = true },
    { .jobs = JOBS },
    { .jobs = JOBS, .wrong_estimates = true, .unknown_work = true },
    { .jobs = JOBS, .sets = true },
    { .jobs = JOBS, .faults = true },
};

/* Clusters where the speed of a running job says nothing about its work. */
static const struct random_world_setup one_speed[] = {
    { .jobs = JOBS, .plain = true },
    { .jobs = JOBS, .one_speed = true },
    { .jobs = JOBS, .one_speed = true, .wrong_estimates = true, .unknown_work = true },
    { .jobs = JOBS, .one_speed = true, .sets = true },
    { .jobs = JOBS, .one_speed = true, .faults = true },
};

static const struct random_world_setup one_node[] = {
    { .jobs = JOBS, .plain = true, .one_node = true, .distinct_times = true },
    { .jobs = JOBS, .one_node = true, .distinct_times = true },
    { .jobs = JOBS,
      .one_node = true,
      .distinct_times = true,
      .wrong_estimates = true,
      .unknown_work = true },
    { .jobs = JOBS, .one_node = true, .distinct_times = true, .sets = true },
    { .jobs = JOBS, .one_node = true, .distinct_times = true, .faults = true },
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void fifo_is_what_it_says(void **state)
{
    compare(&(struct judge){ &policy_fifo, NULL, naive_fifo, true }, any, COUNT(any));
}

static void sjf_is_what_it_says(void **state)
{
    compare(&(struct judge){ &policy_sjf, NULL, naive_sjf, true }, any, COUNT(any));
}

static void fifo_backfill_is_what_it_says(void **state)
{
    compare(&(struct judge){ &policy_fifo_backfill, NULL, naive_backfill, false },
            one_node, COUNT(one_node));
}

static void srtf_is_what_it_says(void **state)
{
    compare(&(struct judge){ &policy_srtf, NULL, naive_srtf, true }, one_speed,
            COUNT(one_speed));
}

static void las_is_what_it_says(void **state)
{
    compare(&(struct judge){ &policy_las, LAS_SETTINGS, naive_las, true,
                             naive_las_wake_ns },
            any, COUNT(any));
}

RUN_CASES(TEST(fifo_is_what_it_says), TEST(fifo_backfill_is_what_it_says),
          TEST(sjf_is_what_it_says), TEST(srtf_is_what_it_says),
          TEST(las_is_what_it_says));
