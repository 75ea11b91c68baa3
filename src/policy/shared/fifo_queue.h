/* fifo_queue.h - waiting jobs in order of submission. */
#pragma once

#include <stdint.h>

#include "model/view.h"

struct arena;
struct reasons;

/* A linked list in an array; a job that returns gets its old place. */
struct fifo_queue {
    struct fifo_queue_link {
        job_id prev, next;
        bool inside;
    } * links; /* by slot */
    job_id first, last;
    uint32_t count;
};

void fifo_queue_init(struct fifo_queue *queue, struct arena *run, uint32_t job_max);

/* Adding a job that is in the queue, or removing one that is not, changes nothing. */
void fifo_queue_add(struct fifo_queue *queue, const struct view *view, job_id job);
void fifo_queue_remove(struct fifo_queue *queue, job_id job);

static inline job_id fifo_queue_next(const struct fifo_queue *queue, job_id job)
{
    return queue->links[job].next;
}

/* This job of the queue, or JOB_NONE, is looked at soon. */
static inline void fifo_queue_prefetch(const struct fifo_queue *queue,
                                       const struct view *view, job_id job)
{
    if (job == JOB_NONE)
        return;
    prefetch_bytes(&queue->links[job], sizeof *queue->links);
    job_prefetch(&view->jobs[job]);
}

/* Add the jobs before 'job' to 'reasons'; returns the first of them, or JOB_NONE. */
job_id fifo_queue_ahead(const struct fifo_queue *queue, const struct view *view,
                        job_id job, struct reasons *reasons);
