/* The map against a list that is searched from the front. */
#include "support/cases.h"

#include "base/map.h"
#include "base/rng.h"

#define STEPS 3000
#define KEYS_MAX 400

struct list {
    uint64_t keys[KEYS_MAX];
    uint32_t values[KEYS_MAX];
    uint32_t count;
};

static uint32_t place(const struct list *list, uint64_t key)
{
    uint32_t i = 0;
    while (i < list->count && list->keys[i] != key)
        i++;
    return i;
}

static void list_put(struct list *list, uint64_t key, uint32_t value)
{
    uint32_t i = place(list, key);
    list->count += i == list->count;
    list->keys[i] = key;
    list->values[i] = value;
}

static void list_remove(struct list *list, uint64_t key)
{
    uint32_t i = place(list, key);
    if (i == list->count)
        return;
    list->count--;
    list->keys[i] = list->keys[list->count];
    list->values[i] = list->values[list->count];
}

static void compare(uint64_t seed)
{
    static struct list list;
    struct map map = { 0 };
    struct rng rng;
    rng_init(&rng, seed, "map");
    list.count = 0;

    /* Few keys, of all shapes: counted up, in the upper half, far apart. */
    uint64_t keys[KEYS_MAX];
    uint32_t key_count = 1 + rng_below(&rng, KEYS_MAX);
    uint32_t shape = rng_below(&rng, 3);
    for (uint32_t i = 0; i < key_count; i++)
        keys[i] = shape == 0 ? i : shape == 1 ? (uint64_t)i << 32 : rng_u64(&rng);
    uint32_t put_share = 30 + rng_below(&rng, 50);

    for (int i = 0; i < STEPS; i++) {
        uint64_t key = keys[rng_below(&rng, key_count)];
        if (rng_below(&rng, 100) < put_share) {
            uint32_t value = rng_below(&rng, MAP_NONE);
            map_put(&map, key, value);
            list_put(&list, key, value);
        } else {
            map_remove(&map, key);
            list_remove(&list, key);
        }
        assert_int_equal(map.count, list.count);
        uint64_t asked = keys[rng_below(&rng, key_count)];
        uint32_t at = place(&list, asked);
        assert_int_equal(map_find(&map, asked),
                         at < list.count ? list.values[at] : MAP_NONE);
    }
    for (uint32_t i = 0; i < list.count; i++)
        assert_int_equal(map_find(&map, list.keys[i]), list.values[i]);
    map_release(&map);
}

static void a_map_is_a_list_of_pairs(void **state)
{
    FOR_EACH_SEED(seed, 60)
    compare(seed.now);
}

RUN_CASES(TEST(a_map_is_a_list_of_pairs));
