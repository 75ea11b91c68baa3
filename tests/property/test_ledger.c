/*
 * The ledger against the metrics: what preemptions cost, entry by entry, is what the
 * summary books to preemption, in every world and under every policy.
 */
#include "support/random_world.h"

#include "metrics/ledger.h"

#ifndef SEEDS
#define SEEDS 40
#endif
#define JOBS 60

static const struct random_world_setup kinds[] = {
    { .jobs = JOBS, .plain = true },
    { .jobs = JOBS },
    { .jobs = JOBS, .wrong_estimates = true, .unknown_work = true },
    { .jobs = JOBS, .faults = true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

struct pen {
    struct arena arena;
    struct ledger ledger;
    bool begun;
};

static void observe_event(void *self, const struct view *view,
                          const struct event *event)
{
    struct pen *pen = self;
    if (!pen->begun)
        ledger_init(&pen->ledger, &pen->arena, view, NULL);
    pen->begun = true;
    ledger_event(&pen->ledger, view, event);
}

static void the_ledger_adds_up_to_what_is_booked_to_preemption(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    for (const struct policy *const *p = policy_list; *p; p++) {
        struct random_world world;
        struct engine_run run;
        struct pen pen = { 0 };
        arena_init(&pen.arena, 0);
        random_world_make(&world, &kinds[seed.now % KINDS], seed.now);
        world.setup.policy = *p;
        world.setup.unchecked = true;
        world.setup.observer =
            (struct engine_observer){ .event = observe_event, .self = &pen };
        engine_run_play(&run, &world.setup);
        ledger_end(&pen.ledger, &run.engine.state.view, run.engine.state.job_count);

        const struct metrics *metrics = &run.metrics;
        __int128 booked_ns = metrics->overhead_ns[OVERHEAD_PAUSE] +
                             metrics->overhead_ns[OVERHEAD_LOAD_AGAIN] +
                             metrics->overhead_ns[OVERHEAD_REDO_PREEMPTED];
        __int128 off_ns = booked_ns - pen.ledger.actual_cost_ns;
        print_message("# %s: %g and %g GPU-s\n", (*p)->name, (double)booked_ns * 1e-9,
                      (double)pen.ledger.actual_cost_ns * 1e-9);
        assert_int_equal(pen.ledger.preemptions, metrics->preemptions);
        assert_true(off_ns > -1000 && off_ns < 1000); /* rounding of redone work */
        assert_true(pen.ledger.wait_saved_s >= 0);

        ledger_release(&pen.ledger);
        engine_run_release(&run);
        random_world_release(&world);
        arena_release(&pen.arena);
    }
}

RUN_CASES(TEST(the_ledger_adds_up_to_what_is_booked_to_preemption));
