/* Numbers in order: few and many, equals in the order they were in. */
#include "support/cases.h"

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

RUN_CASES(TEST(the_smallest_comes_first_and_equals_stay_in_order),
          TEST(there_is_one_zero));
