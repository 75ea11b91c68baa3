/* forecaster.c - what jobs will learn and how fast, from what they report. */
#include "predict/forecaster.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/grow.h"
#include "model/event.h"

void forecaster_init(struct forecaster *forecaster, uint32_t job_max, struct arena *run)
{
    *forecaster = (struct forecaster){ .of_job = arena_array(run, uint32_t, job_max) };
}

void forecaster_release(struct forecaster *forecaster)
{
    free(forecaster->jobs);
    forecaster->jobs = NULL;
}

void forecaster_inherit(struct forecaster *forecaster, const struct view *view,
                        const struct forecaster *from)
{
    for (job_id id = 0; id < view->job_max; id++) {
        if (view->jobs[id].state == JOB_FREE || from->of_job[id] == 0)
            continue;
        uint32_t at = ++forecaster->used;
        forecaster->jobs = grow_array(forecaster->jobs, &forecaster->room, at,
                                      sizeof *forecaster->jobs);
        forecaster->jobs[at - 1] = from->jobs[from->of_job[id] - 1];
        forecaster->jobs[at - 1].inherited = true;
        forecaster->of_job[id] = at;
    }
}

/* --- reports ------------------------------------------------------------------------- */

static struct forecaster_job *find_reports(const struct forecaster *forecaster,
                                           job_id job)
{
    uint32_t at = forecaster->of_job[job];
    return at ? &forecaster->jobs[at - 1] : NULL;
}

static struct forecaster_job *add_reports(struct forecaster *forecaster, job_id job)
{
    uint32_t at = forecaster->free;
    if (at) {
        forecaster->free = forecaster->jobs[at - 1].next_free;
    } else {
        at = ++forecaster->used;
        forecaster->jobs = grow_array(forecaster->jobs, &forecaster->room, at,
                                      sizeof *forecaster->jobs);
    }
    forecaster->of_job[job] = at;
    struct forecaster_job *reports = &forecaster->jobs[at - 1];
    static const struct curve_hint is_loss = { .sign = 1 };
    curve_init(&reports->curve, &is_loss);
    rate_model_init(&reports->pace);
    reports->stale = true;
    reports->inherited = false;
    return reports;
}

static void drop_reports(struct forecaster *forecaster, job_id job)
{
    struct forecaster_job *reports = find_reports(forecaster, job);
    if (!reports)
        return;
    reports->next_free = forecaster->free;
    forecaster->free = forecaster->of_job[job];
    forecaster->of_job[job] = 0;
}

static void note_progress(struct forecaster *forecaster, const struct view *view,
                          const struct event *event)
{
    struct forecaster_job *reports = find_reports(forecaster, event->job);
    if (!reports && !isfinite(event->loss))
        return;
    if (!reports)
        reports = add_reports(forecaster, event->job);
    if (event->rate_per_s > 0)
        rate_model_add(&reports->pace, view->jobs[event->job].gpus_now,
                       1 / event->rate_per_s);
    if (!isfinite(event->loss) ||
        !curve_add(&reports->curve, event->steps, event->loss))
        return;
    if (reports->curve.count == 1)
        reports->first = event->loss;
    reports->stale = true;
}

/* Reports that were inherited are those of the job that is adopted. */
static bool begin_inherited(struct forecaster *forecaster, job_id job)
{
    struct forecaster_job *reports = find_reports(forecaster, job);
    bool inherited = reports && reports->inherited;
    if (inherited)
        reports->inherited = false;
    return inherited;
}

void forecaster_observe(struct forecaster *forecaster, const struct view *view,
                        const struct event *event)
{
    if (event->kind == EVENT_ADOPTED && begin_inherited(forecaster, event->job))
        return;
    switch (event->kind) {
    case EVENT_SUBMITTED:
    case EVENT_ADOPTED: /* of the slot's previous job */
    case EVENT_FINISHED:
    case EVENT_FAILED:
        drop_reports(forecaster, event->job);
        break;
    case EVENT_PROGRESS:
        note_progress(forecaster, view, event);
        break;
    default:
        break;
    }
}

/* --- outlooks ------------------------------------------------------------------------- */

static void refit_curve(struct forecaster_job *reports)
{
    if (reports->stale && reports->curve.count >= FORECASTER_POINTS_LEAST)
        reports->fit = curve_fit(&reports->curve);
    reports->stale = false;
}

static enum outlook_state find_state(const struct forecaster_job *reports)
{
    if (reports->curve.count < FORECASTER_POINTS_LEAST)
        return OUTLOOK_YOUNG;
    if (reports->pace.size_count > 0 && reports->fit.best.family != FAMILY_FLAT &&
        reports->fit.best.limit < reports->first)
        return OUTLOOK_FITTED;
    return reports->curve.count >= FORECASTER_POINTS_ENOUGH ? OUTLOOK_FLAT
                                                            : OUTLOOK_UNSETTLED;
}

struct outlook forecaster_outlook(struct forecaster *forecaster,
                                  const struct view *view, job_id id)
{
    const struct job *job = &view->jobs[id];
    struct forecaster_job *reports = find_reports(forecaster, id);
    struct outlook outlook = { .state = OUTLOOK_SILENT };
    if (!reports)
        return outlook;
    refit_curve(reports);
    outlook.state = find_state(reports);
    outlook.paced = reports->pace.size_count > 0;
    outlook.scaled = reports->pace.size_count > 1;
    outlook.work_s = reports->pace.work_s;
    outlook.fixed_s = reports->pace.fixed_s;
    if (outlook.state != OUTLOOK_FITTED)
        return outlook;
    double at = job_steps(job, view->now_ns);
    double end = job->steps_total > 0 ? job->steps_total : INFINITY;
    outlook.ahead =
        curve_ahead_fitted(&reports->fit, reports->first, reports->curve.low, at, end);
    struct curve_value value = curve_at(&reports->fit, end < INFINITY ? end : 2 * at);
    outlook.half = (value.high - value.low) / 2 * outlook.ahead.scale;
    return outlook;
}

double outlook_step_s(const struct outlook *outlook, double gpus)
{
    return outlook->work_s / gpus + outlook->fixed_s;
}

struct outlook_gain outlook_gain(const struct outlook *outlook, double seconds,
                                 double gpus)
{
    if (outlook->state != OUTLOOK_FITTED || !outlook->paced || gpus <= 0)
        return (struct outlook_gain){ 0 };
    double steps = seconds / outlook_step_s(outlook, gpus);
    double value = curve_ahead_drop(&outlook->ahead, steps);
    double level = curve_ahead_level(&outlook->ahead);
    /* The level is uncertain by 'half'; the drop is the same share of it. */
    double half = level > 0 ? fmin(value / level, 1) * outlook->half : 0;
    return (struct outlook_gain){ value, fmax(value - half, 0), value + half };
}
