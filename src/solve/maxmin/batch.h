/*
 * batch.h - jobs as the price methods pass over them: in blocks of eight.
 *
 *     block:  1/rate on type 0 [8]  ...  1/rate on type k-1 [8]  gang [8]  bend [8]
 *
 * A pass asks every job for its cheapest way to its due at given prices, and adds up what
 * they use.  Eight jobs are looked at together, in vectors as wide as the machine has
 * them; sums run in eight lanes on every machine, so they come out the same to the last
 * bit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CROWD_LANES 8
#define CROWD_TYPES 16     /* at most                                               */
#define CROWD_NEVER 1e300  /* 1/rate of a type that a job cannot use                */
#define CROWD_CLOSED 1e200 /* price of a type that nobody may use                  */

struct arena;

/* What a job is due at level z; rates are in units of what it needs. */
enum crowd_due {
    DUE_PLAIN,  /* z                                        */
    DUE_BENT,   /* z / (1 - bend z): finish-time fairness   */
    DUE_CAPPED, /* the lesser of z and bend: water filling  */
};

struct crowd {
    uint32_t type_count, count, max;
    double *blocks;
};

/* What a pass found at prices p and level z. */
struct demand {
    double usage[CROWD_TYPES]; /* accelerators                             */
    double cost;               /* p . usage                                */
    double slope;              /* how fast the cost grows with z           */
};

/* One job's cheapest way: a share on one type, or on two. */
struct choice {
    uint32_t slow, fast; /* fast == slow: one type */
    double x_slow, x_fast;
};

void crowd_init(struct crowd *crowd, struct arena *arena, uint32_t type_count,
                uint32_t max);

static inline uint32_t crowd_stride(uint32_t type_count)
{
    return (type_count + 2) * CROWD_LANES;
}

/* The place of a job: its 1/rate on type t is at [t * CROWD_LANES], and so on. */
static inline double *crowd_at(const struct crowd *crowd, uint32_t place)
{
    return crowd->blocks +
           (uint64_t)(place / CROWD_LANES) * crowd_stride(crowd->type_count) +
           place % CROWD_LANES;
}

static inline double crowd_gang(const struct crowd *crowd, const double *at)
{
    return at[crowd->type_count * CROWD_LANES];
}

static inline double crowd_bend(const struct crowd *crowd, const double *at)
{
    return at[(crowd->type_count + 1) * CROWD_LANES];
}

/* Copy a job to the end of a crowd, or within it; leave out all from 'count' on. */
void crowd_append(struct crowd *crowd, const struct crowd *from, uint32_t place);
void crowd_move(struct crowd *crowd, uint32_t to, uint32_t from);
void crowd_trim(struct crowd *crowd, uint32_t count);

/* Make a place one that uses nothing. */
void crowd_empty(struct crowd *crowd, uint32_t place);

/* What a job is due at level z. */
double crowd_due(enum crowd_due due, double bend, double z);

/*
 * Pass over the first 'count' places.  'price' is >= 0, or CROWD_CLOSED.  No job may be
 * due more than its fastest open type gives, but for rounding.
 */
void crowd_pass(const struct crowd *crowd, enum crowd_due due, const double *price,
                double z, struct demand *ret_demand);

/* The same for one job and by the same arithmetic: 'due' is what it is due. */
struct choice crowd_choose(const struct crowd *crowd, const double *at,
                           const double *price, double due);

/* Which vectors to use: the widest the machine has, unless a test or bench says otherwise. */
enum vectors { VECTORS_PORTABLE, VECTORS_AVX2, VECTORS_AVX512, VECTORS_WIDEST };

/* Returns what is used from now on: no more than the machine has. */
enum vectors crowd_use_vectors(enum vectors vectors);
