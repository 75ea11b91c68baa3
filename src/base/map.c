/* map.c - open addressing, linear probing, no tombstones. */
#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static uint32_t home_index(const struct map *map, uint64_t key)
{
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(key >> 32) & (map->room - 1);
}

static void grow_map(struct map *map)
{
    struct map old = *map;
    map->room = old.room ? old.room * 2 : 64;
    map->count = 0;
    map->entries = memory_checked(malloc(map->room * sizeof *map->entries));
    memset(map->entries, 0xff, map->room * sizeof *map->entries); /* all MAP_NONE */
    for (uint32_t i = 0; i < old.room; i++)
        if (old.entries[i].value != MAP_NONE)
            map_put(map, old.entries[i].key, old.entries[i].value);
    free(old.entries);
}

void map_release(struct map *map)
{
    free(map->entries);
    *map = (struct map){ 0 };
}

uint32_t map_find(const struct map *map, uint64_t key)
{
    if (!map->room)
        return MAP_NONE;
    for (uint32_t i = home_index(map, key);; i = (i + 1) & (map->room - 1)) {
        if (map->entries[i].value == MAP_NONE)
            return MAP_NONE;
        if (map->entries[i].key == key)
            return map->entries[i].value;
    }
}

void map_put(struct map *map, uint64_t key, uint32_t value)
{
    assert(value != MAP_NONE);
    if ((map->count + 1) * 4 > map->room * 3 || !map->room)
        grow_map(map);
    uint32_t i = home_index(map, key);
    while (map->entries[i].value != MAP_NONE && map->entries[i].key != key)
        i = (i + 1) & (map->room - 1);
    map->count += map->entries[i].value == MAP_NONE;
    map->entries[i] = (struct map_entry){ key, value };
}

void map_remove(struct map *map, uint64_t key)
{
    if (!map->room)
        return;
    uint32_t i = home_index(map, key);
    while (map->entries[i].value != MAP_NONE && map->entries[i].key != key)
        i = (i + 1) & (map->room - 1);
    if (map->entries[i].value == MAP_NONE)
        return;
    map->count--;

    /* Close the gap: move back what would otherwise no longer be found. */
    for (uint32_t j = (i + 1) & (map->room - 1); map->entries[j].value != MAP_NONE;
         j = (j + 1) & (map->room - 1)) {
        uint32_t want = home_index(map, map->entries[j].key);
        if (((j - want) & (map->room - 1)) >= ((j - i) & (map->room - 1))) {
            map->entries[i] = map->entries[j];
            i = j;
        }
    }
    map->entries[i].value = MAP_NONE;
}
