/*
 * slaq.c - GPUs go where they improve a model most.
 *
 * Once an epoch each job is valued by what a second of its time is worth (seconds.h), by
 * the curve fitted to the losses it has reported, and GPUs go where they save the most worth
 * of time (gains.h).
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

#include "model/cluster.h"
#include "model/event.h"
#include "policy/shared/seconds.h"

enum gain_of { GAIN_SECONDS, GAIN_LOSS };
static const char *const gain_names[] = { "seconds", "loss", NULL };
enum forecast_from { FORECAST_REPORTED, FORECAST_DECLARED };
static const char *const forecast_names[] = { "reported", "declared", NULL };

struct slaq_policy {
    struct elastic elastic;
    struct seconds seconds;
    struct forecaster forecaster;
    int64_t horizon_ns;
    uint32_t gain, forecast;
};

static int slaq_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct slaq_policy *slaq = self;
    elastic_init(&slaq->elastic, view, run);
    forecaster_init(&slaq->forecaster, view->job_max, run);
    slaq->seconds.forecaster = &slaq->forecaster;
    slaq->seconds.declared = slaq->forecast == FORECAST_DECLARED;
    return 0;
}

static void slaq_observe(void *self, const struct view *view, const struct event *event)
{
    struct slaq_policy *slaq = self;
    elastic_observe(&slaq->elastic, view, event);
    forecaster_observe(&slaq->forecaster, view, event);
}

/* --- an epoch --------------------------------------------------------------------- */

/* 'horizon=0' is the paper's rule, which knows losses only. */
static bool counts_seconds(const struct slaq_policy *slaq)
{
    return slaq->gain == GAIN_SECONDS && slaq->horizon_ns > 0;
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
        elastic_start(elastic, view);
        elastic_gather(elastic, view, TYPE_NONE);
        seconds_forecast(&slaq->seconds, elastic, view);
        if (counts_seconds(slaq))
            seconds_value(&slaq->seconds, elastic, view);
        seconds_share(elastic, view, horizon_s(slaq));
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
    { "floor", FIELD_NUMBER, offsetof(struct slaq_policy, seconds.floor), "0.4",
      "share", "of an equal share that nobody falls below; 0 as in the paper", 0, 1 },
    { "gain", FIELD_CHOICE, offsetof(struct slaq_policy, gain), "seconds", NULL,
      "what GPUs are given for: time they save, or loss they take off",
      .choices = gain_names },
    { "goal", FIELD_NUMBER, offsetof(struct slaq_policy, seconds.goal), "0.9", "share",
      "of the way from the first loss to the last, to be reached soon", 0, 1 },
    { "finish", FIELD_NUMBER, offsetof(struct slaq_policy, seconds.finish), "0.05",
      NULL, "worth of a second to the end, against one to the goal", 0, 1000 },
    { "young", FIELD_NUMBER, offsetof(struct slaq_policy, seconds.young), "0.3",
      "share", "of what is left to learn that a step brings, until reports say", 0,
      0.99 },
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
