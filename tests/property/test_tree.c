/* Two trees of one pool against sorted arrays. */
#include "support/cases.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/tree.h"

#define STEPS 2000
#define IDS 150
#define TREES 2

struct entry {
    int64_t key;
    uint64_t tie;
    int64_t value;
    uint32_t tree; /* TREES: in none */
};

/* Ids in order, always sorted. */
struct sorted {
    uint32_t ids[IDS];
    uint32_t count;
};

static struct entry entries[IDS];

static bool before(uint32_t a, uint32_t b)
{
    const struct entry *x = &entries[a], *y = &entries[b];
    return x->key < y->key || (x->key == y->key && x->tie < y->tie);
}

static void sorted_insert(struct sorted *sorted, uint32_t id)
{
    uint32_t i = sorted->count++;
    for (; i > 0 && before(id, sorted->ids[i - 1]); i--)
        sorted->ids[i] = sorted->ids[i - 1];
    sorted->ids[i] = id;
}

static void sorted_remove(struct sorted *sorted, uint32_t id)
{
    uint32_t i = 0;
    while (sorted->ids[i] != id)
        i++;
    sorted->count--;
    memmove(&sorted->ids[i], &sorted->ids[i + 1],
            (sorted->count - i) * sizeof *sorted->ids);
}

static uint32_t first_at_most(const struct sorted *sorted, int64_t limit)
{
    for (uint32_t i = 0; i < sorted->count; i++)
        if (entries[sorted->ids[i]].value <= limit)
            return sorted->ids[i];
    return TREE_NONE;
}

static uint32_t last_before(const struct sorted *sorted, int64_t key, uint64_t tie)
{
    uint32_t found = TREE_NONE;
    for (uint32_t i = 0; i < sorted->count; i++) {
        const struct entry *entry = &entries[sorted->ids[i]];
        if (entry->key < key || (entry->key == key && entry->tie < tie))
            found = sorted->ids[i];
    }
    return found;
}

static void assert_same(const struct tree_pool *pool, const struct tree *tree,
                        const struct sorted *sorted)
{
    uint32_t at = tree_first(pool, tree);
    for (uint32_t i = 0; i < sorted->count; i++, at = tree_next(pool, at))
        assert_int_equal(at, sorted->ids[i]);
    assert_int_equal(at, TREE_NONE);

    at = tree_last(pool, tree);
    for (uint32_t i = sorted->count; i-- > 0; at = tree_prev(pool, at))
        assert_int_equal(at, sorted->ids[i]);
    assert_int_equal(at, TREE_NONE);
    assert_int_equal(tree->count, sorted->count);
}

static void compare(uint64_t seed)
{
    struct arena arena;
    struct tree_pool pool;
    struct tree trees[TREES];
    struct sorted sorted[TREES] = { { .count = 0 } };
    struct rng rng;
    rng_init(&rng, seed, "tree");
    arena_init(&arena, 0);
    tree_pool_init(&pool, &arena, IDS);
    for (int t = 0; t < TREES; t++)
        tree_init(&trees[t]);
    for (uint32_t id = 0; id < IDS; id++)
        entries[id].tree = TREES;
    uint32_t key_max = 1 + rng_below(&rng, 200);

    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t id = rng_below(&rng, IDS);
        struct entry *entry = &entries[id];
        if (entry->tree == TREES) {
            *entry = (struct entry){ .key = (int64_t)rng_below(&rng, key_max) - 100,
                                     .tie = (uint64_t)rng_below(&rng, 50) << 32 | i,
                                     .value = rng_below(&rng, 64),
                                     .tree = rng_below(&rng, TREES) };
            tree_insert(&pool, &trees[entry->tree], id, entry->key, entry->tie,
                        entry->value);
            sorted_insert(&sorted[entry->tree], id);
        } else {
            tree_remove(&pool, &trees[entry->tree], id);
            sorted_remove(&sorted[entry->tree], id);
            entry->tree = TREES;
        }
        uint32_t t = rng_below(&rng, TREES);
        int64_t limit = (int64_t)rng_below(&rng, 66) - 1;
        assert_int_equal(tree_first_at_most(&pool, &trees[t], limit),
                         first_at_most(&sorted[t], limit));
        int64_t key = (int64_t)rng_below(&rng, key_max + 2) - 101;
        uint64_t tie = (uint64_t)rng_below(&rng, 50) << 32 | rng_below(&rng, STEPS);
        assert_int_equal(tree_last_before(&pool, &trees[t], key, tie),
                         last_before(&sorted[t], key, tie));
        if (i % 16 == 0)
            assert_same(&pool, &trees[t], &sorted[t]);
    }
    arena_release(&arena);
}

static void a_tree_is_a_sorted_array(void **state)
{
    FOR_EACH_SEED(seed, 40)
    compare(seed.now);
}

RUN_CASES(TEST(a_tree_is_a_sorted_array));
