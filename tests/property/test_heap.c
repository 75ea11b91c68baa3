/* Several heaps of one pool against arrays in which the least is looked for. */
#include "support/cases.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/heap.h"
#include "base/rng.h"

#define STEPS 3000
#define IDS 200
#define HEAPS 3

struct entry {
    int64_t key;
    uint64_t tie;
    uint32_t heap; /* HEAPS: in none */
};

static bool before(const struct entry *a, const struct entry *b)
{
    return a->key < b->key || (a->key == b->key && a->tie < b->tie);
}

static uint32_t least_of(const struct entry *entries, uint32_t heap,
                         uint32_t *ret_count)
{
    uint32_t least = HEAP_NONE;
    *ret_count = 0;
    for (uint32_t id = 0; id < IDS; id++) {
        if (entries[id].heap != heap)
            continue;
        ++*ret_count;
        if (least == HEAP_NONE || before(&entries[id], &entries[least]))
            least = id;
    }
    return least;
}

static void compare(uint64_t seed)
{
    struct arena arena;
    struct heap_pool pool;
    struct heap heaps[HEAPS];
    struct entry entries[IDS];
    struct rng rng;
    rng_init(&rng, seed, "heap");
    arena_init(&arena, 0);
    heap_pool_init(&pool, &arena, IDS);
    for (int h = 0; h < HEAPS; h++)
        heap_init(&heaps[h]);
    for (uint32_t id = 0; id < IDS; id++)
        entries[id].heap = HEAPS;
    uint32_t key_max =
        1 + rng_below(&rng, 300); /* often few, so that ties are common */

    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t id = rng_below(&rng, IDS);
        struct entry *entry = &entries[id];
        if (entry->heap == HEAPS) {
            *entry = (struct entry){ .key = (int64_t)rng_below(&rng, key_max) - 100,
                                     .tie = (uint64_t)rng_below(&rng, 1000) << 32 | i,
                                     .heap = rng_below(&rng, HEAPS) };
            heap_push(&pool, &heaps[entry->heap], id, entry->key, entry->tie);
        } else if (rng_below(&rng, 2)) {
            heap_remove(&pool, &heaps[entry->heap], id);
            entry->heap = HEAPS;
        } else {
            uint32_t h = rng_below(&rng, HEAPS);
            uint32_t count;
            uint32_t least = least_of(entries, h, &count);
            assert_int_equal(heap_pop(&pool, &heaps[h]), least);
            if (least != HEAP_NONE)
                entries[least].heap = HEAPS;
        }
        uint32_t h = rng_below(&rng, HEAPS);
        uint32_t count;
        assert_int_equal(heaps[h].top, least_of(entries, h, &count));
        assert_int_equal(heaps[h].count, count);
    }
    arena_release(&arena);
}

static void the_top_is_the_least(void **state)
{
    FOR_EACH_SEED(seed, 40)
    compare(seed.now);
}

RUN_CASES(TEST(the_top_is_the_least));
