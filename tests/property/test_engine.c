/*
 * The engine under a policy that does everything at random: grants of any size and type,
 * beside others, with leases; revocations, moves, resizes; in worlds with and without
 * faults.  The books are checked after every event, and everything comes to its end once
 * the policy turns reasonable.
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

/* What has been seen in all worlds, so that nobody can say it did not happen. */
struct seen {
    uint64_t kinds[EVENT_KIND_COUNT];
    uint64_t beside, refused, decided;
    uint64_t moved_beside;  /* one that ran elsewhere                       */
    uint64_t moved_both;    /* two who shared, and share again elsewhere     */
    uint64_t renewed_both;  /* where they are                               */
    uint64_t exchanged;     /* beside one whose partner leaves              */
    uint64_t ended_at_once; /* two whose leases end together                */
    int64_t done_ns;
    job_id done, renewed;
    const struct engine_run *run;
};

/* Accelerators that somebody sits on, those of two who share counted once. */
static uint32_t gpus_held(const struct view *view)
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

static void see_orders(struct seen *seen, const struct view *view,
                       const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_RENEWED) {
        seen->renewed_both += job->partner != JOB_NONE && job->partner == seen->renewed;
        seen->renewed = event->job;
    }
    if (event->kind != EVENT_PLACED || event->beside == JOB_NONE)
        return;
    const struct job *other = &view->jobs[event->beside];
    seen->moved_beside += job->state == JOB_STOPPING;
    seen->moved_both += job->next_partner == event->beside &&
                        job->partner == event->beside &&
                        other->next_partner == event->job;
    seen->exchanged += other->coming == event->job;
}

static void see(void *self, const struct view *view, const struct event *event)
{
    struct seen *seen = self;
    seen->kinds[event->kind]++;
    seen->beside +=
        event->kind == EVENT_STARTED && view->jobs[event->job].partner != JOB_NONE;
    see_orders(seen, view, event);
    assert_int_equal(seen->run->metrics.gpus_held, gpus_held(view));
    if (event->kind == EVENT_LEASE_DONE) {
        seen->ended_at_once += event->at_ns == seen->done_ns &&
                               view->jobs[event->job].partner == seen->done;
        seen->done = event->job;
        seen->done_ns = event->at_ns;
    }
}

static void whatever_is_ordered_the_books_add_up(void **state)
{
    struct seen seen = { { 0 } };
    FOR_EVERY_SEED(seed, SEEDS)
    {
        struct random_world world;
        struct engine_run run;
        seen.run = &run;
        random_world_make(&world, &kinds[seed.now % KINDS], seed.now);
        world.setup.policy = &policy_fuzz;
        world.setup.observer = (struct engine_observer){ .event = see, .self = &seen };
        engine_run_play(&run, &world.setup);
        seen.refused += run.engine.refused_count;
        seen.decided += run.engine.decision_count;

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
        if (seen.kinds[kind[i]] <= SEEDS / 2)
            fail_msg("%s: %llu", event_name(kind[i]),
                     (unsigned long long)seen.kinds[kind[i]]);
    const uint64_t shared[] = { seen.beside, seen.moved_beside, seen.moved_both,
                                seen.renewed_both, seen.exchanged };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        assert_true(shared[i] > SEEDS / 4);
    assert_true(seen.ended_at_once > 0);
    assert_true(seen.refused * 4 < seen.decided);
}

RUN_CASES(TEST(whatever_is_ordered_the_books_add_up));
