/*
 * active_set.h - the jobs with a choice that still depends on the prices.
 *
 * Where prices are known to lie in a box and the level in a range, most jobs make the
 * same choice at all of them: they are pinned to one type or to two, and what all of
 * them use is one straight line in the level, per type.  Only the others, the active
 * ones, are evaluated.  The set can also be a sample of the jobs, with capacities to
 * match.
 *
 * A pinned job gets its due at any level in the range, so shares built on a set always
 * hold; only the set's least cost depends on the prices being in the box.
 */
#pragma once

#include "solve/prices/batch.h"

struct arena;

struct price_box {
    double low[BATCH_TYPES_MAX],
        high[BATCH_TYPES_MAX]; /* prices, up to a common factor     */
    double z_low, z_high;      /* 0 < z_low < z_high                */
};

/*
 * Prices and a level at which the jobs were evaluated, and the weight of that
 * evaluation in a mixture.
 */
struct price_point {
    double price[BATCH_TYPES_MAX];
    double z;
    double weight;
};

struct active_set {
    uint32_t type_count;
    enum batch_due due;
    const struct job_batch *jobs; /* all jobs, by slot; empty slots use nothing */
    double room[BATCH_TYPES_MAX]; /* capacities, of the sample where it is one    */
    bool open[BATCH_TYPES_MAX];   /* room > 0                                     */

    bool all_active;       /* no job is pinned: all are evaluated */
    uint32_t sample_shift; /* one job in 2^shift                                */
    struct price_box box;  /* unless all_active                                      */
    bool has_box;          /* false: no job is pinned */
    struct job_batch active; /* the active jobs, unless all_active */
    uint32_t *slot;          /* [place in active]                                   */
    uint32_t *place;         /* [slot], where it is evaluated                         */
    uint16_t *pin;           /* [slot]: the two types it is pinned to, or neither */
    double pinned_base[BATCH_TYPES_MAX],
        pinned_slope[BATCH_TYPES_MAX]; /* pinned: pinned_base + pinned_slope z   */
    uint64_t evaluated;                /* jobs evaluated so far: a measure of work */
};

void active_set_init(struct active_set *set, struct arena *arena,
                     const struct job_batch *jobs);

/* Evaluate all jobs; capacities as given. */
void active_set_take_all(struct active_set *set, enum batch_due due,
                         const double *capacity);

/* One job in 2^shift; pin those with one choice in the box (NULL: none). */
void active_set_build(struct active_set *set, enum batch_due due,
                      const double *capacity, uint32_t shift,
                      const struct price_box *box);

/* Pin the jobs that have one choice in a smaller box. */
void active_set_narrow(struct active_set *set, const double *capacity,
                       const struct price_box *box);

/*
 * Add the job that was put into a slot; remove the one in it, before the slot is
 * cleared.  Not for samples.
 */
void active_set_add(struct active_set *set, uint32_t slot);
void active_set_remove(struct active_set *set, uint32_t slot);

/* Evaluate at prices for which sum price * room = 1. */
void active_set_demand(struct active_set *set, const double *price, double z,
                       struct batch_demand *ret_demand);

/* What a job gets when the points are mixed by their weights. */
void active_set_share(const struct active_set *set, uint32_t slot,
                      const struct price_point *points, uint32_t point_count,
                      double *ret_x);

static inline uint32_t active_set_count(const struct active_set *set)
{
    return set->all_active ? set->jobs->count : set->active.count;
}
