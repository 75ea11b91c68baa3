/* forecast_choice.c - by playing forward, or the naive baseline: what did better lately. */
#include "predict/forecast_choice.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

#define RECENT_NS (CHOICE_DAYS * INT64_C(86400000000000))

/* --- the baseline ------------------------------------------------------------------- */

static void add_wait(struct choice_waits *waits, double wait_s)
{
    waits->waits_s[waits->count++ % CHOICE_WAITS] = (float)wait_s;
}

void forecast_choice_note(struct forecast_choice *choice, uint32_t gpus, double wait_s)
{
    if (!(wait_s >= 0 && wait_s < 1e12))
        return;
    uint32_t size = gpus < 1 ? 1 : gpus < CHOICE_SIZES ? gpus : CHOICE_SIZES - 1;
    add_wait(&choice->sizes[size], wait_s);
    add_wait(&choice->sizes[0], wait_s);
}

/* What was left of the waits that were longer than this, in order. */
static uint32_t list_longer(const struct choice_waits *waits, double waited_s,
                            double left_s[CHOICE_WAITS])
{
    double scratch[CHOICE_WAITS];
    uint32_t known = waits->count < CHOICE_WAITS ? waits->count : CHOICE_WAITS;
    uint32_t count = 0;
    for (uint32_t i = 0; i < known; i++)
        if ((double)waits->waits_s[i] >= waited_s)
            left_s[count++] = (double)waits->waits_s[i] - waited_s;
    sort_numbers(left_s, scratch, count);
    return count;
}

static const double levels[CALIBRATION_QUANTILES] = { 0.1, 0.5, 0.9 };

static bool forecast_baseline(const struct forecast_choice *choice, uint32_t gpus,
                              double waited_s, double ret_s[CALIBRATION_QUANTILES])
{
    double left_s[CHOICE_WAITS];
    uint32_t size = gpus < 1 ? 1 : gpus < CHOICE_SIZES ? gpus : CHOICE_SIZES - 1;
    uint32_t count = list_longer(&choice->sizes[size], waited_s, left_s);
    if (count < CHOICE_WAITS_LEAST)
        count = list_longer(&choice->sizes[0], waited_s, left_s);
    if (count < CHOICE_WAITS_LEAST)
        return false;
    for (uint32_t q = 0; q < CALIBRATION_QUANTILES; q++) {
        double rank = fmin(fmax(levels[q] * (count + 1) - 1, 0), count - 1);
        uint32_t below = (uint32_t)rank;
        uint32_t above = below + 1 < count ? below + 1 : below;
        ret_s[q] = left_s[below] + (rank - below) * (left_s[above] - left_s[below]);
    }
    return true;
}

/* --- what is kept ------------------------------------------------------------------- */

static struct choice_record *find_record(struct forecast_choice *choice,
                                         uint64_t number)
{
    if (number >= choice->count || number + CALIBRATION_FORECASTS < choice->count)
        return NULL;
    struct choice_record *record = &choice->records[number % CALIBRATION_FORECASTS];
    return record->over || record->dropped ? NULL : record;
}

void forecast_choice_resolve(struct forecast_choice *choice, uint64_t number,
                             int64_t at_ns)
{
    struct choice_record *record = find_record(choice, number);
    if (!record)
        return;
    record->over = true;
    choice->has_best = false;
    record->happened_s = (double)(at_ns - record->made_ns) * 1e-9;
    for (uint32_t m = 0; m < FORECAST_METHODS; m++)
        if (record->has[m])
            calibration_resolve(&choice->calibrations[m], record->numbers[m], at_ns);
}

void forecast_choice_drop(struct forecast_choice *choice, uint64_t number,
                          int64_t at_ns)
{
    struct choice_record *record = find_record(choice, number);
    if (!record)
        return;
    record->dropped = true;
    for (uint32_t m = 0; m < FORECAST_METHODS; m++)
        if (record->has[m])
            calibration_drop(&choice->calibrations[m], record->numbers[m], at_ns);
}

/* --- how it went --------------------------------------------------------------------- */

static uint32_t count_kept(const struct forecast_choice *choice)
{
    return choice->count < CALIBRATION_FORECASTS ? (uint32_t)choice->count
                                                 : CALIBRATION_FORECASTS;
}

static bool is_recent(const struct choice_record *record, int64_t now_ns)
{
    return record->over && now_ns - record->made_ns <= RECENT_NS;
}

/* Losses of both where both had a forecast. */
struct loss_comparison {
    uint32_t count;
    double means[FORECAST_METHODS];
    double error; /* standard error of their difference */
};

static struct loss_comparison compare_losses(const struct forecast_choice *choice,
                                             int64_t now_ns)
{
    struct loss_comparison losses = { 0 };
    double squares = 0;
    for (uint32_t i = 0; i < count_kept(choice); i++) {
        const struct choice_record *record = &choice->records[i];
        double loss[FORECAST_METHODS];
        if (!is_recent(record, now_ns) || !record->has[FORECAST_FORWARD] ||
            !record->has[FORECAST_BASELINE])
            continue;
        losses.count++;
        for (uint32_t m = 0; m < FORECAST_METHODS; m++) {
            loss[m] = calibration_loss(record->waits_s[m], record->happened_s);
            losses.means[m] += loss[m];
        }
        squares += pow(loss[FORECAST_FORWARD] - loss[FORECAST_BASELINE], 2);
    }
    if (losses.count == 0)
        return losses;
    for (uint32_t m = 0; m < FORECAST_METHODS; m++)
        losses.means[m] /= losses.count;
    double mean = losses.means[FORECAST_FORWARD] - losses.means[FORECAST_BASELINE];
    losses.error = sqrt(fmax(squares / losses.count - mean * mean, 0) / losses.count);
    return losses;
}

enum forecast_method forecast_choice_best(const struct forecast_choice *choice,
                                          int64_t now_ns)
{
    struct loss_comparison losses = compare_losses(choice, now_ns);
    double worse = losses.means[FORECAST_FORWARD] - losses.means[FORECAST_BASELINE];
    return losses.count >= CHOICE_RESOLVED_LEAST && worse > losses.error
               ? FORECAST_BASELINE
               : FORECAST_FORWARD;
}

struct forecast_quality forecast_choice_quality(const struct forecast_choice *choice,
                                                int64_t now_ns)
{
    struct forecast_quality quality = { 0 };
    double errors_s[CALIBRATION_FORECASTS];
    double scratch[CALIBRATION_FORECASTS];
    uint32_t inside = 0;
    for (uint32_t i = 0; i < count_kept(choice); i++) {
        const struct choice_record *record = &choice->records[i];
        if (!is_recent(record, now_ns))
            continue;
        const double *waits_s = record->waits_s[record->shown];
        inside += calibration_covers(waits_s, record->happened_s);
        errors_s[quality.count++] = fabs(record->happened_s - waits_s[1]);
    }
    struct loss_comparison losses = compare_losses(choice, now_ns);
    quality.compared = losses.count;
    memcpy(quality.loss, losses.means, sizeof quality.loss);
    if (quality.count == 0)
        return quality;
    sort_numbers(errors_s, scratch, quality.count);
    quality.coverage_80 = (double)inside / quality.count;
    quality.median_error_s =
        (errors_s[(quality.count - 1) / 2] + errors_s[quality.count / 2]) / 2;
    return quality;
}

/* --- what to show --------------------------------------------------------------------- */

/* Both as they were forecast; false: neither has an answer. */
static bool forecast_both(const struct forecast_choice *choice, uint32_t gpus,
                          double waited_s, const double *forward_s,
                          struct choice_record *record)
{
    record->has[FORECAST_FORWARD] = forward_s != NULL;
    if (forward_s)
        memcpy(record->waits_s[FORECAST_FORWARD], forward_s,
               sizeof record->waits_s[FORECAST_FORWARD]);
    record->has[FORECAST_BASELINE] =
        forecast_baseline(choice, gpus, waited_s, record->waits_s[FORECAST_BASELINE]);
    return record->has[FORECAST_FORWARD] || record->has[FORECAST_BASELINE];
}

/* The same for all forecasts of one moment, until another has turned out. */
static enum forecast_method find_best(struct forecast_choice *choice, int64_t now_ns)
{
    if (!choice->has_best || choice->best_ns != now_ns) {
        choice->best = forecast_choice_best(choice, now_ns);
        choice->best_ns = now_ns;
        choice->has_best = true;
    }
    return choice->best;
}

/* Set both right, and choose. */
static void choose(struct forecast_choice *choice, int64_t now_ns,
                   struct choice_record *record, struct forecast_shown *ret_shown)
{
    bool corrected[FORECAST_METHODS] = { false };
    for (uint32_t m = 0; m < FORECAST_METHODS; m++)
        if (record->has[m])
            corrected[m] = calibration_correct(&choice->calibrations[m], now_ns,
                                               record->waits_s[m]);
    record->shown = FORECAST_FORWARD;
    if (!record->has[FORECAST_FORWARD])
        record->shown = FORECAST_BASELINE;
    else if (record->has[FORECAST_BASELINE])
        record->shown = find_best(choice, now_ns);
    *ret_shown = (struct forecast_shown){ .method = record->shown,
                                          .corrected = corrected[record->shown] };
    memcpy(ret_shown->waits_s, record->waits_s[record->shown],
           sizeof ret_shown->waits_s);
}

bool forecast_choice_show(struct forecast_choice *choice, int64_t now_ns, uint32_t gpus,
                          double waited_s,
                          const double forward_s[CALIBRATION_QUANTILES],
                          struct forecast_shown *ret_shown)
{
    struct choice_record record = { .made_ns = now_ns };
    if (!forecast_both(choice, gpus, waited_s, forward_s, &record))
        return false;
    choose(choice, now_ns, &record, ret_shown);
    return true;
}

uint64_t forecast_choice_add(struct forecast_choice *choice, int64_t now_ns,
                             uint32_t gpus,
                             const double forward_s[CALIBRATION_QUANTILES],
                             struct forecast_shown *ret_shown)
{
    struct choice_record record = { .made_ns = now_ns };
    if (!forecast_both(choice, gpus, 0, forward_s, &record))
        return CHOICE_NONE;
    double raw_s[FORECAST_METHODS][CALIBRATION_QUANTILES];
    memcpy(raw_s, record.waits_s, sizeof raw_s);
    choose(choice, now_ns, &record, ret_shown);
    for (uint32_t m = 0; m < FORECAST_METHODS; m++)
        if (record.has[m])
            record.numbers[m] =
                calibration_add(&choice->calibrations[m], now_ns, raw_s[m]);
    struct choice_record *kept =
        &choice->records[choice->count % CALIBRATION_FORECASTS];
    choice->has_best = choice->has_best && !kept->over; /* one less to compare */
    *kept = record;
    return choice->count++;
}
