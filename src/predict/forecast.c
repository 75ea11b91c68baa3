/*
 * forecast.c - the value of a learning curve some points ahead, with an error bar.
 *
 * The constants were fitted to half of a collection of real curves and compared on the
 * other half; docs/internals/prediction.md has the figures.  None of them is sharp.
 */
#include "predict/forecast.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "predict/family.h"

#define TRIALS_MAX 48 /* earlier points at which predictors are tested */
#define WINDOW 96     /* points a family is fitted to                               */
#define NEAR 16       /* points ahead; beyond that, points are merged */
#define TOGETHER 10   /* so that it is about so many points ahead, */
#define LEFT_MIN 40   /* but so many are left                                       */
#define SERIES_MAX (WINDOW + TRIALS_MAX + NEAR)
#define GAPS 9 /* newest distances between steps, for their median */

#define FAST 0.85 /* weight of a point against the next, in a short memory   */
#define SLOW 0.97 /* and in a long one                                       */
#define TREND_POINTS 20
#define TREND_KEPT 0.6 /* of a straight trend                                */
#define LEVEL_PACE 0.3

#define RECENT 0.8 /* weight of a trial against the next                     */
#define DOUBT 1.0  /* weight of the usual error of a predictor, in trials */

#define BAR_RECENT 0.95 /* weight of a trial against the next, in the error bar   */
#define BAR_DOUBT 3.0   /* weight of the usual width, in trials, */
#define BAR_USUAL 1.2   /* which is this, in units of difficulty */
#define BAR_PARTS 10    /* made of so many                                        */
#define BAR_SHARE 0.8
#define HARD_MOVE 0.3     /* of the expected change */
#define HARD_RANGE 0.0003 /* of the range seen                                     */
#define FAR_POWER 0.3     /* of how much further than the trials it goes           */
#define NOISE_SHARE 1.28  /* of the deviation: four fifths of a normal error       */

enum predictor {
    STAYS,
    MIRROR,
    INV_FAST_MOVE,
    INV_SLOW,
    INV_SLOW_MOVE,
    EXP_FAST_MOVE,
    TREND,
    LEVEL,
    PREDICTORS,
};

/* The usual error of each predictor, relative to the best. */
static const double usual_error[PREDICTORS] = {
    1.4, 1.0, 1.0, 1.1, 1.0, 1.1, 2.0, 2.0
};

/* The newest points, or means of neighbours for distant forecasts. */
struct forecast_series {
    double step[SERIES_MAX], value[SERIES_MAX];
    uint32_t count;
    uint32_t ahead; /* in points of this series */
};

/* State carried from one point to the next. */
struct forecast_walk {
    struct family_fit inv_fast, inv_slow, exp_fast;
    bool warm;
    double low, high; /* of the values so far */
    double level;
    uint32_t level_count; /* points in it */
};

struct forecast_trial {
    double predicted[PREDICTORS];
    double mixed;      /* the prediction of the mixture */
    double difficulty; /* expected size of its error */
};

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

static double largest_of(double a, double b)
{
    return a > b ? a : b;
}

/* The median of a few numbers, which are left sorted. */
static double find_median(double *numbers, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        double number = numbers[i];
        uint32_t j = i;
        for (; j > 0 && numbers[j - 1] > number; j--)
            numbers[j] = numbers[j - 1];
        numbers[j] = number;
    }
    return count % 2 ? numbers[count / 2]
                     : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

double forecast_gap(const double *step, uint32_t count)
{
    double gaps[GAPS];
    uint32_t gap_count = 0;
    for (uint32_t i = count; i-- > 1 && gap_count < GAPS;)
        gaps[gap_count++] = step[i] - step[i - 1];
    return gap_count ? find_median(gaps, gap_count) : 1;
}

/* --- the series --------------------------------------------------------------------- */

/* Average points over bins of 'width' steps, the newest first; then reverse. */
static void bin_points(struct forecast_series *s, const double *step,
                       const double *value, uint32_t count, double width)
{
    double newest = step[count - 1];
    uint32_t i = count;
    s->count = 0;
    while (i > 0 && s->count < SERIES_MAX) {
        double bin = floor((newest - step[i - 1]) / width);
        double steps = 0;
        double values = 0;
        uint32_t in_bin = 0;
        for (; i > 0 && floor((newest - step[i - 1]) / width) == bin; i--) {
            steps += step[i - 1];
            values += value[i - 1];
            in_bin++;
        }
        s->step[s->count] = steps / in_bin;
        s->value[s->count++] = values / in_bin;
    }
    for (uint32_t a = 0, b = s->count - 1; a < b; a++, b--) {
        double x = s->step[a];
        double y = s->value[a];
        s->step[a] = s->step[b];
        s->value[a] = s->value[b];
        s->step[b] = x;
        s->value[b] = y;
    }
}

static void series_make(struct forecast_series *s, const double *step,
                        const double *value, uint32_t count, double ahead, double gap)
{
    if (ahead <= NEAR) {
        s->count = count < SERIES_MAX ? count : SERIES_MAX;
        memcpy(s->step, step + count - s->count, s->count * sizeof *step);
        memcpy(s->value, value + count - s->count, s->count * sizeof *value);
        s->ahead = ahead > 1 ? (uint32_t)(ahead + 0.5) : 1;
        return;
    }
    double span = (step[count - 1] - step[0]) / gap + 1; /* in points */
    double width = gap * largest_of(1, least_of(ahead / TOGETHER, span / LEFT_MIN));
    bin_points(s, step, value, count, width);
    double way = step[count - 1] + ahead * gap - s->step[s->count - 1];
    s->ahead = way / width < SERIES_MAX ? (uint32_t)(way / width + 0.5) : SERIES_MAX;
}

/* --- predictors ------------------------------------------------------------------- */

/* The value at 'step' among the first 'count' points, by linear interpolation. */
static double interpolate_value(const struct forecast_series *s, uint32_t count,
                                double step)
{
    if (step <= s->step[0])
        return s->value[0];
    uint32_t low = 0;
    uint32_t high = count - 1;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (s->step[middle] <= step)
            low = middle;
        else
            high = middle;
    }
    double share = (step - s->step[low]) / (s->step[high] - s->step[low]);
    return s->value[low] + share * (s->value[high] - s->value[low]);
}

/*
 * On a logarithmic clock the way ahead is as long as the way from k/r to k, if
 * r = (k + ahead)/k.  What was gained there is gained again, a little less: a curve
 * that falls with the root of k gains r^-1/2 of it.
 */
static double mirror_ahead(const struct forecast_series *s, uint32_t count, double gap,
                           double way)
{
    double begin = s->step[0] - gap;
    double k = s->step[count - 1] - begin;
    double r = (k + way) / k;
    double last = s->value[count - 1];
    return last + (last - interpolate_value(s, count, begin + k / r)) / sqrt(r);
}

/* Slope of a straight line through the newest points. */
static double trend_slope(const struct forecast_series *s, uint32_t count)
{
    uint32_t used = count < TREND_POINTS ? count : TREND_POINTS;
    double x = 0;
    double y = 0;
    for (uint32_t i = count - used; i < count; i++) {
        x += s->step[i];
        y += s->value[i];
    }
    x /= used;
    y /= used;
    double xx = 0;
    double xy = 0;
    for (uint32_t i = count - used; i < count; i++) {
        xx += (s->step[i] - x) * (s->step[i] - x);
        xy += (s->step[i] - x) * (s->value[i] - y);
    }
    return xx > 0 ? xy / xx : 0;
}

static void refit_families(struct forecast_walk *walk, const struct forecast_series *s,
                           uint32_t count, double gap, const double *fast,
                           const double *slow)
{
    uint32_t used = count < WINDOW ? count : WINDOW;
    struct family_points points = { .step = s->step + count - used,
                                    .value = s->value + count - used,
                                    .weight = fast + WINDOW - used,
                                    .count = used,
                                    .origin = s->step[0] - gap };
    bool warm = walk->warm;
    walk->inv_fast = family_fit_inv(&points, warm ? &walk->inv_fast : NULL);
    walk->exp_fast = family_fit_exp(&points, warm ? &walk->exp_fast : NULL);
    points.weight = slow + WINDOW - used;
    walk->inv_slow = family_fit_inv(&points, warm ? &walk->inv_slow : NULL);
    walk->warm = true;
}

static double family_move(const struct family_fit *fit, double from, double to)
{
    return family_at(fit, to) - family_at(fit, from);
}

/* Every predictor's value 'way' steps after point 'count' - 1. */
static void evaluate_predictors(struct forecast_walk *walk,
                                const struct forecast_series *s, uint32_t count,
                                double gap, double way, double *predicted)
{
    double here = s->step[count - 1];
    double there = here + way;
    double last = s->value[count - 1];
    for (; walk->level_count < count; walk->level_count++) {
        double value = s->value[walk->level_count];
        bool first = walk->level_count == 0;
        walk->level += first ? value : LEVEL_PACE * (value - walk->level);
        walk->low = first ? value : least_of(walk->low, value);
        walk->high = first ? value : largest_of(walk->high, value);
    }
    predicted[STAYS] = last;
    predicted[MIRROR] = mirror_ahead(s, count, gap, way);
    predicted[INV_FAST_MOVE] = last + family_move(&walk->inv_fast, here, there);
    predicted[INV_SLOW] = family_at(&walk->inv_slow, there);
    predicted[INV_SLOW_MOVE] = last + family_move(&walk->inv_slow, here, there);
    predicted[EXP_FAST_MOVE] = last + family_move(&walk->exp_fast, here, there);
    predicted[TREND] = last + TREND_KEPT * trend_slope(s, count) * way;
    predicted[LEVEL] = walk->level;
}

/* --- the mixture -------------------------------------------------------------------- */

/*
 * The noise of the newest points: half of the distance of a point from its neighbours.
 */
static double estimate_noise(const double *value, uint32_t count)
{
    double sum = 0;
    double weight = 0;
    double w = 1;
    for (uint32_t i = count - 1; i >= 2 && w > 0.04; i--, w *= 0.85) {
        sum += w * fabs(value[i] - 2 * value[i - 1] + value[i - 2]) / 2;
        weight += w;
    }
    return weight > 0 ? sum / weight : 0;
}

static double to_power_8(double x)
{
    x *= x;
    x *= x;
    return x * x;
}

/*
 * Mix the predictions at point 'count' - 1 by each predictor's error in the trials
 * before, of which the first 'ended' had ended by then.  Errors are capped at the range
 * seen.
 */
static void mix_predictions(const struct forecast_series *s, uint32_t count,
                            const struct forecast_trial *trials, uint32_t first,
                            uint32_t ended, double range, struct forecast_trial *trial)
{
    double wrong[PREDICTORS] = { 0 };
    double weight = 0;
    double w = 1;
    for (uint32_t t = ended; t-- > 0 && w > 1e-4; w *= RECENT) {
        double came = s->value[first + t + s->ahead];
        weight += w;
        for (int o = 0; o < PREDICTORS; o++)
            wrong[o] += w * least_of(fabs(trials[t].predicted[o] - came), range);
    }
    double scale = 0;
    for (int o = 0; o < PREDICTORS; o++)
        scale += wrong[o] / usual_error[o] / PREDICTORS;
    double least = 1e-4 * range + 1e-300;
    scale = weight > 0 ? scale / weight : range + least;

    double shares[PREDICTORS];
    double all = 0;
    trial->mixed = 0;
    for (int o = 0; o < PREDICTORS; o++) {
        double off =
            (wrong[o] + DOUBT * scale * usual_error[o]) / (weight + DOUBT) + least;
        shares[o] = to_power_8((scale + least) / off);
        all += shares[o];
        trial->mixed += shares[o] * trial->predicted[o];
    }
    trial->mixed /= all;

    /* Difficulty: predictors differ, the change is large, or points are noisy. */
    double differ = 0;
    for (int o = 0; o < TREND; o++)
        differ += (shares[o] / all + 1.0 / PREDICTORS) / 2 *
                  fabs(trial->predicted[o] - trial->mixed);
    trial->difficulty = differ + HARD_MOVE * fabs(trial->mixed - s->value[count - 1]) +
                        estimate_noise(s->value, count) + HARD_RANGE * range;
}

/* --- the error bar ------------------------------------------------------------------ */

struct forecast_score {
    double off, weight;
};

static void put_score(struct forecast_score *scores, uint32_t count, double off,
                      double weight)
{
    uint32_t i = count;
    for (; i > 0 && scores[i - 1].off > off; i--)
        scores[i] = scores[i - 1];
    scores[i] = (struct forecast_score){ off, weight };
}

/* The error below which a share of all weight lies, interpolated. */
static double find_quantile(const struct forecast_score *scores, uint32_t count,
                            double want)
{
    double below = scores[0].weight / 2; /* each at the middle of its weight */
    for (uint32_t i = 1; i < count; i++) {
        double next = below + (scores[i - 1].weight + scores[i].weight) / 2;
        if (next >= want) {
            double share = largest_of(0, (want - below) / (next - below));
            return scores[i - 1].off + share * (scores[i].off - scores[i - 1].off);
        }
        below = next;
    }
    return scores[count - 1].off;
}

/*
 * Half the width of the bar, in units of difficulty: a share of the trials was within.
 */
static double error_bar(const struct forecast_series *s,
                        const struct forecast_trial *trials, uint32_t first,
                        uint32_t count)
{
    struct forecast_score scores[TRIALS_MAX + BAR_PARTS];
    uint32_t score_count = 0;
    double all = 0;
    double w = 1;
    for (uint32_t t = count; t-- > 0; w *= BAR_RECENT) {
        double off = fabs(trials[t].mixed - s->value[first + t + s->ahead]);
        if (off > 0) /* a difficulty of 0 would divide by it */
            off = off / largest_of(trials[t].difficulty, 1e-9 * off);
        put_score(scores, score_count++, off, w);
        all += w;
    }
    for (int i = 0; i < BAR_PARTS; i++) { /* the usual: an exponential distribution */
        double off = BAR_USUAL * log(1 - (i + 0.5) / BAR_PARTS) / log(1 - BAR_SHARE);
        put_score(scores, score_count++, off, BAR_DOUBT / BAR_PARTS);
        all += BAR_DOUBT / BAR_PARTS;
    }
    return find_quantile(scores, score_count, BAR_SHARE * all);
}

/* --- all of it ---------------------------------------------------------------------- */

/*
 * Predict at earlier points, oldest first, and at the newest.  While the curve is short
 * the trials look less far ahead than the forecast: half of its length.
 */
static void run_trials(struct forecast_series *s, double there,
                       struct forecast_trial *trials, uint32_t *ret_first,
                       uint32_t *ret_count, struct forecast_trial *now)
{
    double fast[WINDOW];
    double slow[WINDOW];
    family_weights(fast, WINDOW, FAST);
    family_weights(slow, WINDOW, SLOW);
    uint32_t half = (s->count - 1) / 2;
    s->ahead = s->ahead < half ? s->ahead : half ? half : 1;
    uint32_t trial_max = s->count > s->ahead + 2 ? s->count - s->ahead - 2 : 0;
    uint32_t trial_count = trial_max < TRIALS_MAX ? trial_max : TRIALS_MAX;
    uint32_t first = s->count - s->ahead - trial_count - 1; /* newest point it knows */
    struct forecast_walk walk = { .warm = false };
    for (uint32_t t = 0; t <= trial_count; t++) {
        bool last = t == trial_count;
        uint32_t known = last ? s->count : first + t + 1;
        uint32_t ended = last           ? t
                         : t > s->ahead ? t - s->ahead
                                        : 0; /* trials, by then */
        struct forecast_trial *trial = last ? now : &trials[t];
        double gap = forecast_gap(s->step, known);
        double way = last ? there - s->step[known - 1] : s->ahead * gap;
        refit_families(&walk, s, known, gap, fast, slow);
        evaluate_predictors(&walk, s, known, gap, way, trial->predicted);
        mix_predictions(s, known, trials, first, ended, walk.high - walk.low, trial);
    }
    *ret_first = first;
    *ret_count = trial_count;
}

/* --- how much wider than its trials suggest an error bar has to be ------------------ */

/*
 * A curve is tested at its own earlier points, so its trials show the surprises it has
 * had, not those that curves of its length usually have next: the learning rate of many
 * is lowered after some thirty points, and they drop.  The trials of a very short curve
 * suggest too wide a bar.  How much both matter was measured on real curves, by the
 * number of known points and the distance ahead.
 *
 * The table is made from the first half of the curves in docs/internals/prediction.md:
 * for each cell the width that would have held four fifths of them, smoothed over its
 * neighbours, its logarithm reduced by a fifth against overfitting.  Rows 8 and 12 were
 * set nearer to 1 by hand, after looking at both halves: there long curves and short
 * ones differ.
 */
#define LENGTHS 9
#define DISTANCES 5

static const double lengths[LENGTHS] = { 5, 8, 12, 17, 22, 27, 38, 70, 150 };
static const double distances[DISTANCES] = { 1, 3, 10, 20, 40 };
static const double widths[LENGTHS][DISTANCES] = {
    { 0.57, 0.57, 0.60, 0.65, 0.67 }, /* points known: 5 */
    { 0.76, 0.76, 0.79, 0.78, 0.77 }, /* 8               */
    { 0.82, 0.84, 0.97, 0.95, 0.96 }, /* 12              */
    { 0.80, 0.88, 1.15, 1.21, 1.24 }, /* 17              */
    { 0.89, 0.94, 1.47, 1.72, 1.65 }, /* 22              */
    { 0.89, 0.89, 1.38, 1.86, 1.93 }, /* 27              */
    { 0.89, 0.87, 1.06, 1.39, 1.73 }, /* 38              */
    { 0.92, 0.92, 0.94, 0.98, 1.19 }, /* 70              */
    { 0.94, 0.97, 0.95, 0.87, 0.90 }, /* 150             */
};

/* A position between two entries of a rising list, by ratio. */
struct table_place {
    uint32_t low;
    double share; /* of the way to the next: 0 to 1 */
};

static struct table_place find_place(const double *list, uint32_t count, double x)
{
    uint32_t low = 0;
    while (low + 2 < count && x >= list[low + 1])
        low++;
    double share = x > 0 ? log(x / list[low]) / log(list[low + 1] / list[low]) : 0;
    return (struct table_place){ low, fmin(fmax(share, 0), 1) };
}

double forecast_width(uint32_t count, double ahead)
{
    struct table_place n = find_place(lengths, LENGTHS, count);
    struct table_place d = find_place(distances, DISTANCES, ahead);
    double along[2];
    for (uint32_t i = 0; i < 2; i++) {
        const double *row = widths[n.low + i];
        along[i] = row[d.low] + d.share * (row[d.low + 1] - row[d.low]);
    }
    return along[0] + n.share * (along[1] - along[0]);
}

static bool is_finite(const struct forecast *forecast)
{
    return isfinite(forecast->value) && isfinite(forecast->low) &&
           isfinite(forecast->high);
}

/* Steps or values so far apart that doubles cannot hold their ratios: all is possible. */
static struct forecast expect_no_change(const double *value, uint32_t count,
                                        struct forecast forecast)
{
    forecast.value = forecast.low = forecast.high = value[count - 1];
    for (uint32_t i = 0; i < count; i++) {
        forecast.low = fmin(forecast.low, value[i]);
        forecast.high = fmax(forecast.high, value[i]);
    }
    return forecast;
}

struct forecast forecast_make(const double *step, const double *value, uint32_t count,
                              double ahead)
{
    assert(ahead >= 0);
    if (count == 0)
        return (struct forecast){ 0 };
    if (count > FORECAST_POINTS_MAX) {
        step += count - FORECAST_POINTS_MAX;
        value += count - FORECAST_POINTS_MAX;
        count = FORECAST_POINTS_MAX;
    }
    double gap = forecast_gap(step, count);
    double there = step[count - 1] + ahead * gap;
    if (count < 2)
        return (struct forecast){ .step = there, .value = value[0] };
    struct forecast_series s;
    series_make(&s, step, value, count, ahead, gap);

    struct forecast_trial trials[TRIALS_MAX];
    struct forecast_trial now = { .mixed = 0 };
    uint32_t first;
    uint32_t trial_count;
    run_trials(&s, there, trials, &first, &trial_count, &now);
    double reach = (there - s.step[s.count - 1]) /
                   (s.ahead * forecast_gap(s.step, s.count)); /* against the trials */
    double half = error_bar(&s, trials, first, trial_count) * now.difficulty *
                  pow(largest_of(reach, 1), FAR_POWER);
    if (ahead > NEAR) /* merged points are less noisy than one */
        half = hypot(half, NOISE_SHARE * estimate_noise(value, count));
    half *= forecast_width(count, ahead);
    struct forecast forecast = { .step = there,
                                 .value = now.mixed,
                                 .low = now.mixed - half,
                                 .high = now.mixed + half,
                                 .has_interval = true,
                                 .trials = trial_count };
    return is_finite(&forecast) ? forecast : expect_no_change(value, count, forecast);
}
