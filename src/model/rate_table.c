/* rate_table.c - how fast kinds of jobs were measured to run, by type of GPU. */
#include "model/rate_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "model/cluster.h"

#define MEMORY 32   /* reports a mean reaches back                             */
#define USUAL 4     /* reports until one can be unusual                        */
#define UNUSUAL 3.0 /* deviations from the mean: what is farther counts as this */
#define STEADY 0.05 /* least deviation: reports differ by so much, as a part    */
#define AWAY_MAX 5  /* unusual reports in a row are a change                   */
#define UNSURE 0.25 /* deviation after a single report                          */
#define FOUR_IN_FIVE 1.2816
#define CELLS_MAX 64 /* of a kind */
#define SENT_TRUST 8 /* intervals of bytes that count as much as the speeds of types */
#define SENT_UNSURE 0.5 /* deviation of what bytes tell                       */
#define SENT_LN_MAX 40.0
#define LN_MAX 25.0

const char *const rate_bases[] = {
    [RATE_UNKNOWN] = "unknown",
    [RATE_ESTIMATED] = "estimated",
    [RATE_MEASURED] = "measured",
    NULL,
};

/* --- kinds --------------------------------------------------------------------------- */

static void cut_name(char *cut, const char *name)
{
    size_t bytes = strlen(name);
    if (bytes >= RATE_NAME_MAX)
        bytes = RATE_NAME_MAX - 1;
    while (name[bytes] && bytes > 0 && ((unsigned char)name[bytes] & 0xc0) == 0x80)
        bytes--; /* not in the middle of a character */
    memcpy(cut, name, bytes);
    cut[bytes] = '\0';
}

static uint64_t hash_name(const char *name)
{
    return hash_mix(hash_text(name));
}

uint64_t rate_table_hash(const char *name)
{
    char cut[RATE_NAME_MAX];
    cut_name(cut, name);
    return hash_name(cut);
}

uint32_t rate_table_find_kind(const struct rate_table *rates, const char *name)
{
    char cut[RATE_NAME_MAX];
    cut_name(cut, name);
    uint32_t kind = map_find(&rates->index, hash_name(cut));
    return kind == MAP_NONE || strcmp(rates->kinds[kind].name, cut) != 0 ? KIND_NONE
                                                                         : kind;
}

static void mark_stale(struct rate_table *rates, uint32_t kind)
{
    if (!rates->kinds[kind].stale)
        rates->stale[rates->stale_count++] = kind;
    rates->kinds[kind].stale = true;
}

/* The kind that was used least lately, of those without jobs; KIND_NONE: all have some. */
static uint32_t find_oldest(const struct rate_table *rates)
{
    uint32_t oldest = KIND_NONE;
    for (uint32_t k = 0; k < rates->kind_count; k++)
        if (rates->kinds[k].jobs == 0 &&
            (oldest == KIND_NONE ||
             rates->kinds[k].used_ns < rates->kinds[oldest].used_ns))
            oldest = k;
    return oldest;
}

static void drop_cells(struct rate_table *rates, struct rate_kind *kind)
{
    while (kind->first != RATE_CELL_NONE) {
        uint32_t at = kind->first;
        kind->first = rates->cells[at].next;
        rates->cells[at].next = rates->cell_free;
        rates->cell_free = at;
    }
}

/* An entry in the lists stays, and speaks of the kind that comes. */
static void drop_kind(struct rate_table *rates, uint32_t at)
{
    struct rate_kind *kind = &rates->kinds[at];
    drop_cells(rates, kind);
    map_remove(&rates->index, kind->hash);
}

uint32_t rate_table_add_kind(struct rate_table *rates, const char *name, int64_t now_ns)
{
    char cut[RATE_NAME_MAX];
    cut_name(cut, name);
    uint64_t hash = hash_name(cut);
    uint32_t at = map_find(&rates->index, hash);
    if (at != MAP_NONE) /* two names of one hash are one kind */
        return at;
    at = rates->kind_count;
    if (at == rates->kind_max)
        at = find_oldest(rates);
    else
        rates->kind_count++;
    if (at == KIND_NONE)
        return KIND_NONE;
    struct rate_kind *kind = &rates->kinds[at];
    bool stale = kind->stale;
    if (kind->hash)
        drop_kind(rates, at);
    *kind = (struct rate_kind){
        .hash = hash, .used_ns = now_ns, .first = RATE_CELL_NONE, .stale = stale
    };
    memcpy(kind->name, cut, sizeof cut);
    map_put(&rates->index, hash, at);
    return at;
}

/* --- cells --------------------------------------------------------------------------- */

const struct rate_cell *rate_table_first_cell(const struct rate_table *rates,
                                              uint32_t kind)
{
    uint32_t at = rates->kinds[kind].first;
    return at == RATE_CELL_NONE ? NULL : &rates->cells[at];
}

const struct rate_cell *rate_table_next_cell(const struct rate_table *rates,
                                             const struct rate_cell *cell)
{
    return cell->next == RATE_CELL_NONE ? NULL : &rates->cells[cell->next];
}

/* The cell of a place, added if there is room; NULL: there is none. */
static struct rate_cell *find_cell(struct rate_table *rates, struct rate_kind *kind,
                                   struct rate_place place)
{
    uint32_t count = 0;
    for (uint32_t at = kind->first; at != RATE_CELL_NONE; at = rates->cells[at].next) {
        struct rate_cell *cell = &rates->cells[at];
        if (cell->type == place.type && cell->gpus == place.gpus &&
            cell->spread == place.spread)
            return cell;
        count++;
    }
    uint32_t at = rates->cell_free;
    if (count == CELLS_MAX ||
        (at == RATE_CELL_NONE && rates->cell_count == RATE_CELLS_MAX))
        return NULL;
    if (at != RATE_CELL_NONE)
        rates->cell_free = rates->cells[at].next;
    else
        at = rates->cell_count++;
    rates->cells[at] = (struct rate_cell){ .next = kind->first,
                                           .gpus = place.gpus,
                                           .type = (uint8_t)place.type,
                                           .spread = place.spread };
    kind->first = at;
    if (kind->gpus == 0)
        kind->gpus = place.gpus;
    return &rates->cells[at];
}

static double usual_deviation(const struct rate_cell *cell)
{
    return sqrt(cell->variance + STEADY * STEADY);
}

/*
 * An exponentially weighted mean and variance.  A report far from the mean counts as if it
 * were nearer: a checkpoint or a hiccup is not the job's speed.  Several in a row, on the
 * same side, are: then what was known counts little.
 */
static void add_report(struct rate_cell *cell, double ln)
{
    double away = ln - cell->mean;
    double most = UNUSUAL * usual_deviation(cell);
    if (cell->count >= USUAL && fabs(away) > most) {
        int8_t side = away > 0 ? 1 : -1;
        cell->away = cell->away * side > 0 ? (int8_t)(cell->away + side) : side;
        if (cell->away * side >= AWAY_MAX) {
            cell->away = 0;
            cell->count = 2;
        } else {
            away = side * most;
        }
    } else {
        cell->away = 0;
    }
    cell->count++;
    double part = 1.0 / (cell->count < MEMORY ? cell->count : MEMORY);
    cell->mean += part * away;
    cell->variance = (1 - part) * (cell->variance + part * away * away);
}

void rate_table_measure(struct rate_table *rates, uint32_t kind,
                        struct rate_place place, double per_s, int64_t now_ns,
                        bool brief)
{
    if (!(per_s > 0) || place.gpus == 0 || place.type >= rates->cluster->type_count)
        return;
    struct rate_cell *cell = find_cell(rates, &rates->kinds[kind], place);
    if (!cell || (brief && cell->count > 0))
        return;
    if (cell->brief) /* it held a warm-up, perhaps */
        *cell = (struct rate_cell){ .next = cell->next,
                                    .gpus = cell->gpus,
                                    .type = cell->type,
                                    .spread = cell->spread };
    add_report(cell, log(per_s));
    cell->brief = brief;
    if (!brief)
        rates->kinds[kind].steady |= (uint32_t)1 << place.type;
    cell->at_ns = rates->kinds[kind].used_ns = now_ns;
    mark_stale(rates, kind);
}

bool rate_table_restore(struct rate_table *rates, const char *name,
                        const struct rate_cell *cell)
{
    bool sane = fabs(cell->mean) < LN_MAX && cell->variance >= 0 &&
                cell->variance < LN_MAX && cell->gpus > 0 && cell->count > 0 &&
                cell->type < rates->cluster->type_count && *name;
    uint32_t kind = sane ? rate_table_find_kind(rates, name) : KIND_NONE;
    if (sane && kind == KIND_NONE && rates->kind_count < rates->kind_max)
        kind = rate_table_add_kind(rates, name, cell->at_ns);
    if (kind == KIND_NONE)
        return false;
    struct rate_kind *known = &rates->kinds[kind];
    struct rate_cell *own = find_cell(
        rates, known, (struct rate_place){ cell->type, cell->gpus, cell->spread });
    if (!own)
        return false;
    own->mean = cell->mean;
    own->variance = cell->variance;
    own->at_ns = cell->at_ns;
    own->count = cell->count;
    known->steady |= (uint32_t)1 << cell->type;
    if (cell->at_ns > known->used_ns)
        known->used_ns = cell->at_ns;
    mark_stale(rates, kind);
    return true;
}

/* --- rates --------------------------------------------------------------------------- */

/* Of a single report as little is known as of its error. */
static double deviation_of(const struct rate_cell *cell)
{
    double own = usual_deviation(cell);
    double few = UNSURE / cell->count;
    return sqrt(own * own * (1 + 1.0 / cell->count) + few * few);
}

/* The cells of a type around a size: the largest below and the smallest above. */
struct neighbours {
    const struct rate_cell *below, *above;
};

/* Spread gangs without a cell of their own go as the others do, and the other way round. */
static struct neighbours find_neighbours(const struct rate_table *rates,
                                         const struct rate_kind *kind,
                                         struct rate_place place)
{
    struct neighbours found = { NULL, NULL };
    for (uint32_t at = kind->first; at != RATE_CELL_NONE; at = rates->cells[at].next) {
        const struct rate_cell *cell = &rates->cells[at];
        if (cell->type != place.type || cell->count == 0)
            continue;
        bool own = cell->spread == place.spread;
        const struct rate_cell **below = &found.below;
        const struct rate_cell **above = &found.above;
        if (cell->gpus <= place.gpus && (!*below || cell->gpus > (*below)->gpus ||
                                         (cell->gpus == (*below)->gpus && own)))
            *below = cell;
        if (cell->gpus >= place.gpus && (!*above || cell->gpus < (*above)->gpus ||
                                         (cell->gpus == (*above)->gpus && own)))
            *above = cell;
    }
    return found;
}

/* ln(rate) at a size between, or beyond by the rate per GPU. */
static double between(const struct neighbours *near, uint32_t gpus)
{
    const struct rate_cell *below = near->below;
    const struct rate_cell *above = near->above;
    if (!below || !above)
        return (below ? below : above)->mean +
               log((double)gpus / (below ? below : above)->gpus);
    if (below->gpus == above->gpus)
        return below->mean;
    double low = exp(below->mean);
    double high = exp(above->mean);
    double part = (double)(gpus - below->gpus) / (above->gpus - below->gpus);
    return log(low + (high - low) * part);
}

/* --- what silent gangs send --------------------------------------------------------------- */

/*
 * Bytes of a step are not known, so that types can only be compared with each other: how much
 * more is sent from one than its speed beside the others explains, on the mean of those where
 * it was counted.  The fewer intervals, the more the types' own speeds count.
 */
static bool set_factors(struct rate_table *rates, struct rate_kind *kind)
{
    double sum = 0;
    uint32_t count = 0;
    bool changed = false;
    for (uint32_t t = 0; t < TYPES_MAX; t++)
        if (kind->sent[t].count > 0 && rates->typical[t] > 0) {
            sum += (double)kind->sent[t].mean - log(rates->typical[t]);
            count++;
        }
    for (uint32_t t = 0; t < TYPES_MAX && count > 1; t++) {
        struct rate_sent *sent = &kind->sent[t];
        if (sent->count == 0 || !(rates->typical[t] > 0))
            continue;
        double away = (double)sent->mean - log(rates->typical[t]) - sum / count;
        double factor = exp(away * sent->count / (sent->count + SENT_TRUST));
        double before = sent->factor > 0 ? (double)sent->factor : 1;
        if (fabs(log(factor / before)) <= RATE_NOTED)
            continue;
        sent->factor = (float)factor;
        changed = true;
    }
    return changed;
}

bool rate_table_count_sent(struct rate_table *rates, uint32_t kind,
                           struct rate_place place, double bytes_per_s, int64_t now_ns)
{
    struct rate_kind *known = &rates->kinds[kind];
    if (known->gpus > 0 || place.type >= TYPES_MAX || !(bytes_per_s > 0) ||
        (known->sent_gpus > 0 && known->sent_gpus != place.gpus))
        return false;
    struct rate_sent *sent = &known->sent[place.type];
    known->sent_gpus = place.gpus;
    known->sent_at_ns = known->used_ns = now_ns;
    sent->count += sent->count < MEMORY;
    sent->mean += (float)((log(bytes_per_s) - (double)sent->mean) / sent->count);
    return set_factors(rates, known);
}

void rate_table_restore_sent(struct rate_table *rates, const char *name,
                             struct rate_place place, const struct rate_sent *sent)
{
    uint32_t kind = rate_table_find_kind(rates, name);
    if (kind == KIND_NONE && rates->kind_count < rates->kind_max)
        kind = rate_table_add_kind(rates, name, 0);
    if (kind == KIND_NONE || place.type >= TYPES_MAX || place.gpus == 0 ||
        sent->count == 0 || sent->count > MEMORY ||
        !(fabs((double)sent->mean) < SENT_LN_MAX))
        return;
    struct rate_kind *known = &rates->kinds[kind];
    if (known->gpus > 0 || (known->sent_gpus > 0 && known->sent_gpus != place.gpus))
        return;
    known->sent_gpus = place.gpus;
    known->sent[place.type] = *sent;
    set_factors(rates, known);
}

/* For people: a step of theirs is a second at the usual speed. */
static struct rate_figure sent_figure(const struct rate_table *rates,
                                      const struct rate_kind *kind,
                                      struct rate_place place)
{
    struct rate_figure figure = { .basis = RATE_UNKNOWN };
    if (place.gpus != kind->sent_gpus || !(kind->sent[place.type].factor > 0))
        return figure;
    figure.basis = RATE_ESTIMATED;
    figure.rate = rates->typical[place.type] * (double)kind->sent[place.type].factor;
    figure.low = figure.rate * exp(-FOUR_IN_FIVE * SENT_UNSURE);
    figure.high = figure.rate * exp(FOUR_IN_FIVE * SENT_UNSURE);
    return figure;
}

/* --- levels ----------------------------------------------------------------------------- */

bool rate_table_measured(const struct rate_table *rates, const struct rate_kind *kind,
                         uint32_t type, double *ret_ln, double *ret_deviation,
                         bool *ret_exact)
{
    struct neighbours near =
        find_neighbours(rates, kind, (struct rate_place){ type, kind->gpus, false });
    const struct rate_cell *nearest = near.below ? near.below : near.above;
    if (!nearest)
        return false;
    *ret_ln = between(&near, kind->gpus);
    *ret_deviation = deviation_of(nearest);
    *ret_exact = nearest->gpus == kind->gpus && !nearest->spread;
    return true;
}

bool rate_table_set_level(struct rate_kind *kind, uint32_t type, enum rate_basis basis,
                          double ln, double deviation)
{
    double level = exp(ln);
    bool changed = kind->basis[type] != basis || !(kind->level[type] > 0) ||
                   fabs(log(level / kind->level[type])) > RATE_NOTED;
    if (changed)
        kind->level[type] = level;
    kind->basis[type] = (uint8_t)basis;
    kind->deviation[type] = (float)deviation;
    return changed;
}

double rate_table_other_per_s(const struct rate_table *rates,
                              const struct rate_kind *kind, struct rate_place place,
                              double level)
{
    struct neighbours near = find_neighbours(rates, kind, place);
    if (near.below || near.above)
        return exp(between(&near, place.gpus));
    return level * place.gpus / kind->gpus;
}

struct rate_figure rate_table_figure(const struct rate_table *rates, uint32_t kind,
                                     struct rate_place place)
{
    const struct rate_kind *known = &rates->kinds[kind];
    struct rate_figure figure = { .basis = RATE_UNKNOWN };
    if (place.type >= rates->cluster->type_count || place.gpus == 0)
        return figure;
    if (known->gpus == 0)
        return sent_figure(rates, known, place);
    struct neighbours near = find_neighbours(rates, known, place);
    const struct rate_cell *nearest = near.below ? near.below : near.above;
    double ln;
    double deviation;
    if (nearest) {
        bool exact = nearest->gpus == place.gpus && nearest->spread == place.spread;
        figure.basis = exact ? RATE_MEASURED : RATE_ESTIMATED;
        figure.count = nearest->count;
        ln = between(&near, place.gpus);
        deviation = deviation_of(nearest) * (exact ? 1 : 2);
    } else if (known->level[place.type] > 0) {
        figure.basis = known->basis[place.type];
        ln = log(known->level[place.type] * place.gpus / known->gpus);
        deviation = known->deviation[place.type];
    } else {
        return figure;
    }
    figure.rate = exp(ln);
    if (figure.basis != RATE_UNKNOWN) {
        figure.low = exp(ln - FOUR_IN_FIVE * deviation);
        figure.high = exp(ln + FOUR_IN_FIVE * deviation);
    }
    return figure;
}
