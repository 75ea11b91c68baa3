/* Percentiles in fixed memory: exact when small, within about 3 % when not. */
#include "support/cases.h"

#include "base/histogram.h"

static void an_empty_histogram_says_zero(void **state)
{
    struct histogram *h = *state;
    assert_int_equal(histogram_quantile(h, 0.5), 0);
    assert_int_equal(histogram_quantile(h, 1.0), 0);
}

static void one_value_is_every_quantile(void **state)
{
    struct histogram *h = *state;
    histogram_add(h, 123456789);
    assert_int_equal(histogram_quantile(h, 0.0), 123456789);
    assert_int_equal(histogram_quantile(h, 0.5), 123456789);
    assert_int_equal(histogram_quantile(h, 1.0), 123456789);
}

static void small_values_are_exact(void **state)
{
    struct histogram *h = *state;
    for (uint64_t v = 0; v < 32; v++)
        histogram_add(h, v);
    for (uint64_t v = 0; v < 32; v++)
        assert_int_equal(histogram_quantile(h, (double)v / 32), v);
}

static void large_values_are_within_a_few_percent(void **state)
{
    struct histogram *h = *state;
    for (uint64_t v = 1; v <= 100000; v++)
        histogram_add(h, v * 1000);
    for (double q = 0.01; q < 1; q += 0.01) {
        double want = q * 1e8;
        double got = (double)histogram_quantile(h, q);
        assert_true(got > 0.995 * want);
        assert_true(got < 1.035 * want);
    }
}

static void the_largest_number_has_a_place(void **state)
{
    struct histogram *h = *state;
    histogram_add(h, UINT64_MAX);
    histogram_add(h, UINT64_MAX >> 1);
    assert_int_equal(h->count, 2);
    assert_true(histogram_quantile(h, 1.0) == UINT64_MAX);
    assert_true(histogram_quantile(h, 0.0) <= UINT64_MAX >> 1);
}

static void no_quantile_is_above_the_largest_value(void **state)
{
    struct histogram *h = *state;
    histogram_add(h, 1000);
    histogram_add(h, 1001); /* the middle of a bucket that ends at 1007 */
    assert_int_equal(histogram_quantile(h, 0.99), 1001);
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct histogram));
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

RUN_CASES(CASE(an_empty_histogram_says_zero), CASE(one_value_is_every_quantile),
          CASE(small_values_are_exact), CASE(large_values_are_within_a_few_percent),
          CASE(the_largest_number_has_a_place),
          CASE(no_quantile_is_above_the_largest_value));
