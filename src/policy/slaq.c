/*
 * slaq.c - GPUs go where they improve a model most.
 *
 * Once an epoch, for each job, over the time T to come:
 *
 *     q(a) = T / (w/a + t0)              steps it makes with a GPUs
 *     G(a) = l(k) - l(k + q(a))          what they take off its normalised loss
 *
 * with l = (f(k) - f(end)) / (first - f(end)), f fitted to the losses the job has
 * reported, and w and t0 to the steps it has made.  Each job gets its least; the other
 * GPUs go one by one to the job that gains most by one more (gains.h).  A young model
 * improves quickly, an old one hardly: most GPUs go to young ones.
 *
 * Source: Zhang, Stafman, Or, Freedman: SLAQ, SoCC 2017.  Ours:
 *
 * - 'floor': no job has less than this part of an equal share.  The paper has none, so
 *   a job that is nearly done continues on one core; its last percent comes late, and
 *   it stays long.  Most of the gain can be had without that harm;
 * - 'horizon': T.  In the paper it is the epoch, in which a job that learns slowly and
 *   long gains too little to get anything;
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

enum forecast_from { FORECAST_REPORTED, FORECAST_DECLARED };
static const char *const forecast_names[] = { "reported", "declared", NULL };

struct slaq_policy {
    struct elastic elastic;
    struct forecaster forecaster;
    double floor, young;
    int64_t horizon_ns;
    uint32_t forecast;
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
    { "floor", FIELD_NUMBER, offsetof(struct slaq_policy, floor), "0.7", "share",
      "of an equal share that nobody falls below; 0 as in the paper", 0, 1 },
    { "young", FIELD_NUMBER, offsetof(struct slaq_policy, young), "0.3", "share",
      "of what is left to learn that a step brings, until reports say", 0, 0.99 },
    { "horizon", FIELD_TIME, offsetof(struct slaq_policy, horizon_ns), "30s", NULL,
      "over how long gains are compared, an epoch at least; 0 as in the paper", 0,
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
