/*
 * slaq.c - GPUs go where they improve a model most.
 *
 * Once an epoch each job is valued by l, its loss between 1 at first and 0 at its end, by
 * the curve fitted to the losses it has reported (forecaster.h).  A second that a job is
 * ahead of time is worth
 *
 *     v = P(before its goal) + l/2 + finish sqrt(mean time left / its time left)
 *
 * since a loss of l lasts a second less, the goal, nine tenths of the way, is reached a
 * second sooner, and so is the end.  GPUs go where they save the most worth of time: each
 * job has sqrt(v w/t0) of them, if a step takes w/a + t0 on a GPUs (gains.h).  A job whose
 * forecast is uncertain may be on either side of its goal, and P, a probability, is between
 * 0 and 1: the interval keeps a job from getting little because of a poor forecast.
 *
 * The paper's rule, 'gain=loss', counts what GPUs take off the loss in the time T to come:
 *
 *     q(a) = T / (w/a + t0)              steps it makes with a GPUs
 *     G(a) = l(k) - l(k + q(a))          what they take off its loss
 *
 * Source: Zhang, Stafman, Or, Freedman: SLAQ, SoCC 2017.  Ours:
 *
 * - seconds: the loss that comes off soonest is not the time that is saved.  GPUs that are
 *   piled up on few jobs save little, since t0 is not divided; and a job that is nearly done
 *   continues on one core, its last percent comes late, and it stays long;
 * - 'floor': no job has less than this part of an equal share;
 * - 'horizon': T, with 'gain=loss'.  In the paper it is the epoch, in which a job that
 *   learns slowly and long gains too little to get anything.  0 is the paper's rule;
 * - t0: with it a job does not profit from ever more GPUs;
 * - a job with too few reports is assumed to learn quickly ('young'), as models do at
 *   first, and has at least an equal share; so has a job that reports nothing;
 * - sizes change by a tenth at least, and where the resize pays (elastic.h).
 *
 * It uses what jobs have reported, nothing else.  With 'forecast=declared' it trusts
 * the curve and the steps that a job has declared: in a simulation that is the truth,
 * which shows what perfect forecasts would bring.
 */
#include "policy/policy.h"

#include <math.h>

#include "model/event.h"
#include "policy/shared/elastic.h"
#include "predict/forecaster.h"

#define LEVEL_WORTH 0.5 /* of a second at a loss of 1, against one before the goal    */
#define UNKNOWN_WORTH \
    0.4 /* of a second of a job whose reports show no trend            */
#define INTERVAL_SCALE \
    7                 /* deviations in half an interval: far ahead it is too narrow */
#define EPOCH_PARTS 4 /* in which the worth of a second is evaluated */
#define DEVIATION_LEAST 0.01
#define RANGE 16 /* times and parts of the mean beyond which nothing is believed */

enum gain_of { GAIN_SECONDS, GAIN_LOSS };
static const char *const gain_names[] = { "seconds", "loss", NULL };
enum forecast_from { FORECAST_REPORTED, FORECAST_DECLARED };
static const char *const forecast_names[] = { "reported", "declared", NULL };

struct slaq_policy {
    struct elastic elastic;
    struct forecaster forecaster;
    double floor, young, goal, finish;
    int64_t horizon_ns;
    uint32_t gain, forecast;
    double half_gpus; /* of gains.h: the mean, once it is known of a job */
    double left_s;    /* time left on an equal share: the mean */
};

static int slaq_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct slaq_policy *slaq = self;
    elastic_init(&slaq->elastic, view, run);
    forecaster_init(&slaq->forecaster, view->job_max, run);
    return 0;
}

static void slaq_observe(void *self, const struct view *view, const struct event *event)
{
    struct slaq_policy *slaq = self;
    elastic_observe(&slaq->elastic, view, event);
    forecaster_observe(&slaq->forecaster, view, event);
}

/* --- gains ------------------------------------------------------------------------ */

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
static bool uses_declared_curve(const struct slaq_policy *slaq, const struct job *job)
{
    return slaq->forecast == FORECAST_DECLARED && job->curve.family != LEARNING_NONE &&
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

static void set_gains(struct slaq_policy *slaq, const struct view *view, uint32_t index)
{
    struct gains_job *share = &slaq->elastic.shares[index];
    job_id id = slaq->elastic.jobs[index];
    const struct job *job = &view->jobs[id];
    struct outlook outlook = forecaster_outlook(&slaq->forecaster, view, id);
    double part = slaq->floor;
    if (uses_declared_curve(slaq, job)) {
        set_declared(share, job, job_steps(job, view->now_ns));
    } else if (outlook.state == OUTLOOK_FITTED) {
        share->ahead = outlook.ahead;
        share->work_s = outlook.work_s;
        share->fixed_s = outlook.fixed_s;
    } else if (outlook.state != OUTLOOK_FLAT) {
        part = 1;
        if (outlook.state == OUTLOOK_YOUNG ||
            (outlook.state == OUTLOOK_SILENT && job->state == JOB_WAITING))
            set_young(share, &outlook, job, slaq->young);
    }
    share->least = part_of_fair_share(slaq->elastic.fair, part, share);
}

/* --- seconds ---------------------------------------------------------------------- */

/* 'horizon=0' is the paper's rule, which knows losses only. */
static bool counts_seconds(const struct slaq_policy *slaq)
{
    return slaq->gain == GAIN_SECONDS && slaq->horizon_ns > 0;
}

/* The time a job has left on an equal share; INFINITY: not known. */
static double time_left_s(const struct slaq_policy *slaq, const struct view *view,
                          const struct outlook *outlook, const struct job *job)
{
    double step_s = outlook->paced
                        ? outlook_step_s(outlook, slaq->elastic.fair)
                        : job->gpus / slaq->elastic.fair / job->rate_best_per_s;
    double steps = fmax(job->steps_total - job_steps(job, view->now_ns), 0);
    return job->steps_total > 0 && step_s > 0 ? steps * step_s : INFINITY;
}

/* The means over all jobs: of the time left, and of how steps divide where it is known. */
static void set_means(struct slaq_policy *slaq, const struct view *view)
{
    const struct elastic *elastic = &slaq->elastic;
    double work_s = 0;
    double fixed_s = 0;
    double left_s = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < elastic->count; i++) {
        job_id id = elastic->jobs[i];
        struct outlook outlook = forecaster_outlook(&slaq->forecaster, view, id);
        double own_s = time_left_s(slaq, view, &outlook, &view->jobs[id]);
        if (outlook.scaled) {
            work_s += outlook.work_s;
            fixed_s += outlook.fixed_s;
        }
        if (own_s < INFINITY) {
            left_s += own_s;
            known++;
        }
    }
    slaq->left_s = known > 0 ? left_s / known : 0;
    if (fixed_s > 0)
        slaq->half_gpus = work_s / fixed_s;
}

static double clamp_to_range(double value, double mean)
{
    return fmin(fmax(value, mean / RANGE), mean * RANGE);
}

/* The probability that a job has not reached its goal. */
static double before_goal(const struct slaq_policy *slaq, double level, double half)
{
    double deviation = fmax(INTERVAL_SCALE * half, DEVIATION_LEAST);
    return erfc((1 - slaq->goal - level) / deviation / sqrt(2)) / 2;
}

static double worth_of_finishing(const struct slaq_policy *slaq, double left_s)
{
    if (!(left_s < INFINITY) || slaq->left_s <= 0)
        return slaq->finish;
    return slaq->finish * sqrt(slaq->left_s / clamp_to_range(left_s, slaq->left_s));
}

/* The mean over the coming epoch, on an equal share: epochs may be long. */
static double worth_of_learning(const struct slaq_policy *slaq,
                                const struct gains_job *share, double half)
{
    double step_s = share->work_s / slaq->elastic.fair + share->fixed_s;
    double epoch_s = (double)slaq->elastic.length_ns * 1e-9;
    double steps = step_s > 0 ? epoch_s / step_s : 0;
    double now = curve_ahead_level(&share->ahead);
    double sum = 0;
    for (int i = 0; i < EPOCH_PARTS; i++) {
        double at = (i + 0.5) / EPOCH_PARTS * steps;
        double level = now - curve_ahead_drop(&share->ahead, at);
        sum += LEVEL_WORTH * level + before_goal(slaq, level, half);
    }
    return sum / EPOCH_PARTS;
}

/* Value the job by the seconds that GPUs save it; one that reports nothing is not valued. */
static void set_seconds(const struct slaq_policy *slaq, const struct view *view,
                        uint32_t index, struct forecaster *forecaster)
{
    struct gains_job *share = &slaq->elastic.shares[index];
    job_id id = slaq->elastic.jobs[index];
    const struct job *job = &view->jobs[id];
    struct outlook outlook = forecaster_outlook(forecaster, view, id);
    bool declared = uses_declared_curve(slaq, job);
    bool curved = share->ahead.family != FAMILY_FLAT;
    if (!curved && outlook.state == OUTLOOK_SILENT)
        return;
    share->second = worth_of_finishing(slaq, time_left_s(slaq, view, &outlook, job));
    share->second += curved
                         ? worth_of_learning(slaq, share, declared ? 0 : outlook.half)
                         : UNKNOWN_WORTH;
    double fair = slaq->elastic.fair;
    double half = slaq->half_gpus > 0 ? slaq->half_gpus : fair;
    if (outlook.scaled || declared)
        half = share->fixed_s > 0 ? share->work_s / share->fixed_s : INFINITY;
    share->half_gpus = clamp_to_range(half, fair);
}

static void value_seconds(struct slaq_policy *slaq, const struct view *view)
{
    set_means(slaq, view);
    for (uint32_t i = 0; i < slaq->elastic.count; i++)
        set_seconds(slaq, view, i, &slaq->forecaster);
}

/* --- an epoch --------------------------------------------------------------------- */

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

/* Time over which gains are compared: at least an epoch. */
static double horizon_s(const struct slaq_policy *slaq)
{
    int64_t ns = slaq->elastic.length_ns;
    return (double)(ns > slaq->horizon_ns ? ns : slaq->horizon_ns) * 1e-9;
}

static int slaq_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct slaq_policy *slaq = self;
    struct elastic *elastic = &slaq->elastic;
    if (elastic_begins(elastic, view)) {
        elastic_gather(elastic, view);
        for (uint32_t i = 0; i < elastic->count; i++)
            set_gains(slaq, view, i);
        if (counts_seconds(slaq))
            value_seconds(slaq, view);
        fit_least(elastic, view);
        gains_share(elastic->shares, elastic->count, elastic->gpus, horizon_s(slaq),
                    elastic->heap);
        elastic_apply(elastic, view, plan);
    }
    elastic_between(elastic, view, plan);
    return 0;
}

static int64_t slaq_wake_ns(const void *self, const struct view *view)
{
    const struct slaq_policy *slaq = self;
    return elastic_wake_ns(&slaq->elastic, view);
}

static void slaq_fini(void *self)
{
    struct slaq_policy *slaq = self;
    elastic_release(&slaq->elastic);
    forecaster_release(&slaq->forecaster);
}

static void slaq_explain(const void *self, const struct view *view, job_id job,
                         struct reasons *reasons)
{
    const struct slaq_policy *slaq = self;
    elastic_explain(&slaq->elastic, view, job, reasons);
}

static const struct field slaq_params[] = {
    ELASTIC_PARAMS(struct slaq_policy, elastic),
    { "floor", FIELD_NUMBER, offsetof(struct slaq_policy, floor), "0.4", "share",
      "of an equal share that nobody falls below; 0 as in the paper", 0, 1 },
    { "gain", FIELD_CHOICE, offsetof(struct slaq_policy, gain), "seconds", NULL,
      "what GPUs are given for: time they save, or loss they take off",
      .choices = gain_names },
    { "goal", FIELD_NUMBER, offsetof(struct slaq_policy, goal), "0.9", "share",
      "of the way from the first loss to the last, to be reached soon", 0, 1 },
    { "finish", FIELD_NUMBER, offsetof(struct slaq_policy, finish), "0.05", NULL,
      "worth of a second to the end, against one to the goal", 0, 1000 },
    { "young", FIELD_NUMBER, offsetof(struct slaq_policy, young), "0.3", "share",
      "of what is left to learn that a step brings, until reports say", 0, 0.99 },
    { "horizon", FIELD_TIME, offsetof(struct slaq_policy, horizon_ns), "30s", NULL,
      "with gain=loss: over how long; 0: one epoch, and gain=loss, as in the paper", 0,
      1e9 },
    { "forecast", FIELD_CHOICE, offsetof(struct slaq_policy, forecast), "reported",
      NULL, "curves as fitted to reports, or as declared by jobs that do so",
      .choices = forecast_names },
    { NULL },
};

const struct policy policy_slaq = {
    .name = "slaq",
    .brief = "elastic jobs: GPUs go where they improve a model most",
    .source = "Zhang, Stafman, Or, Freedman: SLAQ, SoCC 2017",
    .params = slaq_params,
    .self_size = sizeof(struct slaq_policy),
    .init = slaq_init,
    .observe = slaq_observe,
    .decide = slaq_decide,
    .wake_ns = slaq_wake_ns,
    .explain = slaq_explain,
    .fini = slaq_fini,
};
