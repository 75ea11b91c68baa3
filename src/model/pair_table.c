/* pair_table.c - what jobs were measured to keep of their rates beside others. */
#include "model/pair_table.h"

#include <math.h>

#include "base/hash.h"

#define MEMORY 16           /* reports a mean reaches back                       */
#define KEPT_MAX 1.5        /* of the rate alone: what is more was not alone then */
#define FOUR_IN_FIVE 1.2816 /* deviations to either side */

static uint64_t key_of(uint64_t kind, uint64_t beside, uint32_t type)
{
    return hash_mix(hash_mix(kind + type) ^ beside);
}

static uint32_t find(const struct pair_table *pairs, uint64_t kind, uint64_t beside,
                     uint32_t type)
{
    uint32_t at = map_find(&pairs->index, key_of(kind, beside, type));
    if (at == MAP_NONE)
        return MAP_NONE;
    const struct pair_row *row = &pairs->rows[at];
    bool same = row->kind == kind && row->beside == beside && row->type == type;
    return same ? at : MAP_NONE;
}

const struct pair_row *pair_table_find(const struct pair_table *pairs, uint64_t kind,
                                       uint64_t beside, uint32_t type)
{
    uint32_t at = find(pairs, kind, beside, type);
    return at == MAP_NONE ? NULL : &pairs->rows[at];
}

/* An empty row for them; the oldest makes room. */
static struct pair_row *add_row(struct pair_table *pairs, uint64_t kind,
                                uint64_t beside, uint32_t type)
{
    uint32_t at = pairs->count;
    if (pairs->count < PAIR_ROWS_MAX) {
        pairs->count++;
    } else {
        at = pairs->oldest;
        pairs->oldest = (at + 1) % PAIR_ROWS_MAX;
        const struct pair_row *old = &pairs->rows[at];
        if (find(pairs, old->kind, old->beside, old->type) == at)
            map_remove(&pairs->index, key_of(old->kind, old->beside, old->type));
    }
    pairs->rows[at] = (struct pair_row){ .kind = kind, .beside = beside, .type = type };
    map_put(&pairs->index, key_of(kind, beside, type), at);
    return &pairs->rows[at];
}

/* --- what was not measured ---------------------------------------------------------------- */

static uint32_t first_slot(uint64_t kind)
{
    return (uint32_t)hash_mix(kind) & (PAIR_FIT_SLOTS - 1);
}

uint32_t pair_fit_find(const struct pair_fit *fit, uint64_t kind)
{
    for (uint32_t at = first_slot(kind); fit->slots[at];
         at = (at + 1) & (PAIR_FIT_SLOTS - 1))
        if (fit->kinds[fit->slots[at] - 1].kind == kind)
            return fit->slots[at] - 1u;
    return PAIR_FIT_KINDS;
}

uint32_t pair_fit_add(struct pair_fit *fit, uint64_t kind)
{
    uint32_t found = pair_fit_find(fit, kind);
    uint32_t at = first_slot(kind);
    if (found < PAIR_FIT_KINDS || fit->count == PAIR_FIT_KINDS)
        return found;
    while (fit->slots[at])
        at = (at + 1) & (PAIR_FIT_SLOTS - 1);
    fit->kinds[fit->count] = (struct pair_fit_kind){ .kind = kind };
    fit->slots[at] = (uint8_t)++fit->count;
    return fit->count - 1;
}

bool pair_table_estimate(const struct pair_table *pairs, uint64_t kind, uint64_t beside,
                         uint32_t type, struct pair_estimate *ret_estimate)
{
    const struct pair_fit *fit = &pairs->fits[type];
    uint32_t a = pair_fit_find(fit, kind);
    uint32_t b = pair_fit_find(fit, beside);
    if (a == PAIR_FIT_KINDS || b == PAIR_FIT_KINDS)
        return false;
    const struct pair_fit_kind *own = &fit->kinds[a];
    const struct pair_fit_kind *other = &fit->kinds[b];
    double kept = fit->common + own->bears + other->spares;
    double width = FOUR_IN_FIVE * fit->deviation;
    *ret_estimate = (struct pair_estimate){
        .kept = fmin(fmax(kept, 0), 1),
        .low = fmin(fmax(kept - width, 0), 1),
        .high = fmin(fmax(kept + width, 0), 1),
        .sure = own->beside >= PAIR_WITNESSES && other->beside >= PAIR_WITNESSES,
    };
    return true;
}

/* --- measuring ------------------------------------------------------------------------ */

void pair_table_restore(struct pair_table *pairs, const struct pair_row *row)
{
    if (!(row->mean >= 0 && row->mean <= KEPT_MAX) || row->count == 0 ||
        find(pairs, row->kind, row->beside, row->type) != MAP_NONE)
        return;
    struct pair_row *own = add_row(pairs, row->kind, row->beside, row->type);
    own->mean = own->kept = row->mean;
    own->count = row->count;
    pairs->stale |= (uint32_t)1 << row->type;
}

bool pair_table_measure(struct pair_table *pairs, uint64_t kind, uint64_t beside,
                        uint32_t type, double kept)
{
    uint32_t at = find(pairs, kind, beside, type);
    struct pair_row *row =
        at == MAP_NONE ? add_row(pairs, kind, beside, type) : &pairs->rows[at];
    row->count++;
    double part = 1.0 / (row->count < MEMORY ? row->count : MEMORY);
    row->mean += part * (fmin(fmax(kept, 0), KEPT_MAX) - row->mean);
    bool sure = row->count == PAIR_SURE;
    if (row->count < PAIR_SURE || (!sure && fabs(row->mean - row->kept) < PAIR_NOTED))
        return false;
    row->kept = row->mean;
    pairs->stale |= (uint32_t)1 << type;
    return true;
}
