/*
 * sample.h - points on one scale, for fitting families to them.
 *
 * Steps go to 0..1 and values to 0..1 with the limit below, whatever their units and
 * direction.  Sums run over four points at a time.  Functions that are WIDE are
 * compiled twice, for machines with vectors of four numbers and for any; both do the
 * same operations in the same order, and give the same bits.  They call no other
 * function: wide registers are cleared where they return.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "predict/family.h"

#define SAMPLE_QUADS_MAX (FAMILY_POINTS_MAX / 4)

#define SAMPLE_LIMIT_MIN \
    (-3.0)                   /* no limit is lower, in ranges below the lowest value */
#define SAMPLE_ENOUGH 1e-4   /* share of the error: a search that gains less is over */
#define SAMPLE_NOTHING 1e-14 /* of the range, squared: the points lie on the curve  */

#if defined(__x86_64__) && defined(__gnu_linux__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

typedef double quad __attribute__((vector_size(32)));
typedef uint64_t quad_bits __attribute__((vector_size(32)));

/* Points on one scale, four by four; the last quad may have points of weight 0. */
struct sample {
    quad x[SAMPLE_QUADS_MAX], y[SAMPLE_QUADS_MAX], w[SAMPLE_QUADS_MAX];
    uint32_t count, quads;
    double weight;       /* sum of w                                     */
    double origin, span; /* step = origin + span * x                     */
    double base, scale;  /* value = base + scale * y; scale has the sign */
};

/* Macros and pointers: how a quad is passed by value depends on the machine. */
#define QUAD(v) ((quad){ (v), (v), (v), (v) })

static inline double sum_of(const quad *q)
{
    return ((*q)[0] + (*q)[1]) + ((*q)[2] + (*q)[3]);
}

/* The direction: as given, or by the points; 0 if they stand still. */
double sample_sign(const struct family_points *points);

/* Bring the points to one scale; false where there is nothing to fit. */
bool sample_make(struct sample *s, const struct family_points *points, double origin,
                 double sign);

/* The weighted mean, for points that no family explains. */
struct family_fit sample_flat(const struct family_points *points, double sign);
