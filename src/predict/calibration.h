/*
 * calibration.h - forecasts set right by how earlier ones turned out.
 *
 *     number = calibration_add(&calibration, made_ns, waits_s);       a forecast as it was made
 *     calibration_resolve(&calibration, number, now_ns);              it has happened
 *     calibration_drop(&calibration, number, now_ns);                 or never will
 *     calibration_correct(&calibration, now_ns, waits_s);             of the next forecast
 *
 * A forecast is three quantiles of a wait, p10, p50 and p90.  For each of them the shift is the same
 * quantile of
 *
 *     log(wait that there was + 60 s) - log(quantile that was forecast + 60 s)
 *
 * over the last CALIBRATION_FORECASTS of the same kind: conformal prediction, so that one in ten
 * waits is shorter than p10, whatever is wrong with the forecasts, as long as it stays wrong in the
 * same way.  A wait that is not over counts as longer than it is so far (Kaplan and Meier).  With
 * fewer than CALIBRATION_LEAST that are over nothing is shifted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CALIBRATION_FORECASTS 500
#define CALIBRATION_LEAST 30
#define CALIBRATION_PRIOR 10.0
#define CALIBRATION_WIDER 1.3
#define CALIBRATION_QUANTILES 3
#define CALIBRATION_OFFSET_S 60.0

struct calibration_forecast {
    int64_t made_ns, over_ns;
    double logs[CALIBRATION_QUANTILES]; /* of what was forecast */
    double log_wait;                    /* of what happened     */
    bool over;
    bool dropped; /* cancelled: longer than 'log_wait' */
};

struct calibration {
    struct calibration_forecast forecasts[CALIBRATION_FORECASTS]; /* a ring */
    uint64_t count;                                               /* ever added */
    uint32_t over_count;
    double shifts[CALIBRATION_QUANTILES];
    double trust;      /* in them, from 0 to 1 */
    int64_t shifts_ns; /* when they were found */
    bool has_shifts;
};

/* log(wait + 60 s), and the wait again. */
double calibration_log(double wait_s);
double calibration_wait_s(double log_wait);

/* Keep a forecast as it was before it was corrected; returns its number. */
uint64_t calibration_add(struct calibration *calibration, int64_t made_ns,
                         const double waits_s[CALIBRATION_QUANTILES]);

/* What it is about has happened; without effect if it is too long ago. */
void calibration_resolve(struct calibration *calibration, uint64_t number,
                         int64_t at_ns);

/* It never will: the wait would have been longer. */
void calibration_drop(struct calibration *calibration, uint64_t number, int64_t at_ns);

/* Shift the quantiles; they stay in order.  False: too little is known, and they are as before. */
bool calibration_correct(struct calibration *calibration, int64_t now_ns,
                         double waits_s[CALIBRATION_QUANTILES]);

/* Mean pinball loss of the quantiles, in log(wait + 60 s); what happened is between p10 and p90. */
double calibration_loss(const double waits_s[CALIBRATION_QUANTILES], double happened_s);
bool calibration_covers(const double waits_s[CALIBRATION_QUANTILES], double happened_s);

/*
 * The quantile of values some of which are lower bounds only: the least value by which the share
 * 'level' has been reached; the largest value if none is.  Sorts them.
 */
struct censored_value {
    double value;
    bool censored; /* it is larger than 'value' */
};
double calibration_quantile(struct censored_value *values, uint32_t count,
                            double level);
