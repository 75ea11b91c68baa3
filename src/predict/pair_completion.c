/* pair_completion.c - what kinds of jobs would keep beside others where that was not measured. */
#include "predict/pair_completion.h"

#include <math.h>

#include "model/pair_table.h"
#include "model/rate_table.h"
#include "model/sharing.h"

#define TURNS 12
#define RIDGE 1.0
#define UNKNOWN_DEVIATION 0.2 /* of a part, while nothing was measured */
#define LEAST_DEVIATION 0.05
#define NOT_KNOWN -1.0F

/* The known cells of a type, by places in its fit: [kind][kind beside it]. */
struct cells {
    float kept[PAIR_FIT_KINDS][PAIR_FIT_KINDS];
    uint32_t count;
};

/* Sums over the cells of one kind that are known. */
struct sums {
    double bears, spares; /* of what is left of them for this one to explain */
    uint32_t bears_count, spares_count;
};

static bool is_of(const struct pair_row *row, uint32_t type)
{
    return row->type == type && row->count >= PAIR_SURE;
}

/* The kinds of the newest rows; the last that was added stands before 'oldest'. */
static void choose_kinds(const struct pair_table *pairs, uint32_t type,
                         struct pair_fit *fit)
{
    for (uint32_t i = 0; i < pairs->count && fit->count < PAIR_FIT_KINDS; i++) {
        uint32_t back = pairs->oldest + pairs->count - 1 - i;
        const struct pair_row *row = &pairs->rows[back % pairs->count];
        if (is_of(row, type)) {
            pair_fit_add(fit, row->kind);
            pair_fit_add(fit, row->beside);
        }
    }
}

static void read_cells(const struct pair_table *pairs, uint32_t type,
                       struct pair_fit *fit, struct cells *cells)
{
    cells->count = 0;
    for (uint32_t a = 0; a < fit->count; a++)
        for (uint32_t b = 0; b < fit->count; b++)
            cells->kept[a][b] = NOT_KNOWN;
    for (uint32_t i = 0; i < pairs->count; i++) {
        const struct pair_row *row = &pairs->rows[i];
        if (!is_of(row, type))
            continue;
        uint32_t a = pair_fit_find(fit, row->kind);
        uint32_t b = pair_fit_find(fit, row->beside);
        if (a == PAIR_FIT_KINDS || b == PAIR_FIT_KINDS)
            continue;
        cells->kept[a][b] = (float)fmin(row->kept, 1);
        cells->count++;
        fit->kinds[a].beside++;
    }
}

static struct sums sum_up(const struct pair_fit *fit, const struct cells *cells,
                          uint32_t kind)
{
    struct sums sums = { 0 };
    for (uint32_t other = 0; other < fit->count; other++) {
        if (cells->kept[kind][other] >= 0) {
            sums.bears += (double)cells->kept[kind][other] - fit->common -
                          fit->kinds[other].spares;
            sums.bears_count++;
        }
        if (cells->kept[other][kind] >= 0) {
            sums.spares += (double)cells->kept[other][kind] - fit->common -
                           fit->kinds[other].bears;
            sums.spares_count++;
        }
    }
    return sums;
}

static void fit_parts(struct pair_fit *fit, const struct cells *cells)
{
    double sum = SHARED_SPEED;
    for (uint32_t a = 0; a < fit->count; a++)
        for (uint32_t b = 0; b < fit->count; b++)
            if (cells->kept[a][b] >= 0)
                sum += (double)cells->kept[a][b];
    fit->common = sum / (1 + cells->count);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        for (uint32_t k = 0; k < fit->count; k++) {
            struct sums sums = sum_up(fit, cells, k);
            fit->kinds[k].bears = sums.bears / (sums.bears_count + RIDGE);
        }
        for (uint32_t k = 0; k < fit->count; k++) {
            struct sums sums = sum_up(fit, cells, k);
            fit->kinds[k].spares = sums.spares / (sums.spares_count + RIDGE);
        }
    }
}

/* Without this cell, what the kind beside the other would be taken to keep, less what it keeps. */
static double error_of(const struct pair_fit *fit, const struct cells *cells,
                       const struct sums *sums, uint32_t a, uint32_t b)
{
    double kept = (double)cells->kept[a][b] - fit->common;
    double bears = (sums[a].bears - kept + fit->kinds[b].spares) /
                   (sums[a].bears_count - 1 + RIDGE);
    double spares = (sums[b].spares - kept + fit->kinds[a].bears) /
                    (sums[b].spares_count - 1 + RIDGE);
    return bears + spares - kept;
}

static void find_deviation(struct pair_fit *fit, const struct cells *cells)
{
    struct sums sums[PAIR_FIT_KINDS];
    double squares = UNKNOWN_DEVIATION * UNKNOWN_DEVIATION;
    for (uint32_t k = 0; k < fit->count; k++)
        sums[k] = sum_up(fit, cells, k);
    for (uint32_t a = 0; a < fit->count; a++)
        for (uint32_t b = 0; b < fit->count; b++)
            if (cells->kept[a][b] >= 0) {
                double error = error_of(fit, cells, sums, a, b);
                squares += error * error;
            }
    fit->deviation = fmax(sqrt(squares / (1 + cells->count)), LEAST_DEVIATION);
}

/* Whether estimates with this kind have changed so much that policies are told. */
static bool has_changed(const struct pair_fit *before, const struct pair_fit *fit,
                        const struct pair_fit_kind *kind)
{
    uint32_t at = pair_fit_find(before, kind->kind);
    if (at == PAIR_FIT_KINDS)
        return true;
    const struct pair_fit_kind *was = &before->kinds[at];
    double common = fit->common - before->common;
    return fabs(common + kind->bears - was->bears) > PAIR_NOTED ||
           fabs(common + kind->spares - was->spares) > PAIR_NOTED ||
           (kind->beside >= PAIR_WITNESSES) != (was->beside >= PAIR_WITNESSES);
}

static void update_type(struct pair_table *pairs, const struct rate_table *rates,
                        uint32_t type, void (*changed)(void *context, uint32_t kind),
                        void *context)
{
    struct pair_fit *fit = &pairs->fits[type];
    struct pair_fit before = *fit;
    struct cells cells;
    *fit = (struct pair_fit){ 0 };
    choose_kinds(pairs, type, fit);
    read_cells(pairs, type, fit, &cells);
    fit_parts(fit, &cells);
    find_deviation(fit, &cells);
    for (uint32_t k = 0; k < fit->count; k++) {
        uint32_t kind = map_find(&rates->index, fit->kinds[k].kind);
        if (kind != MAP_NONE && rates->kinds[kind].jobs > 0 &&
            has_changed(&before, fit, &fit->kinds[k]))
            changed(context, kind);
    }
}

void pair_completion_update(struct pair_table *pairs, const struct rate_table *rates,
                            void (*changed)(void *context, uint32_t kind),
                            void *context)
{
    for (uint32_t type = 0; type < TYPES_MAX; type++)
        if (pairs->stale >> type & 1)
            update_type(pairs, rates, type, changed, context);
    pairs->stale = 0;
}
