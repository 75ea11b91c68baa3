/* map.h - 64-bit key to 32-bit index. */
#pragma once

#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map_entry {
    uint64_t key;
    uint32_t value; /* MAP_NONE: free */
};

struct map {
    struct map_entry *entries;
    uint32_t room; /* a power of two, or 0 */
    uint32_t count;
};

void map_release(struct map *map);

/* The value of 'key', or MAP_NONE. */
uint32_t map_find(const struct map *map, uint64_t key);

/* Set it; an older value is replaced.  'value' is not MAP_NONE. */
void map_put(struct map *map, uint64_t key, uint32_t value);
void map_remove(struct map *map, uint64_t key);
