/* A learning curve: what is kept of it, what is made of odd reports, what it foretells. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "predict/curve.h"

static struct curve curve;

static double falling(double k)
{
    return 1 / (0.002 * k * k + 0.1 * k + 1) + 0.5;
}

static void fill(uint32_t count, double (*value)(double), double noise)
{
    struct rng rng;
    rng_init(&rng, 7, "curve");
    curve_init(&curve, NULL);
    for (uint32_t k = 1; k <= count; k++)
        assert_true(curve_add(&curve, k, value(k) + noise * rng_normal(&rng)));
    curve_check(&curve);
}

static struct forecast ahead(double points, bool *ret_predictable)
{
    bool predictable;
    struct forecast forecast = curve_forecast(&curve, points, &predictable);
    assert_true(isfinite(forecast.value));
    assert_true(!forecast.has_interval || forecast.low <= forecast.value);
    assert_true(!forecast.has_interval || forecast.value <= forecast.high);
    if (ret_predictable)
        *ret_predictable = predictable;
    return forecast;
}

static void a_smooth_curve_is_foretold(void **state)
{
    bool predictable;
    fill(60, falling, 0);
    struct forecast forecast = ahead(10, &predictable);
    assert_true(predictable);
    assert_near(forecast.step, 70, 1e-9);
    assert_near(forecast.value, falling(70), 0.005);
    assert_true(forecast.low <= falling(70) && falling(70) <= forecast.high);

    struct curve_fit fit = curve_fit(&curve);
    assert_true(fit.predictable);
    struct curve_value value = curve_at(&fit, 70);
    assert_near(value.value, falling(70), 0.005);
    assert_true(value.low <= value.value && value.value <= value.high);
}

static double linear_loss(double k)
{
    return 3 * pow(0.93, k) - 8; /* negative in the end */
}

static double accuracy(double k)
{
    return 0.9 * (1 - exp(-k / 20));
}

static void noise_does_not_hide_it(void **state)
{
    bool predictable;
    fill(100, falling, 0.01);
    assert_near(ahead(10, &predictable).value, falling(110), 0.02);
    assert_true(predictable);
    fill(100, linear_loss, 0.02);
    assert_near(ahead(10, &predictable).value, linear_loss(110), 0.04);
    assert_true(predictable);
    fill(100, accuracy, 0.005);
    assert_near(ahead(10, &predictable).value, accuracy(110), 0.01);
    assert_true(predictable);
}

static void what_fits_nothing_is_not_predictable(void **state)
{
    bool predictable;
    struct rng rng;
    rng_init(&rng, 3, "noise");
    curve_init(&curve, NULL);
    for (uint32_t k = 1; k <= 100; k++)
        curve_add(&curve, k, rng_normal(&rng));
    ahead(10, &predictable);
    assert_false(predictable);
    assert_false(curve_fit(&curve).predictable);

    curve_init(&curve, NULL);
    for (uint32_t k = 1; k <= 100; k++)
        curve_add(&curve, k, sin(0.3 * k));
    ahead(10, &predictable);
    assert_false(predictable);
}

static void a_constant_stays(void **state)
{
    bool predictable;
    curve_init(&curve, NULL);
    for (uint32_t k = 1; k <= 50; k++)
        curve_add(&curve, k, -2.5);
    struct forecast forecast = ahead(10, &predictable);
    assert_true(predictable);
    assert_near(forecast.value, -2.5, 1e-12);
    assert_near(forecast.high - forecast.low, 0, 1e-12);
}

static double plateau(double k)
{
    return k < 60 ? 1 + 3 * exp(-k / 5) : 0.4 + 0.6 * exp(-(k - 59) / 2);
}

static void a_drop_of_the_learning_rate_is_followed(void **state)
{
    fill(90, plateau, 0.002);
    assert_near(ahead(10, NULL).value, 0.4, 0.02);
}

static double warming_up(double k)
{
    return k < 10 ? 2 + 0.1 * k : 0.5 + 2.5 * exp(-(k - 10) / 20);
}

static void a_bump_at_the_start_is_forgotten(void **state)
{
    fill(80, warming_up, 0.005);
    assert_near(ahead(10, NULL).value, warming_up(90), 0.05);
}

static void a_lone_spike_changes_little(void **state)
{
    curve_init(&curve, NULL);
    for (uint32_t k = 1; k <= 80; k++)
        curve_add(&curve, k, falling(k) + (k == 45 || k == 71 ? 40 : 0));
    curve_check(&curve);
    assert_near(ahead(10, NULL).value, falling(90), 0.01);
    struct curve_fit fit = curve_fit(&curve);
    assert_near(curve_at(&fit, 90).value, falling(90), 0.02);
}

static void a_loss_that_rises_is_followed(void **state)
{
    curve_init(&curve, NULL);
    for (uint32_t k = 1; k <= 80; k++)
        curve_add(&curve, k, k < 40 ? 2 - 0.02 * k : 1.2 + 0.01 * (k - 40));
    double value = ahead(10, NULL).value;
    assert_true(value > 1.55 && value < 1.75);
    struct curve_hint loss = { .sign = 1 };
    curve_init(&curve, &loss);
    for (uint32_t k = 41; k <= 80; k++)
        curve_add(&curve, k, 1.2 + 0.01 * (k - 40));
    struct curve_fit fit = curve_fit(&curve);
    assert_int_equal(fit.best.family, FAMILY_FLAT); /* nothing to gain, then */
    assert_false(fit.predictable);
}

static void a_restart_forgets_what_was_undone(void **state)
{
    fill(1000, falling, 0);
    assert_int_equal(curve.count, 1000);
    assert_true(curve_add(&curve, 900.5, falling(900.5)));
    curve_check(&curve);
    assert_int_equal(curve.count, 901);
    assert_near(curve.step[curve.kept - 1], 900.5, 0);
    assert_near(curve.step[curve.kept - 2], 900, 0);
    assert_true(
        curve_add(&curve, 300, falling(300))); /* far beyond the newest points */
    curve_check(&curve);
    assert_true(curve.count <= 300 && curve.count > 200);
    assert_true(curve_add(&curve, 0, 1.5)); /* from the start */
    curve_check(&curve);
    assert_int_equal(curve.count, 1);
}

static void no_number_is_no_point(void **state)
{
    fill(50, falling, 0);
    const double bad[] = { NAN, INFINITY, -INFINITY, 1e200 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bool predictable;
        assert_false(curve_add(&curve, 51, bad[i]));
        assert_false(curve_add(&curve, NAN, 1));
        assert_int_equal(curve.count, 50);
        ahead(10, &predictable);
        assert_false(predictable);
    }
    bool predictable;
    assert_true(curve_add(&curve, 51, falling(51)));
    ahead(10, &predictable);
    assert_true(predictable);
}

static void a_long_curve_takes_no_more_room(void **state)
{
    curve_init(&curve, NULL);
    for (uint32_t k = 1; k <= 100000; k++)
        curve_add(&curve, k, 1 / (1 + 0.001 * k));
    curve_check(&curve);
    assert_int_equal(curve.count, 100000);
    assert_true(curve.kept < CURVE_KEPT_MAX);
    assert_near(curve.step[curve.kept - CURVE_NEW_MIN], 100000 - CURVE_NEW_MIN + 1, 0);
    assert_near(ahead(10, NULL).value, 1 / (1 + 0.001 * 100010), 1e-6);
    assert_near(ahead(10000, NULL).value, 1 / (1 + 0.001 * 110000), 3e-4);
}

static void few_points_are_no_reason_to_fail(void **state)
{
    for (uint32_t count = 0; count <= 5; count++) {
        for (double far = 0; far < 1e15; far = far * 10 + 1) {
            bool predictable;
            fill(count, falling, 0);
            struct forecast forecast = ahead(far, &predictable);
            assert_int_equal(forecast.has_interval, count >= 2);
            assert_true(!predictable || count >= 4);
            if (count == 1)
                assert_near(forecast.value, falling(1), 0);
        }
    }
}

static void equal_reports_give_equal_forecasts(void **state)
{
    fill(300, falling, 0.02);
    struct forecast first = ahead(10, NULL);
    fill(300, falling, 0.02);
    struct forecast second = ahead(10, NULL);
    assert_true(first.value == second.value && first.low == second.low &&
                first.high == second.high);
}

static void the_family_can_be_given(void **state)
{
    static const enum family families[] = { FAMILY_EXP, FAMILY_INV };
    for (uint32_t i = 0; i < 2; i++) {
        struct curve_hint hint = { .family = families[i], .sign = 1 };
        curve_init(&curve, &hint);
        for (uint32_t k = 1; k <= 50; k++)
            curve_add(&curve, k, falling(k));
        assert_int_equal(curve_fit(&curve).best.family, families[i]);
    }
}

RUN_CASES(TEST(a_smooth_curve_is_foretold), TEST(noise_does_not_hide_it),
          TEST(what_fits_nothing_is_not_predictable), TEST(a_constant_stays),
          TEST(a_drop_of_the_learning_rate_is_followed),
          TEST(a_bump_at_the_start_is_forgotten), TEST(a_lone_spike_changes_little),
          TEST(a_loss_that_rises_is_followed), TEST(a_restart_forgets_what_was_undone),
          TEST(no_number_is_no_point), TEST(a_long_curve_takes_no_more_room),
          TEST(few_points_are_no_reason_to_fail),
          TEST(equal_reports_give_equal_forecasts), TEST(the_family_can_be_given));
