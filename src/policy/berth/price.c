/*
 * price.c - what stopping a job costs.
 *
 *     waste(j) = GPUs x (pause + load + lost)                                 GPU-seconds
 *     price(j) = waste(j) x (1 + preemptions so far)
 *     lost(j)  = chance that it cannot save in its grace period x work since it last saved
 *
 * The test of a swap counts the waste; trial jobs, aged jobs, moves and resizes the price.
 * A job that was preempted often is dear, not untouchable.  A job that cannot save in time is
 * killed and starts again from its last checkpoint: without 'lost', jobs that never save kill
 * each other for ever.  The chance is 1 for a job that lost work when it was last stopped, and
 * for a real job that neither declared how it saves nor reported a checkpoint.
 */
#include "policy/berth/berth_internal.h"

#include <math.h>

#define RESTART_S \
    30 /* until it is where it was; assumed where nothing is known of it */

/*
 * None while its checkpoint is expected within the grace period, certain from twice as long on:
 * estimates err, and people give a grace period that has sufficed.
 */
static double chance_of_loss(double pause_s, double grace_s)
{
    if (pause_s <= grace_s)
        return 0;
    return grace_s > 0 ? fmin(log2(pause_s / grace_s), 1) : 1;
}

/* Time since it began to make steps, or last saved by itself, as it reported or declared. */
static double unsaved_s(const struct view *view, const struct job *job)
{
    int64_t ran_ns = view->now_ns - job->since_ns - job->load_ns;
    if (job->state == JOB_LOADING || ran_ns <= 0)
        return 0;
    if (job->ckpt_ns > 0)
        ran_ns %= job->ckpt_ns;
    double ran_s = (double)ran_ns * 1e-9;
    double steps = job_steps(job, view->now_ns) - job->steps_saved;
    if (job->steps_saved > 0 && job->rate_per_s > 0)
        ran_s = fmin(ran_s, fmax(steps, 0) / job->rate_per_s);
    return ran_s;
}

static double lost_s(const struct view *view, job_id id, double pause_s)
{
    const struct job *job = &view->jobs[id];
    double chance =
        job->loses_work ? 1 : chance_of_loss(pause_s, (double)job->grace_ns * 1e-9);
    double work_s = chance > 0 ? chance * unsaved_s(view, job) : 0;
    return job->loses_work && job->load_ns == 0 ? work_s + RESTART_S : work_s;
}

double price_lost_s(const void *self, const struct view *view, job_id id)
{
    const struct berth_policy *berth = self;
    return lost_s(view, id, cost_model_pause_s(&berth->cost_test.model, view, id));
}

double price_stop_s(const struct berth_policy *berth, const struct view *view,
                    job_id id)
{
    const struct cost_model *model = &berth->cost_test.model;
    double pause_s = cost_model_pause_s(model, view, id);
    return pause_s + cost_model_load_s(model, view, id) + lost_s(view, id, pause_s);
}

/* Its GPUs, or as many as its part of the cluster's CPUs or memory corresponds to. */
static double width_gpus(const struct berth_policy *berth, const struct job *job)
{
    double gpus = job->gpus_now;
    double by_cpus = job->cpu_milli * berth->gpus_per_cpu_milli;
    double by_memory = job->mem_mib * berth->gpus_per_mib;
    gpus = by_cpus > gpus ? by_cpus : gpus;
    return by_memory > gpus ? by_memory : gpus;
}

/* Where all that is to stop has done so after 'pause_s', which may be longer than its own. */
static double waste_gpu_s(const struct berth_policy *berth, const struct view *view,
                          job_id id, double pause_s, double own_pause_s)
{
    double load_s = cost_model_load_s(&berth->cost_test.model, view, id);
    return width_gpus(berth, &view->jobs[id]) *
           (pause_s + load_s + lost_s(view, id, own_pause_s));
}

double price_waste_gpu_s(const void *self, const struct view *view, job_id id,
                         double pause_s)
{
    const struct berth_policy *berth = self;
    double own_pause_s = cost_model_pause_s(&berth->cost_test.model, view, id);
    return waste_gpu_s(berth, view, id, pause_s, own_pause_s);
}

double price_of_stopping(const struct berth_policy *berth, const struct view *view,
                         job_id id)
{
    double pause_s = cost_model_pause_s(&berth->cost_test.model, view, id);
    return waste_gpu_s(berth, view, id, pause_s, pause_s) *
           (1 + view->jobs[id].preemptions);
}
