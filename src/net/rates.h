/*
 * rates.h - rates of flows: max-min fair within a level, strict between levels.
 *
 * What a job sends at a time is a bundle: a number of flows over each of its links, all
 * at one rate.  Level 0 goes first; a bundle of a later level gets what the earlier
 * ones leave.  Within a level the rates are max-min fair per flow: none can be raised
 * without lowering one that is not higher.  So no link that a bundle could use stays
 * idle.
 *
 * A change costs what it touches: the bundles connected with the changed one over
 * shared links, of its level and later ones.  No other rate depends on it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/crossings.h"

struct topology;

#define RATES_LEVELS_MAX 1024

struct bundle {
    uint32_t first, count; /* crossings                            */
    uint32_t level;
    uint32_t seen; /* in which round it was last visited */
    double rate;   /* bytes per second of each flow; 0 when silent */
    double next_rate;
    bool sending;
    bool fixed;
};

struct rates_link {
    double capacity;
    uint32_t seen;
    double left;  /* while rates are computed */
    double flows; /* of the current level */
};

struct rates {
    struct rates_link *links;
    uint32_t link_count;
    struct crossings crossings; /* of the bundles that send */
    struct bundle *bundles;
    uint32_t bundle_used, bundle_room, bundle_free;
    uint32_t round; /* of collecting */

    /* of the last change */
    uint32_t *touched; /* bundles visited */
    uint32_t touched_count, touched_room;
    uint32_t *nearby; /* links visited */
    uint32_t nearby_count;
    uint32_t *changed; /* bundles with a new rate */
    uint32_t changed_count, changed_room;
};

void rates_init(struct rates *rates, const struct topology *topology);
void rates_release(struct rates *rates);

/* A bundle that does not send yet.  Ids are used again. */
uint32_t rates_add(struct rates *rates, const struct link_use *uses, uint32_t use_count,
                   uint32_t level);
void rates_remove(struct rates *rates, uint32_t bundle);

/*
 * Begin or end to send, or change the level.  Bundles with a new rate are listed in
 * 'changed', the bundle itself among them if it sends.
 */
void rates_begin(struct rates *rates, uint32_t bundle);
void rates_end(struct rates *rates, uint32_t bundle);
void rates_set_level(struct rates *rates, uint32_t bundle, uint32_t level);
