/* Heaps: the smallest on top, ties by the second number, removal from the middle. */
#include "support/cases.h"

#include "base/arena.h"
#include "base/heap.h"

#define IDS 100

static struct arena arena;
static struct heap_pool pool;

static void an_empty_heap_has_nothing_to_give(void **state)
{
    struct heap heap;
    heap_init(&heap);
    assert_int_equal(heap_pop(&pool, &heap), HEAP_NONE);
    assert_int_equal(heap.count, 0);
}

static void the_smallest_key_comes_first(void **state)
{
    const int64_t keys[] = { 5, -3, INT64_MAX, 0, INT64_MIN, 4 };
    const uint32_t order[] = { 4, 1, 3, 5, 0, 2 };
    struct heap heap;
    heap_init(&heap);
    for (uint32_t id = 0; id < 6; id++)
        heap_push(&pool, &heap, id, keys[id], id);

    for (int i = 0; i < 6; i++)
        assert_int_equal(heap_pop(&pool, &heap), order[i]);
    assert_int_equal(heap.top, HEAP_NONE);
}

static void equal_keys_come_in_order_of_the_tie(void **state)
{
    struct heap heap;
    heap_init(&heap);
    for (uint32_t id = 0; id < IDS; id++)
        heap_push(&pool, &heap, id, 1, IDS - id);
    for (uint32_t id = IDS; id-- > 0;)
        assert_int_equal(heap_pop(&pool, &heap), id);
}

static void any_member_can_be_removed(void **state)
{
    for (uint32_t out = 0; out < 10; out++) {
        struct heap heap;
        heap_init(&heap);
        for (uint32_t id = 0; id < 10; id++)
            heap_push(&pool, &heap, id, id * 7 % 10, id);
        assert_int_equal(heap_pop(&pool, &heap), 0); /* gives the rest a shape */
        if (out != 0)
            heap_remove(&pool, &heap, out);

        int64_t last = -1;
        uint32_t seen = 0;
        for (uint32_t id; (id = heap_pop(&pool, &heap)) != HEAP_NONE; seen++) {
            assert_int_not_equal(id, out);
            assert_true((int64_t)(id * 7 % 10) > last);
            last = id * 7 % 10;
        }
        assert_int_equal(seen, out ? 8 : 9);
    }
}

static void heaps_of_one_pool_keep_to_themselves(void **state)
{
    struct heap even, odd;
    heap_init(&even);
    heap_init(&odd);
    for (uint32_t id = 0; id < IDS; id++)
        heap_push(&pool, id % 2 ? &odd : &even, id, -(int64_t)id, id);

    assert_int_equal(heap_pop(&pool, &even), IDS - 2);
    assert_int_equal(heap_pop(&pool, &odd), IDS - 1);
    assert_int_equal(even.count, IDS / 2 - 1);
    assert_int_equal(odd.count, IDS / 2 - 1);
}

static int setup(void **state)
{
    arena_init(&arena, 0);
    heap_pool_init(&pool, &arena, IDS);
    return 0;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

RUN_CASES(CASE(an_empty_heap_has_nothing_to_give), CASE(the_smallest_key_comes_first),
          CASE(equal_keys_come_in_order_of_the_tie), CASE(any_member_can_be_removed),
          CASE(heaps_of_one_pool_keep_to_themselves));
