/*
 * resizes.c - how many GPUs an elastic job gets.
 *
 * It starts with what it asks for.  While no job waits it grows into free GPUs of its type,
 * the one with the least time left first, if
 *
 *     saved = r(a) - (pause + load + lost + r(b))      exceeds theta x waste
 *
 * with r(a) the time left on a GPUs, and each further GPU brings at least EFFICIENCY of what
 * those it has bring: SLAQ's question, in seconds of completion time.
 *
 * Starting smaller where the size asked for finds no room was tried and left out: with load
 * 1.1 on mixed it cost 8 to 15 % of mean completion time, since such a job does not grow again
 * while others wait.
 */
#include <math.h>

#include "model/cluster.h"
#include "model/free_index.h"
#include "model/throughput.h"
#include "policy/berth/berth_internal.h"

#define EFFICIENCY 0.35
#define SCANNED_MAX 24 /* running jobs of a type that are looked at */
#define GROWN_MAX 4    /* in one decision */

static bool can_resize(const struct view *view, const struct plan *plan, job_id id)
{
    const struct job *job = &view->jobs[id];
    return job_is_elastic(job) && job->state == JOB_RUNNING &&
           job_is_preemptible(job) && !plan_changes(plan, id) &&
           job->partner == JOB_NONE && job->coming == JOB_NONE;
}

/* Seconds to its end on so many GPUs of the type it is on. */
static double left_with_s(const struct berth_policy *berth, const struct view *view,
                          job_id id, uint32_t gpus)
{
    const struct job *job = &view->jobs[id];
    double rate = throughput_rate(view->rates, job, job->type_now, gpus, false);
    return value_left_s(berth, view, id) * job->rate_best_per_s / rate;
}

/* The size it would grow to; its present one: it does not. */
static uint32_t larger_size(const struct berth_policy *berth, const struct view *view,
                            job_id id, uint32_t free)
{
    const struct job *job = &view->jobs[id];
    uint32_t now = job->gpus_now;
    uint32_t gpus = now;
    double rate = throughput_rate(view->rates, job, job->type_now, now, false);
    while (gpus < job->gpus_max && gpus < now + free) {
        uint32_t next = 2 * gpus < job->gpus_max ? 2 * gpus : job->gpus_max;
        next = next < now + free ? next : now + free;
        double faster =
            throughput_rate(view->rates, job, job->type_now, next, false) / rate - 1;
        if (faster < EFFICIENCY * ((double)next / now - 1))
            break;
        gpus = next;
    }
    double stop_s = cost_model_pause_s(&berth->cost_test.model, view, id) +
                    cost_model_load_s(&berth->cost_test.model, view, id) +
                    price_lost_s(berth, view, id);
    double saved_s =
        left_with_s(berth, view, id, now) - stop_s - left_with_s(berth, view, id, gpus);
    return saved_s > berth->theta * price_of_stopping(berth, view, id) ? gpus : now;
}

static bool resize_job(struct plan *plan, const struct view *view, job_id id,
                       uint32_t gpus)
{
    struct ask ask = ASK_DEFAULT;
    ask.gpus = gpus;
    ask.types = 1u << view->jobs[id].type_now;
    return plan_grant_free(plan, id, &ask);
}

void resizes_grow(struct berth_policy *berth, const struct view *view,
                  struct plan *plan)
{
    uint32_t grown = 0;
    for (uint32_t type = 0; type < view->cluster->type_count; type++) {
        uint32_t id = tree_first(&berth->running_pool, &berth->running[type]);
        for (uint32_t i = 0; id != TREE_NONE && i < SCANNED_MAX && grown < GROWN_MAX;
             i++) {
            uint32_t next = tree_next(&berth->running_pool, id);
            uint32_t free = view->free->shelves[type].gpu_count;
            if (free == 0)
                break;
            if (can_resize(view, plan, id)) {
                uint32_t gpus = larger_size(berth, view, id, free);
                grown +=
                    gpus > view->jobs[id].gpus_now && resize_job(plan, view, id, gpus);
            }
            id = next;
        }
    }
}
