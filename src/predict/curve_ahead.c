/* curve_ahead.c - the rest of a learning curve: what a job's next steps take off its loss. */
#include "predict/curve_ahead.h"

#include <math.h>

struct curve_ahead curve_ahead_fitted(const struct curve_fit *fit, double first,
                                      double least, double at, double end)
{
    const struct family_fit *best = &fit->best;
    double last = end < INFINITY ? family_at(best, end) : best->limit;
    double k = at - best->origin;
    return (struct curve_ahead){
        .family = best->family,
        .height = family_at(best, at) - best->limit,
        .rate = best->rate,
        .a = best->a,
        .b = 2 * best->a * k + best->b,
        .c = (best->a * k + best->b) * k + best->c,
        .scale = 1 / fmax(first - last, first - least),
        .left = end < INFINITY ? fmax(end - at, 0) : INFINITY,
    };
}

struct curve_ahead curve_ahead_declared(const struct learning *curve, double at,
                                        double end)
{
    bool is_inv = curve->family == LEARNING_INV;
    double a = curve->a / curve->c;
    double b = curve->b / curve->c;
    double rest = 0; /* of its improvement, still missing at its end */
    struct curve_ahead ahead = { .family = is_inv ? FAMILY_INV : FAMILY_EXP };
    ahead.rate = curve->family == LEARNING_ACC ? 1 / curve->tau : -log(curve->mu);
    ahead.height = exp(-ahead.rate * at);
    if (is_inv) {
        ahead.a = a;
        ahead.b = 2 * a * at + b;
        ahead.c = (a * at + b) * at + 1;
    }
    if (end < INFINITY)
        rest = is_inv ? 1 / ((a * end + b) * end + 1) : exp(-ahead.rate * end);
    ahead.scale = 1 / (1 - rest);
    ahead.left = fmax(end - at, 0);
    return ahead;
}

struct curve_ahead curve_ahead_assumed(double per_step)
{
    return (struct curve_ahead){ .family = FAMILY_EXP,
                                 .height = 1,
                                 .scale = 1,
                                 .rate = -log1p(-per_step),
                                 .left = INFINITY };
}

double curve_ahead_drop(const struct curve_ahead *ahead, double steps)
{
    steps = fmin(steps, ahead->left);
    if (ahead->family == FAMILY_FLAT)
        return 0;
    if (ahead->family == FAMILY_EXP)
        return -ahead->scale * ahead->height * expm1(-ahead->rate * steps);
    if (steps == INFINITY)
        return ahead->scale / ahead->c;
    double gone = (ahead->a * steps + ahead->b) * steps;
    return ahead->scale * gone / (ahead->c * (gone + ahead->c));
}

double curve_ahead_level(const struct curve_ahead *ahead)
{
    return fmin(fmax(curve_ahead_drop(ahead, INFINITY), 0), 1);
}

bool curve_ahead_is_convex(const struct curve_ahead *ahead)
{
    return ahead->family != FAMILY_INV || ahead->b * ahead->b >= ahead->a * ahead->c;
}
