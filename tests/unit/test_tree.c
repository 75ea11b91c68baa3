/* Ordered trees: walking both ways, and the first with a small enough value. */
#include "support/cases.h"

#include "base/arena.h"
#include "base/tree.h"

#define IDS 100

static struct arena arena;
static struct tree_pool pool;

static void an_empty_tree_has_no_ends(void **state)
{
    struct tree tree;
    tree_init(&tree);
    assert_int_equal(tree_first(&pool, &tree), TREE_NONE);
    assert_int_equal(tree_last(&pool, &tree), TREE_NONE);
    assert_int_equal(tree_first_at_most(&pool, &tree, INT64_MAX), TREE_NONE);
}

static void members_are_walked_both_ways(void **state)
{
    struct tree tree;
    tree_init(&tree);
    for (uint32_t i = 0; i < IDS; i++) {
        uint32_t id = i * 37 % IDS;
        tree_insert(&pool, &tree, id, id / 10, id, 0);
    }
    uint32_t want = 0;
    for (uint32_t id = tree_first(&pool, &tree); id != TREE_NONE;
         id = tree_next(&pool, id))
        assert_int_equal(id, want++);
    assert_int_equal(want, IDS);
    for (uint32_t id = tree_last(&pool, &tree); id != TREE_NONE;
         id = tree_prev(&pool, id))
        assert_int_equal(id, --want);
    assert_int_equal(want, 0);
}

static void the_first_small_enough_is_first_in_order_not_in_value(void **state)
{
    const int64_t values[] = { 8, 4, 2, 1 };
    struct tree tree;
    tree_init(&tree);
    for (uint32_t id = 0; id < 4; id++)
        tree_insert(&pool, &tree, id, id, id, values[id]);

    assert_int_equal(tree_first_at_most(&pool, &tree, 8), 0);
    assert_int_equal(tree_first_at_most(&pool, &tree, 7), 1);
    assert_int_equal(tree_first_at_most(&pool, &tree, 2), 2);
    assert_int_equal(tree_first_at_most(&pool, &tree, 1), 3);
    assert_int_equal(tree_first_at_most(&pool, &tree, 0), TREE_NONE);
}

static void a_member_with_another_key_is_where_that_belongs(void **state)
{
    struct tree tree;
    int64_t keys[IDS];
    tree_init(&tree);
    for (uint32_t id = 0; id < IDS; id++)
        tree_insert(&pool, &tree, id, keys[id] = 10 * id, id, 1);
    for (uint32_t step = 0; step < 20 * IDS; step++) {
        uint32_t id = step * 37 % IDS;
        keys[id] += step % 3 == 0 ? 4 : (int64_t)(step * 7919 % 601) - 300;
        tree_set_key(&pool, &tree, id, keys[id]);
        uint32_t seen = 0;
        uint32_t last = TREE_NONE;
        for (uint32_t at = tree_first(&pool, &tree); at != TREE_NONE;
             at = tree_next(&pool, at)) {
            assert_int_equal(pool.nodes[at].key, keys[at]);
            assert_true(last == TREE_NONE || keys[last] < keys[at] ||
                        (keys[last] == keys[at] && last < at));
            last = at;
            seen++;
        }
        assert_int_equal(seen, IDS);
        assert_int_equal(pool.nodes[id].value, 1);
    }
}

static void what_is_removed_no_longer_counts(void **state)
{
    struct tree tree;
    tree_init(&tree);
    for (uint32_t id = 0; id < IDS; id++)
        tree_insert(&pool, &tree, id, 0, id, id == 50 ? 1 : 2);
    assert_int_equal(tree_first_at_most(&pool, &tree, 1), 50);

    tree_remove(&pool, &tree, 50);

    assert_int_equal(tree_first_at_most(&pool, &tree, 1), TREE_NONE);
    assert_int_equal(tree_next(&pool, 49), 51);
    assert_int_equal(tree.count, IDS - 1);
}

static void removing_the_last_member_empties_the_tree(void **state)
{
    struct tree tree;
    tree_init(&tree);
    tree_insert(&pool, &tree, 5, INT64_MIN, UINT64_MAX, INT64_MAX);
    tree_remove(&pool, &tree, 5);
    assert_int_equal(tree.root, TREE_NONE);
    assert_int_equal(tree.count, 0);
}

static int setup(void **state)
{
    arena_init(&arena, 0);
    tree_pool_init(&pool, &arena, IDS);
    return 0;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

RUN_CASES(CASE(an_empty_tree_has_no_ends), CASE(members_are_walked_both_ways),
          CASE(the_first_small_enough_is_first_in_order_not_in_value),
          CASE(a_member_with_another_key_is_where_that_belongs),
          CASE(what_is_removed_no_longer_counts),
          CASE(removing_the_last_member_empties_the_tree));
