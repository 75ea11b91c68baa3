/* grow.c - arrays that double when they are full. */
#include "base/grow.h"

#include <string.h>

#include "base/memory.h"

#define FIRST_ROOM 64

uint32_t grow_room(uint32_t room, uint32_t want)
{
    if (want <= room)
        return room;
    uint64_t next = room ? room : FIRST_ROOM;
    while (next < want)
        next *= 2;
    if (next > UINT32_MAX)
        memory_exhausted();
    return (uint32_t)next;
}

void *grow_array(void *items, uint32_t *room, uint32_t want, size_t size)
{
    if (want <= *room)
        return items;
    uint32_t next = grow_room(*room, want);
    items = memory_resize(items, next, size);
    memset((char *)items + *room * size, 0, (next - *room) * size);
    *room = next;
    return items;
}
