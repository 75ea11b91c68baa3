/* From a 64-bit key to a 32-bit index. */
#include "support/cases.h"

#include "base/map.h"

static void an_empty_map_finds_nothing(void **state)
{
    struct map *map = *state;
    assert_int_equal(map_find(map, 0), MAP_NONE);
    map_remove(map, 0);
    assert_int_equal(map->count, 0);
}

static void every_key_is_a_key(void **state)
{
    const uint64_t keys[] = { 0, 1, UINT32_MAX, (uint64_t)1 << 32, UINT64_MAX };
    struct map *map = *state;
    for (uint32_t i = 0; i < 5; i++)
        map_put(map, keys[i], i);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(map_find(map, keys[i]), i);
    assert_int_equal(map->count, 5);
}

static void the_newest_value_counts(void **state)
{
    struct map *map = *state;
    map_put(map, 42, 1);
    map_put(map, 42, 2);
    assert_int_equal(map_find(map, 42), 2);
    assert_int_equal(map->count, 1);
}

static void what_was_removed_is_gone_and_can_come_back(void **state)
{
    struct map *map = *state;
    map_put(map, 42, 1);
    map_remove(map, 42);
    map_remove(map, 42);
    assert_int_equal(map_find(map, 42), MAP_NONE);
    assert_int_equal(map->count, 0);
    map_put(map, 42, 3);
    assert_int_equal(map_find(map, 42), 3);
}

static void removing_what_is_not_there_changes_nothing(void **state)
{
    struct map *map = *state;
    map_put(map, 1, 1);
    for (uint64_t key = 2; key < 500; key++)
        map_remove(map, key);
    assert_int_equal(map->count, 1);
    assert_int_equal(map_find(map, 1), 1);
}

static void removing_one_leaves_its_neighbours(void **state)
{
    struct map *map = *state;
    enum { COUNT = 5000 };
    for (uint64_t key = 0; key < COUNT; key++)
        map_put(map, key << 20, (uint32_t)key);
    for (uint64_t key = 0; key < COUNT; key += 2)
        map_remove(map, key << 20);

    for (uint64_t key = 0; key < COUNT; key++)
        assert_int_equal(map_find(map, key << 20), key % 2 ? (uint32_t)key : MAP_NONE);
    assert_int_equal(map->count, COUNT / 2);
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct map));
    return 0;
}

static int teardown(void **state)
{
    map_release(*state);
    free(*state);
    return 0;
}

RUN_CASES(CASE(an_empty_map_finds_nothing), CASE(every_key_is_a_key),
          CASE(the_newest_value_counts),
          CASE(what_was_removed_is_gone_and_can_come_back),
          CASE(removing_what_is_not_there_changes_nothing),
          CASE(removing_one_leaves_its_neighbours));
