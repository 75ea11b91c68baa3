/* Random numbers: repeatable, independent by purpose, and of the shape they claim. */
#include "support/cases.h"

#include <math.h>

#include "base/rng.h"

#define DRAWS 200000

static void the_same_seed_and_purpose_give_the_same_numbers(void **state)
{
    struct rng a, b;
    rng_init(&a, 7, "arrivals");
    rng_init(&b, 7, "arrivals");
    for (int i = 0; i < 1000; i++)
        assert_true(rng_u64(&a) == rng_u64(&b));
}

static void another_seed_or_purpose_gives_others(void **state)
{
    struct rng a, b, c;
    rng_init(&a, 7, "arrivals");
    rng_init(&b, 8, "arrivals");
    rng_init(&c, 7, "durations");
    for (int i = 0; i < 100; i++) {
        uint64_t x = rng_u64(&a), y = rng_u64(&b), z = rng_u64(&c);
        assert_true(x != y);
        assert_true(x != z);
    }
}

/* Published runs depend on it: changing the generator is a change for users. */
static void the_first_numbers_are_these(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "test");
    assert_true(rng_u64(&rng) == UINT64_C(0xe13b0fc31be18af3));
    assert_true(rng_u64(&rng) == UINT64_C(0xb2c8217bf0aa0b1f));
}

static void a_unit_number_is_at_least_0_and_below_1(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "unit");
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = rng_unit(&rng);
        assert_true(x >= 0);
        assert_true(x < 1);
        sum += x;
    }
    assert_true(fabs(sum / DRAWS - 0.5) < 0.005);
}

static void below_reaches_every_number_alike(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "below");
    uint32_t seen[7] = { 0 };
    for (int i = 0; i < DRAWS; i++) {
        uint32_t x = rng_below(&rng, 7);
        assert_true(x < 7);
        seen[x]++;
    }
    for (int i = 0; i < 7; i++)
        assert_true(fabs(seen[i] * 7.0 / DRAWS - 1) < 0.03);
    assert_int_equal(rng_below(&rng, 1), 0);
}

/* Mean and variance of a distribution against what they should be. */
static void assert_moments(double (*draw)(struct rng *rng), double mean,
                           double variance)
{
    struct rng rng;
    rng_init(&rng, 3, "moments");
    double sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = draw(&rng);
        assert_true(isfinite(x));
        sum += x;
        squares += x * x;
    }
    double got = sum / DRAWS;
    double deviation = sqrt(variance);
    assert_true(fabs(got - mean) < 0.02 * deviation);
    assert_true(fabs(squares / DRAWS - got * got - variance) < 0.05 * variance);
}

static double exponential_of_mean_3(struct rng *rng)
{
    return rng_exponential(rng, 3);
}

static double gamma_of_shape_half(struct rng *rng)
{
    return rng_gamma(rng, 0.5);
}

static double gamma_of_shape_4(struct rng *rng)
{
    return rng_gamma(rng, 4);
}

static void distributions_have_their_moments(void **state)
{
    assert_moments(rng_normal, 0, 1);
    assert_moments(exponential_of_mean_3, 3, 9);
    assert_moments(gamma_of_shape_half, 0.5, 0.5);
    assert_moments(gamma_of_shape_4, 4, 4);
}

RUN_CASES(TEST(the_same_seed_and_purpose_give_the_same_numbers),
          TEST(another_seed_or_purpose_gives_others), TEST(the_first_numbers_are_these),
          TEST(a_unit_number_is_at_least_0_and_below_1),
          TEST(below_reaches_every_number_alike),
          TEST(distributions_have_their_moments));
