/*
 * Policies that let jobs share GPUs, in worlds with known rates of pairs: the state is
 * consistent after every event, no plan is refused, every job ends once, a job that must not
 * share never does, and the same seed gives the same run.  The same where jobs share by consent
 * and what they keep has to be learned.
 */
#include "support/random_world.h"

#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "model/sharing.h"
#include "policy/policy.h"
#include "support/state_check.h"

#ifndef SEEDS
#define SEEDS 20
#endif
#define JOBS 60
#define LEARNING_JOBS 120

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
    uint64_t parted;   /* stopped beside a job, or moved */
    bool trials_apart; /* no trial job may share */
    bool learns;
};

static void count_event(void *self, const struct view *view, const struct event *event)
{
    struct seen *seen = self;
    seen->exchanged += event->kind == EVENT_PLACED && event->beside != JOB_NONE &&
                       view->jobs[event->beside].coming == event->job;
    const struct job *job = &view->jobs[event->job];
    seen->parted += event->kind == EVENT_RECALLED && job->partner != JOB_NONE;
    if (event->kind != EVENT_STARTED)
        return;
    if (job->partner == JOB_NONE)
        return;
    double rates[2];
    const struct job *partner = &view->jobs[job->partner];
    seen->shared++;
    if (seen->learns)
        assert_true(job->shares && partner->shares && job->user == partner->user);
    if (seen->trials_apart)
        assert_true(job->class == CLASS_BE && partner->class == CLASS_BE);
    assert_true(seen->learns || sharing_rates(view->rates, job, partner, job->type_now,
                                              job->gpus_now, job->spread_now, rates));
}

/* Three in four jobs say that they share, of two users; no policy is told a rate. */
static void hide_rates(struct random_world *world, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, "consent");
    for (uint32_t i = 0; i < world->setup.spec_count; i++) {
        world->specs[i].shares = rng_below(&rng, 4) > 0;
        world->specs[i].user = rng_below(&rng, 4) > 0 ? "ann" : "bob";
    }
    world->setup.hidden = &world->rates;
    world->setup.rates = NULL;
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
    uint32_t jobs = seen->learns ? LEARNING_JOBS : JOBS;
    /* The published rules ignore CPU and memory, and some jobs never end. */
    bool released = strstr(text, "compat=released") != NULL;
    struct random_world_setup kind = kinds[released ? 0 : seed % KINDS];
    kind.jobs = jobs;
    random_world_make(&world, &kind, seed);
    random_world_add_sharing(&world, seen->learns, seed);
    if (seen->learns)
        hide_rates(&world, seed);
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
    for (uint32_t id = 1; id <= jobs; id++)
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

static void jobs_that_share_by_consent_are_consistent_and_end_once(void **state)
{
    static const char *const learning[] = { "berth", "gavel-las,sharing=true,round=30s",
                                            "berth,sharing=true,age=60s" };
    for (size_t p = 0; p < sizeof learning / sizeof *learning; p++) {
        struct seen seen = { .learns = true };
        FOR_EVERY_SEED(seed, SEEDS)
        {
            uint64_t hash = run_world(learning[p], seed.now, &seen);
            if (seed.now % 5 == 0)
                assert_true(run_world(learning[p], seed.now, &seen) == hash);
        }
        print_message("# %s: %llu starts beside another, %llu stops\n", learning[p],
                      (unsigned long long)seen.shared, (unsigned long long)seen.parted);
        assert_true(getenv("BERTH_SEED") || (seen.shared > 0 && seen.parted > 0));
    }
}

RUN_CASES(TEST(sharing_jobs_are_consistent_and_end_once),
          TEST(jobs_that_share_by_consent_are_consistent_and_end_once));
