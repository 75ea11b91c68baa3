/* queue.h - waiting jobs in order of submission. */
#pragma once

#include <stdint.h>

#include "model/view.h"

struct arena;
struct reasons;

/* A list through an array; a job that comes back gets its old place. */
struct queue {
    struct queue_link {
        job_id prev, next;
        bool inside;
    } * links; /* by slot */
    job_id first, last;
    uint32_t count;
};

void queue_init(struct queue *queue, struct arena *run, uint32_t job_max);

/* Neither minds a job that is inside, or is not. */
void queue_add(struct queue *queue, const struct view *view, job_id job);
void queue_remove(struct queue *queue, job_id job);

static inline job_id queue_next(const struct queue *queue, job_id job)
{
    return queue->links[job].next;
}

/* All who are before 'job', which is inside; returns the first of them, or JOB_NONE. */
job_id queue_ahead(const struct queue *queue, const struct view *view, job_id job,
                   struct reasons *reasons);
