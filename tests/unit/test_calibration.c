/* Forecasts are set right by how earlier ones turned out. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "predict/calibration.h"

#define SECOND INT64_C(1000000000)

static struct calibration calibration;

static int setup(void **state)
{
    memset(&calibration, 0, sizeof calibration);
    return 0;
}

static int teardown(void **state)
{
    return 0;
}

static void without_history_nothing_is_shifted(void **state)
{
    double waits_s[3] = { 10, 20, 30 };
    for (uint32_t i = 0; i < CALIBRATION_LEAST - 1; i++)
        calibration_resolve(&calibration, calibration_add(&calibration, 0, waits_s),
                            1000 * SECOND);
    assert_false(calibration_correct(&calibration, 0, waits_s));
    assert_true(waits_s[0] == 10 && waits_s[1] == 20 && waits_s[2] == 30);
}

/* A forecast after the other, each of a wait that is over before the next is made. */
static int64_t resolve_apart(uint32_t count, const double waits_s[3], double wait_s)
{
    int64_t now_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number = calibration_add(&calibration, now_ns, waits_s);
        now_ns += (int64_t)(wait_s * 1e9);
        calibration_resolve(&calibration, number, now_ns);
    }
    return now_ns;
}

static void forecasts_that_are_always_half_are_almost_doubled(void **state)
{
    double waits_s[3] = { 940, 940, 940 }; /* 1000 with the offset */
    int64_t now_ns = resolve_apart(490, waits_s, 1940);
    assert_true(calibration_correct(&calibration, now_ns, waits_s));
    for (uint32_t q = 0; q < 3; q++) /* 2 ^ (490 / 500) * 1000 - 60 */
        assert_true(fabs(waits_s[q] - 1912.47) < 0.01);
}

static void waits_that_overlap_count_as_one(void **state)
{
    double waits_s[3] = { 440, 940, 1940 };
    for (uint32_t i = 0; i < 490; i++)
        calibration_resolve(&calibration, calibration_add(&calibration, 0, waits_s),
                            940 * SECOND);
    assert_true(calibration_correct(&calibration, 940 * SECOND, waits_s));
    /* One of eleven parts is p10 doubled; of ten parts the interval is wider: 2 ^ -0.3. */
    assert_true(fabs(waits_s[0] - (500 * pow(2, (1 - 3) / 11.0) - 60)) < 0.01);
    assert_true(fabs(waits_s[1] - 940) < 0.01);
    assert_true(fabs(waits_s[2] - (2000 * pow(2, (3 - 1) / 11.0) - 60)) < 0.01);
}

static void an_interval_that_was_too_narrow_becomes_as_wide_as_the_waits(void **state)
{
    struct rng rng;
    int64_t now_ns = 0;
    rng_init(&rng, 3, "calibration");
    const double forecast_s[3] = { 900, 1000, 1100 };
    for (uint32_t i = 0; i < 500; i++) {
        double wait_s = 10000 * rng_unit(&rng);
        uint64_t number = calibration_add(&calibration, now_ns, forecast_s);
        now_ns += (int64_t)(wait_s * 1e9);
        calibration_resolve(&calibration, number, now_ns);
    }
    double waits_s[3] = { 900, 1000, 1100 };
    assert_true(calibration_correct(&calibration, now_ns, waits_s));
    assert_true(waits_s[0] > 700 && waits_s[0] < 1300);
    assert_true(waits_s[1] > 4300 && waits_s[1] < 5500);
    assert_true(waits_s[2] > 8300 && waits_s[2] < 9300);
}

static void waits_that_are_not_over_count_as_longer(void **state)
{
    /* Half of the waits are 100 s, the others last for more than 1,000 s already. */
    double waits_s[3] = { 100, 100, 100 };
    int64_t now_ns = 0;
    for (uint32_t i = 0; i < 490; i++) {
        uint64_t number = calibration_add(&calibration, now_ns, waits_s);
        if (i % 2 == 0)
            calibration_resolve(&calibration, number, now_ns += 100 * SECOND);
    }
    assert_true(calibration_correct(&calibration, now_ns + 1000 * SECOND, waits_s));
    assert_true(fabs(waits_s[0] - 100) < 1e-6);
    assert_true(fabs(waits_s[1] - 100) < 1e-6);
    assert_true(waits_s[2] > 1000);
}

static void a_cancelled_wait_counts_as_longer_than_it_was(void **state)
{
    double waits_s[3] = { 100, 100, 100 };
    int64_t now_ns = 0;
    for (uint32_t i = 0; i < 490; i++) {
        uint64_t number = calibration_add(&calibration, now_ns, waits_s);
        now_ns += 100 * SECOND;
        if (i % 2 == 0)
            calibration_resolve(&calibration, number, now_ns);
        else
            calibration_drop(&calibration, number, now_ns - 99 * SECOND);
    }
    /* Nothing but that they were longer than a second is known of the dropped ones. */
    assert_true(calibration_correct(&calibration, now_ns, waits_s));
    assert_true(fabs(waits_s[2] - 100) < 1e-6);
    assert_int_equal(calibration.over_count, 245);
}

static void a_wait_that_ended_after_one_was_cut_short_counts_for_both(void **state)
{
    /* By hand: of 1, 2+, 3, 4 the share left is 3/4 after 1 and 3/8 after 3. */
    struct censored_value values[] = {
        { 3, false }, { 1, false }, { 4, false }, { 2, true }
    };
    assert_true(calibration_quantile(values, 4, 0.25) == 1);
    assert_true(calibration_quantile(values, 4, 0.26) == 3);
    assert_true(calibration_quantile(values, 4, 0.625) == 3);
    assert_true(calibration_quantile(values, 4, 0.63) == 4);
    struct censored_value all[] = { { 5, true }, { 6, true } };
    assert_true(calibration_quantile(all, 2, 0.5) == 6);
}

static void old_forecasts_are_forgotten(void **state)
{
    double waits_s[3] = { 100, 100, 100 };
    uint64_t first = calibration_add(&calibration, 0, waits_s);
    for (uint32_t i = 0; i < CALIBRATION_FORECASTS; i++)
        calibration_resolve(&calibration, calibration_add(&calibration, 0, waits_s),
                            100 * SECOND);
    calibration_resolve(&calibration, first, 100000 * SECOND);
    calibration_resolve(&calibration, UINT64_MAX, 100000 * SECOND);
    assert_int_equal(calibration.over_count, CALIBRATION_FORECASTS);
    assert_true(calibration_correct(&calibration, 0, waits_s));
    assert_true(fabs(waits_s[2] - 100) < 1e-6);
}

static void quantiles_stay_in_order(void **state)
{
    const double high_s[3] = { 1, 5000, 5000 };
    for (uint32_t i = 0; i < 50; i++)
        calibration_resolve(&calibration, calibration_add(&calibration, 0, high_s),
                            300 * SECOND);
    double waits_s[3] = { 500, 500, 500 };
    assert_true(calibration_correct(&calibration, 0, waits_s));
    assert_true(waits_s[0] <= waits_s[1] && waits_s[1] <= waits_s[2]);
}

RUN_CASES(CASE(without_history_nothing_is_shifted),
          CASE(forecasts_that_are_always_half_are_almost_doubled),
          CASE(waits_that_overlap_count_as_one),
          CASE(a_cancelled_wait_counts_as_longer_than_it_was),
          CASE(an_interval_that_was_too_narrow_becomes_as_wide_as_the_waits),
          CASE(waits_that_are_not_over_count_as_longer),
          CASE(a_wait_that_ended_after_one_was_cut_short_counts_for_both),
          CASE(old_forecasts_are_forgotten), CASE(quantiles_stay_in_order));
