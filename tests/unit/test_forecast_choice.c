/* Which forecast is shown, how it is set right, and how well those shown turned out. */
#include "support/cases.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "predict/forecast_choice.h"

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct forecast_choice));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

/*
 * 'count' jobs of one GPU, one after the other, that wait 'wait_s' or ten times as long; playing
 * forward says 'forward_s', or where that is 0 exactly what will happen.
 */
static int64_t live_through(struct forecast_choice *choice, int64_t now_ns,
                            uint32_t count, double wait_s, double forward_s)
{
    for (uint32_t i = 0; i < count; i++) {
        struct forecast_shown shown;
        double truth_s = hash_mix(i) % 2 == 0 ? wait_s : 10 * wait_s;
        double said_s =
            forward_s > 0 ? forward_s * (double)(1 + hash_mix(i + 7) % 90) : truth_s;
        double waits_s[3] = { said_s, said_s, said_s };
        uint64_t number = forecast_choice_add(choice, now_ns, 1, waits_s, &shown);
        now_ns += (int64_t)(truth_s * 1e9);
        forecast_choice_resolve(choice, number, now_ns);
        forecast_choice_note(choice, 1, truth_s);
    }
    return now_ns;
}

static void an_empty_one_shows_what_was_forecast(void **state)
{
    struct forecast_choice *choice = *state;
    struct forecast_shown shown;
    const double waits_s[3] = { 10, 20, 30 };
    assert_true(forecast_choice_show(choice, 0, 1, 0, waits_s, &shown));
    assert_int_equal(shown.method, FORECAST_FORWARD);
    assert_false(shown.corrected);
    assert_true(shown.waits_s[1] == 20);
    assert_false(forecast_choice_show(choice, 0, 1, 0, NULL, &shown));
    assert_true(forecast_choice_add(choice, 0, 1, NULL, &shown) == CHOICE_NONE);
    assert_int_equal(forecast_choice_quality(choice, 0).count, 0);
}

static void without_an_answer_the_waits_of_the_same_size_are_shown(void **state)
{
    struct forecast_choice *choice = *state;
    struct forecast_shown shown;
    for (uint32_t i = 1; i <= 9; i++) {
        forecast_choice_note(choice, 4, 100 * i);
        forecast_choice_note(choice, 1, 7);
    }
    assert_true(forecast_choice_show(choice, 0, 4, 0, NULL, &shown));
    assert_int_equal(shown.method, FORECAST_BASELINE);
    assert_true(shown.waits_s[0] == 100 && shown.waits_s[1] == 500 &&
                shown.waits_s[2] == 900);
    /* Of a job that has waited for 450 s, what is left of the longer ones. */
    assert_true(forecast_choice_show(choice, 0, 4, 450, NULL, &shown));
    assert_true(shown.waits_s[0] == 50 && shown.waits_s[1] == 250);
    /* Of a size that was never seen, all of them. */
    assert_true(forecast_choice_show(choice, 0, 64, 0, NULL, &shown));
    assert_true(shown.waits_s[0] == 7 && shown.waits_s[2] > 700);
}

static void good_forecasts_are_shown(void **state)
{
    struct forecast_choice *choice = *state;
    int64_t now_ns = live_through(choice, 0, 100, 600, 0);
    struct forecast_shown shown;
    const double waits_s[3] = { 600, 600, 600 };
    assert_true(forecast_choice_show(choice, now_ns, 1, 0, waits_s, &shown));
    assert_int_equal(shown.method, FORECAST_FORWARD);
    assert_true(shown.corrected);
    assert_true(fabs(shown.waits_s[1] - 600) < 1e-6);
    struct forecast_quality quality = forecast_choice_quality(choice, now_ns);
    assert_int_equal(quality.count, 100);
    assert_true(quality.coverage_80 == 1);
    assert_true(quality.median_error_s < 1e-3);
    assert_true(quality.loss[FORECAST_FORWARD] < quality.loss[FORECAST_BASELINE]);
}

static void where_the_baseline_was_better_it_is_shown(void **state)
{
    struct forecast_choice *choice = *state;
    int64_t now_ns = live_through(choice, 0, 200, 600, 100);
    struct forecast_shown shown;
    const double waits_s[3] = { 100, 100, 100 };
    assert_int_equal(forecast_choice_best(choice, now_ns), FORECAST_BASELINE);
    assert_true(forecast_choice_show(choice, now_ns, 1, 0, waits_s, &shown));
    assert_int_equal(shown.method, FORECAST_BASELINE);
    assert_true(shown.waits_s[0] > 400 && shown.waits_s[2] < 8000);
    struct forecast_quality quality = forecast_choice_quality(choice, now_ns);
    assert_true(quality.loss[FORECAST_BASELINE] < quality.loss[FORECAST_FORWARD]);
    assert_true(quality.coverage_80 > 0.7 && quality.compared > 190);

    /* Fifteen days later nothing is known that is recent. */
    now_ns += 15 * DAY;
    assert_int_equal(forecast_choice_best(choice, now_ns), FORECAST_FORWARD);
    assert_int_equal(forecast_choice_quality(choice, now_ns).count, 0);
}

static void a_few_forecasts_decide_nothing(void **state)
{
    struct forecast_choice *choice = *state;
    int64_t now_ns = live_through(choice, 0, CHOICE_RESOLVED_LEAST, 600, 100);
    assert_int_equal(forecast_choice_best(choice, now_ns), FORECAST_FORWARD);
}

static void a_cancelled_job_has_no_outcome(void **state)
{
    struct forecast_choice *choice = *state;
    struct forecast_shown shown;
    const double waits_s[3] = { 10, 20, 30 };
    uint64_t number = forecast_choice_add(choice, 0, 1, waits_s, &shown);
    forecast_choice_drop(choice, number, 25 * SECOND);
    forecast_choice_resolve(choice, number, 40 * SECOND);
    assert_int_equal(forecast_choice_quality(choice, 50 * SECOND).count, 0);
    uint64_t other = forecast_choice_add(choice, 0, 1, waits_s, &shown);
    forecast_choice_resolve(choice, other, 25 * SECOND);
    forecast_choice_drop(choice, other, 40 * SECOND);
    assert_int_equal(forecast_choice_quality(choice, 50 * SECOND).count, 1);
}

static void old_forecasts_and_strange_waits_are_passed_over(void **state)
{
    struct forecast_choice *choice = *state;
    struct forecast_shown shown;
    const double waits_s[3] = { 100, 100, 100 };
    uint64_t first = forecast_choice_add(choice, 0, 1, waits_s, &shown);
    live_through(choice, 0, CALIBRATION_FORECASTS, 100, 0);
    forecast_choice_resolve(choice, first, 9000 * SECOND);
    forecast_choice_resolve(choice, CHOICE_NONE, 9000 * SECOND);
    forecast_choice_drop(choice, CHOICE_NONE, 9000 * SECOND);
    forecast_choice_note(choice, 1, -5);
    forecast_choice_note(choice, 1, NAN);
    forecast_choice_note(choice, UINT32_MAX, 5);
    assert_int_equal(choice->sizes[1].count, CALIBRATION_FORECASTS);
    assert_int_equal(choice->sizes[CHOICE_SIZES - 1].count, 1);
}

static void the_same_history_gives_the_same_answers(void **state)
{
    struct forecast_choice *choice = *state;
    struct forecast_choice *again = calloc(1, sizeof *again);
    struct forecast_shown first, second;
    const double waits_s[3] = { 100, 200, 300 };
    int64_t now_ns = live_through(choice, 0, 700, 60, 30);
    assert_int_equal(live_through(again, 0, 700, 60, 30), now_ns);
    assert_true(forecast_choice_show(choice, now_ns, 1, 3, waits_s, &first));
    assert_true(forecast_choice_show(again, now_ns, 1, 3, waits_s, &second));
    for (uint32_t q = 0; q < 3; q++)
        assert_true(first.waits_s[q] == second.waits_s[q]);
    assert_int_equal(first.method, second.method);
    free(again);
}

RUN_CASES(CASE(an_empty_one_shows_what_was_forecast),
          CASE(without_an_answer_the_waits_of_the_same_size_are_shown),
          CASE(good_forecasts_are_shown),
          CASE(where_the_baseline_was_better_it_is_shown),
          CASE(a_few_forecasts_decide_nothing), CASE(a_cancelled_job_has_no_outcome),
          CASE(old_forecasts_and_strange_waits_are_passed_over),
          CASE(the_same_history_gives_the_same_answers));
