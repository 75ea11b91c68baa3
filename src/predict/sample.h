/*
 * sample.h - points on one scale, for the files that fit families to them.
 *
 * Steps go to 0..1 and values to 0..1 with the limit below, whatever their units and
 * whichever way they go.  Sums run over pairs of points, which is how wide the machine is
 * where nothing is said about it; the order of additions is the same everywhere.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "predict/family.h"

#define SAMPLE_PAIRS_MAX (FAMILY_POINTS_MAX / 2)
#define SAMPLE_THIN_POINTS 24 /* of a sample on which starting points are tried */

#define SAMPLE_LIMIT_MIN \
    (-3.0)                   /* no limit is lower, in ranges below the lowest value */
#define SAMPLE_ENOUGH 1e-4   /* share of the error: a search that gains less is over */
#define SAMPLE_NOTHING 1e-14 /* of the range, squared: the points lie on the curve  */

typedef double pair __attribute__((vector_size(16)));
typedef uint64_t bits __attribute__((vector_size(16)));

/* Points on one scale, two by two; the last pair may have a point of weight 0. */
struct sample {
    pair x[SAMPLE_PAIRS_MAX], y[SAMPLE_PAIRS_MAX], w[SAMPLE_PAIRS_MAX];
    uint32_t pairs;
    double weight;       /* sum of w                                     */
    double origin, span; /* step = origin + span * x                     */
    double base, scale;  /* value = base + scale * y; scale has the sign */
};

static inline pair both(double value)
{
    return (pair){ value, value };
}

static inline double sum_of(pair p)
{
    return p[0] + p[1];
}

/* Which way they go: as it is said, or as the points say; 0 if they stand still. */
double sample_sign(const struct family_points *points);

/* Bring the points to one scale; false where there is nothing to fit. */
bool sample_make(struct sample *s, const struct family_points *points, double origin,
                 double sign);

/* Means of neighbours, so that at most SAMPLE_THIN_POINTS are left. */
void sample_thin(struct sample *thin, const struct sample *s);

/* The weighted mean, for points of which no family says more. */
struct family_fit sample_flat(const struct family_points *points, double sign);
