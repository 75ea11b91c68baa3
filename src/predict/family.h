/*
 * family.h - the two families of learning curves, fitted to points.
 *
 *     inv   f(k) = 1/(a k^2 + b k + c) + d    a, b, c >= 0: sublinear methods
 *     exp   f(k) = mu^(k - b) + c             0 < mu < 1: linear and superlinear ones
 *
 * after Zhang et al., SLAQ (SoCC 2017), by weighted least squares.  A metric that rises
 * to its limit, such as an accuracy, is fitted with its sign turned: exp is then
 * A_inf - mu^(k - b), the saturating form.
 *
 * Bounds are what makes predictions usable.  With a, b, c >= 0 a curve has no pole ahead
 * of its points and goes to its limit from one side; the limit itself lies within a few
 * times the range that was seen.
 *
 * Nothing here allocates, and equal input gives equal output, bit for bit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FAMILY_POINTS_MAX 512

enum family {
    FAMILY_FLAT, /* c: constant, or nothing that goes the right way */
    FAMILY_INV,
    FAMILY_EXP,
};

/* Points in order of their step; weights are not negative. */
struct family_points {
    const double *step, *value, *weight;
    uint32_t count; /* at most FAMILY_POINTS_MAX */
    double origin;  /* of k in inv: where training began; at most the first step  */
    double sign;    /* 1: falls to its limit, -1: rises, 0: by the points */
};

struct family_fit {
    enum family family;
    double sign;    /* 1: falls, -1: rises                              */
    double origin;  /* inv: k = step - origin                           */
    double a, b, c; /* inv: of the value's distance from the limit      */
    double rate;    /* exp: -ln(mu)                                     */
    double shift;   /* exp: b                                           */
    double limit;   /* d, c, or the constant                            */
    double sse;     /* weighted sum of squared errors, in value's unit  */
    double weight;  /* sum of weights                                   */
};

/* Weights of points of which each counts 'keep' times as much as the next, the last 1. */
void family_weights(double *weights, uint32_t count, double keep);

/*
 * Fit one family.  'warm' may be an earlier fit of the same family to nearly the same
 * points: the search then starts there, which takes a third of the time.  NULL: cold.
 * The outcome is flat where the points do not go the way of the sign.
 */
struct family_fit family_fit_inv(const struct family_points *points,
                                 const struct family_fit *warm);
struct family_fit family_fit_exp(const struct family_points *points,
                                 const struct family_fit *warm);

/* Both, each from its own 'warm' (or NULL), and the one with the smaller error. */
struct family_fit family_fit_best(const struct family_points *points,
                                  struct family_fit *inv, struct family_fit *exp,
                                  bool warm);

double family_at(const struct family_fit *fit, double step);

/* mu of exp. */
double family_mu(const struct family_fit *fit);

/* "flat", "inv" or "exp". */
const char *family_name(enum family family);
