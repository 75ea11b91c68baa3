/* crossings.c - which flows cross which link. */
#include "net/crossings.h"

#include <stdlib.h>

#include "base/grow.h"

#define NONE CROSSING_NONE

void crossings_init(struct crossings *crossings, uint32_t link_count)
{
    *crossings = (struct crossings){ 0 };
    uint32_t room = 0;
    crossings->firsts = grow_array(NULL, &room, link_count, sizeof *crossings->firsts);
    for (uint32_t i = 0; i < link_count; i++)
        crossings->firsts[i] = NONE;
    for (uint32_t i = 0; i < 32; i++)
        crossings->free[i] = NONE;
}

void crossings_release(struct crossings *crossings)
{
    free(crossings->all);
    free(crossings->firsts);
    *crossings = (struct crossings){ 0 };
}

static uint32_t row_class(uint32_t count)
{
    uint32_t class = 0;
    while (UINT32_C(1) << class < count)
        class ++;
    return class;
}

uint32_t crossings_row(struct crossings *crossings, uint32_t count)
{
    uint32_t class = row_class(count);
    uint32_t first = crossings->free[class];
    if (first != NONE) {
        crossings->free[class] = crossings->all[first].next;
        return first;
    }
    first = crossings->used;
    crossings->used += UINT32_C(1) << class;
    crossings->all = grow_array(crossings->all, &crossings->room, crossings->used,
                                sizeof *crossings->all);
    return first;
}

void crossings_row_free(struct crossings *crossings, uint32_t first, uint32_t count)
{
    uint32_t class = row_class(count);
    crossings->all[first].next = crossings->free[class];
    crossings->free[class] = first;
}

void crossings_attach(struct crossings *crossings, uint32_t first, uint32_t count)
{
    for (uint32_t at = first; at < first + count; at++) {
        struct crossing *crossing = &crossings->all[at];
        uint32_t *head = &crossings->firsts[crossing->link];
        crossing->prev = NONE;
        crossing->next = *head;
        if (*head != NONE)
            crossings->all[*head].prev = at;
        *head = at;
    }
}

void crossings_detach(struct crossings *crossings, uint32_t first, uint32_t count)
{
    for (uint32_t at = first; at < first + count; at++) {
        const struct crossing *crossing = &crossings->all[at];
        if (crossing->prev != NONE)
            crossings->all[crossing->prev].next = crossing->next;
        else
            crossings->firsts[crossing->link] = crossing->next;
        if (crossing->next != NONE)
            crossings->all[crossing->next].prev = crossing->prev;
    }
}
