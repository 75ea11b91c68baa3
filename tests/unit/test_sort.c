/* Numbers in order: few and many, equals in the order they were in. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "base/sort.h"

#define MANY 5000

static struct sort_item items[MANY], scratch[MANY];

static void fill(uint32_t count, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, "sort");
    for (uint32_t i = 0; i < count; i++)
        items[i] = (struct sort_item){ ((double)rng_below(&rng, 50) - 25) * 0.5, i };
}

static void check(uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        assert_true(items[i - 1].key <= items[i].key);
        if (items[i - 1].key == items[i].key)
            assert_true(items[i - 1].value < items[i].value);
    }
}

static void the_smallest_comes_first_and_equals_stay_in_order(void **state)
{
    static const uint32_t counts[] = { 0, 1, 2, 3, 7, 64, 399, 400, 401, MANY };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fill(counts[i], i + 1);
        sort_items(items, scratch, counts[i]);
        check(counts[i]);
    }
}

static void there_is_one_zero(void **state)
{
    for (uint32_t count = 4; count <= MANY; count += MANY - 4) {
        for (uint32_t i = 0; i < count; i++)
            items[i] = (struct sort_item){ i % 2 ? -0.0 : 0.0, i };
        sort_items(items, scratch, count);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(items[i].value, i);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Spread over all magnitudes, close together, few distinct ones, or all of them equal. */
static double draw_number(struct rng *rng, uint32_t kind)
{
    double sign = rng_below(rng, 2) ? 1 : -1;
    switch (kind) {
    case 0:
        return sign * exp(rng_unit(rng) * 1400 - 700);
    case 1:
        return 1 + rng_unit(rng) * 1e-12;
    case 2:
        return sign * rng_below(rng, 7);
    default:
        return -2.5;
    }
}

static void numbers_come_out_as_by_the_library(void **state)
{
    static const uint32_t counts[] = { 0, 1, 2, 23, 24, 25, 300, MANY };
    static double numbers[MANY], room[MANY], expected[MANY];
    for (uint32_t kind = 0; kind < 4; kind++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            struct rng rng;
            rng_init(&rng, i + 1, "numbers");
            for (uint32_t k = 0; k < counts[i]; k++)
                numbers[k] = expected[k] = draw_number(&rng, kind);
            sort_numbers(numbers, room, counts[i]);
            qsort(expected, counts[i], sizeof *expected, compare_doubles);
            for (uint32_t k = 0; k < counts[i]; k++)
                assert_true(numbers[k] == expected[k]);
        }
}

static void the_least_come_before_the_others(void **state)
{
    static const uint32_t counts[] = { 1, 2, 3, 24, 300, MANY };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (uint32_t kind = 0; kind < 4; kind++) {
            uint32_t count = counts[i];
            uint32_t place = kind == 0 ? 0 : kind == 1 ? count - 1 : count / (kind * 2);
            bool seen[MANY] = { false };
            fill(count, i + 10 * kind + 1);
            sort_least(items, count, place);
            for (uint32_t k = 0; k < count; k++) {
                assert_true(k < place ? items[k].key <= items[place].key
                                      : items[k].key >= items[place].key);
                assert_false(seen[items[k].value]);
                seen[items[k].value] = true;
            }
        }
}

RUN_CASES(TEST(the_least_come_before_the_others),
          TEST(the_smallest_comes_first_and_equals_stay_in_order),
          TEST(there_is_one_zero), TEST(numbers_come_out_as_by_the_library));
