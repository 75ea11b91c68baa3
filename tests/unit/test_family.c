/* The two families: parameters found again, bounds kept, warm as good as cold. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "predict/family.h"

#define MAX 200

struct drawn {
    double step[MAX], value[MAX], weight[MAX];
    uint32_t count;
};

static struct family_points points_of(const struct drawn *d, double sign)
{
    return (struct family_points){ .step = d->step,
                                   .value = d->value,
                                   .weight = d->weight,
                                   .count = d->count,
                                   .sign = sign };
}

static double inv(double k, double a, double b, double c, double d)
{
    return 1 / (a * k * k + b * k + c) + d;
}

static void draw_inv(struct drawn *d, uint32_t count, struct rng *rng, double noise)
{
    double a = 0.002 + 0.02 * rng_unit(rng);
    double b = 0.1 + 0.4 * rng_unit(rng);
    d->count = count;
    for (uint32_t i = 0; i < count; i++) {
        d->step[i] = i;
        d->value[i] = inv(i, a, b, 1, 0.3) + noise * rng_normal(rng);
        d->weight[i] = pow(0.98, count - 1.0 - i);
    }
}

static void draw_exp(struct drawn *d, uint32_t count, struct rng *rng, double noise)
{
    double mu = 0.8 + 0.18 * rng_unit(rng);
    d->count = count;
    for (uint32_t i = 0; i < count; i++) {
        d->step[i] = i;
        d->value[i] = 2 * pow(mu, i) + 0.3 + noise * rng_normal(rng);
        d->weight[i] = pow(0.98, count - 1.0 - i);
    }
}

/* The error of any parameters of inv, the slow way. */
static double inv_sse(const struct drawn *d, const double *p)
{
    double sse = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        double r = d->value[i] - inv(d->step[i], p[0], p[1], p[2], p[3]);
        sse += d->weight[i] * r * r;
    }
    return sse;
}

static void inv_finds_its_parameters_again(void **state)
{
    struct drawn d = { .count = 60 };
    for (uint32_t i = 0; i < d.count; i++) {
        d.step[i] = i + 1;
        d.value[i] = inv(i + 1, 0.004, 0.2, 1.5, 0.7);
        d.weight[i] = 1;
    }
    struct family_points points = points_of(&d, 0);
    struct family_fit fit = family_fit_inv(&points, NULL);
    assert_int_equal(fit.family, FAMILY_INV);
    assert_near(fit.sign, 1, 0);
    assert_near(fit.a, 0.004, 1e-4);
    assert_near(fit.b, 0.2, 2e-3);
    assert_near(fit.c, 1.5, 5e-3);
    assert_near(fit.limit, 0.7, 1e-3);
    assert_near(family_at(&fit, 100), inv(100, 0.004, 0.2, 1.5, 0.7), 1e-3);
}

static void exp_finds_its_parameters_again(void **state)
{
    struct drawn d = { .count = 60 };
    for (uint32_t i = 0; i < d.count; i++) {
        d.step[i] = 1000 + 50.0 * i; /* far from zero, and not by ones */
        d.value[i] = pow(0.999, d.step[i] - 1200) - 4;
        d.weight[i] = 1;
    }
    struct family_points points = points_of(&d, 0);
    struct family_fit fit = family_fit_exp(&points, NULL);
    assert_int_equal(fit.family, FAMILY_EXP);
    assert_near(family_mu(&fit), 0.999, 1e-6);
    assert_near(fit.shift, 1200, 1);
    assert_near(fit.limit, -4, 1e-3);
}

/* No start elsewhere that walks downhill by small steps ends much lower. */
static void no_walk_downhill_ends_lower(void **state)
{
    FOR_EACH_SEED(seed, 20)
    {
        struct rng rng;
        struct drawn d;
        rng_init(&rng, seed.now, "family");
        draw_inv(&d, 20 + rng_below(&rng, 80), &rng, 0.02);
        struct family_points points = points_of(&d, 1);
        struct family_fit fit = family_fit_inv(&points, NULL);
        double p[4] = { 0.01, 0.3, 1, 0.2 };
        double size[4] = { 0.01, 0.1, 0.3, 0.1 };
        double least = inv_sse(&d, p);
        for (uint32_t round = 0; round < 4000; round++) {
            uint32_t i = round % 4;
            double before = p[i];
            p[i] += size[i] * rng_normal(&rng);
            double sse = p[i] < 0 && i < 3 ? HUGE_VAL : inv_sse(&d, p);
            if (sse < least)
                least = sse;
            else {
                p[i] = before;
                size[i] *= 0.995;
            }
        }
        assert_true(fit.sse <= least * 1.005);
    }
}

static void parameters_keep_to_their_bounds(void **state)
{
    FOR_EACH_SEED(seed, 200)
    {
        struct rng rng;
        struct drawn d;
        rng_init(&rng, seed.now, "bounds");
        d.count = 2 + rng_below(&rng, 100);
        double level = 100 * rng_normal(&rng);
        for (uint32_t i = 0; i < d.count; i++) {
            d.step[i] = (i ? d.step[i - 1] : 0) + rng_exponential(&rng, 10) + 1e-3;
            level += rng_normal(&rng);
            d.value[i] = level;
            d.weight[i] = rng_unit(&rng) + 1e-3;
        }
        for (double sign = -1; sign <= 1; sign++) {
            struct family_points points = points_of(&d, sign);
            struct family_fit fits[2] = { family_fit_inv(&points, NULL),
                                          family_fit_exp(&points, NULL) };
            for (int i = 0; i < 2; i++) {
                const struct family_fit *fit = &fits[i];
                assert_true(fit->a >= 0 && fit->b >= 0 && fit->c >= 0);
                assert_true(fit->rate >= 0);
                assert_true(fit->sse >= 0 && isfinite(fit->sse));
                assert_true(isfinite(fit->limit));
                assert_true(isfinite(family_at(fit, 1e6)));
                /* It goes one way only, and not beyond its limit. */
                double last = family_at(fit, d.step[0]);
                for (double step = d.step[0]; step < 1e5; step = step * 1.5 + 1) {
                    double value = family_at(fit, step);
                    assert_true(fit->sign * (value - last) <= 1e-9 * fabs(last));
                    assert_true(fit->sign * (value - fit->limit) >=
                                -1e-9 * fabs(fit->limit));
                    last = value;
                }
            }
        }
    }
}

static void warm_is_as_good_as_cold(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "warm");
    double worse_inv = 0;
    double worse_exp = 0;
    for (uint32_t n = 0; n < 200; n++) {
        struct drawn d;
        draw_inv(&d, 102, &rng, 0.01);
        struct family_points all = points_of(&d, 1);
        struct family_points fewer = all;
        fewer.count = 100;
        struct family_fit before = family_fit_inv(&fewer, NULL);
        double cold = family_fit_inv(&all, NULL).sse;
        worse_inv += family_fit_inv(&all, &before).sse / cold - 1;
        draw_exp(&d, 102, &rng, 0.01);
        before = family_fit_exp(&fewer, NULL);
        cold = family_fit_exp(&all, NULL).sse;
        worse_exp += family_fit_exp(&all, &before).sse / cold - 1;
    }
    assert_true(worse_inv / 200 < 0.002);
    assert_true(worse_exp / 200 < 0.0005);
}

static void the_better_family_is_taken(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "choice");
    uint32_t right = 0;
    for (uint32_t n = 0; n < 100; n++) {
        struct drawn d;
        struct family_fit one;
        struct family_fit other;
        struct family_points points = points_of(&d, 0);
        draw_inv(&d, 100, &rng, 0.003);
        points.count = d.count;
        right += family_fit_best(&points, &one, &other, false).family == FAMILY_INV;
        draw_exp(&d, 100, &rng, 0.003);
        right += family_fit_best(&points, &one, &other, false).family == FAMILY_EXP;
    }
    assert_true(right >= 170);
}

static void a_family_that_is_far_behind_catches_up_when_asked_again(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "behind");
    for (uint32_t n = 0; n < 50; n++) {
        struct drawn d;
        struct family_fit one;
        struct family_fit other;
        draw_exp(&d, 60, &rng, 0);
        struct family_points points = points_of(&d, 1);
        double best = family_fit_inv(&points, NULL).sse;
        family_fit_best(&points, &one, &other, false);
        assert_true(other.sse < one.sse);
        for (uint32_t again = 0; again < 40; again++)
            family_fit_best(&points, &one, &other, true);
        assert_true(one.sse < 1.05 * best);
    }
}

static void weights_fall_off_evenly(void **state)
{
    double weights[11];
    for (uint32_t count = 0; count <= 11; count++) {
        family_weights(weights, count, 0.9);
        for (uint32_t i = 0; i < count; i++)
            assert_near(weights[i], pow(0.9, count - 1.0 - i), 1e-14);
    }
}

static void accuracy_saturates(void **state)
{
    struct drawn d = { .count = 40 };
    for (uint32_t i = 0; i < d.count; i++) {
        d.step[i] = i;
        d.value[i] = 0.92 * (1 - exp(-(double)i / 12));
        d.weight[i] = 1;
    }
    struct family_points points = points_of(&d, 0);
    struct family_fit fit = family_fit_exp(&points, NULL);
    assert_near(fit.sign, -1, 0);
    assert_near(fit.limit, 0.92, 1e-3);
    assert_near(1 / fit.rate, 12, 0.1);
}

static void what_does_not_go_that_way_is_flat(void **state)
{
    struct drawn d = { .count = 30 };
    for (uint32_t i = 0; i < d.count; i++) {
        d.step[i] = i;
        d.value[i] = 1 + 0.1 * i;
        d.weight[i] = 1;
    }
    struct family_points points = points_of(&d, 1); /* a loss, they say */
    struct family_fit fit = family_fit_exp(&points, NULL);
    assert_int_equal(fit.family, FAMILY_FLAT);
    assert_near(fit.limit, 1 + 0.1 * 14.5, 1e-9);
}

static void constants_and_single_points_are_flat(void **state)
{
    struct drawn d = { .count = 30 };
    for (uint32_t i = 0; i < d.count; i++) {
        d.step[i] = i;
        d.value[i] = -7.25;
        d.weight[i] = 1;
    }
    for (d.count = 0; d.count <= 30; d.count++) {
        struct family_points points = points_of(&d, 0);
        struct family_fit one;
        struct family_fit other;
        struct family_fit fit = family_fit_best(&points, &one, &other, false);
        assert_int_equal(fit.family, FAMILY_FLAT);
        assert_near(fit.limit, d.count ? -7.25 : 0, 1e-12);
        assert_near(fit.sse, 0, 1e-20);
    }
}

RUN_CASES(TEST(inv_finds_its_parameters_again), TEST(exp_finds_its_parameters_again),
          TEST(no_walk_downhill_ends_lower), TEST(parameters_keep_to_their_bounds),
          TEST(warm_is_as_good_as_cold), TEST(the_better_family_is_taken),
          TEST(a_family_that_is_far_behind_catches_up_when_asked_again),
          TEST(weights_fall_off_evenly), TEST(accuracy_saturates),
          TEST(what_does_not_go_that_way_is_flat),
          TEST(constants_and_single_points_are_flat));
