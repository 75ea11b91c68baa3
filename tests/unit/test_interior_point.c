/* test_interior_point.c - the analytic centre of all optimal shares. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "solve/solve.h"
#include "solve/lp/lp.h"

#define JOBS_MAX 40
#define TYPES 3

ARENA_FIXTURE(arena);
static struct error err;
static double x[JOBS_MAX * TYPES];

/* A cluster with equal types is shared out equally. */
static void equals_share_equally(void **state)
{
    const double capacity[TYPES] = { 1, 1, 1 };
    const double gang[4] = { 1, 1, 1, 1 };
    const double rate[4 * TYPES] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const double need[4] = { 1, 1, 1, 1 };
    struct interior_point centre = { .job_count = 4,
                                     .type_count = TYPES,
                                     .capacity = capacity,
                                     .gang = gang,
                                     .rate = rate,
                                     .need = need };
    assert_int_equal(interior_point_solve(&centre, &arena, x, &err), 0);
    for (uint32_t i = 0; i < 4 * TYPES; i++)
        assert_near(x[i], 0.25, 1e-6);
}

/*
 * Two jobs need half their time each on one type of two: both are far from every bound.
 */
static void what_is_not_needed_is_left_in_the_middle(void **state)
{
    const double capacity[2] = { 10, 10 };
    const double gang[1] = { 1 };
    const double rate[2] = { 1, 1 };
    const double need[1] = { 1 };
    struct interior_point centre = { .job_count = 1,
                                     .type_count = 2,
                                     .capacity = capacity,
                                     .gang = gang,
                                     .rate = rate,
                                     .need = need,
                                     .enough = 0.25 };
    assert_int_equal(interior_point_solve(&centre, &arena, x, &err), 0);
    assert_near(x[0], x[1], 1e-9);
    assert_true(x[0] + x[1] > 0.25 && x[0] + x[1] < 1);
    /* The middle of x0, x1, 1 - x0 - x1, x0 + x1 - 1/4, 10 - x: no neighbour is better. */
    double best =
        2 * log(x[0]) + log(1 - 2 * x[0]) + log(2 * x[0] - 0.25) + 2 * log(10 - x[0]);
    for (double by = -1e-3; by <= 1e-3; by += 2e-3) {
        double y = x[0] + by;
        assert_true(best >
                    2 * log(y) + log(1 - 2 * y) + log(2 * y - 0.25) + 2 * log(10 - y));
    }
}

struct drawn_problem {
    uint32_t count;
    double capacity[TYPES], gang[JOBS_MAX], rate[JOBS_MAX * TYPES], need[JOBS_MAX];
};

static void draw(struct rng *rng, struct drawn_problem *drawn)
{
    drawn->count = 1 + rng_below(rng, JOBS_MAX);
    for (uint32_t t = 0; t < TYPES; t++)
        drawn->capacity[t] = 1 + rng_below(rng, 12);
    for (uint32_t j = 0; j < drawn->count; j++) {
        drawn->gang[j] = 1 << rng_below(rng, 3);
        drawn->need[j] = 0.1 + rng_unit(rng);
        for (uint32_t t = 0; t < TYPES; t++)
            drawn->rate[j * TYPES + t] =
                t > 0 && rng_below(rng, 10) == 0 ? 0 : 0.1 + 5 * rng_unit(rng);
    }
}

/* The optimum by the general solver; rows: time of jobs, capacities, needs. */
static double optimum(const struct drawn_problem *drawn, bool levels)
{
    struct lp *lp = lp_new();
    for (uint32_t j = 0; j < drawn->count; j++)
        lp_add_row(lp, -LP_INFINITY, 1);
    for (uint32_t t = 0; t < TYPES; t++)
        lp_add_row(lp, -LP_INFINITY, drawn->capacity[t]);
    for (uint32_t j = 0; levels && j < drawn->count; j++)
        lp_add_row(lp, 0, LP_INFINITY);
    for (uint32_t j = 0; j < drawn->count; j++)
        for (uint32_t t = 0; t < TYPES; t++) {
            double rate = drawn->rate[j * TYPES + t];
            uint32_t rows[3] = { j, drawn->count + t, drawn->count + TYPES + j };
            double entries[3] = { 1, drawn->gang[j], rate };
            lp_add_column(lp, levels ? 0 : rate, 0, 1, levels ? 3 : 2, rows, entries);
        }
    uint32_t rows[JOBS_MAX];
    double entries[JOBS_MAX];
    for (uint32_t j = 0; j < drawn->count; j++) {
        rows[j] = drawn->count + TYPES + j;
        entries[j] = -drawn->need[j];
    }
    if (levels)
        lp_add_column(lp, 1, 0, LP_INFINITY, drawn->count, rows, entries);
    assert_int_equal(lp_maximise(lp, LP_DUAL), LP_OPTIMAL);
    double best = lp_objective(lp);
    lp_free(lp);
    return best;
}

static void assert_feasible(const struct drawn_problem *drawn)
{
    double used[TYPES] = { 0 };
    for (uint32_t j = 0; j < drawn->count; j++) {
        double time = 0;
        for (uint32_t t = 0; t < TYPES; t++) {
            assert_true(x[j * TYPES + t] > 0);
            time += x[j * TYPES + t];
            used[t] += drawn->gang[j] * x[j * TYPES + t];
        }
        assert_true(time < 1);
    }
    for (uint32_t t = 0; t < TYPES; t++)
        assert_true(used[t] < drawn->capacity[t]);
}

/* In the middle, and yet as good as the best. */
static void the_middle_is_optimal(void **state)
{
    struct rng rng;
    struct drawn_problem drawn;
    rng_init(&rng, 7, "centre");
    for (uint32_t i = 0; i < 300; i++) {
        draw(&rng, &drawn);
        struct interior_point centre = { .job_count = drawn.count,
                                         .type_count = TYPES,
                                         .capacity = drawn.capacity,
                                         .gang = drawn.gang,
                                         .rate = drawn.rate };
        bool levels = i % 2;
        centre.need = levels ? drawn.need : NULL;
        centre.value = levels ? NULL : drawn.rate;
        arena_reset(&arena);
        assert_int_equal(interior_point_solve(&centre, &arena, x, &err), 0);
        assert_feasible(&drawn);
        double reached = levels ? INFINITY : 0;
        for (uint32_t j = 0; j < drawn.count; j++) {
            double rate = 0;
            for (uint32_t t = 0; t < TYPES; t++)
                rate += drawn.rate[j * TYPES + t] * x[j * TYPES + t];
            reached = levels ? fmin(reached, rate / drawn.need[j]) : reached + rate;
        }
        double best = optimum(&drawn, levels);
        assert_near(reached / best, 1, 1e-6);
    }
}

RUN_GROUP(setup, teardown, TEST(equals_share_equally),
          TEST(what_is_not_needed_is_left_in_the_middle), TEST(the_middle_is_optimal));
