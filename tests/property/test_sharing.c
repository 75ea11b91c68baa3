/*
 * Policies that let jobs share GPUs, in worlds with known rates of pairs: the state is
 * consistent after every event, no plan is refused, every job ends once, a job that must not
 * share never does, and the same seed gives the same run.
 */
#include "support/random_world.h"

#include <string.h>

#include "base/error.h"
#include "model/sharing.h"
#include "policy/policy.h"
#include "support/state_check.h"

#ifndef SEEDS
#define SEEDS 20
#endif
#define JOBS 60

static const struct random_world_setup kinds[] = {
    { .jobs = JOBS, .plain = true },  { .jobs = JOBS },
    { .jobs = JOBS, .sets = true },   { .jobs = JOBS, .stays = true },
    { .jobs = JOBS, .faults = true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

static const char *const policies[] = {
    "gavel-las,sharing=true",
    "gavel-las,sharing=true,water_filling=true",
    "gavel-las,sharing=true,rates=estimated",
    "gavel-ftf,sharing=true,round=30s",
    "gavel-makespan,sharing=true,round=60s",
    "gavel-throughput,sharing=true,round=20s",
    "gavel-cost,sharing=true,round=60s",
    "gavel-cost,sharing=true,form=released",
    "gavel-cost-slo,sharing=true",
    "gavel-hierarchical,sharing=true",
    "gavel-las,sharing=true,compat=released",
    "berth,sharing=true",
    "berth,sharing=true,age=60s",
};
#define POLICIES (sizeof policies / sizeof *policies)

struct seen {
    uint64_t shared, exchanged;
    bool trials_apart; /* no trial job may share */
};

static void count_event(void *self, const struct view *view, const struct event *event)
{
    struct seen *seen = self;
    seen->exchanged += event->kind == EVENT_PLACED && event->beside != JOB_NONE &&
                       view->jobs[event->beside].coming == event->job;
    if (event->kind != EVENT_STARTED)
        return;
    const struct job *job = &view->jobs[event->job];
    if (job->partner == JOB_NONE)
        return;
    double rates[2];
    seen->shared++;
    if (seen->trials_apart)
        assert_true(job->class == CLASS_BE &&
                    view->jobs[job->partner].class == CLASS_BE);
    assert_true(sharing_rates(view->rates, job, &view->jobs[job->partner],
                              job->type_now, job->gpus_now, job->spread_now, rates));
}

static uint64_t run_world(const char *text, uint64_t seed, struct seen *seen)
{
    struct random_world world;
    struct engine_run run;
    struct error err = { "" };
    const struct policy *policy;
    const char *settings;
    if (policy_parse(text, &policy, &settings, &err) < 0)
        fail_msg("%s", err.text);
    seen->trials_apart = strncmp(text, "berth", 5) == 0;
    /* The published rules ignore CPU and memory, and some jobs never end. */
    bool released = strstr(text, "compat=released") != NULL;
    random_world_make(&world, &kinds[released ? 0 : seed % KINDS], seed);
    random_world_add_sharing(&world, seed);
    world.setup.policy = policy;
    world.setup.settings = settings;
    world.setup.observer =
        (struct engine_observer){ .event = count_event, .self = seen };
    engine_run_play(&run, &world.setup); /* state_check() after every event */
    if (run.engine.refused_count > 0)
        fail_msg("%s: %s", text, run.engine.refusal->text);
    if (!world.setup.faults.mtbf_ns && !released) {
        assert_false(run.gave_up);
        assert_int_equal(run.ended, run.accepted);
        assert_int_equal(run.engine.state.free.gpu_count, world.cluster.gpu_count);
        assert_int_equal(run.metrics.gpus_held, 0);
    }
    for (uint32_t id = 1; id <= JOBS; id++)
        assert_true(run.ends[id] <= 1);
    uint64_t hash = run.hash;
    engine_run_release(&run);
    random_world_release(&world);
    return hash;
}

static void sharing_jobs_are_consistent_and_end_once(void **state)
{
    struct seen seen[POLICIES] = { { 0 } };
    FOR_EVERY_SEED(seed, SEEDS)
    for (size_t p = 0; p < POLICIES; p++) {
        print_message("# %s\n", policies[p]);
        uint64_t hash = run_world(policies[p], seed.now, &seen[p]);
        if (seed.now % 5 == 0)
            assert_true(run_world(policies[p], seed.now, &seen[p]) == hash);
    }
    uint64_t exchanged = 0;
    for (size_t p = 0; p < POLICIES && !getenv("BERTH_SEED"); p++) {
        assert_true(seen[p].shared > 0);
        exchanged += seen[p].exchanged;
    }
    assert_true(getenv("BERTH_SEED") || exchanged > 0);
}

RUN_CASES(TEST(sharing_jobs_are_consistent_and_end_once));
