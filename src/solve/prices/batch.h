/*
 * batch.h - a batch of jobs as the price methods pass over them: in blocks of eight.
 *
 *     block:  1/rate on type 0 [8]  ...  1/rate on type k-1 [8]  gang [8]  bend [8]
 *
 * A job's due is the rate it should have at level z, in units of its need.  A pass
 * finds every job's cheapest way to its due at given prices, and adds up what the jobs
 * use.  Eight jobs are evaluated together, in vectors as wide as the machine has them;
 * sums run in eight lanes on every machine, so results are equal to the last bit.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BATCH_LANES 8
#define BATCH_TYPES_MAX 16 /* at most                                               */
#define BATCH_NEVER 1e300  /* 1/rate of a type that a job cannot use                */
#define BATCH_CLOSED 1e200 /* price of a type that no job may use */

struct arena;

/* What a job is due at level z; rates are in units of what it needs. */
enum batch_due {
    DUE_LINEAR, /* z                                        */
    DUE_CONVEX, /* z / (1 - bend z): finish-time fairness   */
    DUE_CAPPED, /* the lesser of z and bend: water filling  */
};

struct job_batch {
    uint32_t type_count, count, max;
    double *blocks;
};

/* What a pass found at prices p and level z. */
struct batch_demand {
    double usage[BATCH_TYPES_MAX]; /* accelerators                             */
    double cost;                   /* p . usage                                */
    double slope;                  /* how fast the cost grows with z           */
};

/* One job's cheapest way: a share on one type, or on two. */
struct batch_choice {
    uint32_t slow, fast; /* fast == slow: one type */
    double x_slow, x_fast;
};

void batch_init(struct job_batch *batch, struct arena *arena, uint32_t type_count,
                uint32_t max);

static inline uint32_t batch_stride(uint32_t type_count)
{
    return (type_count + 2) * BATCH_LANES;
}

/* The place of a job: its 1/rate on type t is at [t * BATCH_LANES], and so on. */
static inline double *batch_at(const struct job_batch *batch, uint32_t place)
{
    return batch->blocks +
           (uint64_t)(place / BATCH_LANES) * batch_stride(batch->type_count) +
           place % BATCH_LANES;
}

static inline double batch_gang(const struct job_batch *batch, const double *at)
{
    return at[batch->type_count * BATCH_LANES];
}

static inline double batch_bend(const struct job_batch *batch, const double *at)
{
    return at[(batch->type_count + 1) * BATCH_LANES];
}

/* Make a slot one that uses nothing. */
static inline void batch_clear_slot(struct job_batch *batch, uint32_t place)
{
    double *at = batch_at(batch, place);
    for (uint32_t t = 0; t < batch->type_count + 2; t++)
        at[t * BATCH_LANES] = 0;
}

/* Copy a job within a batch, or from another one. */
static inline void batch_copy(struct job_batch *to, uint32_t to_place,
                              const struct job_batch *from, uint32_t from_place)
{
    double *a = batch_at(to, to_place);
    const double *b = batch_at(from, from_place);
    for (uint32_t t = 0; t < to->type_count + 2; t++)
        a[t * BATCH_LANES] = b[t * BATCH_LANES];
}

/* Copy a job to the end of a batch. */
static inline void batch_append(struct job_batch *batch, const struct job_batch *from,
                                uint32_t place)
{
    assert(batch->count < batch->max);
    uint32_t to = batch->count++;
    if (to % BATCH_LANES == 0) /* the other slots of the block use nothing yet */
        memset(batch_at(batch, to), 0,
               batch_stride(batch->type_count) * sizeof(double));
    batch_copy(batch, to, from, place);
}

/* Drop all jobs from 'count' on. */
static inline void batch_trim(struct job_batch *batch, uint32_t count)
{
    assert(count <= batch->count);
    for (uint32_t place = count; place % BATCH_LANES && place < batch->count; place++)
        batch_clear_slot(batch, place);
    batch->count = count;
}

/* What a job is due at level z. */
double batch_due(enum batch_due due, double bend, double z);

/*
 * Pass over the first 'count' places.  'price' is >= 0, or BATCH_CLOSED.  No job may be
 * due more than its fastest open type gives, but for rounding.
 */
void batch_pass(const struct job_batch *batch, enum batch_due due, const double *price,
                double z, struct batch_demand *ret_demand);

/* The same for one job and by the same arithmetic: 'due' is what it is due. */
struct batch_choice batch_choose(const struct job_batch *batch, const double *at,
                                 const double *price, double due);

/*
 * Which vectors to use: the widest the machine has, unless a test or benchmark chooses
 * others.
 */
enum vectors { VECTORS_PORTABLE, VECTORS_AVX2, VECTORS_AVX512, VECTORS_WIDEST };

/* Returns what is used from now on: no more than the machine has. */
enum vectors batch_use_vectors(enum vectors vectors);
