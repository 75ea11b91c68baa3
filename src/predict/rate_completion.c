/* rate_completion.c - how fast a kind of job would run where it was not measured. */
#include "predict/rate_completion.h"

#include <math.h>
#include <string.h>

#include "model/cluster.h"
#include "model/rate_table.h"

#define FIT_KINDS_MAX 64
#define RANK 2
#define TURNS 12
#define TYPE_RIDGE 0.05  /* kinds' worth of belief in the declared speed of a type  */
#define FACTOR_RIDGE 0.1 /* of the factors: two cells tell little of them           */
#define SECOND_FACTOR 0.1
#define UNKNOWN_DEVIATION 0.7
#define LEAST_DEVIATION 0.1

/* A kind in the fit. */
struct fit_row {
    const struct rate_kind *kind;
    uint32_t known; /* types, as bits */
    double ln[TYPES_MAX];
    double offset; /* how fast the kind is */
    double factor[RANK];
};

struct fit {
    uint32_t type_count, row_count;
    struct fit_row rows[FIT_KINDS_MAX];
    double prior[TYPES_MAX]; /* ln of the declared speed */
    double type[TYPES_MAX];  /* how fast it is */
    double factor[TYPES_MAX][RANK];
    uint32_t seen[TYPES_MAX]; /* kinds that were measured there and elsewhere */
    double deviation[TYPES_MAX];
};

/* --- small equations ------------------------------------------------------------------- */

/* Solve (sum v v' + ridge) x = sum c v for two unknowns. */
struct pair_equations {
    double a, b, d; /* [a b; b d] */
    double p, q;
};

static void pair_add(struct pair_equations *pair, const double *v, double c)
{
    pair->a += v[0] * v[0];
    pair->b += v[0] * v[1];
    pair->d += v[1] * v[1];
    pair->p += c * v[0];
    pair->q += c * v[1];
}

static void pair_solve(const struct pair_equations *pair, double *x)
{
    double a = pair->a + FACTOR_RIDGE;
    double d = pair->d + FACTOR_RIDGE;
    double det = a * d - pair->b * pair->b; /* the ridge keeps it above 0 */
    x[0] = (d * pair->p - pair->b * pair->q) / det;
    x[1] = (a * pair->q - pair->b * pair->p) / det;
}

/* --- fitting --------------------------------------------------------------------------- */

static void read_row(const struct rate_table *rates, const struct rate_kind *kind,
                     struct fit_row *row)
{
    *row = (struct fit_row){ .kind = kind };
    for (uint32_t t = 0; kind->gpus > 0 && t < rates->cluster->type_count; t++) {
        double deviation;
        bool exact;
        if (rate_table_measured(rates, kind, t, &row->ln[t], &deviation, &exact))
            row->known |= (uint32_t)1 << t;
    }
}

/* The kinds with the newest reports that were measured on two types or more. */
static void choose_rows(const struct rate_table *rates, struct fit *fit)
{
    for (uint32_t k = 0; k < rates->kind_count; k++) {
        struct fit_row row;
        const struct rate_kind *kind = &rates->kinds[k];
        if (fit->row_count == FIT_KINDS_MAX &&
            kind->used_ns <= fit->rows[FIT_KINDS_MAX - 1].kind->used_ns)
            continue;
        read_row(rates, kind, &row);
        if (__builtin_popcount(row.known) < 2)
            continue;
        uint32_t at =
            fit->row_count < FIT_KINDS_MAX ? fit->row_count++ : FIT_KINDS_MAX - 1;
        for (; at > 0 && fit->rows[at - 1].kind->used_ns < kind->used_ns; at--)
            fit->rows[at] = fit->rows[at - 1];
        fit->rows[at] = row;
    }
    for (uint32_t r = 0; r < fit->row_count; r++)
        for (uint32_t t = 0; t < fit->type_count; t++)
            fit->seen[t] += fit->rows[r].known >> t & 1;
}

static double product(const struct fit *fit, const double *factor, uint32_t type)
{
    return factor[0] * fit->factor[type][0] + factor[1] * fit->factor[type][1];
}

/*
 * How fast a kind is and its factors, from its known cells 'without' one of them.  The first
 * is free, so it is eliminated: only differences between cells tell of the factors.
 */
static void fit_row(const struct fit *fit, const struct fit_row *row, uint32_t without,
                    double *ret_offset, double *ret_factor)
{
    struct pair_equations pair = { 0 };
    uint32_t known = row->known & ~(without < TYPES_MAX ? (uint32_t)1 << without : 0);
    uint32_t count = (uint32_t)__builtin_popcount(known);
    double mean = 0;
    double middle[RANK] = { 0 };
    for (uint32_t t = 0; t < fit->type_count; t++)
        if (known >> t & 1) {
            mean += (row->ln[t] - fit->type[t]) / count;
            for (uint32_t i = 0; i < RANK; i++)
                middle[i] += fit->factor[t][i] / count;
        }
    for (uint32_t t = 0; t < fit->type_count; t++)
        if (known >> t & 1) {
            double v[RANK] = { fit->factor[t][0] - middle[0],
                               fit->factor[t][1] - middle[1] };
            pair_add(&pair, v, row->ln[t] - fit->type[t] - mean);
        }
    pair_solve(&pair, ret_factor);
    *ret_offset = mean - ret_factor[0] * middle[0] - ret_factor[1] * middle[1];
}

static void fit_types(struct fit *fit)
{
    double none[RANK];
    memcpy(fit->type, fit->prior, sizeof fit->type);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        for (uint32_t r = 0; r < fit->row_count; r++)
            fit_row(fit, &fit->rows[r], TYPES_MAX, &fit->rows[r].offset, none);
        for (uint32_t t = 0; t < fit->type_count; t++) {
            double sum = TYPE_RIDGE * fit->prior[t];
            double weight = TYPE_RIDGE;
            for (uint32_t r = 0; r < fit->row_count; r++)
                if (fit->rows[r].known >> t & 1) {
                    sum += fit->rows[r].ln[t] - fit->rows[r].offset;
                    weight += 1;
                }
            fit->type[t] = sum / weight;
        }
    }
}

/*
 * Most kinds differ in how much they gain from faster types at all: the first factor begins
 * with the speeds themselves, and is drawn towards them.
 */
static void fit_factors(struct fit *fit)
{
    double first[TYPES_MAX][RANK];
    double mean = 0;
    for (uint32_t t = 0; t < fit->type_count; t++)
        mean += fit->type[t] / fit->type_count;
    for (uint32_t t = 0; t < fit->type_count; t++) {
        first[t][0] = fit->type[t] - mean;
        first[t][1] = t % 2 ? -SECOND_FACTOR : SECOND_FACTOR;
        memcpy(fit->factor[t], first[t], sizeof first[t]);
    }
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        for (uint32_t r = 0; r < fit->row_count; r++)
            fit_row(fit, &fit->rows[r], TYPES_MAX, &fit->rows[r].offset,
                    fit->rows[r].factor);
        for (uint32_t t = 0; t < fit->type_count; t++) {
            struct pair_equations pair = { 0 };
            for (uint32_t r = 0; r < fit->row_count; r++) {
                const struct fit_row *row = &fit->rows[r];
                if (row->known >> t & 1)
                    pair_add(&pair, row->factor,
                             row->ln[t] - fit->type[t] - row->offset -
                                 row->factor[0] * first[t][0] -
                                 row->factor[1] * first[t][1]);
            }
            pair_solve(&pair, fit->factor[t]);
            for (uint32_t i = 0; i < RANK; i++)
                fit->factor[t][i] += first[t][i];
        }
    }
}

/* What the fit says of a cell, from the others of the row. */
static double predict_cell(const struct fit *fit, const struct fit_row *row,
                           uint32_t type)
{
    double factor[RANK];
    double offset;
    fit_row(fit, row, type, &offset, factor);
    return offset + fit->type[type] + product(fit, factor, type);
}

static void find_deviations(struct fit *fit)
{
    for (uint32_t t = 0; t < fit->type_count; t++) {
        double sum = UNKNOWN_DEVIATION * UNKNOWN_DEVIATION;
        double weight = 1;
        for (uint32_t r = 0; r < fit->row_count; r++)
            if (fit->rows[r].known >> t & 1) {
                double error = fit->rows[r].ln[t] - predict_cell(fit, &fit->rows[r], t);
                sum += error * error;
                weight += 1;
            }
        fit->deviation[t] = fmax(sqrt(sum / weight), LEAST_DEVIATION);
    }
}

static void make_fit(const struct rate_table *rates, struct fit *fit)
{
    *fit = (struct fit){ .type_count = rates->cluster->type_count };
    for (uint32_t t = 0; t < fit->type_count; t++)
        fit->prior[t] = log(fmax(rates->cluster->types[t].speed, 1e-6));
    choose_rows(rates, fit);
    fit_types(fit);
    fit_factors(fit);
    find_deviations(fit);
}

/* --- levels ---------------------------------------------------------------------------- */

/* What was measured, at its size or at others; true if a level has changed. */
static bool set_measured(const struct rate_table *rates, struct rate_kind *kind)
{
    bool changed = false;
    for (uint32_t t = 0; kind->gpus > 0 && t < rates->cluster->type_count; t++) {
        double ln;
        double deviation;
        bool exact;
        if (rate_table_measured(rates, kind, t, &ln, &deviation, &exact))
            changed |= rate_table_set_level(
                kind, t, exact ? RATE_MEASURED : RATE_ESTIMATED, ln, deviation);
    }
    return changed;
}

static bool set_estimated(const struct rate_table *rates, const struct fit *fit,
                          struct rate_kind *kind)
{
    struct fit_row row;
    bool changed = false;
    read_row(rates, kind, &row);
    for (uint32_t t = 0; row.known && t < fit->type_count; t++)
        if (!(row.known >> t & 1))
            changed |= rate_table_set_level(
                kind, t, fit->seen[t] > 0 ? RATE_ESTIMATED : RATE_UNKNOWN,
                predict_cell(fit, &row, t), fit->deviation[t]);
    return changed;
}

/*
 * Beside the fastest type, which has the speed that it is declared to have.  True if that is
 * a change for kinds of which nothing else is known.
 */
static bool set_typical(struct rate_table *rates, const struct fit *fit)
{
    bool changed = false;
    double most = -INFINITY;
    double speed = 0;
    for (uint32_t t = 0; t < fit->type_count; t++) {
        most = fmax(most, fit->type[t]);
        speed = fmax(speed, rates->cluster->types[t].speed);
    }
    for (uint32_t t = 0; fit->row_count > 0 && t < fit->type_count; t++) {
        double typical = speed * exp(fit->type[t] - most);
        if (fabs(log(typical / rates->typical[t])) <= RATE_NOTED)
            continue;
        rates->typical[t] = typical;
        changed = true;
    }
    return changed;
}

static bool is_due(const struct rate_table *rates, const struct rate_kind *kind)
{
    return kind->stale || (kind->jobs > 0 && kind->fitted != rates->fit);
}

void rate_completion_update(struct rate_table *rates,
                            void (*changed)(void *context, uint32_t kind),
                            void *context)
{
    bool again = false;
    uint32_t
        moved[64]; /* kinds whose measured levels changed; more are all looked at */
    uint32_t moved_count = 0;
    for (uint32_t i = 0; i < rates->stale_count; i++) {
        uint32_t k = rates->stale[i];
        if (!set_measured(rates, &rates->kinds[k]))
            continue;
        again = true;
        if (moved_count < sizeof moved / sizeof *moved)
            moved[moved_count] = k;
        moved_count++;
    }
    bool outdated = rates->outdated;
    for (uint32_t i = 0; i < rates->stale_count; i++)
        outdated = outdated || rates->kinds[rates->stale[i]].fitted != rates->fit;
    if (again || outdated) {
        struct fit fit;
        bool typical = false;
        make_fit(rates, &fit);
        if (again || rates->fit == 0) {
            rates->fit++;
            typical = set_typical(rates, &fit);
        }
        for (uint32_t k = 0; k < rates->kind_count; k++) {
            struct rate_kind *kind = &rates->kinds[k];
            if (!is_due(rates, kind))
                continue;
            bool has_moved = moved_count > sizeof moved / sizeof *moved;
            for (uint32_t i = 0; !has_moved && i < moved_count; i++)
                has_moved = moved[i] == k;
            kind->fitted = rates->fit;
            if (set_estimated(rates, &fit, kind) || has_moved ||
                (typical && kind->gpus == 0))
                changed(context, k);
        }
    }
    for (uint32_t i = 0; i < rates->stale_count; i++)
        rates->kinds[rates->stale[i]].stale = false;
    rates->stale_count = 0;
    rates->outdated = false;
}
