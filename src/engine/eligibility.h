/*
 * eligibility.h - which waiting jobs the calendar lets a policy see.
 *
 * A job that could start nowhere now, since every node it may use would become unavailable or
 * another user's before it has left, is withheld: to the policy, and to it alone, it is held, until
 * an entry ends or is replaced.  In the state it goes on waiting.  What holds a job besides, its
 * owner, a dependency or a limit, keeps it out of the queue before this is asked.
 *
 * Time alone can bar a job, when an entry comes near.  Jobs that some entry could bar are in a heap
 * by the next time at which one more does; the others are not looked at before the calendar changes.
 * Without a calendar nothing is asked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/heap.h"
#include "model/job.h"

struct calendar_entry;
struct engine;
struct event;

struct eligibility {
    uint8_t *known;       /* by slot: enum eligible of eligibility.c          */
    uint32_t known_count; /* that are not ELIGIBLE                        */
    uint64_t *barred;     /* by node: GPUs, while a job is looked at          */
    bool *closed;         /* by node: the whole of it                         */
    struct heap_pool pool;
    struct heap near; /* jobs by when one more entry will bar them        */
};

static inline void eligibility_init(struct eligibility *own, struct arena *run,
                                    uint32_t job_max, uint32_t node_count)
{
    own->known = arena_array(run, uint8_t, job_max);
    own->barred = arena_array(run, uint64_t, node_count);
    own->closed = arena_array(run, bool, node_count);
    heap_pool_init(&own->pool, run, job_max);
    heap_init(&own->near);
}

/* Pass an applied event on to the policy, and withhold the job from it if it has to be. */
void eligibility_tell(struct engine *engine, const struct event *event);

/*
 * Withhold jobs that an entry has come too near to; after a change of the calendar all that wait
 * are looked at, and shown again if they may start.  True if that concerned any job.
 */
bool eligibility_keep(struct engine *engine, bool changed);

/* The first to end of the entries that bar a withheld job; NULL: it is not withheld. */
const struct calendar_entry *eligibility_entry(const struct engine *engine, job_id job);
