/*
 * What holds for every policy of the registry in every world: the accounts balance
 * after every event, every job ends once, the same seed gives the same run, and a
 * decision allocates no memory.
 */
#include "support/alloc_count.h"
#include "support/random_world.h"

#include <string.h>

#include <errno.h>

#include "base/error.h"
#include "base/rng.h"
#include "model/plan.h"
#include "support/state_check.h"

#ifndef SEEDS
#define SEEDS 30
#endif
#define JOBS 60

/* --- allocations while deciding ------------------------------------------------------ */

static const struct policy *watched;

static int watched_decide(void *self, const struct view *view, struct plan *plan,
                          struct arena *scratch, struct error *err)
{
    alloc_count_on = true;
    int r = watched->decide(self, view, plan, scratch, err);
    alloc_count_on = false;
    return r;
}

/* The policy with its decisions observed. */
static struct policy watch(const struct policy *policy)
{
    struct policy copy = *policy;
    watched = policy;
    copy.decide = watched_decide;
    alloc_count_calls = 0;
    return copy;
}

/* --- worlds --------------------------------------------------------------------------- */

static const struct random_world_setup kinds[] = {
    { .jobs = JOBS, .plain = true },
    { .jobs = JOBS, .impossible = true },
    { .jobs = JOBS, .wrong_estimates = true, .unknown_work = true },
    { .jobs = JOBS, .faults = true },
    { .jobs = JOBS, .plain = true, .faults = true, .wrong_estimates = true },
    { .jobs = JOBS, .sets = true, .wrong_estimates = true },
    { .jobs = JOBS, .plain = true, .sets = true },
    { .jobs = JOBS, .stays = true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

static void release(struct engine_run *run, struct random_world *world)
{
    engine_run_release(run);
    random_world_release(world);
}

static bool has_setting(const struct policy *policy, const char *name)
{
    for (const struct field *param = policy->params; param && param->name; param++)
        if (strcmp(param->name, name) == 0)
            return true;
    return false;
}

static const char *const objectives[] = { "objective=makespan", "objective=fairness",
                                          "objective=cost" };

/* Its shares come from a solver that allocates memory; the rest of it does not. */
static bool has_solver(const struct policy *policy)
{
    static const char *const names[] = { "gavel-las",         "gavel-makespan",
                                         "gavel-ftf",         "gavel-cost",
                                         "gavel-cost-slo",    "gavel-throughput",
                                         "gavel-hierarchical" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(policy->name, names[i]) == 0)
            return true;
    return false;
}

/* Policies with defaults, then those that have this setting with it. */
static void check_every_policy(uint64_t seed, const char *name, const char *settings)
{
    for (const struct policy *const *p = policy_list; *p; p++) {
        struct random_world world;
        struct engine_run run;
        struct policy policy = watch(*p);
        if (name && !has_setting(*p, name))
            continue;
        print_message("# %s %s\n", policy.name, settings ? settings : "");
        random_world_make(&world, &kinds[seed % KINDS], seed);
        world.setup.policy = &policy;
        world.setup.settings = settings;
        engine_run_play(&run, &world.setup); /* state_check() after every event */

        assert_int_equal(run.accepted + run.rejected, run.next);
        assert_int_equal(run.engine.refused_count, 0);
        if (!has_solver(*p) && !(name && strcmp(name, "objective") == 0))
            assert_int_equal(alloc_count_calls, 0);
        uint32_t ended = 0;
        for (uint32_t id = 1; id <= JOBS; id++) {
            assert_true(run.ends[id] <= 1);
            ended += run.ends[id];
        }
        assert_int_equal(ended, run.ended);
        assert_int_equal(run.ended + run.engine.state.live_count, run.accepted);
        if (!kinds[seed % KINDS].faults) {
            assert_false(run.gave_up);
            assert_int_equal(run.ended, run.accepted);
            assert_int_equal(run.engine.state.free.gpu_count, world.cluster.gpu_count);
        }
        release(&run, &world);
    }
}

static void the_state_is_consistent_and_every_job_ends_once(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    {
        check_every_policy(seed.now, NULL, NULL);
        check_every_policy(seed.now, "worth", "worth=xion");
        check_every_policy(seed.now, "compat", "compat=released");
        for (size_t i = 0; i < sizeof objectives / sizeof *objectives; i++)
            check_every_policy(seed.now, "objective", objectives[i]);
    }
}

/* --- some nodes only ---------------------------------------------------------------- */

/* Which jobs must not wait while nodes they may use have enough free. */
enum served { SERVES_ALL, SERVES_FIRST, SERVES_TRIALS };

static const struct {
    const char *name;
    enum served served;
} eager[] = {
    { "fifo", SERVES_FIRST },  { "fifo-backfill", SERVES_FIRST },
    { "sjf", SERVES_ALL },     { "srtf", SERVES_ALL },
    { "las", SERVES_ALL },     { "fitgpp", SERVES_TRIALS },
    { "lrtp", SERVES_TRIALS }, { "rand", SERVES_TRIALS },
};

static enum served watched_serves;
static uint64_t
    left_waiting; /* for lack of GPUs: a test that compares nothing must fail */

static job_id first_waiting(const struct view *view)
{
    job_id first = JOB_NONE;
    for (job_id id = 0; id < view->job_max; id++)
        if (view->jobs[id].state == JOB_WAITING &&
            (first == JOB_NONE || view->jobs[id].id < view->jobs[first].id))
            first = id;
    return first;
}

/* The policy's plan; then every waiting job that should have been served is tried. */
static int eager_decide(void *self, const struct view *view, struct plan *plan,
                        struct arena *scratch, struct error *err)
{
    int r = watched->decide(self, view, plan, scratch, err);
    job_id first = first_waiting(view);
    for (job_id id = 0; r == 0 && id < view->job_max; id++) {
        const struct job *job = &view->jobs[id];
        if (job->state != JOB_WAITING || !job->set || plan_holds(plan, id) ||
            (watched_serves == SERVES_FIRST && id != first) ||
            (watched_serves == SERVES_TRIALS && job->class != CLASS_TE))
            continue;
        left_waiting++;
        assert_false(plan_grant(plan, id, NULL));
    }
    return r;
}

static void no_job_waits_while_nodes_it_may_use_have_room(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    for (size_t i = 0; i < sizeof eager / sizeof *eager; i++) {
        struct random_world world;
        struct engine_run run;
        struct error err = { "" };
        const char *settings;
        if (policy_parse(eager[i].name, &watched, &settings, &err) < 0)
            fail_msg("%s", err.text);
        struct policy policy = *watched;
        policy.decide = eager_decide;
        watched_serves = eager[i].served;
        random_world_make(&world,
                          &(struct random_world_setup){
                              .jobs = JOBS, .sets = true, .plain = seed.now % 2 },
                          seed.now);
        world.setup.policy = &policy;
        engine_run_play(&run, &world.setup);
        assert_int_equal(run.ended, run.accepted);
        release(&run, &world);
    }
    assert_true(getenv("BERTH_SEED") || left_waiting > 100);
}

static void the_same_seed_gives_the_same_run(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    for (const struct policy *const *p = policy_list; *p; p++) {
        struct random_world world;
        struct engine_run run;
        uint64_t hashes[2];
        for (int i = 0; i < 2; i++) {
            random_world_make(&world, &kinds[seed.now % KINDS], seed.now);
            world.setup.policy = *p;
            world.setup.unchecked = true;
            engine_run_play(&run, &world.setup);
            hashes[i] = run.hash;
            release(&run, &world);
        }
        assert_true(hashes[0] == hashes[1]);
    }
}

static void an_executor_that_reports_everything_twice_changes_nothing(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    for (const struct policy *const *p = policy_list; *p; p++) {
        struct random_world world;
        struct engine_run run;
        uint64_t hashes[2];
        for (int i = 0; i < 2; i++) {
            random_world_make(&world, &kinds[seed.now % KINDS], seed.now);
            world.setup.policy = *p;
            world.setup.unchecked = i == 0;
            world.setup.repeats = i == 1;
            engine_run_play(&run, &world.setup);
            hashes[i] = run.hash;
            release(&run, &world);
        }
        assert_true(hashes[0] == hashes[1]);
    }
}

/* --- jobs that learn ------------------------------------------------------------------ */

/* Most of them elastic, and part of a step's time is not divided. */
static void add_learning(struct random_world *world, uint64_t seed)
{
    static const char *const curves[] = { "exp:mu=0.9", "inv:a=0.01,b=0,kmax=50",
                                          "inv:a=0.01,b=0.1", "acc:tau=20,last=0.8" };
    struct rng rng;
    rng_init(&rng, seed, "learning");
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job_spec *spec = &world->specs[i];
        if (rng_below(&rng, 5) == 0)
            continue;
        assert_int_equal(
            learning_parse_points(&spec->curve, curves[rng_below(&rng, 4)], NULL, NULL),
            0);
        if (spec->gpus == 0 || spec->kind)
            continue;
        spec->step_s = 0.5 + rng_unit(&rng);
        spec->fixed_s = spec->step_s * rng_unit(&rng);
        spec->gpus_min = 1 + rng_below(&rng, spec->gpus);
        spec->gpus_max = spec->gpus + rng_below(&rng, 8);
        spec->spread = rng_below(&rng, 2);
    }
}

static void jobs_that_learn_are_resized_and_end_once(void **state)
{
    FOR_EACH_SEED(seed, SEEDS)
    for (const struct policy *const *p = policy_list; *p; p++) {
        struct random_world world;
        struct engine_run run;
        if (!has_setting(*p, "epoch"))
            continue;
        struct policy policy = watch(*p);
        random_world_make(&world, &kinds[seed.now % KINDS], seed.now);
        add_learning(&world, seed.now);
        world.setup.policy = &policy;
        world.setup.settings = seed.now % 2 ? NULL : "hysteresis=0,epoch=500ms";
        engine_run_play(&run, &world.setup); /* state_check() after every event */

        assert_int_equal(run.engine.refused_count, 0);
        assert_int_equal(alloc_count_calls, 0);
        assert_int_equal(run.ended + run.engine.state.live_count, run.accepted);
        if (!kinds[seed.now % KINDS].faults)
            assert_int_equal(run.ended, run.accepted);
        release(&run, &world);
    }
}

/* --- a policy that errs ------------------------------------------------------------------ */

static uint32_t decisions;
static const struct policy *sound;

/* Every second plan is wrong: half a gang, or no plan at all. */
static int errs_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    int r = sound->decide(self, view, plan, scratch, err);
    if (r < 0)
        return r;
    if (decisions++ % 2 == 0)
        return 0;
    for (job_id job = 0; job < view->job_max; job++) {
        struct ask half = ASK_DEFAULT;
        half.gpus = view->jobs[job].gpus / 2;
        if (view->jobs[job].state == JOB_WAITING && !plan_holds(plan, job) &&
            half.gpus > 0 && !job_is_elastic(&view->jobs[job]))
            plan_grant(plan, job, &half);
    }
    for (job_id job = 0; job < view->job_max; job++)
        if (job_is_preemptible(&view->jobs[job]) && !plan_changes(plan, job))
            plan_revoke(plan, job, RULE_ORDER, JOB_NONE);
    plan_wake(plan, view->now_ns + 1); /* call again */
    return decisions % 4 == 0 ? -EINVAL : -EDOM;
}

static void a_discarded_plan_leaves_the_cluster_as_it_was(void **state)
{
    FOR_EACH_SEED(seed, SEEDS / 2 + 1)
    for (const struct policy *const *p = policy_list; *p; p++) {
        struct random_world world;
        struct engine_run run;
        struct policy errs = **p;
        sound = *p;
        errs.decide = errs_decide;
        decisions = 0;
        random_world_make(&world, &kinds[seed.now % 2], seed.now);
        world.setup.policy = &errs;
        engine_run_play(&run,
                        &world.setup); /* the accounts are checked after every event */

        assert_true(run.engine.refused_count > 0);
        assert_int_equal(run.ended, run.accepted);
        release(&run, &world);
    }
}

static int half_gang_decide(void *self, const struct view *view, struct plan *plan,
                            struct arena *scratch, struct error *err)
{
    struct ask half = ASK_DEFAULT;
    half.gpus = 2;
    assert_true(plan_grant(plan, 0, &half));
    return 0;
}

static void half_a_gang_is_refused_and_the_reason_kept(void **state)
{
    const struct policy halves = { .name = "halves",
                                   .self_size = 1,
                                   .decide = half_gang_decide };
    const struct job_spec spec = { .gpus = 4, .steps = 10 };
    struct random_world world;
    struct engine_run run;
    random_world_make(&world, &(struct random_world_setup){ .plain = true }, 1);
    struct cluster cluster;
    cluster_load(&cluster, &world.arena, "1xv100:4", NULL);
    engine_run_play(&run, &(struct engine_run_setup){ .cluster = &cluster,
                                                      .policy = &halves,
                                                      .specs = &spec,
                                                      .spec_count = 1 });

    assert_int_equal(run.engine.refused_count, 1);
    assert_string_equal(run.engine.refusal->text,
                        "job 1 is granted 2 accelerators, its gang is 4");
    assert_int_equal(run.engine.state.jobs[0].state, JOB_WAITING);
    assert_int_equal(run.engine.state.free.gpu_count, 4);
    release(&run, &world);
}

RUN_CASES(TEST(half_a_gang_is_refused_and_the_reason_kept),
          TEST(the_state_is_consistent_and_every_job_ends_once),
          TEST(no_job_waits_while_nodes_it_may_use_have_room),
          TEST(the_same_seed_gives_the_same_run),
          TEST(an_executor_that_reports_everything_twice_changes_nothing),
          TEST(jobs_that_learn_are_resized_and_end_once),
          TEST(a_discarded_plan_leaves_the_cluster_as_it_was));
