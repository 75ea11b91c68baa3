/* rates_check.c - assert that the rates of a network are max-min fair. */
#include "support/rates_check.h"

#include <assert.h>

#include "net/rates.h"

/* What bundles of this level and earlier ones send over a link. */
static double link_load(const struct rates *rates, uint32_t link, uint32_t level)
{
    double load = 0;
    const struct crossing *crossing;
    for (uint32_t c = crossings_first(&rates->crossings, link); c != CROSSING_NONE;
         c = crossing->next) {
        crossing = &rates->crossings.all[c];
        const struct bundle *bundle = &rates->bundles[crossing->owner];
        if (bundle->level <= level)
            load += crossing->flows * bundle->rate;
    }
    return load;
}

/* The link is full, and no bundle of the same level gets more on it. */
static bool is_held_back_by(const struct rates *rates, const struct bundle *bundle,
                            uint32_t link)
{
    double slack = 1e-9 * rates->links[link].capacity;
    if (link_load(rates, link, bundle->level) < rates->links[link].capacity - slack)
        return false;
    const struct crossing *crossing;
    for (uint32_t c = crossings_first(&rates->crossings, link); c != CROSSING_NONE;
         c = crossing->next) {
        crossing = &rates->crossings.all[c];
        const struct bundle *other = &rates->bundles[crossing->owner];
        if (other->level == bundle->level && other->rate > bundle->rate + slack)
            return false;
    }
    return true;
}

static bool is_held_back(const struct rates *rates, const struct bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->count; i++)
        if (is_held_back_by(rates, bundle,
                            rates->crossings.all[bundle->first + i].link))
            return true;
    return false;
}

void rates_check(const struct rates *rates)
{
    for (uint32_t i = 0; i < rates->link_count; i++)
        assert(link_load(rates, i, CROSSING_NONE) <=
               rates->links[i].capacity * (1 + 1e-9));
    for (uint32_t i = 0; i < rates->bundle_used; i++) {
        const struct bundle *bundle = &rates->bundles[i];
        if (!bundle->sending)
            continue;
        assert(bundle->rate >= 0);
        assert(is_held_back(rates, bundle));
    }
}
