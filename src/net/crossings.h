/*
 * crossings.h - which flows cross which link: a list per link, a row per bundle of
 * flows.
 */
#pragma once

#include <stdint.h>

#include "net/traffic.h"

#define CROSSING_NONE UINT32_MAX

struct crossing {
    uint32_t link;
    uint32_t owner;
    uint32_t next, prev; /* on the same link, while it is in the link's list */
    uint32_t phase;      /* of the owner's step                              */
    double flows;
};

struct crossings {
    struct crossing *all;
    uint32_t used, room;
    uint32_t free[32]; /* rows of 1, 2, 4, … that are not in use */
    uint32_t *firsts;  /* by link */
};

void crossings_init(struct crossings *crossings, uint32_t link_count);
void crossings_release(struct crossings *crossings);

/* Allocate a row of 'count' neighbours; returns the first.  Not in any list yet. */
uint32_t crossings_row(struct crossings *crossings, uint32_t count);
void crossings_row_free(struct crossings *crossings, uint32_t first, uint32_t count);

/* Put a row into the lists of its links, or take it out. */
void crossings_attach(struct crossings *crossings, uint32_t first, uint32_t count);
void crossings_detach(struct crossings *crossings, uint32_t first, uint32_t count);

/* All crossings of a link: for (c = first; c != CROSSING_NONE; c = next). */
static inline uint32_t crossings_first(const struct crossings *crossings, uint32_t link)
{
    return crossings->firsts[link];
}
