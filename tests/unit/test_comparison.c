/* Several policies over several seeds: means, intervals, and the same on any core. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "study/comparison.h"

/* Runs with these values of the first figure, one policy. */
static struct comparison_interval estimate_of(const double *values, uint32_t count)
{
    struct comparison comparison = { .policy_count = 1, .seed_count = count };
    comparison.runs = calloc(count, sizeof *comparison.runs);
    assert_non_null(comparison.runs);
    for (uint32_t i = 0; i < count; i++)
        comparison.runs[i].result.summary.values[0] = values[i];
    struct comparison_interval estimate = comparison_estimate(&comparison, 0, 0);
    free(comparison.runs);
    return estimate;
}

static void the_interval_uses_students_t(void **state)
{
    /* Mean 4, deviation 2, of 3: 4.303 x 2 / sqrt(3). */
    struct comparison_interval estimate = estimate_of((double[]){ 2, 4, 6 }, 3);
    assert_near(estimate.mean, 4, 1e-12);
    assert_near(estimate.half, 4.303 * 2 / sqrt(3), 1e-9);
    assert_int_equal(estimate.count, 3);
}

static void one_seed_has_no_interval(void **state)
{
    struct comparison_interval estimate = estimate_of((double[]){ 7 }, 1);
    assert_near(estimate.mean, 7, 0);
    assert_true(isnan(estimate.half));
}

static void seeds_for_which_it_does_not_apply_are_left_out(void **state)
{
    struct comparison_interval estimate = estimate_of((double[]){ 1, NAN, 3 }, 3);
    assert_near(estimate.mean, 2, 1e-12);
    assert_int_equal(estimate.count, 2);
    assert_near(estimate.half, 12.706 * sqrt(2) / sqrt(2), 1e-9);
    estimate = estimate_of((double[]){ NAN, NAN }, 2);
    assert_int_equal(estimate.count, 0);
    assert_true(isnan(estimate.mean));
}

static void the_same_seed_gives_every_policy_the_same_jobs(void **state)
{
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct error err;
    arena_init(&arena, 0);
    assert_int_equal(cluster_load(&cluster, &arena, "4xv100:4", &err), 0);
    throughput_init(&rates, &cluster);
    struct comparison comparison = { .cluster_text = "4xv100:4",
                                     .workload_text = "synthetic:jobs=40,load=0.8",
                                     .command = "berth compare",
                                     .cluster = &cluster,
                                     .policies = { "fifo", "fifo", "srtf" },
                                     .policy_count = 3,
                                     .first_seed = 3,
                                     .seed_count = 2 };
    struct sim_setup like = { .cluster = &cluster,
                              .rates = &rates,
                              .workload = comparison.workload_text };
    if (comparison_run(&comparison, &like, NULL, NULL, &err) < 0)
        fail_msg("%s", err.text);

    double seeds_differ = 0;
    for (int f = 0; summary_figures[f].id; f++) {
        for (uint32_t s = 0; s < 2; s++) {
            double a = comparison.runs[s].result.summary.values[f];
            double b = comparison.runs[2 + s].result.summary.values[f];
            assert_true(a == b || (isnan(a) && isnan(b)));
        }
        double other = comparison.runs[0].result.summary.values[f] -
                       comparison.runs[1].result.summary.values[f];
        seeds_differ += isnan(other) ? 0 : fabs(other);
    }
    assert_true(seeds_differ > 0);
    for (uint32_t i = 0; i < 6; i++)
        assert_near(summary_value(&comparison.runs[i].result.summary, "jobs.completed"),
                    40, 0);

    struct json *json = comparison_json(&comparison);
    assert_int_equal(json_count(json_get(json, "seeds")), 2);
    json_free(json);
    struct json *page = comparison_page(&comparison);
    assert_non_null(page);
    json_free(page);
    comparison_release(&comparison);
    arena_release(&arena);
}

RUN_CASES(TEST(the_interval_uses_students_t), TEST(one_seed_has_no_interval),
          TEST(seeds_for_which_it_does_not_apply_are_left_out),
          TEST(the_same_seed_gives_every_policy_the_same_jobs));
