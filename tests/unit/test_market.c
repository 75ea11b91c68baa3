/* Small markets solved by hand, and what must stay the same. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "solve/prices/batch.h"
#include "solve/random_programme.h"
#include "solve/maxmin/market.h"

static struct market_answer solved(struct market *market)
{
    struct market_answer answer;
    assert_int_equal(market_solve(market, 1e-7, &answer, NULL), 0);
    return answer;
}

static struct buyer one(const double *rate)
{
    return (struct buyer){ .rate = rate, .gang = 1, .need = 1 };
}

static void without_jobs_the_level_is_0(void **state)
{
    struct market *market = market_new(2, (double[]){ 1, 1 }, 4);
    struct market_answer answer = solved(market);
    assert_near(answer.level, 0, 0);
    assert_near(answer.bound, 0, 0);
    market_free(market);
}

static void two_equals_share_one_gpu(void **state)
{
    struct market *market = market_new(1, (double[]){ 1 }, 2);
    struct buyer buyer = one((double[]){ 3 });
    double x[1];
    market_put(market, 0, &buyer);
    market_put(market, 1, &buyer);
    struct market_answer answer = solved(market);
    assert_near(answer.level, 1.5, 1e-9);
    market_share(market, 1, x);
    assert_near(x[0], 0.5, 1e-9);
    market_free(market);
}

static void each_goes_where_it_is_better_off(void **state)
{
    /* One runs 4 times as fast on the second type, the other but 1.25 times. */
    struct market *market = market_new(2, (double[]){ 1, 1 }, 2);
    struct buyer sensitive = one((double[]){ 1, 4 }), robust = one((double[]){ 4, 5 });
    double x[2];
    market_put(market, 0, &sensitive);
    market_put(market, 1, &robust);
    struct market_answer answer = solved(market);
    assert_near(answer.level, 4, 1e-6);
    market_share(market, 0, x);
    assert_near(x[1], 1, 1e-6);
    market_free(market);
}

static void a_job_that_is_slow_everywhere_holds_the_level_down(void **state)
{
    struct market *market = market_new(2, (double[]){ 50, 50 }, 3);
    struct buyer slow = one((double[]){ 0.5, 0.25 }), fast = one((double[]){ 3, 9 });
    market_put(market, 0, &fast);
    market_put(market, 1, &slow);
    market_put(market, 2, &fast);
    struct market_answer answer = solved(market);
    assert_near(answer.level, 0.5, 1e-9);
    assert_near(answer.bound, 0.5, 1e-9);

    market_drop(market, 1);
    answer = solved(market);
    assert_near(answer.level, 9, 1e-8);
    market_free(market);
}

static void a_job_that_can_run_nowhere_makes_the_level_0(void **state)
{
    struct market *market = market_new(2, (double[]){ 4, 0 }, 2);
    struct buyer fine = one((double[]){ 1, 1 }), lost = one((double[]){ 0, 1 });
    double x[2];
    market_put(market, 0, &fine);
    market_put(market, 1, &lost);
    struct market_answer answer = solved(market);
    assert_near(answer.bound, 0, 0);
    market_share(market, 0, x);
    assert_near(x[0], 0, 0);

    market_set_capacity(market, (double[]){ 4, 1 });
    answer = solved(market);
    assert_near(answer.level, 1, 1e-9);
    market_free(market);
}

static void without_capacity_the_level_is_0(void **state)
{
    struct market *market = market_new(2, (double[]){ 0, 0 }, 1);
    struct buyer buyer = one((double[]){ 1, 1 });
    market_put(market, 0, &buyer);
    assert_near(solved(market).bound, 0, 0);
    market_free(market);
}

static void finish_times_are_level_by_the_formula(void **state)
{
    /* One type, two jobs: z / (1 - z) x 2 GPUs' worth on one GPU: z = 1/3. */
    struct market *market = market_new(1, (double[]){ 1 }, 2);
    struct buyer buyer = one((double[]){ 1 });
    buyer.ahead = 1;
    market_put(market, 0, &buyer);
    market_put(market, 1, &buyer);
    assert_near(solved(market).level, 1 / 3.0, 1e-7);
    market_free(market);
}

static void a_job_that_came_after_the_solution_has_no_share_yet(void **state)
{
    struct market *market = market_new(1, (double[]){ 1 }, 2);
    struct buyer buyer = one((double[]){ 1 });
    double x[1];
    market_put(market, 0, &buyer);
    solved(market);
    market_put(market, 1, &buyer);
    market_share(market, 1, x);
    assert_near(x[0], 0, 0);
    market_share(market, 0, x);
    assert_near(x[0], 1, 1e-9);
    market_free(market);
}

#define COUNT 3300

/* Solve a random programme, replace some jobs, solve again; all results, as bytes. */
static void play(const struct random_programme *drawn, enum random_goal goal,
                 struct market_answer *ret, double *ret_x)
{
    double rates[16];
    struct market *market = market_new(drawn->type_count, drawn->capacity, COUNT);
    for (uint32_t j = 0; j < COUNT; j++) {
        struct buyer buyer = random_programme_buyer(drawn, goal, j, rates);
        market_put(market, j, &buyer);
    }
    ret[0] = solved(market);
    for (uint32_t j = 0; j < 20; j++) {
        struct buyer buyer = random_programme_buyer(drawn, goal, j + 100, rates);
        market_put(market, j * 7, &buyer);
        ret[1] = solved(market);
    }
    for (uint32_t j = 0; j < COUNT; j++)
        market_share(market, j, ret_x + j * drawn->type_count);
    market_free(market);
}

static void the_vector_unit_makes_no_difference(void **state)
{
    for (uint32_t turn = 0; turn < 4; turn++) {
        struct arena arena;
        struct random_programme drawn;
        arena_init(&arena, 0);
        random_programme_make(
            &drawn, &arena,
            &(struct random_programme_setup){ .job_count = COUNT,
                                              .type_count = turn == 3 ? 7 : 3,
                                              .jobs_per_gpu = turn == 1 ? 1.7 : 5,
                                              .noise = 0.15,
                                              .seed = turn });
        enum random_goal goal = turn == 2 ? RANDOM_FINISH_TIME : RANDOM_MAX_MIN;
        size_t cells = (size_t)COUNT * drawn.type_count;
        double *x = arena_array(&arena, double, cells);
        double *y = arena_array(&arena, double, cells);
        struct market_answer first[2], other[2];
        batch_use_vectors(VECTORS_PORTABLE);
        play(&drawn, goal, first, x);
        for (enum vectors v = VECTORS_AVX2; v <= VECTORS_AVX512; v++) {
            batch_use_vectors(v);
            play(&drawn, goal, other, y);
            assert_memory_equal(first[0].price, other[0].price, sizeof first[0].price);
            assert_memory_equal(first[1].price, other[1].price, sizeof first[1].price);
            assert_true(first[1].level == other[1].level);
            assert_true(first[1].bound == other[1].bound);
            assert_memory_equal(x, y, cells * sizeof *x);
        }
        batch_use_vectors(VECTORS_WIDEST);
        arena_release(&arena);
    }
}

RUN_CASES(TEST(without_jobs_the_level_is_0), TEST(two_equals_share_one_gpu),
          TEST(each_goes_where_it_is_better_off),
          TEST(a_job_that_is_slow_everywhere_holds_the_level_down),
          TEST(a_job_that_can_run_nowhere_makes_the_level_0),
          TEST(without_capacity_the_level_is_0),
          TEST(finish_times_are_level_by_the_formula),
          TEST(a_job_that_came_after_the_solution_has_no_share_yet),
          TEST(the_vector_unit_makes_no_difference));
