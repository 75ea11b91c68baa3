/*
 * elastic.h - jobs that can have more or fewer GPUs, resized once an epoch.
 *
 * A policy that determines how many GPUs each job should have is written as
 *
 *     if (elastic_begins(&elastic, view)) {
 *         elastic_start(&elastic, view);
 *         elastic_gather(&elastic, view, TYPE_NONE);
 *         ... set elastic.shares[0 .. count) from elastic.gpus ...
 *         elastic_apply(&elastic, view, plan);
 *     }
 *     elastic_between(&elastic, view, plan);
 *
 * Running jobs are never preempted, only resized, and not for small changes; waiting
 * jobs start in order of submission.  A resize costs a job r seconds, the time to
 * checkpoint and resume, whatever its size; so an epoch is at least ten times the
 * longest r.  Over an epoch T a resize from a to b GPUs brings the job
 *
 *     G(b, T - r) - G(a, T)          G as in gains.h
 *
 * and takes or frees b - a GPUs.  Jobs that should shrink are ordered by what one of
 * their GPUs costs them, jobs that should grow by what one more brings, and GPUs move
 * from the cheapest to the dearest as long as they bring more than they cost.  Where
 * resizes are free, all of them are made.  Waiting jobs and jobs below their minimum
 * come first, at any price.
 *
 * A job that arrives between epochs and finds no free GPUs does not wait for the next
 * one: a running job gives it half of its GPUs, chosen so that the two together gain
 * most.  Where epochs are long, the GPUs of a job that ends are redistributed at once.
 * Gangs of a fixed size run beside, and their GPUs are not distributed.
 *
 * A policy that starts jobs itself sets 'apart': then elastic jobs alone are looked at, once
 * they run.  One that gathers the jobs of each type in turn moves none to a slower type.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "model/plan.h"
#include "policy/shared/gains.h"
#include "policy/shared/fifo_queue.h"

struct reasons;
struct sort_item;

/* Why sizes are computed. */
enum elastic_reason {
    ELASTIC_EPOCH,   /* an epoch begins */
    ELASTIC_SHRUNK,  /* jobs that had to shrink have done so: others can grow */
    ELASTIC_ARRIVAL, /* a job has arrived that should not wait for the next epoch */
};

struct elastic {
    /* settings */
    int64_t epoch_ns;
    double hysteresis;
    bool apart;  /* the policy starts jobs itself */
    bool closed; /* free GPUs are left to others   */

    /* of this epoch */
    struct gains_job *shares; /* running jobs first, then those that may start */
    job_id *jobs;             /* the job of each share */
    uint32_t count, running;  /* number of shares, and of those that run */
    uint32_t gpus;            /* GPUs to distribute */
    uint32_t free;            /* those of them that no job has */
    uint32_t type;            /* of which they are; TYPE_NONE: of any */
    const struct bits *avoid; /* nodes on which no job grows, or NULL */
    double fair;              /* GPUs per job, divided evenly */
    int64_t length_ns;
    enum elastic_reason reason;
    bool any; /* the size of some job can be set */

    struct fifo_queue waiting;
    bool *cpu_only; /* by slot, of waiting jobs: asks for no GPU */
    uint32_t cpu_only_count;
    struct elastic_member *members; /* live jobs, by slot */
    struct elastic_placed *placed;  /* those that have seats, by arrival, and perhaps
                                       some that no longer do */
    uint32_t placed_count;
    uint32_t member_count; /* live jobs, and perhaps some that have ended */
    uint32_t live_count;
    uint64_t member_number; /* of the newest member */
    struct heap_pool resize_pool;
    struct heap resizes; /* live elastic jobs, the longest resize first */
    struct gains_heap *heap;
    struct sort_item *shrinks, *grows, *scratch; /* jobs to resize, in order */
    uint32_t shrink_count, shrink_next;
    uint32_t member_room, share_room, job_room, heap_room, shrink_room, grow_room,
        scratch_room;
    int64_t next_ns; /* begin of the next epoch */
    int64_t grow_ns; /* when all shrinks will be done; INT64_MAX: none is under way */
    bool arrived;    /* a job may get GPUs before the next epoch */
    bool began;      /* an epoch began at this decision */
    bool changed;    /* an event may have changed the shares */
    bool stuck; /* since the epoch began no event came, and no job can be resized */
};

#define ELASTIC_PARAMS(type, field) \
    { "epoch", \
      FIELD_TIME, \
      offsetof(type, field.epoch_ns), \
      "3s", \
      NULL, \
      "how often sizes are set; at least ten times what a resize takes", \
      1e-3, \
      1e9 }, \
    { \
        "hysteresis", FIELD_NUMBER, offsetof(type, field.hysteresis), "0.1", "share", \
            "of its size by which a job is at least resized, while nobody waits", 0, 1 \
    }

void elastic_init(struct elastic *elastic, const struct view *view, struct arena *run);
void elastic_release(struct elastic *elastic);

/* Its epochs begin when those of another one would. */
void elastic_inherit(struct elastic *elastic, const struct elastic *from);
void elastic_observe(struct elastic *elastic, const struct view *view,
                     const struct event *event);

/* An epoch begins and something has changed, or a job has arrived and finds no GPUs. */
bool elastic_begins(const struct elastic *elastic, const struct view *view);

/* Say why sizes are computed, and when again. */
void elastic_start(struct elastic *elastic, const struct view *view);

/*
 * List the jobs that may have GPUs of this type, TYPE_NONE: of any, with 'least' and 'most'
 * and a flat curve, and count the GPUs.
 */
void elastic_gather(struct elastic *elastic, const struct view *view, uint32_t type);

/* Resize and start jobs so that they have the GPUs of 'shares', as far as possible. */
void elastic_apply(struct elastic *elastic, const struct view *view, struct plan *plan);

/* At every decision: start jobs that fit on free GPUs. */
void elastic_between(struct elastic *elastic, const struct view *view,
                     struct plan *plan);

/* When elastic_begins() will be true if nothing else happens; INT64_MAX: never. */
int64_t elastic_wake_ns(const struct elastic *elastic, const struct view *view);

/* For the policy's explain(). */
void elastic_explain(const struct elastic *elastic, const struct view *view, job_id job,
                     struct reasons *reasons);
