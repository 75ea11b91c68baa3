/* fifo_queue.c - waiting jobs in order of submission. */
#include "policy/shared/fifo_queue.h"

#include "base/arena.h"
#include "model/reasons.h"

void fifo_queue_init(struct fifo_queue *queue, struct arena *run, uint32_t job_max)
{
    *queue = (struct fifo_queue){ .first = JOB_NONE, .last = JOB_NONE };
    queue->links = arena_array(run, struct fifo_queue_link, job_max);
}

static bool is_before(const struct view *view, job_id a, job_id b)
{
    const struct job *x = &view->jobs[a];
    const struct job *y = &view->jobs[b];
    return x->submit_ns != y->submit_ns ? x->submit_ns < y->submit_ns : x->id < y->id;
}

static void insert_before(struct fifo_queue *queue, job_id job, job_id next)
{
    struct fifo_queue_link *links = queue->links;
    job_id prev = next == JOB_NONE ? queue->last : links[next].prev;
    links[job] = (struct fifo_queue_link){ .prev = prev, .next = next, .inside = true };
    if (prev == JOB_NONE)
        queue->first = job;
    else
        links[prev].next = job;
    if (next == JOB_NONE)
        queue->last = job;
    else
        links[next].prev = job;
    queue->count++;
}

void fifo_queue_add(struct fifo_queue *queue, const struct view *view, job_id job)
{
    if (queue->links[job].inside)
        return;
    if (queue->last == JOB_NONE || is_before(view, queue->last, job)) {
        insert_before(queue, job, JOB_NONE);
        return;
    }
    /* A job that returns has its place near the front. */
    job_id next = queue->first;
    while (next != JOB_NONE && is_before(view, next, job))
        next = queue->links[next].next;
    insert_before(queue, job, next);
}

void fifo_queue_remove(struct fifo_queue *queue, job_id job)
{
    struct fifo_queue_link *link = &queue->links[job];
    if (!link->inside)
        return;
    if (link->prev == JOB_NONE)
        queue->first = link->next;
    else
        queue->links[link->prev].next = link->next;
    if (link->next == JOB_NONE)
        queue->last = link->prev;
    else
        queue->links[link->next].prev = link->prev;
    link->inside = false;
    queue->count--;
}

job_id fifo_queue_ahead(const struct fifo_queue *queue, const struct view *view,
                        job_id job, struct reasons *reasons)
{
    if (!queue->links[job].inside)
        return JOB_NONE;
    for (job_id id = queue->first; id != job; id = queue->links[id].next)
        reasons_add_ahead(reasons, view->jobs[id].submit_ns, view->jobs[id].id);
    return queue->first == job ? JOB_NONE : queue->first;
}
