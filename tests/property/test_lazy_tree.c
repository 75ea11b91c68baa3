/* Lazy trees against a search for the smallest, over walks with many changes between them. */
#include "support/cases.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/lazy_tree.h"
#include "base/rng.h"

#define STEPS 3000
#define IDS 60
#define TREES 3

struct entry {
    int64_t key;
    uint64_t tie;
    uint32_t tree; /* TREES: in none */
};

static struct entry entries[IDS];

static bool before(uint32_t a, uint32_t b)
{
    const struct entry *x = &entries[a], *y = &entries[b];
    return x->key < y->key || (x->key == y->key && x->tie < y->tie);
}

/* The first member of the tree, or the first one after 'last'. */
static uint32_t find_next(uint32_t tree, uint32_t last)
{
    uint32_t found = TREE_NONE;
    for (uint32_t id = 0; id < IDS; id++)
        if (entries[id].tree == tree && (last == TREE_NONE || before(last, id)) &&
            (found == TREE_NONE || before(id, found)))
            found = id;
    return found;
}

static void assert_same(struct lazy_trees *lazy, uint32_t tree)
{
    uint32_t last = TREE_NONE;
    uint32_t at = lazy_trees_first(lazy, tree);
    for (uint32_t id = find_next(tree, TREE_NONE); id != TREE_NONE;
         id = find_next(tree, id)) {
        assert_int_equal(at, id);
        assert_int_equal(lazy_trees_key(lazy, id), entries[id].key);
        assert_int_equal(lazy_trees_prev(lazy, id), last);
        last = id;
        at = lazy_trees_next(lazy, id);
    }
    assert_int_equal(at, TREE_NONE);
    assert_int_equal(lazy_trees_last(lazy, tree), last);
}

/* Every member with an even key is dropped while the walk goes over it. */
static void drop_on_the_way(struct lazy_trees *lazy, uint32_t tree)
{
    uint32_t count = 0;
    uint32_t seen = 0;
    for (uint32_t id = 0; id < IDS; id++)
        count += entries[id].tree == tree;
    for (uint32_t id = lazy_trees_first(lazy, tree); id != TREE_NONE;
         id = lazy_trees_next(lazy, id)) {
        seen++;
        if (entries[id].key % 2 != 0)
            continue;
        lazy_trees_drop(lazy, id);
        entries[id].tree = TREES;
    }
    assert_int_equal(seen, count);
}

static void compare(uint64_t seed)
{
    struct arena arena;
    struct rng rng;
    rng_init(&rng, seed, "lazy tree");
    arena_init(&arena, 0);
    struct lazy_trees *lazy = lazy_trees_new(&arena, IDS, TREES);
    for (uint32_t id = 0; id < IDS; id++)
        entries[id].tree = TREES;
    uint32_t walk_every = 1 + rng_below(&rng, 200);

    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t id = rng_below(&rng, IDS);
        struct entry *entry = &entries[id];
        bool same = entry->tree < TREES && rng_below(&rng, 4) > 0; /* the same job */
        uint32_t tree = rng_below(&rng, TREES + 1);
        *entry = (struct entry){ (int64_t)rng_below(&rng, 40) - 20,
                                 same ? entry->tie : (uint64_t)i + 1, tree };
        if (tree == TREES)
            lazy_trees_drop(lazy, id);
        else
            lazy_trees_put(lazy, tree, id, entry->key, entry->tie);
        assert_int_equal(lazy_trees_has(lazy, id), tree < TREES);
        if (i % walk_every == 0)
            assert_same(lazy, rng_below(&rng, TREES));
        if (i % (7 * walk_every) == 0)
            drop_on_the_way(lazy, rng_below(&rng, TREES));
    }
    arena_release(&arena);
}

static void a_walk_finds_what_was_put_and_not_dropped(void **state)
{
    FOR_EACH_SEED(seed, 40)
    compare(seed.now);
}

RUN_CASES(TEST(a_walk_finds_what_was_put_and_not_dropped));
