/*
 * What holds for the accounts of every run: GPU-time held is useful work and overhead,
 * nothing else; shares are shares; times fit together.
 */
#include "support/random_world.h"

#include <math.h>

#include "metrics/summary.h"

#ifndef SEEDS
#define SEEDS 60
#endif
#define JOBS 60

static const struct random_world_setup kinds[] = {
    { .jobs = JOBS, .plain = true },
    { .jobs = JOBS, .one_speed = true, .impossible = true },
    { .jobs = JOBS, .one_speed = true, .wrong_estimates = true, .unknown_work = true },
    { .jobs = JOBS, .one_speed = true, .faults = true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* A step takes a second everywhere: the useful work of ended jobs is known. */
static double useful_gpu_s(const struct random_world *world,
                           const struct engine_run *run)
{
    double sum = 0;
    for (uint32_t i = 0; i < JOBS; i++)
        if (run->ends[i + 1])
            sum += world->specs[i].steps * world->specs[i].gpus;
    return sum;
}

static void check_figures(const struct summary *summary)
{
    double utilization = summary_value(summary, "gpu_utilization");
    if (!isnan(utilization)) {
        assert_true(utilization >= 0);
        assert_true(utilization <= 1 + 1e-9);
    }
    static const char *const groups[] = { "jct_s", "wait_s", "slowdown.all",
                                          "slowdown.te", "slowdown.be" };
    static const char *const ranks[] = { "p50", "p95", "p99", "max" };
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        double last = g < 2 ? 0 : 1; /* no job is faster than alone */
        for (size_t i = 0; i < 4; i++) {
            char id[64];
            snprintf(id, sizeof id, "%s.%s", groups[g], ranks[i]);
            double value = summary_value(summary, id);
            if (isnan(value))
                continue;
            assert_true(value >= last - 1e-9);
            last = value;
        }
    }
}

static void time_held_is_work_and_overhead(void **state)
{
    uint32_t compared = 0;
    FOR_EACH_SEED(seed, SEEDS)
    for (const struct policy *const *p = policy_list; *p; p++) {
        struct random_world world;
        struct engine_run run;
        struct summary summary;
        random_world_make(&world, &kinds[seed.now % KINDS], seed.now);
        world.setup.policy = *p;
        world.setup.unchecked = true;
        engine_run_play(&run, &world.setup);
        const struct metrics *metrics = &run.metrics;
        summary_make(&summary, metrics, NULL, NULL, &world.cluster);
        check_figures(&summary);
        assert_int_equal(metrics->total, run.accepted + run.rejected);
        assert_int_equal(metrics->completed + metrics->failed, run.ended);
        assert_int_equal(metrics->rejected, run.rejected);

        if (run.ended == run.accepted) {
            double held_s = 0;
            double overhead_s = 0;
            for (uint32_t t = 0; t < world.cluster.type_count; t++)
                held_s += (double)metrics->held_by_type_ns[t] * 1e-9;
            for (int i = 0; i < OVERHEAD_COUNT; i++) {
                assert_true(metrics->overhead_ns[i] >= 0);
                overhead_s += (double)metrics->overhead_ns[i] * 1e-9;
            }
            assert_near(held_s, useful_gpu_s(&world, &run) + overhead_s, 1e-3);
            assert_int_equal(metrics->gpus_held, 0);
            assert_int_equal(metrics->waiting, 0);
            assert_int_equal(metrics->running, 0);
            compared++;
        }
        engine_run_release(&run);
        random_world_release(&world);
    }
    assert_true(getenv("BERTH_SEED") || compared > SEEDS);
}

RUN_CASES(TEST(time_held_is_work_and_overhead));
