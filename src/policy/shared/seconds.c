/* seconds.c - what a second of a job's time is worth, by what it will learn in it. */
#include "policy/shared/seconds.h"

#include <math.h>

#define LEVEL_WORTH 0.5 /* of a second at a loss of 1, against one before the goal    */
#define UNKNOWN_WORTH \
    0.4 /* of a second of a job whose reports show no trend            */
#define INTERVAL_SCALE \
    7                 /* deviations in half an interval: far ahead it is too narrow */
#define EPOCH_PARTS 4 /* in which the worth of a second is evaluated */
#define DEVIATION_LEAST 0.01
#define RANGE 16 /* times and parts of the mean beyond which nothing is believed */

/* --- what jobs will learn ------------------------------------------------------------- */

/*
 * For a job with too few reports.  Every model learns most at first: until reports show
 * otherwise, each step is assumed to bring this part of what is left.
 */
static void set_young(struct gains_job *share, const struct outlook *outlook,
                      const struct job *job, double young)
{
    share->ahead = curve_ahead_assumed(young);
    share->work_s = outlook->paced ? outlook->work_s : job->gpus / job->rate_best_per_s;
    share->fixed_s = outlook->fixed_s;
}

/* The job has declared its learning curve, and the setting is to trust it. */
static bool uses_declared_curve(const struct seconds *seconds, const struct job *job)
{
    return seconds->declared && job->curve.family != LEARNING_NONE &&
           job->kind == KIND_NONE;
}

static void set_declared(struct gains_job *share, const struct job *job, double at)
{
    double end = job->steps_total > 0  ? job->steps_total
                 : job->curve.kmax > 0 ? job->curve.kmax
                                       : INFINITY;
    share->ahead = curve_ahead_declared(&job->curve, at, end);
    share->work_s = (job->step_s - job->fixed_s) * job->gpus;
    share->fixed_s = job->fixed_s;
}

/* That part of an equal share, within the job's bounds. */
static uint32_t part_of_fair_share(double fair, double part,
                                   const struct gains_job *share)
{
    return (uint32_t)fmin(fmax(floor(fair * part), share->least), share->most);
}

void seconds_forecast(struct seconds *seconds, struct elastic *elastic,
                      const struct view *view)
{
    for (uint32_t i = 0; i < elastic->count; i++) {
        struct gains_job *share = &elastic->shares[i];
        job_id id = elastic->jobs[i];
        const struct job *job = &view->jobs[id];
        struct outlook outlook = forecaster_outlook(seconds->forecaster, view, id);
        double part = seconds->floor;
        if (uses_declared_curve(seconds, job)) {
            set_declared(share, job, job_steps(job, view->now_ns));
        } else if (outlook.state == OUTLOOK_FITTED) {
            share->ahead = outlook.ahead;
            share->work_s = outlook.work_s;
            share->fixed_s = outlook.fixed_s;
        } else if (outlook.state != OUTLOOK_FLAT) {
            part = 1;
            if (outlook.state == OUTLOOK_YOUNG ||
                (outlook.state == OUTLOOK_SILENT && job->state == JOB_WAITING))
                set_young(share, &outlook, job, seconds->young);
        }
        share->least = part_of_fair_share(elastic->fair, part, share);
    }
}

/* --- what their time is worth --------------------------------------------------------- */

/* The time a job has left on an equal share; INFINITY: not known. */
static double time_left_s(const struct elastic *elastic, const struct view *view,
                          const struct outlook *outlook, const struct job *job)
{
    double step_s = outlook->paced ? outlook_step_s(outlook, elastic->fair)
                                   : job->gpus / elastic->fair / job->rate_best_per_s;
    double steps = fmax(job->steps_total - job_steps(job, view->now_ns), 0);
    return job->steps_total > 0 && step_s > 0 ? steps * step_s : INFINITY;
}

/* The means over all jobs: of the time left, and of how steps divide where it is known. */
static void set_means(struct seconds *seconds, const struct elastic *elastic,
                      const struct view *view)
{
    double work_s = 0;
    double fixed_s = 0;
    double left_s = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < elastic->count; i++) {
        job_id id = elastic->jobs[i];
        struct outlook outlook = forecaster_outlook(seconds->forecaster, view, id);
        double own_s = time_left_s(elastic, view, &outlook, &view->jobs[id]);
        if (outlook.scaled) {
            work_s += outlook.work_s;
            fixed_s += outlook.fixed_s;
        }
        if (own_s < INFINITY) {
            left_s += own_s;
            known++;
        }
    }
    seconds->left_s = known > 0 ? left_s / known : 0;
    if (fixed_s > 0)
        seconds->half_gpus = work_s / fixed_s;
}

static double clamp_to_range(double value, double mean)
{
    return fmin(fmax(value, mean / RANGE), mean * RANGE);
}

/* The probability that a job has not reached its goal. */
static double before_goal(const struct seconds *seconds, double level, double half)
{
    double deviation = fmax(INTERVAL_SCALE * half, DEVIATION_LEAST);
    return erfc((1 - seconds->goal - level) / deviation / sqrt(2)) / 2;
}

static double worth_of_finishing(const struct seconds *seconds, double left_s)
{
    if (!(left_s < INFINITY) || seconds->left_s <= 0)
        return seconds->finish;
    return seconds->finish *
           sqrt(seconds->left_s / clamp_to_range(left_s, seconds->left_s));
}

/* The mean over the coming epoch, on an equal share: epochs may be long. */
static double worth_of_learning(const struct seconds *seconds,
                                const struct elastic *elastic,
                                const struct gains_job *share, double half)
{
    double step_s = share->work_s / elastic->fair + share->fixed_s;
    double epoch_s = (double)elastic->length_ns * 1e-9;
    double steps = step_s > 0 ? epoch_s / step_s : 0;
    double now = curve_ahead_level(&share->ahead);
    double sum = 0;
    for (int i = 0; i < EPOCH_PARTS; i++) {
        double at = (i + 0.5) / EPOCH_PARTS * steps;
        double level = now - curve_ahead_drop(&share->ahead, at);
        sum += LEVEL_WORTH * level + before_goal(seconds, level, half);
    }
    return sum / EPOCH_PARTS;
}

/* Value the job by the seconds that GPUs save it; one that reports nothing is not valued. */
static void value_job(struct seconds *seconds, struct elastic *elastic,
                      const struct view *view, uint32_t index)
{
    struct gains_job *share = &elastic->shares[index];
    job_id id = elastic->jobs[index];
    const struct job *job = &view->jobs[id];
    struct outlook outlook = forecaster_outlook(seconds->forecaster, view, id);
    bool declared = uses_declared_curve(seconds, job);
    bool curved = share->ahead.family != FAMILY_FLAT;
    if (!curved && outlook.state == OUTLOOK_SILENT)
        return;
    share->second =
        worth_of_finishing(seconds, time_left_s(elastic, view, &outlook, job));
    share->second +=
        curved ? worth_of_learning(seconds, elastic, share, declared ? 0 : outlook.half)
               : UNKNOWN_WORTH;
    double fair = elastic->fair;
    double half = seconds->half_gpus > 0 ? seconds->half_gpus : fair;
    if (outlook.scaled || declared)
        half = share->fixed_s > 0 ? share->work_s / share->fixed_s : INFINITY;
    share->half_gpus = clamp_to_range(half, fair);
}

void seconds_value(struct seconds *seconds, struct elastic *elastic,
                   const struct view *view)
{
    set_means(seconds, elastic, view);
    for (uint32_t i = 0; i < elastic->count; i++)
        value_job(seconds, elastic, view, i);
}

/* --- who gets how many ---------------------------------------------------------------- */

/* The minima add up to more GPUs than there are: reduce them, from the last job on. */
static void fit_least(struct elastic *elastic, const struct view *view)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < elastic->count; i++)
        sum += elastic->shares[i].least;
    for (uint32_t i = elastic->count; i-- > 0 && sum > elastic->gpus;) {
        struct gains_job *share = &elastic->shares[i];
        uint32_t spare = share->least - view->jobs[elastic->jobs[i]].gpus_min;
        uint32_t less =
            sum - elastic->gpus < spare ? (uint32_t)(sum - elastic->gpus) : spare;
        share->least -= less;
        sum -= less;
    }
}

void seconds_share(struct elastic *elastic, const struct view *view, double horizon_s)
{
    fit_least(elastic, view);
    gains_share(elastic->shares, elastic->count, elastic->gpus, horizon_s,
                elastic->heap);
}
