/* Nodes on shelves by what is free on them. */
#include "support/world.h"

#include "model/free_index.h"

static struct room gpus(uint64_t which)
{
    return (struct room){ .gpus = which, .cpu_milli = 1000, .mem_mib = 1000 };
}

/* Four nodes of four, with these free. */
static void shelve(struct free_index *free, struct world *w, const uint64_t which[4])
{
    world_init(w, 4, 4);
    free_index_init(free, &w->arena, &w->cluster);
    for (node_id n = 0; n < 4; n++) {
        struct room room = gpus(which[n]);
        free_index_put(free, n, &room);
    }
}

static node_id tightest(const struct free_index *free, uint32_t count)
{
    return free_index_tightest(free, 0, count, 0, 0, NULL, NULL);
}

static void the_tightest_that_holds_enough_lowest_number_first(void **state)
{
    struct world w;
    struct free_index free;
    shelve(&free, &w, (uint64_t[]){ 15, 3, 5, 1 });
    assert_int_equal(tightest(&free, 1), 3);
    assert_int_equal(tightest(&free, 2), 1);
    assert_int_equal(tightest(&free, 3), 0);
    assert_int_equal(tightest(&free, 5), NODE_NONE);
    assert_int_equal(tightest(&free, NODE_GPUS_MAX + 1), NODE_NONE);
    assert_int_equal(free.gpu_count, 9);
    assert_int_equal(free_index_largest(&free, 0), 4);
    world_release(&w);
}

static void cpu_memory_and_avoided_nodes_are_passed_over(void **state)
{
    struct world w;
    struct free_index free;
    struct bits avoid;
    shelve(&free, &w, (uint64_t[]){ 15, 3, 3, 3 });
    struct room poor = { .gpus = 3, .cpu_milli = 10, .mem_mib = 1000 };
    free_index_put(&free, 1, &poor);
    bits_init(&avoid, &w.arena, 4);
    bits_set(&avoid, 2);
    assert_int_equal(free_index_tightest(&free, 0, 2, 500, 0, NULL, NULL), 2);
    assert_int_equal(free_index_tightest(&free, 0, 2, 500, 0, &avoid, NULL), 3);
    assert_int_equal(free_index_tightest(&free, 0, 2, 0, 1001, NULL, NULL), NODE_NONE);
    world_release(&w);
}

static void where_only_some_nodes_count_the_others_are_not_there(void **state)
{
    struct world w;
    struct free_index free;
    struct bits within, avoid;
    shelve(&free, &w, (uint64_t[]){ 15, 3, 7, 1 });
    bits_init(&within, &w.arena, 4);
    bits_init(&avoid, &w.arena, 4);
    assert_int_equal(free_index_tightest(&free, 0, 1, 0, 0, NULL, &within), NODE_NONE);
    assert_int_equal(free_index_most(&free, 0, NODE_NONE, &within), NODE_NONE);
    bits_set(&within, 0);
    bits_set(&within, 2);
    assert_int_equal(free_index_tightest(&free, 0, 1, 0, 0, NULL, &within), 2);
    assert_int_equal(free_index_tightest(&free, 0, 4, 0, 0, NULL, &within), 0);
    bits_set(&avoid, 2);
    assert_int_equal(free_index_tightest(&free, 0, 1, 0, 0, &avoid, &within), 0);
    assert_int_equal(free_index_most(&free, 0, NODE_NONE, &within), 0);
    assert_int_equal(free_index_most(&free, 0, 0, &within), 2);
    assert_int_equal(free_index_most(&free, 0, 2, &within), NODE_NONE);
    w.cluster.first_fit = true; /* then the lowest number, however much is free */
    assert_int_equal(free_index_tightest(&free, 0, 1, 0, 0, NULL, &within), 0);
    free_index_drop(&free, 0);
    assert_int_equal(free_index_tightest(&free, 0, 1, 0, 0, NULL, &within), 2);
    free_index_drop(&free, 2);
    assert_int_equal(free_index_tightest(&free, 0, 0, 0, 0, NULL, &within), NODE_NONE);
    world_release(&w);
}

static void without_gpus_the_fullest_node_comes_first(void **state)
{
    struct world w;
    struct free_index free;
    shelve(&free, &w, (uint64_t[]){ 15, 1, 0, 3 });
    assert_int_equal(tightest(&free, 0), 2);
    free_index_drop(&free, 2);
    assert_int_equal(tightest(&free, 0), 1);
    world_release(&w);
}

static void a_dropped_node_is_on_no_shelf_until_it_is_put_back(void **state)
{
    struct world w;
    struct free_index free;
    shelve(&free, &w, (uint64_t[]){ 15, 15, 0, 0 });
    free_index_drop(&free, 0);
    free_index_drop(&free, 0);
    assert_int_equal(free.gpu_count, 4);
    assert_int_equal(tightest(&free, 4), 1);
    free_index_drop(&free, 1);
    assert_int_equal(free_index_largest(&free, 0), 0);
    assert_int_equal(tightest(&free, 1), NODE_NONE);
    struct room room = gpus(7);
    free_index_put(&free, 1, &room);
    assert_int_equal(free_index_largest(&free, 0), 3);
    world_release(&w);
}

static void the_walk_goes_from_most_to_least_and_sees_every_node_once(void **state)
{
    struct world w;
    struct free_index free;
    shelve(&free, &w, (uint64_t[]){ 1, 15, 3, 15 });
    static const node_id order[] = { 1, 3, 2, 0, NODE_NONE };
    node_id node = NODE_NONE;
    for (int i = 0; i < 5; i++) {
        node = free_index_most(&free, 0, node, NULL);
        assert_int_equal(node, order[i]);
    }
    world_release(&w);
}

static void nodes_of_64_have_a_shelf_too(void **state)
{
    struct world w;
    world_init(&w, 2, 64);
    assert_int_equal(w.state.free.gpu_count, 128);
    assert_int_equal(tightest(&w.state.free, 64), 0);
    assert_int_equal(free_index_most(&w.state.free, 0, 0, NULL), 1);
    job_id job = world_running(&w, (struct job){ .gpus = 64 });
    assert_int_equal(view_seats(&w.state.view, job)->gpus, ~(uint64_t)0);
    world_release(&w);
}

RUN_CASES(TEST(the_tightest_that_holds_enough_lowest_number_first),
          TEST(cpu_memory_and_avoided_nodes_are_passed_over),
          TEST(where_only_some_nodes_count_the_others_are_not_there),
          TEST(without_gpus_the_fullest_node_comes_first),
          TEST(a_dropped_node_is_on_no_shelf_until_it_is_put_back),
          TEST(the_walk_goes_from_most_to_least_and_sees_every_node_once),
          TEST(nodes_of_64_have_a_shelf_too));
