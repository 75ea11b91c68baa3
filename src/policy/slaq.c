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
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "model/event.h"
#include "policy/shared/elastic.h"
#include "predict/curve.h"
#include "predict/rate.h"

#define POINTS_LEAST 4 /* reports needed to fit a curve */
#define POINTS_ENOUGH \
    12 /* reports after which a curve without a trend is not expected to get one */

enum forecast_from { FORECAST_REPORTED, FORECAST_DECLARED };
static const char *const forecast_names[] = { "reported", "declared", NULL };

/* The loss history of a job. */
struct slaq_history {
    struct curve curve;
    struct curve_fit fit;
    struct rate_model pace;
    double first; /* loss of the first report */
    bool stale;   /* new reports since the fit */
    uint32_t next_free;
};

struct slaq_policy {
    struct elastic elastic;
    double floor, young;
    int64_t horizon_ns;
    uint32_t forecast;

    uint32_t *of_job; /* by slot: 1 + index of its history; 0: none */
    struct slaq_history *histories;
    uint32_t history_used, history_room;
    uint32_t free; /* 1 + the first unused history */
};

static int slaq_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct slaq_policy *slaq = self;
    elastic_init(&slaq->elastic, view, run);
    slaq->of_job = arena_array(run, uint32_t, view->job_max);
    return 0;
}

/* --- loss histories --------------------------------------------------------------- */

static struct slaq_history *history_of(const struct slaq_policy *slaq, job_id job)
{
    uint32_t at = slaq->of_job[job];
    return at ? &slaq->histories[at - 1] : NULL;
}

static struct slaq_history *add_history(struct slaq_policy *slaq, job_id job)
{
    uint32_t at = slaq->free;
    if (at) {
        slaq->free = slaq->histories[at - 1].next_free;
    } else {
        at = ++slaq->history_used;
        slaq->histories = grow_array(slaq->histories, &slaq->history_room, at,
                                     sizeof *slaq->histories);
    }
    slaq->of_job[job] = at;
    struct slaq_history *history = &slaq->histories[at - 1];
    static const struct curve_hint is_loss = { .sign = 1 };
    curve_init(&history->curve, &is_loss);
    rate_model_init(&history->pace);
    history->stale = true;
    return history;
}

static void drop_history(struct slaq_policy *slaq, job_id job)
{
    struct slaq_history *history = history_of(slaq, job);
    if (!history)
        return;
    history->next_free = slaq->free;
    slaq->free = slaq->of_job[job];
    slaq->of_job[job] = 0;
}

static void note_progress(struct slaq_policy *slaq, const struct view *view,
                          const struct event *event)
{
    struct slaq_history *history = history_of(slaq, event->job);
    if (!history && !isfinite(event->loss))
        return;
    if (!history)
        history = add_history(slaq, event->job);
    if (event->rate_per_s > 0)
        rate_model_add(&history->pace, view->jobs[event->job].gpus_now,
                       1 / event->rate_per_s);
    if (!isfinite(event->loss) ||
        !curve_add(&history->curve, event->steps, event->loss))
        return;
    if (history->curve.count == 1)
        history->first = event->loss;
    history->stale = true;
}

static void slaq_observe(void *self, const struct view *view, const struct event *event)
{
    struct slaq_policy *slaq = self;
    elastic_observe(&slaq->elastic, view, event);
    switch (event->kind) {
    case EVENT_SUBMITTED:
    case EVENT_ADOPTED:
        drop_history(slaq, event->job); /* of the slot's previous job */
        break;
    case EVENT_PROGRESS:
        note_progress(slaq, view, event);
        break;
    case EVENT_FINISHED:
    case EVENT_FAILED:
        drop_history(slaq, event->job);
        break;
    default:
        break;
    }
}

/* --- gains ------------------------------------------------------------------------ */

static void refit_curve(struct slaq_history *history)
{
    if (history->stale && history->curve.count >= POINTS_LEAST)
        history->fit = curve_fit(&history->curve);
    history->stale = false;
}

static bool has_trend(const struct slaq_history *history)
{
    return history->curve.count >= POINTS_LEAST && history->pace.size_count > 0 &&
           history->fit.best.family != FAMILY_FLAT &&
           history->fit.best.limit < history->first;
}

/* Set the fitted curve from step 'at' on, and the steps left. */
static void set_curve(struct gains_job *share, const struct slaq_history *history,
                      const struct job *job, double at)
{
    const struct family_fit *best = &history->fit.best;
    double end = job->steps_total > 0 ? family_at(best, job->steps_total) : best->limit;
    double way = fmax(history->first - end, history->first - history->curve.low);
    double k = at - best->origin;
    share->family = best->family;
    share->height = family_at(best, at) - best->limit;
    share->rate = best->rate;
    share->a = best->a;
    share->b = 2 * best->a * k + best->b;
    share->c = (best->a * k + best->b) * k + best->c;
    share->scale = 1 / way;
    share->left = job->steps_total > 0 ? fmax(job->steps_total - at, 0) : INFINITY;
    share->work_s = history->pace.work_s;
    share->fixed_s = history->pace.fixed_s;
}

/*
 * For a job with too few reports.  Every model learns most at first: until reports show
 * otherwise, each step is assumed to bring this part of what is left.
 */
static void set_young(struct gains_job *share, const struct slaq_history *history,
                      const struct job *job, double young)
{
    bool paced = history && history->pace.size_count > 0;
    share->family = FAMILY_EXP;
    share->height = share->scale = 1;
    share->rate = -log1p(-young);
    share->left = INFINITY;
    share->work_s = paced ? history->pace.work_s : job->gpus / job->rate_best_per_s;
    share->fixed_s = paced ? history->pace.fixed_s : 0;
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
    gains_declared(share, &job->curve, at, end);
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
    struct slaq_history *history = history_of(slaq, id);
    const struct job *job = &view->jobs[id];
    double fair = slaq->elastic.fair;
    if (history)
        refit_curve(history);
    if (uses_declared_curve(slaq, job)) {
        set_declared(share, job, job_steps(job, view->now_ns));
        share->least = part_of_fair_share(fair, slaq->floor, share);
    } else if (history && has_trend(history)) {
        set_curve(share, history, job, job_steps(job, view->now_ns));
        share->least = part_of_fair_share(fair, slaq->floor, share);
    } else if (history && history->curve.count >= POINTS_ENOUGH) {
        share->least = part_of_fair_share(fair, slaq->floor, share);
    } else {
        share->least = part_of_fair_share(fair, 1, share);
        if (history ? history->curve.count < POINTS_LEAST : job->state == JOB_WAITING)
            set_young(share, history, job, slaq->young);
    }
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
    free(slaq->histories);
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
