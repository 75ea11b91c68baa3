/*
 * forecast_choice.h - which forecast of a wait to show: by playing forward, or the naive baseline.
 *
 *     forecast_choice_note(&choice, gpus, wait_s);                     a wait is over: for the baseline
 *     number = forecast_choice_add(&choice, now_ns, gpus, forward_s, &shown);   at submission
 *     forecast_choice_resolve(&choice, number, at_ns);                 it has happened
 *     forecast_choice_drop(&choice, number, at_ns);                    or never will: cancelled
 *     if (forecast_choice_show(&choice, now_ns, gpus, waited_s, forward_s, &shown)) …
 *
 * There is one of these per kind: a policy, and what is forecast (the start of a job that waits, or
 * an end).  Both forecasts are set right by how their own earlier ones turned out (calibration.h).
 * The baseline is the last waits of jobs of the same size, of all sizes where fewer than
 * CHOICE_WAITS_LEAST of that size are known; of a job that has waited for some time those that were
 * longer.
 *
 * It is shown instead where forecasts by playing forward were worse lately: where its mean pinball
 * loss is smaller, by more than the standard error of the difference, over the forecasts of the last
 * CHOICE_DAYS that have turned out, both as they were given then; and where playing forward has no
 * answer.  At least CHOICE_RESOLVED_LEAST of them decide.
 *
 * Zero bytes are an empty one.  It takes about 0.2 MB, whatever happens, and allocates nothing.  All
 * forecasts of one moment cost one sort; the next one after some have turned out another.  Adding
 * and resolving again what was added and resolved before, in order, rebuilds it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "predict/calibration.h"

#define CHOICE_SIZES 129 /* of larger jobs all count as one size       */
#define CHOICE_WAITS 100 /* of one size                                */
#define CHOICE_WAITS_LEAST 5
#define CHOICE_RESOLVED_LEAST 30
#define CHOICE_DAYS 14
#define CHOICE_NONE UINT64_MAX

enum forecast_method { FORECAST_FORWARD, FORECAST_BASELINE, FORECAST_METHODS };

/* What to tell the user: seconds from now, p10, p50 and p90. */
struct forecast_shown {
    double waits_s[CALIBRATION_QUANTILES];
    enum forecast_method method;
    bool corrected; /* false: as it was forecast, since too little is known */
};

/* How well those turned out that were shown, of the last CHOICE_DAYS. */
struct forecast_quality {
    uint32_t count; /* 0: the rest means nothing */
    double coverage_80;
    double median_error_s; /* absolute, of p50 */
    uint32_t compared;     /* forecasts that both methods had */
    double loss[FORECAST_METHODS];
};

struct choice_record {
    int64_t made_ns;
    bool over, dropped;
    bool has[FORECAST_METHODS];
    uint64_t numbers[FORECAST_METHODS]; /* in the calibrations */
    double waits_s[FORECAST_METHODS][CALIBRATION_QUANTILES];
    enum forecast_method shown;
    double happened_s;
};

struct choice_waits {
    float waits_s[CHOICE_WAITS]; /* a ring */
    uint32_t count;              /* ever added */
};

struct forecast_choice {
    struct calibration calibrations[FORECAST_METHODS];
    struct choice_record records[CALIBRATION_FORECASTS]; /* a ring */
    uint64_t count;                                      /* ever added */
    struct choice_waits sizes[CHOICE_SIZES];             /* 0: of all sizes */
    enum forecast_method best; /* at 'best_ns', if 'has_best' */
    int64_t best_ns;
    bool has_best;
};

/* A wait of a job of this size is over, whether or not it was forecast. */
void forecast_choice_note(struct forecast_choice *choice, uint32_t gpus, double wait_s);

/*
 * What to show now of a job of this size that has waited so long.  'forward_s' is the forecast by
 * playing forward, in which what is beyond the horizon counts as the horizon; NULL: it has none.
 * False: nothing can be said.
 */
bool forecast_choice_show(struct forecast_choice *choice, int64_t now_ns, uint32_t gpus,
                          double waited_s,
                          const double forward_s[CALIBRATION_QUANTILES],
                          struct forecast_shown *ret_shown);

/*
 * The same of a job that has just been submitted, and keep it, so that later ones are set right by
 * how it turns out.  Returns its number; CHOICE_NONE: nothing can be said.
 */
uint64_t forecast_choice_add(struct forecast_choice *choice, int64_t now_ns,
                             uint32_t gpus,
                             const double forward_s[CALIBRATION_QUANTILES],
                             struct forecast_shown *ret_shown);

/* Without effect if the forecast is too long ago, or has turned out already. */
void forecast_choice_resolve(struct forecast_choice *choice, uint64_t number,
                             int64_t at_ns);

/* The job was cancelled before: all that is known is that the wait would have been longer. */
void forecast_choice_drop(struct forecast_choice *choice, uint64_t number,
                          int64_t at_ns);

/* The one that is shown now, where both have an answer. */
enum forecast_method forecast_choice_best(const struct forecast_choice *choice,
                                          int64_t now_ns);

struct forecast_quality forecast_choice_quality(const struct forecast_choice *choice,
                                                int64_t now_ns);
