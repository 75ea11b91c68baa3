/*
 * active_set.h - a crowd of which most is settled.
 *
 * Where prices are known to lie in a box and the level in a range, most jobs do the same
 * whatever the prices are: they are pinned to one type or to two, and what all of them
 * use is one straight line in the level, per type.  Only the others are asked.  The field
 * can also be a sample of the crowd, with capacities to match.
 *
 * What pinned jobs are given is theirs at any level in the range, so shares built on a
 * field always hold; only what the field says about the least cost depends on the prices
 * being in the box.
 */
#pragma once

#include "solve/maxmin/batch.h"

struct arena;

struct box {
    double low[CROWD_TYPES], high[CROWD_TYPES]; /* prices, up to a common factor     */
    double z_low, z_high;                       /* 0 < z_low < z_high                */
};

/* Where a crowd was asked, and with what weight it counts in the shares. */
struct point {
    double price[CROWD_TYPES];
    double z;
    double weight;
};

struct field {
    uint32_t type_count;
    enum crowd_due due;
    const struct crowd *everybody; /* by slot; empty ones use nothing              */
    double room[CROWD_TYPES];      /* capacities, of the sample where it is one    */
    bool open[CROWD_TYPES];        /* room > 0                                     */

    bool whole;            /* nobody is pinned and everybody is asked           */
    uint32_t sample_shift; /* one job in 2^shift                                */
    struct box box;        /* unless whole                                      */
    bool boxed;            /* false: nobody is pinned                           */
    struct crowd some;     /* those who are asked, unless whole                 */
    uint32_t *slot;        /* [place in some]                                   */
    uint32_t *place;       /* [slot], where it is asked                         */
    uint16_t *pin;         /* [slot]: the two types it is pinned to, or neither */
    double still[CROWD_TYPES], moving[CROWD_TYPES]; /* pinned: still + moving z   */
    uint64_t asked; /* jobs asked so far: a measure of work              */
};

void field_init(struct field *field, struct arena *arena,
                const struct crowd *everybody);

/* Everybody is asked; capacities as given. */
void field_whole(struct field *field, enum crowd_due due, const double *capacity);

/* One job in 2^shift, those settled in the box (NULL: none) pinned. */
void field_build(struct field *field, enum crowd_due due, const double *capacity,
                 uint32_t shift, const struct box *box);

/* Pin who is settled in a smaller box. */
void field_narrow(struct field *field, const double *capacity, const struct box *box);

/* A job came to a slot; the job in it leaves (before it is emptied).  Not for samples. */
void field_put(struct field *field, uint32_t slot);
void field_drop(struct field *field, uint32_t slot);

/* Ask at prices for which sum price * room = 1. */
void field_ask(struct field *field, const double *price, double z,
               struct demand *ret_demand);

/* What a job gets when the points are mixed by their weights. */
void field_share(const struct field *field, uint32_t slot, const struct point *points,
                 uint32_t point_count, double *ret_x);

uint32_t field_asked_count(const struct field *field);
