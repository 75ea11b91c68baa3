/* Learning curves of every shape: forecasts are sane, repeatable, and know no units. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "predict/curve.h"

#define POINTS_MAX 700

struct shape {
    double step[POINTS_MAX], value[POINTS_MAX];
    uint32_t count;
};

/* A sum of what losses do: fall, drop, rise, shake, jump, stand still. */
static void draw(struct shape *shape, struct rng *rng)
{
    shape->count =
        rng_below(rng, 4) ? 1 + rng_below(rng, 60) : rng_below(rng, POINTS_MAX);
    double scale = exp(10 * rng_normal(rng));
    double base = rng_below(rng, 2) ? 0 : 10 * rng_normal(rng);
    double rate = exp(2 * rng_normal(rng) - 3);
    double noise = rng_below(rng, 3) ? 0.1 * rng_unit(rng) * rng_unit(rng) : 0;
    double drift = rng_below(rng, 4) ? 0 : 0.01 * rng_normal(rng);
    double spikes = rng_below(rng, 3) ? 0 : 0.05;
    uint32_t drop = rng_below(rng, 200);
    bool flat = rng_below(rng, 8) == 0;
    double step = rng_below(rng, 3);
    double gap = rng_below(rng, 2) ? 1 : exp(3 * rng_normal(rng));
    for (uint32_t i = 0; i < shape->count; i++) {
        double value = base + exp(-rate * i) + drift * i + noise * rng_normal(rng);
        value -= i > drop ? 0.3 : 0;
        value += rng_unit(rng) < spikes ? 30 * rng_normal(rng) : 0;
        shape->step[i] = step;
        shape->value[i] = flat ? base : scale * value;
        step += rng_below(rng, 10) ? gap : gap * (1 + rng_below(rng, 5));
    }
}

static struct forecast foretell(const struct shape *shape, double ahead,
                                bool *ret_predictable)
{
    static struct curve curve;
    curve_init(&curve, NULL);
    for (uint32_t i = 0; i < shape->count; i++)
        assert_true(curve_add(&curve, shape->step[i], shape->value[i]));
    curve_check(&curve);
    return curve_forecast(&curve, ahead, ret_predictable);
}

static void forecasts_are_sane_and_repeatable(void **state)
{
    static struct shape shape;
    FOR_EACH_SEED(seed, 300)
    {
        struct rng rng;
        rng_init(&rng, seed.now, "shape");
        draw(&shape, &rng);
        double ahead = rng_below(&rng, 2) ? 10 : floor(exp(8 * rng_unit(&rng)));
        bool predictable;
        struct forecast forecast = foretell(&shape, ahead, &predictable);
        assert_true(isfinite(forecast.value));
        assert_true(isfinite(forecast.low) && isfinite(forecast.high));
        assert_true(!forecast.has_interval || forecast.low <= forecast.value);
        assert_true(!forecast.has_interval || forecast.value <= forecast.high);
        assert_int_equal(forecast.has_interval, shape.count >= 2);
        assert_true(shape.count == 0 || forecast.step > shape.step[shape.count - 1]);
        bool again_predictable;
        struct forecast again = foretell(&shape, ahead, &again_predictable);
        assert_true(again.value == forecast.value && again.low == forecast.low &&
                    again.high == forecast.high);
        assert_int_equal(again_predictable, predictable);
    }
}

/* Twice the loss, twice the forecast; steps by 64 for steps by 1.  Exactly, by powers of 2. */
static void forecasts_know_no_units(void **state)
{
    static struct shape shape;
    static struct shape other;
    FOR_EACH_SEED(seed, 100)
    {
        struct rng rng;
        rng_init(&rng, seed.now, "units");
        draw(&shape, &rng);
        other = shape;
        for (uint32_t i = 0; i < shape.count; i++) {
            other.step[i] *= 64;
            other.value[i] *= 0.25;
        }
        bool predictable;
        bool other_predictable;
        struct forecast forecast = foretell(&shape, 10, &predictable);
        struct forecast scaled = foretell(&other, 10, &other_predictable);
        double size = fabs(forecast.value) + forecast.high - forecast.low;
        assert_near(scaled.value * 4, forecast.value, 1e-6 * size);
        assert_near(scaled.low * 4, forecast.low, 1e-6 * size);
        if (shape.count > 1)
            assert_near(scaled.step, forecast.step * 64, 1e-6 * scaled.step);
        assert_int_equal(other_predictable, predictable);
    }
}

/* Points come one by one, some of them again after a restart: the books stay right. */
static void restarts_at_any_point_keep_the_books(void **state)
{
    static struct curve curve;
    FOR_EACH_SEED(seed, 60)
    {
        struct rng rng;
        rng_init(&rng, seed.now, "restart");
        curve_init(&curve, NULL);
        double step = 0;
        for (uint32_t i = 0; i < 3000; i++) {
            if (rng_below(&rng, 300) == 0)
                step = floor(step * rng_unit(&rng));
            assert_true(
                curve_add(&curve, step, 1 / (1 + step) + 0.01 * rng_unit(&rng)));
            assert_near(curve.step[curve.kept - 1], step, 0);
            step++;
            if (i % 50 == 0) {
                curve_check(&curve);
                assert_true(isfinite(curve_fit(&curve).rms));
            }
        }
    }
}

RUN_CASES(TEST(forecasts_are_sane_and_repeatable), TEST(forecasts_know_no_units),
          TEST(restarts_at_any_point_keep_the_books));
