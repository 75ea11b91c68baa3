/*
 * forecast.h - where a learning curve will be some points ahead, and how sure that is.
 *
 * A family that fits is one opinion of several.  Others are "it stays as it is", "it goes
 * on as before, as seen on a logarithmic clock", "the trend goes on, damped".  Who is
 * right depends on the curve and on how far it has come, so the curve itself is asked:
 * each opinion is given at many earlier points, from what was known then, and compared
 * with what came.  Opinions are mixed by how they did, and the error bar is what the
 * mixture did wrong at those points, in proportion to how hard each was.
 *
 * A pure function of its points: it keeps nothing and allocates nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FORECAST_POINTS_MAX 512 /* beyond that the oldest are not looked at */

struct forecast {
    double step;       /* at which the value is expected              */
    double value;      /* 0 points: 0                                 */
    double low, high;  /* holds the truth four times in five          */
    bool has_interval; /* from two points on                          */
    uint32_t trials;   /* earlier points at which it was put to test  */
};

/*
 * Points in order of their step, the newest last.  'ahead' is counted in points, that
 * is in the typical distance between the newest steps, which is forecast_gap().
 */
struct forecast forecast_make(const double *step, const double *value, uint32_t count,
                              double ahead);

/* The median distance of the newest steps; 1 if there are fewer than two. */
double forecast_gap(const double *step, uint32_t count);
