/* stop_costs.c - how long a job takes to save a checkpoint, and to resume. */
#include "predict/stop_costs.h"

#include <string.h>

#include "base/arena.h"
#include "model/event.h"

/* A checkpoint: weights and optimiser are about four times the gradients. */
#define CKPT_PER_GRADIENT 4.0
#define DISK_BYTES_PER_S 1e9
#define DRAIN_S 5.0     /* until the step is over and all ranks agree to stop */
#define START_UP_S 20.0 /* container, framework, communicator */

static double ns_to_s(int64_t ns)
{
    return (double)ns * 1e-9;
}

static struct stop_costs_measured *kind_of(const struct stop_costs *costs,
                                           const struct job *job)
{
    return job->kind < STOP_COSTS_KINDS_MAX ? &costs->kinds[job->kind] : NULL;
}

static double average_with(double average, bool has, double sample)
{
    return has ? (average + sample) / 2 : sample;
}

static void learn_pause(struct stop_costs_measured *measured, double pause_s)
{
    measured->pause_s = average_with(measured->pause_s, measured->has_pause, pause_s);
    measured->has_pause = true;
}

static void learn_load(struct stop_costs_measured *measured, double load_s)
{
    measured->load_s = average_with(measured->load_s, measured->has_load, load_s);
    measured->has_load = true;
}

void stop_costs_observe(struct stop_costs *costs, const struct view *view,
                        const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    struct stop_costs_measured *kind = kind_of(costs, job);
    if (event->kind == EVENT_STOPPED && event->clean) {
        double pause_s = ns_to_s(view->now_ns - job->recalled_ns);
        learn_pause(&costs->all_jobs, pause_s);
        if (kind)
            learn_pause(kind, pause_s);
    } else if (event->kind == EVENT_LOADED) {
        double load_s = ns_to_s(view->now_ns - job->since_ns);
        learn_load(&costs->all_jobs, load_s);
        if (kind)
            learn_load(kind, load_s);
    }
}

static double ckpt_s(const struct job *job)
{
    return CKPT_PER_GRADIENT * (double)job->bytes_per_step / DISK_BYTES_PER_S;
}

double stop_costs_pause_s(const struct stop_costs *costs, const struct view *view,
                          job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct stop_costs_measured *kind = kind_of(costs, job);
    if (job->state == JOB_LOADING)
        return 0; /* nothing to save yet */
    if (job->pause_ns > 0)
        return ns_to_s(job->pause_ns);
    if (kind && kind->has_pause)
        return kind->pause_s;
    return job->bytes_per_step ? DRAIN_S + ckpt_s(job) : costs->all_jobs.pause_s;
}

double stop_costs_load_s(const struct stop_costs *costs, const struct view *view,
                         job_id id)
{
    const struct job *job = &view->jobs[id];
    const struct stop_costs_measured *kind = kind_of(costs, job);
    if (job->load_ns > 0)
        return ns_to_s(job->load_ns);
    if (kind && kind->has_load)
        return kind->load_s;
    return job->bytes_per_step ? START_UP_S + ckpt_s(job) : costs->all_jobs.load_s;
}

void stop_costs_inherit(struct stop_costs *costs, const struct stop_costs *from)
{
    memcpy(costs->kinds, from->kinds, STOP_COSTS_KINDS_MAX * sizeof *costs->kinds);
    costs->all_jobs = from->all_jobs;
}

void stop_costs_init(struct stop_costs *costs, struct arena *run)
{
    costs->kinds = arena_array(run, struct stop_costs_measured, STOP_COSTS_KINDS_MAX);
}
