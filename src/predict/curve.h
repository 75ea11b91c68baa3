/*
 * curve.h - one job's learning curve: its reports, and a forecast from them.
 *
 *     curve_init(&curve, NULL);
 *     curve_add(&curve, step, loss);                 with every report
 *     struct curve_fit fit = curve_fit(&curve);      the family, some microseconds
 *     struct curve_value v = curve_at(&fit, step);   its value there, with an error bar
 *     struct forecast f = curve_forecast(&curve, 10, &predictable);
 *
 * The fit is cheap and smooth: its differences tell what some more steps are worth.
 * The forecast (forecast.h) costs a hundred times more and is more accurate.
 *
 * A curve takes the same memory however long it grows: the newest points are kept as
 * they are, those before as means of 2, 4, 8, ... of them, a few of each.  A point
 * costs nanoseconds, and a fit starts where the last one ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "predict/family.h"
#include "predict/forecast.h"

#define CURVE_NEW_MIN 192 /* newest points that are kept as they are               */
#define CURVE_FOLD 64     /* points that are merged at a time */
#define CURVE_PER_LEVEL 4 /* means of as many points                               */
#define CURVE_LEVELS 40
#define CURVE_KEPT_MAX (CURVE_NEW_MIN + CURVE_FOLD + CURVE_LEVELS * CURVE_PER_LEVEL)

#define CURVE_VALUE_MAX 1e100 /* larger values or steps are not kept */
#define CURVE_STEP_MAX 1e15

/* What is known about a job beforehand; zero: nothing. */
struct curve_hint {
    enum family family; /* FAMILY_FLAT: whichever fits better               */
    double sign;        /* 1: a loss, -1: an accuracy, 0: as the points say */
};

struct curve_fit {
    struct family_fit best;
    double last;      /* step of the newest point                    */
    double span;      /* steps from the oldest point used to it      */
    double rms;       /* of what the family leaves unexplained       */
    bool predictable; /* it explains the points                      */
};

struct curve_value {
    double value;
    double low, high; /* holds it four times in five, if the family is right */
};

struct curve {
    struct curve_hint hint;
    uint64_t count;                     /* points it consists of                    */
    uint32_t kept;                      /* of step[] and value[], oldest first      */
    uint32_t level_count[CURVE_LEVELS]; /* means of 2^level points, the last oldest */
    double step[CURVE_KEPT_MAX];
    double value[CURVE_KEPT_MAX];
    double origin;    /* one point before the first: where training began */
    double low, high; /* of all values                                    */
    bool lost;        /* the newest report was no number                  */
    bool fitted;      /* these two are there to start from                */
    struct family_fit inv, exp;
    double rms;    /* of the better of them                            */
    double uneven; /* how far a point usually lies from its neighbours */
};

/* 'hint' may be NULL. */
void curve_init(struct curve *curve, const struct curve_hint *hint);

/*
 * Add a point.  Steps that go back are a restart from a checkpoint: points from there on
 * are forgotten.  A value that is no finite number, or beyond the bounds, is not kept;
 * returns false then, and the curve is not predictable until the next good one.
 */
bool curve_add(struct curve *curve, double step, double value);

/* Fit the newest points, each weighing a little less than the next. */
struct curve_fit curve_fit(struct curve *curve);

struct curve_value curve_at(const struct curve_fit *fit, double step);

/*
 * The value 'ahead' points from now.  ret_predictable: the family explains the curve
 * and the error bar is narrow against the range of values seen.
 */
struct forecast curve_forecast(struct curve *curve, double ahead,
                               bool *ret_predictable);

/* Assert its invariants. */
void curve_check(const struct curve *curve);
