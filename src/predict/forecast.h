/*
 * forecast.h - the value of a learning curve some points ahead, with an error bar.
 *
 * A fitted family is one predictor of several.  Others are "it stays as it is", "it
 * goes on as before, on a logarithmic scale", "the trend goes on, damped".  Which is
 * right depends on the curve and on how far it has come, so each predictor is tested on
 * the curve itself: at many earlier points, from what was known then.  Predictors are
 * mixed by their errors in these trials, and the error bar follows from the errors of
 * the mixture, in proportion to the difficulty of each.
 *
 * A pure function of its points: it keeps nothing and allocates nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FORECAST_POINTS_MAX 512 /* older ones are ignored */

struct forecast {
    double step;       /* at which the value is expected              */
    double value;      /* 0 points: 0                                 */
    double low, high;  /* holds the truth four times in five          */
    bool has_interval; /* from two points on                          */
    uint32_t trials;   /* earlier points at which it was tested */
};

/*
 * Points in order of their step, the newest last.  'ahead' is counted in points, that
 * is in the typical distance between the newest steps, which is forecast_gap().
 */
struct forecast forecast_make(const double *step, const double *value, uint32_t count,
                              double ahead);

/* The median distance of the newest steps; 1 if there are fewer than two. */
double forecast_gap(const double *step, uint32_t count);

/* A factor for the width of a bar that should hold the truth four times in five. */
double forecast_width(uint32_t count, double ahead);
