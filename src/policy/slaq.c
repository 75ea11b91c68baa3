/*
 * slaq.c - GPUs go where they improve a model most.
 *
 * Once an epoch, for each job, over the time T to come:
 *
 *     q(a) = T / (w/a + t0)              steps it makes with a GPUs
 *     G(a) = l(k) - l(k + q(a))          what they take off its normalised loss
 *
 * with l = (f(k) - f(end)) / (first - f(end)), f fitted to the losses the job has
 * reported, and w and t0 to the steps it has made.  Each job gets its least; the others
 * go one by one to who gains most by one more (gains.h).  A young model improves quickly,
 * an old one hardly: most GPUs go to young ones.
 *
 * Source: Zhang, Stafman, Or, Freedman: SLAQ, SoCC 2017.  Ours:
 *
 * - 'floor': nobody has less than this part of an equal share.  The paper has none, so
 *   that a job which is nearly done lives on one core; it gets its last percent late, and
 *   stays long.  Most of the gain is to be had without that harm;
 * - 'horizon': T.  In the paper it is the epoch, and who learns slowly and long gains too
 *   little in one to get anything;
 * - t0: with it a job does not profit from GPUs without end;
 * - a job with too few reports to tell is taken to learn quickly ('young'), as models do
 *   at first, and has an equal share at least; so has one that reports nothing;
 * - sizes change by a tenth at least, and where the resize pays (elastic.h).
 *
 * It knows what jobs have reported, nothing else.  With 'forecast=declared' it believes
 * what a job has said beforehand of its curve and its steps: in a simulation that is the
 * truth, which shows what the best of forecasts would bring.
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

#define POINTS_LEAST 4   /* reports from which a curve says something            */
#define POINTS_ENOUGH 12 /* and from which one without a trend will not get better */

enum forecast_from { FORECAST_REPORTED, FORECAST_DECLARED };
static const char *const forecast_names[] = { "reported", "declared", NULL };

/* What is remembered of a job that reports losses. */
struct pupil {
    struct curve curve;
    struct curve_fit fit;
    struct rate_model pace;
    double first; /* loss it began with */
    bool stale;   /* has reported since the fit */
    uint32_t next_free;
};

struct slaq {
    struct elastic elastic;
    double floor, young;
    int64_t horizon_ns;
    uint32_t forecast;

    uint32_t *of_job; /* by slot: 1 + its pupil; 0: none */
    struct pupil *pupils;
    uint32_t pupil_used, pupil_room;
    uint32_t free; /* 1 + the first that is unused */
};

static int slaq_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct slaq *slaq = self;
    elastic_init(&slaq->elastic, view, run);
    slaq->of_job = arena_array(run, uint32_t, view->job_max);
    return 0;
}

/* --- what is reported ---------------------------------------------------------------- */

static struct pupil *pupil_of(const struct slaq *slaq, job_id job)
{
    uint32_t at = slaq->of_job[job];
    return at ? &slaq->pupils[at - 1] : NULL;
}

static struct pupil *enrol(struct slaq *slaq, job_id job)
{
    uint32_t at = slaq->free;
    if (at) {
        slaq->free = slaq->pupils[at - 1].next_free;
    } else {
        at = ++slaq->pupil_used;
        slaq->pupils = grow(slaq->pupils, &slaq->pupil_room, at, sizeof *slaq->pupils);
    }
    slaq->of_job[job] = at;
    struct pupil *pupil = &slaq->pupils[at - 1];
    static const struct curve_hint is_loss = { .sign = 1 };
    curve_init(&pupil->curve, &is_loss);
    rate_model_init(&pupil->pace);
    pupil->stale = true;
    return pupil;
}

static void dismiss(struct slaq *slaq, job_id job)
{
    struct pupil *pupil = pupil_of(slaq, job);
    if (!pupil)
        return;
    pupil->next_free = slaq->free;
    slaq->free = slaq->of_job[job];
    slaq->of_job[job] = 0;
}

static void hear(struct slaq *slaq, const struct view *view, const struct event *event)
{
    struct pupil *pupil = pupil_of(slaq, event->job);
    if (!pupil && !isfinite(event->loss))
        return;
    if (!pupil)
        pupil = enrol(slaq, event->job);
    if (event->rate_per_s > 0)
        rate_model_add(&pupil->pace, view->jobs[event->job].gpus_now,
                       1 / event->rate_per_s);
    if (!isfinite(event->loss) || !curve_add(&pupil->curve, event->steps, event->loss))
        return;
    if (pupil->curve.count == 1)
        pupil->first = event->loss;
    pupil->stale = true;
}

static void slaq_observe(void *self, const struct view *view, const struct event *event)
{
    struct slaq *slaq = self;
    elastic_observe(&slaq->elastic, view, event);
    switch (event->kind) {
    case EVENT_SUBMITTED:
    case EVENT_ADOPTED:
        dismiss(slaq, event->job); /* another had the slot */
        break;
    case EVENT_PROGRESS:
        hear(slaq, view, event);
        break;
    case EVENT_FINISHED:
    case EVENT_FAILED:
        dismiss(slaq, event->job);
        break;
    default:
        break;
    }
}

/* --- what jobs are worth ------------------------------------------------------------- */

static void refit(struct pupil *pupil)
{
    if (pupil->stale && pupil->curve.count >= POINTS_LEAST)
        pupil->fit = curve_fit(&pupil->curve);
    pupil->stale = false;
}

static bool is_known(const struct pupil *pupil)
{
    return pupil->curve.count >= POINTS_LEAST && pupil->pace.size_count > 0 &&
           pupil->fit.best.family != FAMILY_FLAT &&
           pupil->fit.best.limit < pupil->first;
}

/* The curve from step 'at' on, and what is left of it. */
static void set_curve(struct gains_job *share, const struct pupil *pupil,
                      const struct job *job, double at)
{
    const struct family_fit *best = &pupil->fit.best;
    double end = job->steps_total > 0 ? family_at(best, job->steps_total) : best->limit;
    double way = fmax(pupil->first - end, pupil->first - pupil->curve.low);
    double k = at - best->origin;
    share->family = best->family;
    share->height = family_at(best, at) - best->limit;
    share->rate = best->rate;
    share->a = best->a;
    share->b = 2 * best->a * k + best->b;
    share->c = (best->a * k + best->b) * k + best->c;
    share->scale = 1 / way;
    share->left = job->steps_total > 0 ? fmax(job->steps_total - at, 0) : INFINITY;
    share->work_s = pupil->pace.work_s;
    share->fixed_s = pupil->pace.fixed_s;
}

/*
 * Too young to tell.  Every model learns most at first: until its reports say otherwise,
 * each step is taken to bring it this part of what is left.
 */
static void set_young(struct gains_job *share, const struct pupil *pupil,
                      const struct job *job, double young)
{
    bool paced = pupil && pupil->pace.size_count > 0;
    share->family = FAMILY_EXP;
    share->height = share->scale = 1;
    share->rate = -log1p(-young);
    share->left = INFINITY;
    share->work_s = paced ? pupil->pace.work_s : job->gpus / job->rate_best_per_s;
    share->fixed_s = paced ? pupil->pace.fixed_s : 0;
}

/* It has said beforehand how it will learn, and we are to believe it. */
static bool declares(const struct slaq *slaq, const struct job *job)
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

/* At least that part of an equal share, within what it can have. */
static uint32_t part_of(double fair, double part, const struct gains_job *share)
{
    return (uint32_t)fmin(fmax(floor(fair * part), share->least), share->most);
}

static void judge(struct slaq *slaq, const struct view *view, uint32_t index)
{
    struct gains_job *share = &slaq->elastic.shares[index];
    job_id id = slaq->elastic.jobs[index];
    struct pupil *pupil = pupil_of(slaq, id);
    const struct job *job = &view->jobs[id];
    double fair = slaq->elastic.fair;
    if (pupil)
        refit(pupil);
    if (declares(slaq, job)) {
        set_declared(share, job, job_steps(job, view->now_ns));
        share->least = part_of(fair, slaq->floor, share);
    } else if (pupil && is_known(pupil)) {
        set_curve(share, pupil, job, job_steps(job, view->now_ns));
        share->least = part_of(fair, slaq->floor, share);
    } else if (pupil && pupil->curve.count >= POINTS_ENOUGH) {
        share->least = part_of(fair, slaq->floor, share);
    } else {
        share->least = part_of(fair, 1, share);
        if (pupil ? pupil->curve.count < POINTS_LEAST : job->state == JOB_WAITING)
            set_young(share, pupil, job, slaq->young);
    }
}

/* More than there is was to be had at least: take it from those with most of it. */
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

/* Over how long gains are compared: an epoch at least. */
static double horizon_s(const struct slaq *slaq)
{
    int64_t ns = slaq->elastic.length_ns;
    return (double)(ns > slaq->horizon_ns ? ns : slaq->horizon_ns) * 1e-9;
}

static int slaq_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct slaq *slaq = self;
    struct elastic *elastic = &slaq->elastic;
    if (elastic_begins(elastic, view)) {
        elastic_gather(elastic, view);
        for (uint32_t i = 0; i < elastic->count; i++)
            judge(slaq, view, i);
        fit_least(elastic, view);
        gains_share(elastic->shares, elastic->count, elastic->gpus, horizon_s(slaq),
                    elastic->heap);
        elastic_apply(elastic, view, plan);
    }
    elastic_between(elastic, view, plan);
    return 0;
}

static void slaq_fini(void *self)
{
    struct slaq *slaq = self;
    elastic_release(&slaq->elastic);
    free(slaq->pupils);
}

static void slaq_explain(const void *self, const struct view *view, job_id job,
                         struct reasons *reasons)
{
    const struct slaq *slaq = self;
    elastic_explain(&slaq->elastic, view, job, reasons);
}

static const struct field slaq_params[] = {
    ELASTIC_PARAMS(struct slaq, elastic),
    { "floor", FIELD_NUMBER, offsetof(struct slaq, floor), "0.7", "share",
      "of an equal share that nobody falls below; 0 as in the paper", 0, 1 },
    { "young", FIELD_NUMBER, offsetof(struct slaq, young), "0.3", "share",
      "of what is left to learn that a step brings, until reports say", 0, 0.99 },
    { "horizon", FIELD_TIME, offsetof(struct slaq, horizon_ns), "30s", NULL,
      "over how long gains are compared, an epoch at least; 0 as in the paper", 0,
      1e9 },
    { "forecast", FIELD_CHOICE, offsetof(struct slaq, forecast), "reported", NULL,
      "curves as fitted to reports, or as declared by jobs that do so",
      .choices = forecast_names },
    { NULL },
};

const struct policy policy_slaq = {
    .name = "slaq",
    .brief = "elastic jobs: GPUs go where they improve a model most",
    .source = "Zhang, Stafman, Or, Freedman: SLAQ, SoCC 2017",
    .params = slaq_params,
    .self_size = sizeof(struct slaq),
    .init = slaq_init,
    .observe = slaq_observe,
    .decide = slaq_decide,
    .explain = slaq_explain,
    .fini = slaq_fini,
};
