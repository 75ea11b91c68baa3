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
 * each other for ever.
 */
#include "policy/berth/berth_internal.h"

#include <math.h>

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

/* Time since it began to make steps, or last saved by itself. */
static double unsaved_s(const struct view *view, const struct job *job)
{
    int64_t ran_ns = view->now_ns - job->since_ns - job->load_ns;
    if (job->state == JOB_LOADING || ran_ns <= 0)
        return 0;
    if (job->ckpt_ns > 0)
        ran_ns %= job->ckpt_ns;
    return (double)ran_ns * 1e-9;
}

double price_lost_s(const void *self, const struct view *view, job_id id)
{
    const struct berth_policy *berth = self;
    const struct job *job = &view->jobs[id];
    double pause_s = cost_model_pause_s(&berth->cost_test.model, view, id);
    double chance = berth->jobs[id].killed
                        ? 1
                        : chance_of_loss(pause_s, (double)job->grace_ns * 1e-9);
    return chance > 0 ? chance * unsaved_s(view, job) : 0;
}

/* Its GPUs, or as many as its part of the cluster's CPUs or memory corresponds to. */
static double width_gpus(const struct berth_policy *berth, const struct job *job)
{
    double gpus = job->gpus_now;
    gpus = fmax(gpus, job->cpu_milli * berth->gpus_per_cpu_milli);
    return fmax(gpus, job->mem_mib * berth->gpus_per_mib);
}

double price_waste_gpu_s(const void *self, const struct view *view, job_id id,
                         double pause_s)
{
    const struct berth_policy *berth = self;
    double load_s = cost_model_load_s(&berth->cost_test.model, view, id);
    return width_gpus(berth, &view->jobs[id]) *
           (pause_s + load_s + price_lost_s(self, view, id));
}

double price_of_stopping(const struct berth_policy *berth, const struct view *view,
                         job_id id)
{
    double pause_s = cost_model_pause_s(&berth->cost_test.model, view, id);
    return price_waste_gpu_s(berth, view, id, pause_s) *
           (1 + view->jobs[id].preemptions);
}
