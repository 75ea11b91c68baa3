/* Two jobs on the same accelerators: small programmes solved by hand. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "solve/solve.h"
#include "support/pair_shares.h"

#define EACH(...) ((double[]){ __VA_ARGS__ })
#define PAIRS(...) ((struct programme_pair[]){ __VA_ARGS__ })

static double x[64], level[16];
static struct pairs_answer answer;
static struct error err;
static struct pairs_solver *pairs;

static void solve_level(const struct pairs_input *pairing, const double *need)
{
    assert_int_equal(pairs_level(pairs, pairing, need, NULL, 1e-7, x, &answer, &err),
                     0);
}

/* Two jobs, one accelerator; side by side each runs at 0.8 of its speed. */
static const struct pairs_input two_jobs = { .class_count = 2,
                                             .type_count = 1,
                                             .pair_count = 1,
                                             .capacity = (double[]){ 1 },
                                             .gang = (double[]){ 1, 1 },
                                             .rate = (double[]){ 1, 1 },
                                             .pairs =
                                                 (struct programme_pair[]){ { 0, 1 } },
                                             .pair_rate = (double[]){ 0.8, 0.8 } };

static void sharing_beats_taking_turns(void **state)
{
    solve_level(&two_jobs, EACH(1, 1));
    assert_near(answer.reached, 0.8, 1e-9);
    assert_near(answer.bound, 0.8, 1e-9);
    assert_near(x[2], 1, 1e-9);
    assert_near(x[0] + x[1], 0, 1e-9);
}

static void a_job_that_would_stand_still_does_not_share(void **state)
{
    struct pairs_input pairing = two_jobs;
    pairing.pair_rate = EACH(0, 5);
    solve_level(&pairing, EACH(1, 1));
    assert_near(answer.reached, 0.5, 1e-9);
    assert_near(x[2], 0, 0);
}

static void a_class_of_two_shares_with_itself(void **state)
{
    struct pairs_input pairing = { .class_count = 1,
                                   .type_count = 1,
                                   .pair_count = 1,
                                   .capacity = EACH(1),
                                   .count = EACH(2),
                                   .gang = EACH(1),
                                   .rate = EACH(1),
                                   .pairs = PAIRS({ 0, 0 }),
                                   .pair_rate = EACH(0.8, 0.8) };
    solve_level(&pairing, EACH(1));
    assert_near(answer.reached, 0.8, 1e-9);
    assert_near(x[1], 1, 1e-9); /* one pair at a time */
    assert_near(pairs_member_share(&pairing, 0, 0, x[1]), 1, 1e-9);
    assert_near(pairs_couple_share(&pairing, 0, x[1]), 1, 1e-9);

    pairing.count = EACH(4); /* half of the time each, in six couples */
    solve_level(&pairing, EACH(1));
    assert_near(answer.reached, 0.4, 1e-9);
    assert_near(pairs_member_share(&pairing, 0, 0, x[1]), 0.5, 1e-9);
    assert_near(pairs_couple_share(&pairing, 0, x[1]), 1.0 / 6, 1e-9);
}

static void one_member_does_not_share_with_itself(void **state)
{
    struct pairs_input pairing = { .class_count = 1,
                                   .type_count = 1,
                                   .pair_count = 1,
                                   .capacity = EACH(1),
                                   .count = EACH(2),
                                   .gang = EACH(1),
                                   .rate = EACH(1),
                                   .pairs = PAIRS({ 0, 0 }),
                                   .pair_rate = EACH(2, 2) };
    solve_level(&pairing, EACH(1));
    assert_near(answer.reached, 2, 1e-9);
    pairing.count = EACH(1); /* the other one left */
    solve_level(&pairing, EACH(1));
    assert_near(answer.reached, 1, 1e-9);
    assert_near(x[1], 0, 0);
}

static void a_class_may_run_in_pairs_only(void **state)
{
    struct pairs_input pairing = two_jobs;
    pairing.rate = EACH(1, 0);
    pairing.pair_rate = EACH(0.5, 0.5);
    solve_level(&pairing, EACH(1, 1));
    assert_near(answer.reached, 0.5, 1e-9);
}

static void a_class_that_runs_nowhere_makes_the_level_0(void **state)
{
    struct pairs_input pairing = two_jobs;
    pairing.rate = EACH(1, 0);
    pairing.pair_rate = EACH(1, 0);
    solve_level(&pairing, EACH(1, 1));
    assert_near(answer.reached, 0, 0);
    solve_level(&pairing, EACH(1, 0)); /* unless it has no part in it */
    assert_near(answer.reached, 1, 1e-9);
    pairing.capacity = EACH(0);
    solve_level(&pairing, EACH(1, 0));
    assert_near(answer.reached, 0, 0);
}

/* need z / (1 - ahead z) = 0.8 for both: z = 0.8 / (1 + 0.8 / 4) = 2 / 3. */
static void finish_times_are_not_linear(void **state)
{
    const double need[] = { 1, 1 }, ahead[] = { 0.25, 0.25 };
    assert_int_equal(pairs_level(pairs, &two_jobs, need, ahead, 1e-7, x, &answer, &err),
                     0);
    assert_near(answer.reached, 2.0 / 3, 1e-7);
}

/* The slow one stops at 1; the two others share what it leaves. */
static void levels_rise_one_above_the_other(void **state)
{
    struct pairs_input pairing = { .class_count = 3,
                                   .type_count = 1,
                                   .capacity = EACH(2),
                                   .gang = EACH(1, 1, 1),
                                   .rate = EACH(0.25, 4, 4) };
    assert_int_equal(
        pairs_water_fill(pairs, &pairing, EACH(1, 1, 1), 1e-7, x, level, &answer, &err),
        0);
    assert_near(level[0], 0.25, 1e-8);
    assert_near(level[1], 2, 1e-7); /* 1 - the first's whole time = 1, halved */
    assert_near(level[2], 2, 1e-7);
}

static void sums_share_where_it_pays(void **state)
{
    const double value[] = { 1, 1, 1.6 };
    assert_int_equal(pairs_sum(pairs, &two_jobs, value, NULL, 1e-7, x, &answer, &err),
                     0);
    assert_near(answer.reached, 1.6, 1e-9);
    const double dear[] = { 3, 1, 1.6 };
    assert_int_equal(
        pairs_sum(pairs, &two_jobs, dear, EACH(0, 0.4), 1e-7, x, &answer, &err), 0);
    assert_true(answer.feasible);
    assert_near(answer.reached, 3 * 0.5 + 0.8, 1e-8); /* not 3 * 0.6 + 0.4 */
    assert_int_equal(
        pairs_sum(pairs, &two_jobs, dear, EACH(0.8, 0.9), 1e-7, x, &answer, &err), 0);
    assert_false(answer.feasible);
}

static void the_second_time_takes_no_steps(void **state)
{
    solve_level(&two_jobs, EACH(1, 1));
    double first[3];
    memcpy(first, x, sizeof first);
    solve_level(&two_jobs, EACH(1, 1));
    assert_int_equal(answer.iterations, 0);
    assert_memory_equal(first, x, sizeof first);
}

static void what_makes_no_sense_is_refused(void **state)
{
    struct pairs_input pairing = two_jobs;
    pairing.gang = EACH(1, 2);
    assert_int_equal(
        pairs_level(pairs, &pairing, EACH(1, 1), NULL, 1e-7, x, &answer, &err),
        -EINVAL);
    assert_string_equal(err.text, "pair 0: gangs of 1 and 2");
    pairing.gang = EACH(1, 1);
    pairing.pairs = PAIRS({ 0, 2 });
    assert_int_equal(
        pairs_level(pairs, &pairing, EACH(1, 1), NULL, 1e-7, x, &answer, &err),
        -EINVAL);
    assert_string_equal(err.text, "pair 0: no such class");
    pairing.count = EACH(0, 1);
    assert_int_equal(
        pairs_level(pairs, &pairing, EACH(1, 1), NULL, 1e-7, x, &answer, &err),
        -EINVAL);
    assert_string_equal(err.text, "class 0 has 0 members, want 1 or more");
}

static int setup(void **state)
{
    pairs = pairs_solver_new();
    return 0;
}

static int teardown(void **state)
{
    pairs_solver_free(pairs);
    return 0;
}

RUN_CASES(CASE(sharing_beats_taking_turns),
          CASE(a_job_that_would_stand_still_does_not_share),
          CASE(a_class_of_two_shares_with_itself),
          CASE(one_member_does_not_share_with_itself),
          CASE(a_class_may_run_in_pairs_only),
          CASE(a_class_that_runs_nowhere_makes_the_level_0),
          CASE(finish_times_are_not_linear), CASE(levels_rise_one_above_the_other),
          CASE(sums_share_where_it_pays), CASE(the_second_time_takes_no_steps),
          CASE(what_makes_no_sense_is_refused));
