/* grow.c - arrays that double when they are full. */
#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

void *grow(void *items, uint32_t *room, uint32_t want, size_t size)
{
    if (want <= *room)
        return items;
    uint64_t next = *room ? *room : FIRST_ROOM;
    while (next < want)
        next *= 2;
    void *more = next <= UINT32_MAX ? realloc(items, next * size) : NULL;
    if (!more) {
        fprintf(stderr, "berth: out of memory (%u items of %zu bytes)\n", want, size);
        abort();
    }
    memset((char *)more + *room * size, 0, (next - *room) * size);
    *room = (uint32_t)next;
    return more;
}
