/* curve.c - one job's learning curve: its reports, and a forecast from them. */
#include "predict/curve.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define FIT_POINTS 100
#define KEEP 0.95       /* weight of a point against the next                      */
#define POINTS_MIN 4    /* fewer are not enough to fit */
#define MISFIT_MAX 0.15 /* unexplained, against the range: more does not fit       */
#define CALM_POINTS 8   /* before that many anything may be a spike                */
#define SPIKE 8.0       /* times what is usual                                     */
#define UNEVEN_PACE 0.1
#define UNEVEN_MOST 4.0 /* times the usual: a spike does not change it */
#define WORSE 1.5       /* than the fit before: search anew                        */
#define BAR_MAX 0.5     /* half the error bar, against the range                   */
#define BAR_NORMAL 1.28 /* deviations that hold a normal error four times in five  */

void curve_init(struct curve *curve, const struct curve_hint *hint)
{
    memset(curve, 0, sizeof *curve);
    if (hint)
        curve->hint = *hint;
}

/* --- what is kept ------------------------------------------------------------------- */

static uint32_t old_count(const struct curve *curve)
{
    uint32_t count = 0;
    for (uint32_t level = 0; level < CURVE_LEVELS; level++)
        count += curve->level_count[level];
    return count;
}

/* Merge the two points at 'from' into 'to'. */
static void put_together(struct curve *curve, uint32_t to, uint32_t from)
{
    curve->step[to] = (curve->step[from] + curve->step[from + 1]) / 2;
    curve->value[to] = (curve->value[from] + curve->value[from + 1]) / 2;
}

static void move_down(struct curve *curve, uint32_t to, uint32_t from, uint32_t count)
{
    memmove(&curve->step[to], &curve->step[from], count * sizeof *curve->step);
    memmove(&curve->value[to], &curve->value[from], count * sizeof *curve->value);
}

/*
 * Of each level keep CURVE_PER_LEVEL, the newest, and merge older ones by twos: they
 * are then the newest of the next level.  Levels lie one after another, the highest
 * first.
 */
static void fold_oldest(struct curve *curve)
{
    curve->level_count[0] += CURVE_FOLD;
    uint32_t end = old_count(curve);
    uint32_t newer = curve->kept - end; /* points behind the levels visited */
    for (uint32_t level = 0; level + 1 < CURVE_LEVELS; level++) {
        uint32_t count = curve->level_count[level];
        uint32_t begin = end - count;
        uint32_t merges =
            count > CURVE_PER_LEVEL ? (count - CURVE_PER_LEVEL + 1) / 2 : 0;
        for (uint32_t i = 0; i < merges; i++)
            put_together(curve, begin + i, begin + 2 * i);
        move_down(curve, begin + merges, begin + 2 * merges,
                  count - 2 * merges + newer);
        curve->level_count[level] -= 2 * merges;
        curve->level_count[level + 1] += merges;
        curve->kept -= merges;
        newer += curve->level_count[level];
        end = begin + merges;
    }
}

/* Drop the newest point kept; it may stand for many. */
static void forget_newest(struct curve *curve)
{
    uint32_t old = old_count(curve);
    uint32_t level = 0;
    if (curve->kept == old) {
        while (curve->level_count[level] == 0)
            level++;
        curve->level_count[level]--;
    }
    curve->count -= UINT64_C(1) << level;
    curve->kept--;
}

/*
 * Check the point before the newest.  If it is far off while its neighbours agree, it
 * is a spike (a bad batch, an evaluation gone wrong) and is replaced by what lies
 * between them.  A drop of the learning rate is no spike: there the neighbours differ.
 */
static void smooth_spike(struct curve *curve)
{
    uint32_t new = curve->kept - old_count(curve);
    if (new < 3)
        return;
    double *value = &curve->value[curve->kept - 3];
    double middle = (value[0] + value[2]) / 2;
    double off = fabs(value[1] - middle);
    if (new > CALM_POINTS &&
        off > SPIKE * curve->uneven &&fabs(value[2] - value[0]) < off / 2) {
        value[1] = middle;
        return;
    }
    double most = new > CALM_POINTS ? UNEVEN_MOST * curve->uneven : off;
    off = off < most ? off : most;
    curve->uneven += (off - curve->uneven) * (new == 3 ? 1 : UNEVEN_PACE);
}

bool curve_add(struct curve *curve, double step, double value)
{
    bool good = fabs(step) <= CURVE_STEP_MAX && fabs(value) <= CURVE_VALUE_MAX;
    curve->lost = !good; /* NaN is not below anything */
    if (!good)
        return false;
    while (curve->kept > 0 && curve->step[curve->kept - 1] >= step) {
        forget_newest(curve);
        curve->fitted = false;
    }
    if (curve->kept - old_count(curve) == CURVE_NEW_MIN + CURVE_FOLD)
        fold_oldest(curve);
    assert(curve->kept < CURVE_KEPT_MAX);

    if (curve->count == 0)
        curve->origin = step - 1;
    else if (curve->count == 1)
        curve->origin = 2 * curve->step[0] - step;
    curve->low = curve->count == 0 || value < curve->low ? value : curve->low;
    curve->high = curve->count == 0 || value > curve->high ? value : curve->high;
    curve->step[curve->kept] = step;
    curve->value[curve->kept++] = value;
    curve->count++;
    smooth_spike(curve);
    return true;
}

void curve_check(const struct curve *curve)
{
    assert(curve->kept <= CURVE_KEPT_MAX);
    assert(old_count(curve) <= curve->kept);
    uint64_t count = curve->kept - old_count(curve);
    for (uint32_t level = 0; level < CURVE_LEVELS; level++)
        count += (uint64_t)curve->level_count[level] << level;
    assert(count == curve->count);
    for (uint32_t i = 0; i < curve->kept; i++) {
        assert(i == 0 || curve->step[i - 1] < curve->step[i]);
        assert(curve->value[i] >= curve->low && curve->value[i] <= curve->high);
    }
}

/* --- the fit ------------------------------------------------------------------------ */

/* Fit the newest points; from the earlier fits if 'warm'. */
static struct curve_fit fit_newest(struct curve *curve, bool warm)
{
    double weights[FIT_POINTS];
    uint32_t count = curve->kept;
    uint32_t used = count < FIT_POINTS ? count : FIT_POINTS;
    family_weights(weights, used, KEEP);
    struct family_points points = { .step = curve->step + count - used,
                                    .value = curve->value + count - used,
                                    .weight = weights,
                                    .count = used,
                                    .origin = curve->origin,
                                    .sign = curve->hint.sign };
    struct family_fit *inv = &curve->inv, *exp = &curve->exp;
    struct curve_fit fit = { .last = curve->step[count - 1],
                             .span = curve->step[count - 1] - points.step[0] };
    if (curve->hint.family == FAMILY_INV)
        fit.best = *inv = family_fit_inv(&points, warm ? inv : NULL);
    else if (curve->hint.family == FAMILY_EXP)
        fit.best = *exp = family_fit_exp(&points, warm ? exp : NULL);
    else
        fit.best = family_fit_best(&points, inv, exp, warm);
    fit.rms = sqrt(fit.best.sse / fit.best.weight);
    return fit;
}

/* Whether the unexplained rest is small against the range, rounding aside. */
static bool explains_points(const struct curve_fit *fit, double low, double high)
{
    return fit->rms <= MISFIT_MAX * (high - low) + 1e-12 * fabs(fit->best.limit);
}

struct curve_fit curve_fit(struct curve *curve)
{
    if (curve->kept == 0)
        return (struct curve_fit){ .best.family = FAMILY_FLAT };
    struct curve_fit fit = fit_newest(curve, curve->fitted);
    if (curve->fitted && fit.rms > WORSE * curve->rms)
        fit = fit_newest(curve, false);
    curve->fitted = true;
    curve->rms = fit.rms;
    fit.predictable = !curve->lost && curve->count >= POINTS_MIN &&
                      explains_points(&fit, curve->low, curve->high);
    return fit;
}

struct curve_value curve_at(const struct curve_fit *fit, double step)
{
    double value = family_at(&fit->best, step);
    double beyond =
        step > fit->last && fit->span > 0 ? (step - fit->last) / fit->span : 0;
    double half = BAR_NORMAL * fit->rms * sqrt(1 + beyond);
    return (struct curve_value){ value, value - half, value + half };
}

struct forecast curve_forecast(struct curve *curve, double ahead, bool *ret_predictable)
{
    struct forecast forecast =
        forecast_make(curve->step, curve->value, curve->kept, ahead);
    if (curve->low >= 0) { /* never negative before: an error rate, a loss, a score */
        forecast.value = forecast.value > 0 ? forecast.value : 0;
        forecast.low = forecast.low > 0 ? forecast.low : 0;
        forecast.high = forecast.high > 0 ? forecast.high : 0;
    }
    struct curve_fit fit = curve_fit(curve);
    *ret_predictable = fit.predictable && (forecast.high - forecast.low) / 2 <=
                                              BAR_MAX * (curve->high - curve->low);
    return forecast;
}
