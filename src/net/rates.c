/*
 * rates.c - rates of flows: max-min fair within a level, strict between levels.
 *
 * Water filling: the link with the least capacity left per flow of the current level
 * decides the rate of all flows that cross it; they are fixed, what they use is
 * subtracted everywhere, and the next such link is found.
 */
#include "net/rates.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "net/topology.h"

#define NONE CROSSING_NONE
#define EQUAL 1e-12 /* rates that differ by less, relatively, are equal */

void rates_init(struct rates *rates, const struct topology *topology)
{
    *rates = (struct rates){ .link_count = topology->link_count, .bundle_free = NONE };
    crossings_init(&rates->crossings, topology->link_count);
    uint32_t room = 0;
    rates->links = grow_array(NULL, &room, topology->link_count, sizeof *rates->links);
    room = 0;
    rates->nearby =
        grow_array(NULL, &room, topology->link_count, sizeof *rates->nearby);
    for (uint32_t i = 0; i < topology->link_count; i++)
        rates->links[i].capacity = topology->capacities[i];
}

void rates_release(struct rates *rates)
{
    free(rates->links);
    free(rates->nearby);
    crossings_release(&rates->crossings);
    free(rates->bundles);
    free(rates->touched);
    free(rates->changed);
    *rates = (struct rates){ 0 };
}

/* --- bundles --------------------------------------------------------------------- */

uint32_t rates_add(struct rates *rates, const struct link_use *uses, uint32_t use_count,
                   uint32_t level)
{
    assert(use_count > 0);
    assert(level < RATES_LEVELS_MAX);
    uint32_t id = rates->bundle_free;
    if (id != NONE) {
        rates->bundle_free = rates->bundles[id].first;
    } else {
        id = rates->bundle_used++;
        rates->bundles = grow_array(rates->bundles, &rates->bundle_room,
                                    rates->bundle_used, sizeof *rates->bundles);
        rates->touched = grow_array(rates->touched, &rates->touched_room,
                                    rates->bundle_used, sizeof *rates->touched);
        rates->changed = grow_array(rates->changed, &rates->changed_room,
                                    rates->bundle_used, sizeof *rates->changed);
    }
    uint32_t first = crossings_row(&rates->crossings, use_count);
    rates->bundles[id] =
        (struct bundle){ .first = first, .count = use_count, .level = level };
    for (uint32_t i = 0; i < use_count; i++) {
        assert(uses[i].flows > 0);
        rates->crossings.all[first + i] = (struct crossing){ .link = uses[i].link,
                                                             .owner = id,
                                                             .flows = uses[i].flows };
    }
    return id;
}

void rates_remove(struct rates *rates, uint32_t id)
{
    struct bundle *bundle = &rates->bundles[id];
    assert(!bundle->sending);
    crossings_row_free(&rates->crossings, bundle->first, bundle->count);
    bundle->first = rates->bundle_free;
    bundle->count = 0;
    rates->bundle_free = id;
}

/*
 * --- which bundles a change touches
 * ----------------------------------------------------
 */

static void visit_link(struct rates *rates, uint32_t at)
{
    struct rates_link *link = &rates->links[at];
    if (link->seen == rates->round)
        return;
    link->seen = rates->round;
    link->left = link->capacity;
    link->flows = 0;
    rates->nearby[rates->nearby_count++] = at;
}

static void visit_links(struct rates *rates, const struct bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->count; i++)
        visit_link(rates, rates->crossings.all[bundle->first + i].link);
}

/*
 * From the links of a bundle outwards: all connected bundles of 'level' or later, and
 * what the earlier ones leave on each link.
 */
static void collect_touched(struct rates *rates, const struct bundle *from,
                            uint32_t level)
{
    rates->round++;
    rates->touched_count = rates->nearby_count = 0;
    visit_links(rates, from);
    for (uint32_t next = 0; next < rates->nearby_count; next++) {
        struct rates_link *link = &rates->links[rates->nearby[next]];
        const struct crossing *crossing;
        for (uint32_t c = crossings_first(&rates->crossings, rates->nearby[next]);
             c != NONE; c = crossing->next) {
            crossing = &rates->crossings.all[c];
            struct bundle *bundle = &rates->bundles[crossing->owner];
            if (bundle->level < level) {
                link->left -= crossing->flows * bundle->rate;
                continue;
            }
            if (bundle->seen == rates->round)
                continue;
            bundle->seen = rates->round;
            bundle->fixed = false;
            rates->touched[rates->touched_count++] = crossing->owner;
            visit_links(rates, bundle);
        }
    }
}

/* --- water-filling ------------------------------------------------------------------- */

static void fix_rate(struct rates *rates, struct bundle *bundle, double rate)
{
    bundle->fixed = true;
    bundle->next_rate = rate;
    for (uint32_t i = 0; i < bundle->count; i++) {
        const struct crossing *crossing = &rates->crossings.all[bundle->first + i];
        struct rates_link *link = &rates->links[crossing->link];
        link->left -= crossing->flows * rate;
        link->flows -= crossing->flows;
    }
}

/* The link with the least left for each flow of this level; NONE when all are fixed. */
static uint32_t find_narrowest(const struct rates *rates, double *ret_share)
{
    uint32_t best = NONE;
    double best_share = INFINITY;
    for (uint32_t i = 0; i < rates->nearby_count; i++) {
        const struct rates_link *link = &rates->links[rates->nearby[i]];
        if (link->flows <= 0)
            continue;
        double share = link->left > 0 ? link->left / link->flows : 0;
        if (share < best_share) {
            best_share = share;
            best = rates->nearby[i];
        }
    }
    *ret_share = best_share;
    return best;
}

static void fill_level(struct rates *rates, uint32_t level)
{
    for (uint32_t i = 0; i < rates->touched_count; i++) {
        const struct bundle *bundle = &rates->bundles[rates->touched[i]];
        for (uint32_t k = 0; bundle->level == level && k < bundle->count; k++) {
            const struct crossing *crossing = &rates->crossings.all[bundle->first + k];
            rates->links[crossing->link].flows += crossing->flows;
        }
    }
    double share;
    for (uint32_t at; (at = find_narrowest(rates, &share)) != NONE;) {
        const struct crossing *crossing;
        for (uint32_t c = crossings_first(&rates->crossings, at); c != NONE;
             c = crossing->next) {
            crossing = &rates->crossings.all[c];
            struct bundle *bundle = &rates->bundles[crossing->owner];
            if (bundle->level == level && !bundle->fixed)
                fix_rate(rates, bundle, share);
        }
        assert(rates->links[at].flows == 0);
    }
}

static uint32_t next_level(const struct rates *rates, uint32_t after, bool begin)
{
    uint32_t best = NONE;
    for (uint32_t i = 0; i < rates->touched_count; i++) {
        uint32_t level = rates->bundles[rates->touched[i]].level;
        if ((begin || level > after) && level < best)
            best = level;
    }
    return best;
}

static void recompute_rates(struct rates *rates, const struct bundle *from,
                            uint32_t level)
{
    collect_touched(rates, from, level);
    for (uint32_t at = next_level(rates, 0, true); at != NONE;
         at = next_level(rates, at, false))
        fill_level(rates, at);
    rates->changed_count = 0;
    for (uint32_t i = 0; i < rates->touched_count; i++) {
        struct bundle *bundle = &rates->bundles[rates->touched[i]];
        if (fabs(bundle->next_rate - bundle->rate) <= EQUAL * bundle->rate)
            continue;
        bundle->rate = bundle->next_rate;
        rates->changed[rates->changed_count++] = rates->touched[i];
    }
}

/* --- changes --------------------------------------------------------------------------- */

void rates_begin(struct rates *rates, uint32_t id)
{
    struct bundle *bundle = &rates->bundles[id];
    assert(!bundle->sending);
    bundle->sending = true;
    bundle->rate = -1; /* so that it is among the changed */
    crossings_attach(&rates->crossings, bundle->first, bundle->count);
    recompute_rates(rates, bundle, bundle->level);
}

void rates_end(struct rates *rates, uint32_t id)
{
    struct bundle *bundle = &rates->bundles[id];
    assert(bundle->sending);
    bundle->sending = false;
    bundle->rate = 0;
    crossings_detach(&rates->crossings, bundle->first, bundle->count);
    recompute_rates(rates, bundle, bundle->level);
}

void rates_set_level(struct rates *rates, uint32_t id, uint32_t level)
{
    assert(level < RATES_LEVELS_MAX);
    struct bundle *bundle = &rates->bundles[id];
    uint32_t before = bundle->level;
    bundle->level = level;
    rates->changed_count = 0;
    if (bundle->sending && before != level)
        recompute_rates(rates, bundle, before < level ? before : level);
}
