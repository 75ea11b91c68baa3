/*
 * The engine under a policy that makes random plans: grants of any size and type, shared
 * GPUs, leases, revocations, moves, resizes; in worlds with and without faults.  The state
 * is checked after every event, and all jobs end once the policy makes plain grants.
 */
#include "support/fuzz_policy.h"
#include "support/random_world.h"

#ifndef SEEDS
#define SEEDS 150
#endif
#define JOBS 40

static const struct random_world_setup kinds[] = {
    { .jobs = JOBS, .plain = true },  { .jobs = JOBS },
    { .jobs = JOBS, .sets = true },   { .jobs = JOBS, .stays = true },
    { .jobs = JOBS, .faults = true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Counts over all worlds, to check that everything happened. */
struct engine_counts {
    uint64_t kinds[EVENT_KIND_COUNT];
    uint64_t beside, refused, decided;
    uint64_t moved_beside;  /* a job that ran elsewhere                  */
    uint64_t moved_both;    /* a pair that moved together                */
    uint64_t renewed_both;  /* a pair that stayed                        */
    uint64_t exchanged;     /* beside a job with a partner that leaves   */
    uint64_t ended_at_once; /* a pair with leases that end together      */
    int64_t done_ns;
    job_id done, renewed;
    const struct engine_run *run;
};

/* GPUs in use, those of a pair counted once. */
static uint32_t count_gpus_held(const struct view *view)
{
    uint32_t held = 0;
    for (job_id id = 0; id < view->job_max; id++) {
        const struct job *job = &view->jobs[id];
        if (job->state == JOB_FREE || !job_holds_seats(job))
            continue;
        const struct job *partner =
            job->partner != JOB_NONE ? &view->jobs[job->partner] : NULL;
        bool counted = partner && partner->partner == id && job_holds_seats(partner) &&
                       job->partner < id;
        held += counted ? 0 : job->gpus_now;
    }
    return held;
}

static void count_orders(struct engine_counts *counts, const struct view *view,
                         const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_RENEWED) {
        counts->renewed_both +=
            job->partner != JOB_NONE && job->partner == counts->renewed;
        counts->renewed = event->job;
    }
    if (event->kind != EVENT_PLACED || event->beside == JOB_NONE)
        return;
    const struct job *other = &view->jobs[event->beside];
    counts->moved_beside += job->state == JOB_STOPPING;
    counts->moved_both += job->next_partner == event->beside &&
                          job->partner == event->beside &&
                          other->next_partner == event->job;
    counts->exchanged += other->coming == event->job;
}

static void count_event(void *self, const struct view *view, const struct event *event)
{
    struct engine_counts *counts = self;
    counts->kinds[event->kind]++;
    counts->beside +=
        event->kind == EVENT_STARTED && view->jobs[event->job].partner != JOB_NONE;
    count_orders(counts, view, event);
    assert_int_equal(counts->run->metrics.gpus_held, count_gpus_held(view));
    if (event->kind == EVENT_LEASE_DONE) {
        counts->ended_at_once += event->at_ns == counts->done_ns &&
                                 view->jobs[event->job].partner == counts->done;
        counts->done = event->job;
        counts->done_ns = event->at_ns;
    }
}

static void the_state_is_consistent_under_random_plans(void **state)
{
    struct engine_counts counts = { { 0 } };
    FOR_EVERY_SEED(seed, SEEDS)
    {
        struct random_world world;
        struct engine_run run;
        counts.run = &run;
        random_world_make(&world, &kinds[seed.now % KINDS], seed.now);
        world.setup.policy = &policy_fuzz;
        world.setup.observer =
            (struct engine_observer){ .event = count_event, .self = &counts };
        engine_run_play(&run, &world.setup);
        counts.refused += run.engine.refused_count;
        counts.decided += run.engine.decision_count;

        if (!world.setup.faults.mtbf_ns) {
            assert_false(run.gave_up);
            assert_int_equal(run.ended, run.accepted);
            assert_int_equal(run.engine.state.free.gpu_count, world.cluster.gpu_count);
        }
        for (uint32_t id = 1; id <= JOBS; id++)
            assert_true(run.ends[id] <= 1);
        engine_run_release(&run);
        random_world_release(&world);
    }
    if (getenv("BERTH_SEED"))
        return;
    static const enum event_kind kind[] = { EVENT_RESIZED, EVENT_LEASE_DONE,
                                            EVENT_RENEWED, EVENT_STOPPED, EVENT_LOST };
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        if (counts.kinds[kind[i]] <= SEEDS / 2)
            fail_msg("%s: %llu", event_name(kind[i]),
                     (unsigned long long)counts.kinds[kind[i]]);
    const uint64_t shared[] = { counts.beside, counts.moved_beside, counts.moved_both,
                                counts.renewed_both, counts.exchanged };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        assert_true(shared[i] > SEEDS / 4);
    assert_true(counts.ended_at_once > 0);
    assert_true(counts.refused * 4 < counts.decided);
}

RUN_CASES(TEST(the_state_is_consistent_under_random_plans));
