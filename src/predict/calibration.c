/* calibration.c - forecasts set right by how earlier ones turned out. */
#include "predict/calibration.h"

#include <math.h>
#include <stdlib.h>

#include "base/sort.h"

static const double levels[CALIBRATION_QUANTILES] = { 0.1, 0.5, 0.9 };

double calibration_log(double wait_s)
{
    return log(fmax(wait_s, 0) + CALIBRATION_OFFSET_S);
}

double calibration_wait_s(double log_wait)
{
    return fmax(exp(log_wait) - CALIBRATION_OFFSET_S, 0);
}

static double seconds_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) * 1e-9;
}

uint64_t calibration_add(struct calibration *calibration, int64_t made_ns,
                         const double waits_s[CALIBRATION_QUANTILES])
{
    uint64_t number = calibration->count++;
    struct calibration_forecast *forecast =
        &calibration->forecasts[number % CALIBRATION_FORECASTS];
    calibration->over_count -= forecast->over;
    *forecast = (struct calibration_forecast){ .made_ns = made_ns };
    for (uint32_t q = 0; q < CALIBRATION_QUANTILES; q++)
        forecast->logs[q] = calibration_log(waits_s[q]);
    return number;
}

/* What is kept of a forecast that has not turned out; NULL: it is, or was too long ago. */
static struct calibration_forecast *find_open(struct calibration *calibration,
                                              uint64_t number)
{
    if (number >= calibration->count ||
        number + CALIBRATION_FORECASTS < calibration->count)
        return NULL;
    struct calibration_forecast *forecast =
        &calibration->forecasts[number % CALIBRATION_FORECASTS];
    return forecast->over || forecast->dropped ? NULL : forecast;
}

static void set_outcome(struct calibration *calibration,
                        struct calibration_forecast *forecast, int64_t at_ns)
{
    forecast->over_ns = at_ns;
    forecast->log_wait = calibration_log(seconds_between(forecast->made_ns, at_ns));
    calibration->has_shifts = false;
}

void calibration_resolve(struct calibration *calibration, uint64_t number,
                         int64_t at_ns)
{
    struct calibration_forecast *forecast = find_open(calibration, number);
    if (!forecast)
        return;
    forecast->over = true;
    calibration->over_count++;
    set_outcome(calibration, forecast, at_ns);
}

void calibration_drop(struct calibration *calibration, uint64_t number, int64_t at_ns)
{
    struct calibration_forecast *forecast = find_open(calibration, number);
    if (!forecast)
        return;
    forecast->dropped = true;
    set_outcome(calibration, forecast, at_ns);
}

static int compare_values(const void *a, const void *b)
{
    const struct censored_value *first = a;
    const struct censored_value *second = b;
    if (first->value != second->value)
        return first->value < second->value ? -1 : 1;
    return (int)first->censored - (int)second->censored;
}

double calibration_quantile(struct censored_value *values, uint32_t count, double level)
{
    double left = 1; /* share that is larger */
    qsort(values, count, sizeof *values, compare_values);
    for (uint32_t i = 0; i < count; i++) {
        if (values[i].censored)
            continue;
        left *= 1 - 1.0 / (count - i);
        if (1 - left >= level - 1e-9)
            return values[i].value;
    }
    return count > 0 ? values[count - 1].value : 0;
}

static uint32_t count_kept(const struct calibration *calibration)
{
    return calibration->count < CALIBRATION_FORECASTS ? (uint32_t)calibration->count
                                                      : CALIBRATION_FORECASTS;
}

/* How much one quantile was too low. */
static double find_shift(const struct calibration *calibration, int64_t now_ns,
                         uint32_t quantile)
{
    struct censored_value values[CALIBRATION_FORECASTS];
    uint32_t count = count_kept(calibration);
    for (uint32_t i = 0; i < count; i++) {
        const struct calibration_forecast *forecast = &calibration->forecasts[i];
        double log_wait =
            forecast->over || forecast->dropped
                ? forecast->log_wait
                : calibration_log(seconds_between(forecast->made_ns, now_ns));
        values[i] =
            (struct censored_value){ .value = log_wait - forecast->logs[quantile],
                                     .censored = !forecast->over };
    }
    return calibration_quantile(values, count, levels[quantile]);
}

/*
 * How many of the waits that are over fit one after the other: as many independent outcomes there
 * are at least, while those that overlap may share one fate.
 */
static uint32_t count_apart(const struct calibration *calibration)
{
    struct sort_item ends[2 * CALIBRATION_FORECASTS];
    uint32_t count = 0;
    uint32_t apart = 0;
    double until = -INFINITY;
    for (uint32_t i = 0; i < count_kept(calibration); i++) {
        const struct calibration_forecast *forecast = &calibration->forecasts[i];
        if (forecast->over)
            ends[count++] = (struct sort_item){ (double)forecast->over_ns, i };
    }
    sort_items(ends, ends + CALIBRATION_FORECASTS, count);
    for (uint32_t i = 0; i < count; i++) {
        if ((double)calibration->forecasts[ends[i].value].made_ns < until)
            continue;
        apart++;
        until = ends[i].key;
    }
    return apart;
}

static void find_shifts(struct calibration *calibration, int64_t now_ns)
{
    if (calibration->has_shifts && calibration->shifts_ns == now_ns)
        return;
    double apart = count_apart(calibration);
    calibration->trust = apart / (apart + CALIBRATION_PRIOR);
    for (uint32_t q = 0; q < CALIBRATION_QUANTILES; q++)
        calibration->shifts[q] = find_shift(calibration, now_ns, q);
    calibration->shifts_ns = now_ns;
    calibration->has_shifts = true;
}

bool calibration_correct(struct calibration *calibration, int64_t now_ns,
                         double waits_s[CALIBRATION_QUANTILES])
{
    if (calibration->over_count < CALIBRATION_LEAST)
        return false;
    find_shifts(calibration, now_ns);
    double trust = calibration->trust;
    double middle = calibration_log(waits_s[CALIBRATION_QUANTILES / 2]);
    for (uint32_t q = 0; q < CALIBRATION_QUANTILES; q++) {
        double raw = calibration_log(waits_s[q]);
        double prior = (CALIBRATION_WIDER - 1) * (raw - middle);
        waits_s[q] = calibration_wait_s(raw + trust * calibration->shifts[q] +
                                        (1 - trust) * prior);
        if (q > 0)
            waits_s[q] = fmax(waits_s[q], waits_s[q - 1]);
    }
    return true;
}

double calibration_loss(const double waits_s[CALIBRATION_QUANTILES], double happened_s)
{
    double sum = 0;
    for (uint32_t q = 0; q < CALIBRATION_QUANTILES; q++) {
        double error = calibration_log(happened_s) - calibration_log(waits_s[q]);
        sum += error > 0 ? levels[q] * error : (levels[q] - 1) * error;
    }
    return sum / CALIBRATION_QUANTILES;
}

bool calibration_covers(const double waits_s[CALIBRATION_QUANTILES], double happened_s)
{
    return happened_s >= waits_s[0] - 1e-3 &&
           happened_s <= waits_s[CALIBRATION_QUANTILES - 1] + 1e-3;
}
