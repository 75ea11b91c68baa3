/*
 * fifo.c - first come, first served.
 *
 *     order(j) = time of submission
 *
 * Strict: while the first job of the queue does not fit, no job behind it starts,
 * whatever is free.  That makes it fair, and wastes the cluster: a large gang at the
 * head holds all others up until enough GPUs are free.  Use it as the yardstick; use
 * fifo-backfill for a cluster that people work on.
 *
 * A job that lost its node keeps its place.
 */
#include "policy/policy.h"

#include <inttypes.h>

#include "model/reasons.h"
#include "policy/shared/fifo_queue.h"

struct fifo {
    struct fifo_queue waiting;
    job_id blocked; /* it did not fit, and nothing has made room since; JOB_NONE */
};

static int fifo_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct fifo *fifo = self;
    fifo_queue_init(&fifo->waiting, run, view->job_max);
    fifo->blocked = JOB_NONE;
    return 0;
}

static void fifo_observe(void *self, const struct view *view, const struct event *event)
{
    struct fifo *fifo = self;

    if (!event_makes_no_room(event))
        fifo->blocked = JOB_NONE;
    if (event_makes_waiting(event, view))
        fifo_queue_add(&fifo->waiting, view, event->job);
    else if (event_ends_waiting(event, view))
        fifo_queue_remove(&fifo->waiting, event->job);
}

static int fifo_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct fifo *fifo = self;

    job_id job = fifo->waiting.first;
    if (job == fifo->blocked)
        return 0; /* or none waits */
    while (job != JOB_NONE) {
        job_id next = fifo_queue_next(&fifo->waiting, job);
        fifo_queue_prefetch(&fifo->waiting, view, next);
        if (!plan_grant(plan, job, NULL))
            break;
        job = next;
    }
    fifo->blocked = job;
    return 0;
}

static void fifo_explain(const void *self, const struct view *view, job_id job,
                         struct reasons *reasons)
{
    const struct fifo *fifo = self;
    job_id first = fifo_queue_ahead(&fifo->waiting, view, job, reasons);
    if (first != JOB_NONE)
        reasons_add(reasons, "order",
                    "job %" PRIu64
                    " came before it and has not got room; nobody passes",
                    view->jobs[first].id);
}

const struct policy policy_fifo = {
    .name = "fifo",
    .brief = "first come, first served; the head of the queue holds up the rest",
    .source = "folklore; the baseline of every paper here",
    .self_size = sizeof(struct fifo),
    .init = fifo_init,
    .observe = fifo_observe,
    .decide = fifo_decide,
    .explain = fifo_explain,
};
