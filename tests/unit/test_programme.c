/* Shares by goal: small instances solved by hand, with both engines. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/problem.h"
#include "solve/solve.h"

#define EXACT 1e-7

static struct arena arena;
static struct shares shares;
static struct error err;
static enum solve_engine engine;

/* Solve it with the engine of this case; shares must fit and be proven. */
static void solve(const struct programme *programme)
{
    int r = programme_solve(programme, engine, NULL, &arena, &shares, &err);
    assert_int_equal(r, 0);
    struct problem frame;
    problem_init(&frame, programme, &arena);
    assert_true(problem_load(&frame, shares.x) <= 1 + 1e-9);
    for (size_t i = 0; i < (size_t)frame.line_count * programme->type_count; i++)
        assert_true(shares.x[i] >= 0);
    assert_true(shares.gap <= 1e-6);
}

static void refused(const struct programme *programme, const char *says)
{
    int r = programme_solve(programme, engine, NULL, &arena, &shares, &err);
    assert_int_equal(r, -EINVAL);
    if (!strstr(err.text, says))
        print_error("\"%s\" does not say \"%s\"\n", err.text, says);
    assert_non_null(strstr(err.text, says));
}

static double rate_of(const struct programme *programme, uint32_t job)
{
    struct problem frame;
    double rates[64];
    problem_init(&frame, programme, &arena);
    problem_rates(&frame, shares.x, rates);
    return rates[job];
}

/* One type, as many jobs as rates given. */
#define ONE_TYPE(goal_, capacity_, ...) \
    { \
        .goal = goal_, \
        .job_count = sizeof((double[]){ __VA_ARGS__ }) / sizeof(double), \
        .type_count = 1, .capacity = (double[]){ capacity_ }, \
        .gang = (double[]){ 1, 1, 1, 1, 1, 1 }, .rate = (double[]) \
        { \
            __VA_ARGS__ \
        } \
    }

/* --- the least level --- */

static void a_job_alone_has_its_fastest_type(void **state)
{
    struct programme p = { .goal = GOAL_MAX_MIN,
                           .job_count = 1,
                           .type_count = 2,
                           .capacity = (double[]){ 2, 2 },
                           .gang = (double[]){ 1 },
                           .rate = (double[]){ 1, 3 } };
    solve(&p);
    assert_near(shares.objective, 3.0 / 2.0, EXACT);
    assert_near(shares.x[1], 1, EXACT);
}

static void equals_share_equally(void **state)
{
    struct programme p = ONE_TYPE(GOAL_MAX_MIN, 1, 5, 5, 5, 5);
    solve(&p);
    assert_near(shares.objective, 0.25, EXACT);
    for (uint32_t j = 0; j < 4; j++)
        assert_near(shares.x[j], 0.25, EXACT);
}

static void twice_the_weight_is_twice_the_share(void **state)
{
    struct programme p = ONE_TYPE(GOAL_MAX_MIN, 1, 5, 5);
    p.weight = (double[]){ 1, 2 };
    solve(&p);
    assert_near(shares.x[0], 1.0 / 3, EXACT);
    assert_near(shares.x[1], 2.0 / 3, EXACT);
}

static void each_has_the_type_that_suits_it(void **state)
{
    struct programme p = { .goal = GOAL_MAX_MIN,
                           .job_count = 2,
                           .type_count = 2,
                           .capacity = (double[]){ 1, 1 },
                           .gang = (double[]){ 1, 1 },
                           .rate = (double[]){ 1, 9, 9, 1 } };
    solve(&p);
    assert_near(shares.objective, 9.0 / 5, EXACT);
    assert_near(shares.x[0 * 2 + 1], 1, EXACT);
    assert_near(shares.x[1 * 2 + 0], 1, EXACT);
}

static void a_job_that_runs_nowhere_lowers_no_level(void **state)
{
    struct programme p = ONE_TYPE(GOAL_MAX_MIN, 1, 5, 0, 5);
    solve(&p);
    assert_near(shares.objective, 0.5, EXACT);
    assert_true(shares.x[1] == 0);
}

static void a_weight_of_zero_gets_what_is_left(void **state)
{
    struct programme p = ONE_TYPE(GOAL_MAX_MIN, 3, 5, 5);
    p.weight = (double[]){ 1, 0 };
    p.tidy = true;
    solve(&p);
    assert_near(shares.objective, 1, EXACT);
    assert_near(shares.x[0], 1, 1e-6);
    assert_near(shares.x[1], 1, 1e-6);
}

static void a_gang_larger_than_its_type_has_part_of_the_time(void **state)
{
    struct programme p = ONE_TYPE(GOAL_MAX_MIN, 2, 5);
    p.gang = (double[]){ 8 };
    solve(&p);
    assert_near(shares.x[0], 0.25, EXACT);
}

static void tidy_leaves_no_capacity_unused(void **state)
{
    /* The slow job holds the level at 1; the other could have more, and gets it. */
    struct programme p = { .goal = GOAL_MAX_MIN,
                           .job_count = 2,
                           .type_count = 2,
                           .capacity = (double[]){ 1, 1 },
                           .gang = (double[]){ 1, 1 },
                           .rate = (double[]){ 4, 4, 0, 8 },
                           .weight = (double[]){ 2, 1 },
                           .tidy = true };
    solve(&p);
    assert_near(shares.objective, 0.5, EXACT);
    assert_near(shares.x[0] + shares.x[1], 1, 1e-6);
    assert_near(shares.x[3], 1, 1e-6);
}

/* --- times --- */

static void the_longest_job_makes_the_makespan(void **state)
{
    struct programme p = ONE_TYPE(GOAL_MAKESPAN, 1, 2, 1);
    p.steps = (double[]){ 10, 30 };
    solve(&p);
    assert_near(shares.objective, 35,
                35 * EXACT); /* 10/2 + 30/1, one after the other */
    p.capacity = (double[]){ 2 };
    solve(&p);
    assert_near(shares.objective, 30, 30 * EXACT);
}

static void a_job_without_steps_left_lowers_no_level(void **state)
{
    struct programme p = ONE_TYPE(GOAL_MAKESPAN, 1, 2, 1);
    p.steps = (double[]){ 10, 0 };
    solve(&p);
    assert_near(shares.objective, 5, EXACT);
    p.goal = GOAL_FINISH_TIME;
    p.age_s = (double[]){ 0, 100 };
    p.alone_s = (double[]){ 0, 0 };
    solve(&p);
    assert_near(shares.objective, 0.5, EXACT); /* alone it would have half */
}

static void finish_times_are_evened_out(void **state)
{
    /* Fair is 20 s for each; the first has waited 10 s and is owed for it. */
    struct programme p = ONE_TYPE(GOAL_FINISH_TIME, 1, 1, 1);
    p.steps = (double[]){ 10, 10 };
    p.age_s = (double[]){ 10, 0 };
    p.alone_s = (double[]){ 0, 0 };
    solve(&p);
    /* (10 + 10/x) / 20 = (10/(1-x)) / 20: x^2 + x - 1 = 0 */
    double x = (sqrt(5) - 1) / 2;
    assert_near(shares.x[0], x, 1e-6);
    assert_near(shares.objective, 0.5 / (1 - x), EXACT);
}

/* --- sums --- */

static void the_sum_takes_the_fast(void **state)
{
    struct programme p = ONE_TYPE(GOAL_SUM, 2, 3, 1, 2);
    solve(&p);
    assert_near(shares.objective, 5, EXACT);
    assert_near(shares.x[1], 0, EXACT);
}

static void a_price_turns_the_choice(void **state)
{
    struct programme p = { .goal = GOAL_SUM,
                           .job_count = 1,
                           .type_count = 2,
                           .capacity = (double[]){ 1, 1 },
                           .gang = (double[]){ 1 },
                           .rate = (double[]){ 10, 6 } };
    solve(&p);
    assert_near(shares.objective, 10, EXACT);
    p.price = (double[]){ 2, 1 };
    solve(&p);
    assert_near(shares.objective, 6, EXACT);
    assert_near(shares.x[1], 1, EXACT);
}

static void floors_are_kept(void **state)
{
    struct programme p = ONE_TYPE(GOAL_SUM, 1, 4, 1);
    p.floor = (double[]){ 0, 0.25 };
    solve(&p);
    assert_int_equal(shares.status, SHARES_OPTIMAL);
    assert_near(shares.objective, 3.25, 1e-6);
    assert_true(rate_of(&p, 1) >= 0.25 * (1 - 1e-8));
}

static void floors_that_cannot_be_kept_are_dropped_and_named(void **state)
{
    struct programme p = ONE_TYPE(GOAL_SUM, 1, 4, 1, 1);
    p.floor = (double[]){ 0, 2, 0.5 }; /* job 1 could not even alone */
    solve(&p);
    assert_int_equal(shares.status, SHARES_FLOORS_DROPPED);
    assert_near(shares.objective, 4, EXACT);
    assert_false(shares.unserved[0]);
    assert_true(shares.unserved[1]);
    assert_false(shares.unserved[2]);

    p.floor = (double[]){ 0, 0.75, 0.75 }; /* each could alone, not both */
    solve(&p);
    assert_int_equal(shares.status, SHARES_FLOORS_DROPPED);
    assert_false(shares.unserved[0]);
    assert_true(shares.unserved[1]);
    assert_true(shares.unserved[2]);
}

static void a_deadline_that_has_passed_cannot_be_kept(void **state)
{
    struct programme p = ONE_TYPE(GOAL_COST_RATIO, 1, 4, 1);
    p.floor = (double[]){ 0, INFINITY };
    p.price = (double[]){ 1 };
    solve(&p);
    assert_int_equal(shares.status, SHARES_FLOORS_DROPPED);
    assert_false(shares.unserved[0]);
    assert_true(shares.unserved[1]);
}

static void a_ratio_takes_the_best_bargain(void **state)
{
    struct programme p = { .goal = GOAL_COST_RATIO,
                           .job_count = 2,
                           .type_count = 2,
                           .capacity = (double[]){ 1, 1 },
                           .gang = (double[]){ 1, 2 },
                           .rate = (double[]){ 3, 8, 4, 8 },
                           .price = (double[]){ 1, 4 } };
    solve(&p); /* 3/1, 8/4, 4/2, 8/8 */
    assert_near(shares.objective, 3, EXACT);
    assert_near(shares.x[0], 1, 1e-6);
    p.floor = (double[]){ 0, 2 }; /* job 1 for half the time: rates 3 + 2, cost 1 + 1 */
    p.capacity = (double[]){ 2, 1 };
    solve(&p);
    assert_near(shares.objective, 5.0 / 2, 1e-6);
}

/* --- levels --- */

static void water_rises_where_it_can(void **state)
{
    /* Two share type 0, the third has type 1 to itself. */
    struct programme p = { .goal = GOAL_WATER_FILLING,
                           .job_count = 3,
                           .type_count = 2,
                           .capacity = (double[]){ 1, 1 },
                           .gang = (double[]){ 1, 1, 1 },
                           .rate = (double[]){ 1, 0, 1, 0, 0, 1 } };
    solve(&p);
    assert_near(shares.level[0], 1, EXACT);
    assert_near(shares.level[1], 1, EXACT);
    assert_near(shares.level[2], 2, EXACT);
    assert_near(shares.objective, 1, EXACT);
}

static void what_one_cannot_use_others_get(void **state)
{
    /* One job of weight 5 has a whole accelerator at most: a level of 0.2. */
    struct programme p = ONE_TYPE(GOAL_WATER_FILLING, 2, 1, 1, 1, 1);
    p.weight = (double[]){ 5, 1, 1, 0 };
    solve(&p);
    assert_near(shares.level[0], 0.2, EXACT);
    assert_near(shares.level[1], 0.5, EXACT);
    assert_near(shares.level[2], 0.5, EXACT);
    assert_near(shares.level[3], 0, EXACT);
}

/* The paper's own example: three entities, without rates; shares are then exact. */
static void groups_share_by_weight_and_jobs_within_them(void **state)
{
    double rate[18 * 3], gang[18], weight[18];
    uint32_t group[18];
    for (uint32_t j = 0; j < 18; j++) {
        gang[j] = 1;
        weight[j] = 1 + j % 2;
        group[j] = j / 6;
        for (uint32_t t = 0; t < 3; t++)
            rate[j * 3 + t] = 1;
    }
    struct programme p = { .goal = GOAL_HIERARCHICAL,
                           .job_count = 18,
                           .type_count = 3,
                           .group_count = 3,
                           .capacity = (double[]){ 3, 3, 3 },
                           .gang = gang,
                           .weight = weight,
                           .rate = rate,
                           .group = group,
                           .groups = (struct programme_group[]){
                               { 1, false }, { 2, false }, { 3, false } } };
    solve(&p);
    for (uint32_t j = 0; j < 18; j++)
        assert_near(shares.level[j], weight[j] * (group[j] + 1) / 6, EXACT);
    assert_near(shares.objective, 1.5, EXACT);
}

static void a_fifo_group_serves_its_first_job_first(void **state)
{
    struct programme p = ONE_TYPE(GOAL_HIERARCHICAL, 3, 1, 1, 1, 1);
    p.group_count = 2;
    p.group = (uint32_t[]){ 0, 0, 0, 1 };
    p.groups = (struct programme_group[]){ { 2, true }, { 1, false } };
    solve(&p);
    assert_near(shares.level[0], 1, EXACT);
    assert_near(shares.level[1], 1, EXACT);
    assert_near(shares.level[2], 0, 1e-6);
    assert_near(shares.level[3], 1, EXACT);
}

/* --- pairs --- */

static struct programme two_that_pair(enum goal goal, const double *pair_rate)
{
    static const double ones[] = { 1, 1 }, eights[] = { 8, 8 }, zeros[] = { 0, 0 };
    static const struct programme_pair pair[] = { { 0, 1 } };
    return (struct programme){
        .goal = goal,
        .job_count = 2,
        .type_count = 1,
        .pair_count = 1,
        .capacity = ones,
        .gang = ones,
        .rate = ones,
        .steps = eights,
        .age_s = zeros,
        .alone_s = zeros,
        .pairs = pair,
        .pair_rate = pair_rate,
    };
}

static void jobs_that_do_well_together_run_together(void **state)
{
    const struct {
        enum goal goal;
        double apart, together;
    } cases[] = { { GOAL_MAX_MIN, 0.5, 0.8 },
                  { GOAL_WATER_FILLING, 0.5, 0.8 },
                  { GOAL_MAKESPAN, 16, 10 },
                  { GOAL_FINISH_TIME, 1, 0.625 },
                  { GOAL_SUM, 1, 1.6 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double good[] = { 0.8, 0.8 }, bad[] = { 0.4, 0.4 }, none[] = { 0.9, 0 };
        struct programme p = two_that_pair(cases[i].goal, good);
        solve(&p);
        assert_near(shares.objective, cases[i].together, 1e-6);
        assert_near(shares.x[2], 1, 1e-6);
        p.pair_rate = bad;
        solve(&p);
        assert_near(shares.objective, cases[i].apart, 1e-6);
        p.pair_rate = none;
        solve(&p);
        assert_near(shares.objective, cases[i].apart, 1e-6);
        assert_true(shares.x[2] == 0);
    }
}

/* --- nothing to do, and nonsense --- */

static const enum goal goals[] = { GOAL_MAX_MIN,      GOAL_WATER_FILLING,
                                   GOAL_HIERARCHICAL, GOAL_MAKESPAN,
                                   GOAL_FINISH_TIME,  GOAL_SUM,
                                   GOAL_COST_RATIO };
#define GOALS (sizeof goals / sizeof *goals)

/* Everything any goal reads. */
static struct programme complete(enum goal goal)
{
    static const double ones[] = { 1, 1 };
    static const uint32_t zeros[] = { 0, 0 };
    static const struct programme_group group[] = { { 1, false } };
    return (struct programme){ .goal = goal,
                               .job_count = 2,
                               .type_count = 1,
                               .group_count = 1,
                               .capacity = ones,
                               .gang = ones,
                               .rate = ones,
                               .weight = ones,
                               .steps = ones,
                               .age_s = ones,
                               .alone_s = ones,
                               .price = ones,
                               .group = zeros,
                               .groups = group };
}

static void an_empty_programme_is_reported_for_every_goal(void **state)
{
    for (size_t i = 0; i < GOALS; i++) {
        struct programme p = complete(goals[i]);
        p.job_count = 0;
        solve(&p);
        assert_int_equal(shares.status, SHARES_EMPTY);

        p = complete(goals[i]);
        p.capacity = (double[]){ 0 };
        solve(&p);
        assert_int_equal(shares.status, SHARES_EMPTY);

        p = complete(goals[i]);
        p.rate = (double[]){ 0, 0 };
        solve(&p);
        assert_int_equal(shares.status, SHARES_EMPTY);
        assert_true(shares.x[0] == 0 && shares.x[1] == 0);

        p = complete(goals[i]);
        p.type_count = 0;
        solve(&p);
        assert_int_equal(shares.status, SHARES_EMPTY);

        p = complete(goals[i]);
        p.tidy = true;
        solve(&p);
        assert_int_equal(shares.status, SHARES_OPTIMAL);
    }
}

static void nonsense_is_refused_for_every_goal(void **state)
{
    double bad[] = { NAN, -1, INFINITY, 1e300 };
    for (size_t i = 0; i < GOALS; i++)
        for (size_t b = 0; b < 4; b++) {
            double values[] = { 1, bad[b] };
            struct programme p = complete(goals[i]);
            p.rate = values;
            refused(&p, "job 1: rate on type 0");
            p = complete(goals[i]);
            p.gang = values;
            refused(&p, "job 1: gang");
            p = complete(goals[i]);
            p.weight = values;
            refused(&p, "job 1: weight");
            p = complete(goals[i]);
            p.capacity = &values[1];
            refused(&p, "type 0: capacity");
        }
    struct programme p = complete(GOAL_FINISH_TIME);
    p.age_s = (double[]){ 0, NAN };
    refused(&p, "job 1: age");
    p = complete(GOAL_SUM);
    p.floor = (double[]){ -1, 0 };
    refused(&p, "job 0: floor");
    p = complete(GOAL_COST_RATIO);
    p.price = NULL;
    refused(&p, "price is missing");
    p = complete(GOAL_MAKESPAN);
    p.steps = NULL;
    refused(&p, "steps is missing");
    p = complete(GOAL_HIERARCHICAL);
    p.group = (uint32_t[]){ 0, 7 };
    refused(&p, "job 1: there is no group 7");
    p = complete(GOAL_MAX_MIN);
    p.type_count = 17;
    refused(&p, "17 types");
}

static void pairs_that_make_no_sense_are_refused(void **state)
{
    double rates[] = { 1, 1, 1, 1 };
    struct programme p = two_that_pair(GOAL_MAX_MIN, rates);
    p.pairs = (struct programme_pair[]){ { 1, 0 } };
    refused(&p, "pair 0: want two jobs");
    p.pairs = (struct programme_pair[]){ { 0, 2 } };
    refused(&p, "pair 0: want two jobs");
    p.pairs = (struct programme_pair[]){ { 0, 1 }, { 0, 1 } };
    p.pair_count = 2;
    refused(&p, "pair 1: the same as pair 0");
    p = two_that_pair(GOAL_MAX_MIN, rates);
    p.gang = (double[]){ 1, 2 };
    refused(&p, "pair 0: gangs of 1 and 2");
    p = two_that_pair(GOAL_MAX_MIN, (double[]){ 1, NAN });
    refused(&p, "pair 0: rate on type 0");
}

static void the_same_question_has_the_same_answer(void **state)
{
    for (size_t i = 0; i < GOALS; i++) {
        struct programme p = complete(goals[i]);
        p.rate = (double[]){ 2, 3 };
        solve(&p);
        struct shares first = shares;
        solve(&p);
        assert_memory_equal(first.x, shares.x, 2 * sizeof(double));
        assert_true(first.objective == shares.objective);
    }
}

static int by_clp(void **state)
{
    arena_init(&arena, 0);
    engine = SOLVE_CLP;
    return 0;
}

static int fast(void **state)
{
    arena_init(&arena, 0);
    engine = SOLVE_FAST;
    return 0;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

#define BOTH(name) \
    { #name " by clp", name, by_clp, teardown, NULL }, \
    { \
#name " fast", name, fast, teardown, NULL \
    }

RUN_CASES(BOTH(a_job_alone_has_its_fastest_type), BOTH(equals_share_equally),
          BOTH(twice_the_weight_is_twice_the_share),
          BOTH(each_has_the_type_that_suits_it),
          BOTH(a_job_that_runs_nowhere_lowers_no_level),
          BOTH(a_weight_of_zero_gets_what_is_left),
          BOTH(a_gang_larger_than_its_type_has_part_of_the_time),
          BOTH(tidy_leaves_no_capacity_unused),
          BOTH(the_longest_job_makes_the_makespan),
          BOTH(a_job_without_steps_left_lowers_no_level),
          BOTH(finish_times_are_evened_out), BOTH(the_sum_takes_the_fast),
          BOTH(a_price_turns_the_choice), BOTH(floors_are_kept),
          BOTH(floors_that_cannot_be_kept_are_dropped_and_named),
          BOTH(a_deadline_that_has_passed_cannot_be_kept),
          BOTH(a_ratio_takes_the_best_bargain), BOTH(water_rises_where_it_can),
          BOTH(what_one_cannot_use_others_get),
          BOTH(groups_share_by_weight_and_jobs_within_them),
          BOTH(a_fifo_group_serves_its_first_job_first),
          BOTH(jobs_that_do_well_together_run_together),
          BOTH(an_empty_programme_is_reported_for_every_goal),
          BOTH(nonsense_is_refused_for_every_goal),
          BOTH(pairs_that_make_no_sense_are_refused),
          BOTH(the_same_question_has_the_same_answer));
