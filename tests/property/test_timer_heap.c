/* A heap of times against an array in which the earliest is looked for. */
#include "support/cases.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/timer_heap.h"

#define STEPS 4000
#define IDS 300

struct naive_timer {
    int64_t at_ns;
    uint32_t set; /* at which step */
    bool there;
};

static uint32_t find_earliest(const struct naive_timer *timers, uint32_t *ret_count)
{
    uint32_t best = TIMER_NONE;
    *ret_count = 0;
    for (uint32_t id = 0; id < IDS; id++) {
        if (!timers[id].there)
            continue;
        ++*ret_count;
        if (best == TIMER_NONE || timers[id].at_ns < timers[best].at_ns ||
            (timers[id].at_ns == timers[best].at_ns &&
             timers[id].set < timers[best].set))
            best = id;
    }
    return best;
}

static void compare_with_naive(uint64_t seed)
{
    struct arena arena;
    struct timer_heap heap;
    struct naive_timer naive[IDS] = { { 0 } };
    struct rng rng;
    rng_init(&rng, seed, "timer heap");
    arena_init(&arena, 0);
    timer_heap_init(&heap, &arena, IDS);
    uint32_t ids = 1 + rng_below(&rng, IDS);
    uint32_t times = 1 + rng_below(&rng, 300); /* often few, so that many are equal */
    uint32_t sets = 1 + rng_below(&rng, 4);

    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t id = rng_below(&rng, ids);
        uint32_t count;
        uint32_t what = rng_below(&rng, 2 + sets);
        if (what == 0) {
            uint32_t earliest = find_earliest(naive, &count);
            assert_int_equal(timer_heap_pop(&heap), earliest);
            if (earliest != TIMER_NONE)
                naive[earliest].there = false;
        } else if (what == 1) {
            timer_heap_remove(&heap, id);
            naive[id].there = false;
        } else {
            int64_t at_ns = (int64_t)rng_below(&rng, times) - 100;
            timer_heap_set(&heap, id, at_ns);
            naive[id] = (struct naive_timer){ at_ns, step, true };
        }
        uint32_t earliest = find_earliest(naive, &count);
        assert_int_equal(heap.count, count);
        assert_int_equal(timer_heap_next_ns(&heap),
                         count > 0 ? naive[earliest].at_ns : INT64_MAX);
    }
    arena_release(&arena);
}

static void the_earliest_is_on_top(void **state)
{
    FOR_EACH_SEED(seed, 40)
    compare_with_naive(seed.now);
}

RUN_CASES(TEST(the_earliest_is_on_top));
