/* GPUs by gain, against every possible division; and evenly. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "policy/shared/gains.h"

#define JOBS 4
#define EPOCH_S 3.0

static double uniform(struct rng *rng, double min, double max)
{
    return min + (max - min) * rng_unit(rng);
}

static struct gains_job drawn(struct rng *rng, bool concave)
{
    struct gains_job job = { .least = 1 + rng_below(rng, 2),
                             .ahead.family =
                                 rng_below(rng, 2) ? FAMILY_EXP : FAMILY_INV,
                             .ahead.height = uniform(rng, 0.01, 1),
                             .ahead.rate = uniform(rng, 0.01, 0.5),
                             .ahead.a = uniform(rng, 0, 0.02),
                             .ahead.b = uniform(rng, 0.2, 0.6),
                             .ahead.c = uniform(rng, 1, 2),
                             .ahead.scale = uniform(rng, 0.5, 1),
                             .ahead.left = rng_below(rng, 3) ? INFINITY : 3,
                             .work_s = uniform(rng, 1, 20),
                             .fixed_s = uniform(rng, 0, 1) };
    job.most = job.least + rng_below(rng, 10);
    if (!concave) {
        job.ahead.family = FAMILY_INV;
        job.ahead.b = 0;
        job.ahead.a = uniform(rng, 0.01, 3);
    }
    return job;
}

/* The largest possible total gain. */
static double best_of(const struct gains_job *jobs, uint32_t count, uint32_t gpus)
{
    if (count == 0)
        return 0;
    double best = -INFINITY;
    for (uint32_t u = jobs->least; u <= jobs->most && u <= gpus; u++)
        best = fmax(best, gains_of(jobs, u, EPOCH_S) +
                              best_of(jobs + 1, count - 1, gpus - u));
    return best;
}

static double total(const struct gains_job *jobs, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += gains_of(&jobs[i], jobs[i].gpus, EPOCH_S);
    return sum;
}

/* Within bounds, and nothing is left over that could be used. */
static void check(const struct gains_job *drawn_jobs, const struct gains_job *jobs,
                  uint32_t gpus, uint32_t over)
{
    uint32_t sum = 0;
    bool full = true;
    for (uint32_t i = 0; i < JOBS; i++) {
        assert_true(jobs[i].gpus >= drawn_jobs[i].least);
        assert_true(jobs[i].gpus <= drawn_jobs[i].most);
        full = full && jobs[i].gpus == drawn_jobs[i].most;
        sum += jobs[i].gpus;
    }
    assert_int_equal(sum + over, gpus);
    assert_true(over == 0 || full);
}

static void concave_gains_are_shared_as_well_as_can_be(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "concave");
    for (uint32_t round = 0; round < 400; round++) {
        struct gains_job before[JOBS], jobs[JOBS];
        struct gains_heap heap[JOBS];
        for (uint32_t i = 0; i < JOBS; i++)
            before[i] = drawn(&rng, true);
        memcpy(jobs, before, sizeof jobs);
        uint32_t gpus = 2 * JOBS + rng_below(&rng, 20);
        uint32_t over = gains_share(jobs, JOBS, gpus, EPOCH_S, heap);
        check(before, jobs, gpus, over);
        double best = best_of(before, JOBS, gpus);
        assert_true(total(jobs, JOBS) >= best - 1e-12);
    }
}

static void flat_starts_of_curves_are_passed(void **state)
{
    struct rng rng;
    rng_init(&rng, 2, "convex");
    double got = 0;
    double possible = 0;
    for (uint32_t round = 0; round < 200; round++) {
        struct gains_job before[JOBS], jobs[JOBS];
        struct gains_heap heap[JOBS];
        for (uint32_t i = 0; i < JOBS; i++)
            before[i] = drawn(&rng, i % 2);
        memcpy(jobs, before, sizeof jobs);
        uint32_t gpus = 2 * JOBS + rng_below(&rng, 20);
        uint32_t over = gains_share(jobs, JOBS, gpus, EPOCH_S, heap);
        check(before, jobs, gpus, over);
        double best = best_of(before, JOBS, gpus);
        assert_true(total(jobs, JOBS) >= 0.7 * best);
        got += total(jobs, JOBS);
        possible += best;
    }
    assert_true(got >= 0.99 * possible);
}

/* One more GPU brings the first less than the second, eight more much more. */
static void a_job_that_needs_many_gets_many(void **state)
{
    struct gains_job jobs[2] = {
        { .least = 1,
          .most = 16,
          .ahead.family = FAMILY_INV,
          .ahead.a = 0.005,
          .ahead.c = 1,
          .ahead.scale = 1,
          .ahead.left = INFINITY,
          .work_s = 3 },
        { .least = 1,
          .most = 16,
          .ahead.family = FAMILY_EXP,
          .ahead.height = 1,
          .ahead.rate = 0.02,
          .ahead.scale = 1,
          .ahead.left = INFINITY,
          .work_s = 3 },
    };
    struct gains_heap heap[2];
    double one = gains_of(&jobs[0], 2, EPOCH_S) - gains_of(&jobs[0], 1, EPOCH_S);
    double other = gains_of(&jobs[1], 2, EPOCH_S) - gains_of(&jobs[1], 1, EPOCH_S);
    assert_true(one < other);
    assert_int_equal(gains_share(jobs, 2, 10, EPOCH_S, heap), 0);
    assert_int_equal(jobs[0].gpus, 9);
    assert_int_equal(jobs[1].gpus, 1);
}

static void gpus_that_bring_nothing_are_divided_evenly(void **state)
{
    struct gains_job jobs[3] = { { .least = 1, .most = 9 },
                                 { .least = 1, .most = 2 },
                                 { .least = 4, .most = 9 } };
    struct gains_heap heap[3];
    assert_int_equal(gains_share(jobs, 3, 13, EPOCH_S, heap), 0);
    assert_int_equal(jobs[0].gpus, 6); /* the odd one goes to the first job */
    assert_int_equal(jobs[1].gpus, 2);
    assert_int_equal(jobs[2].gpus, 5);
}

/* No GPU could move from a job with more to one with less. */
static void the_smallest_share_is_as_large_as_can_be(void **state)
{
    struct rng rng;
    rng_init(&rng, 3, "level");
    for (uint32_t round = 0; round < 500; round++) {
        struct gains_job before[JOBS], jobs[JOBS];
        for (uint32_t i = 0; i < JOBS; i++)
            before[i] = drawn(&rng, true);
        memcpy(jobs, before, sizeof jobs);
        uint32_t gpus = 2 * JOBS + rng_below(&rng, 40);
        uint32_t over = gains_level(jobs, JOBS, gpus);
        check(before, jobs, gpus, over);
        for (uint32_t i = 0; i < JOBS; i++)
            for (uint32_t k = 0; k < JOBS; k++)
                assert_false(jobs[i].gpus > before[i].least &&
                             jobs[k].gpus < before[k].most &&
                             jobs[i].gpus > jobs[k].gpus + 1);
    }
}

static void without_gpus_for_all_the_first_jobs_get_theirs(void **state)
{
    struct gains_job jobs[3] = { { .least = 2, .most = 4 },
                                 { .least = 3, .most = 4 },
                                 { .least = 1, .most = 4 } };
    assert_int_equal(gains_level(jobs, 3, 4), 0);
    assert_int_equal(jobs[0].gpus, 2);
    assert_int_equal(jobs[1].gpus, 0);
    assert_int_equal(jobs[2].gpus, 2);
}

static void a_declared_curve_gains_what_its_losses_say(void **state)
{
    static const char *const texts[] = { "exp:mu=0.9,kmax=60", "inv:a=0.01,b=0.2,c=3",
                                         "inv:a=0.02,b=0.4,kmax=60",
                                         "acc:tau=12,last=0.8" };
    for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct learning curve;
        assert_int_equal(learning_parse_points(&curve, texts[i], NULL, NULL), 0);
        double way = learning_loss(&curve, 0) - learning_loss(&curve, 60);
        for (double at = 0; at < 60; at += 7) {
            struct gains_job job = { .work_s = 8 };
            job.ahead = curve_ahead_declared(&curve, at, 60);
            double then = fmin(at + 5, 60); /* on 4 GPUs a step takes 2 s */
            double want =
                (learning_loss(&curve, at) - learning_loss(&curve, then)) / way;
            assert_near(gains_of(&job, 4, 10), want, 1e-12);
        }
    }
}

/* Worth 9 to 1 and 16 to 4 GPUs at half efficiency: the square root of 36 to 1. */
static void by_seconds_a_job_has_the_root_of_its_worth(void **state)
{
    struct gains_job jobs[2] = {
        { .least = 1, .most = 1000, .second = 9, .half_gpus = 16 },
        { .least = 1, .most = 1000, .second = 1, .half_gpus = 4 },
    };
    struct gains_heap heap[2];
    assert_int_equal(gains_share(jobs, 2, 700, EPOCH_S, heap), 0);
    assert_int_equal(jobs[0].gpus, 600);
    assert_int_equal(jobs[1].gpus, 100);
}

static void a_pause_is_set_against_the_seconds_saved(void **state)
{
    struct gains_job job = { .second = 2, .half_gpus = 8 };
    /* From 8 GPUs to 16 a second saves 8 (1/8 - 1/16), and a paused one costs 1 + 8/8. */
    assert_near(gains_of_resize(&job, 8, 16, 10, 0), 2 * 10 * 0.5, 1e-12);
    assert_near(gains_of_resize(&job, 8, 16, 10, 1), 2 * (9 * 0.5 - 2), 1e-12);
    assert_true(gains_of_resize(&job, 8, 16, 10, 3) < 0);
    assert_near(gains_of_resize(&job, 8, 4, 10, 0), -2 * 10 * 1.0, 1e-12);
    assert_false(gains_are_unknown(&job));
    assert_true(gains_are_unknown(&(struct gains_job){ .least = 1 }));
}

RUN_CASES(TEST(by_seconds_a_job_has_the_root_of_its_worth),
          TEST(a_pause_is_set_against_the_seconds_saved),
          TEST(concave_gains_are_shared_as_well_as_can_be),
          TEST(flat_starts_of_curves_are_passed), TEST(a_job_that_needs_many_gets_many),
          TEST(gpus_that_bring_nothing_are_divided_evenly),
          TEST(the_smallest_share_is_as_large_as_can_be),
          TEST(without_gpus_for_all_the_first_jobs_get_theirs),
          TEST(a_declared_curve_gains_what_its_losses_say));
