/*
 * curve_ahead.h - the rest of a learning curve: what a job's next steps take off its loss.
 *
 * Losses are normalised: 1 at the job's first report, 0 at its end.  So the gains of jobs
 * can be compared whatever their losses are.  With f the curve and k the steps so far,
 *
 *     level   l(k) = (f(k) - f(end)) / (first - f(end))     still to be gained
 *     drop    l(k) - l(k + q)                               gained by q more steps
 *
 * Nothing here allocates; a curve is a plain value.
 */
#pragma once

#include <stdbool.h>

#include "model/learning.h"
#include "predict/curve.h"

struct curve_ahead {
    enum family family; /* FAMILY_FLAT: no step brings anything         */
    double height;      /* exp: loss above its limit now                */
    double rate;        /* exp: -ln(mu) per step                        */
    double a, b, c;     /* inv: 1/(a q^2 + b q + c), q steps from now   */
    double scale;       /* 1 / the whole improvement                    */
    double left;        /* steps to the end; INFINITY: not known        */
};

/*
 * The fitted curve from step 'at' to the job's end (INFINITY: not known).  'first' is the
 * first loss and 'least' the least one reported.
 */
struct curve_ahead curve_ahead_fitted(const struct curve_fit *fit, double first,
                                      double least, double at, double end);

/* The declared curve from step 'at' to the job's end (INFINITY: none). */
struct curve_ahead curve_ahead_declared(const struct learning *curve, double at,
                                        double end);

/* A curve of which each step brings this share of what is left; nothing else is known. */
struct curve_ahead curve_ahead_assumed(double per_step);

/* What so many steps take off the normalised loss; steps beyond the end bring nothing. */
double curve_ahead_drop(const struct curve_ahead *ahead, double steps);

/* The normalised loss now: what all steps to the end take off; from 0 to 1. */
double curve_ahead_level(const struct curve_ahead *ahead);

/* Each step brings less than the one before. */
bool curve_ahead_is_convex(const struct curve_ahead *ahead);
