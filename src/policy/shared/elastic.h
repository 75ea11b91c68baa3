/*
 * elastic.h - jobs that can have more or fewer GPUs, resized once an epoch.
 *
 * A policy that says how many units (GPUs) each job should have is written as
 *
 *     if (elastic_begins(&elastic, view)) {
 *         elastic_gather(&elastic, view);
 *         ... set elastic.shares[0 .. count) from elastic.units ...
 *         elastic_apply(&elastic, view, plan);
 *     }
 *     elastic_between(&elastic, view, plan);
 *
 * Jobs that run are never told to leave, only resized, and not for small change; jobs that
 * wait start in order of submission.  A resize costs a job the time to save and to load:
 * so an epoch is at least ten times the longest of these, and a resize is made where it
 * brings more than it costs (elastic_moves.c).  A job that arrives and finds no room does
 * not wait for the epoch: one that runs gives it half of its units.  Where epochs are long,
 * what a job leaves at its end is shared out at once.  Gangs of a fixed size run beside,
 * and what they hold is not shared out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/plan.h"
#include "policy/shared/gains.h"
#include "policy/shared/queue.h"

struct reasons;
struct sort_item;

/* Why sizes are looked at. */
enum elastic_reason {
    ELASTIC_EPOCH,   /* an epoch begins                                          */
    ELASTIC_SHRUNK,  /* those who had to shrink have: others can grow            */
    ELASTIC_ARRIVAL, /* somebody has come who should not wait for the next epoch */
};

struct elastic {
    /* settings */
    int64_t epoch_ns;
    double hysteresis;

    /* of this epoch */
    struct gains_job *shares; /* those that run first, then those that may start */
    job_id *jobs;             /* whose they are */
    uint32_t count, running;  /* of them        */
    uint32_t units;           /* there are      */
    double fair;              /* units each, were all treated alike */
    int64_t length_ns;
    enum elastic_reason reason;
    bool any; /* somebody's size can be set at all */

    struct queue waiting;
    bool *cpu_only; /* by slot, of those who wait: asks for no GPU */
    uint32_t cpu_only_count;
    struct member *members; /* who is alive, and perhaps some who are not */
    struct gains_heap *heap;
    struct sort_item *shrinks, *grows, *scratch; /* who is to be resized, in order */
    uint32_t shrink_count, shrink_next;
    uint32_t member_count, member_room, share_room, job_room, heap_room, shrink_room,
        grow_room, scratch_room;
    int64_t next_ns; /* the next epoch begins                                 */
    int64_t grow_ns; /* those who shrink will have done so; INT64_MAX: nobody */
    bool arrived;    /* somebody may be made room for before the epoch       */
    bool began;      /* an epoch, at this decision                            */
    bool changed;    /* something happened that could change who has how much */
};

#define ELASTIC_PARAMS(type, field) \
    { "epoch", \
      PARAM_TIME, \
      offsetof(type, field.epoch_ns), \
      "3s", \
      NULL, \
      "how often sizes are set; at least ten times what a resize takes", \
      1e-3, \
      1e9 }, \
    { \
        "hysteresis", PARAM_NUMBER, offsetof(type, field.hysteresis), "0.1", "share", \
            "of its size by which a job is at least resized, while nobody waits", 0, 1 \
    }

void elastic_init(struct elastic *elastic, const struct view *view, struct arena *run);
void elastic_release(struct elastic *elastic);
void elastic_observe(struct elastic *elastic, const struct view *view,
                     const struct event *event);

/* An epoch begins and there is something to do, or somebody has come and has no room. */
bool elastic_begins(const struct elastic *elastic, const struct view *view);

/* Say who may have units, and how many there are: 'least' and 'most' are set, flat. */
void elastic_gather(struct elastic *elastic, const struct view *view);

/* Resize and start jobs so that they have the units of 'shares', as far as that goes. */
void elastic_apply(struct elastic *elastic, const struct view *view, struct plan *plan);

/* Start a job with as many of 'units' as it can get, halved until it fits; 0: with none. */
uint32_t elastic_start(struct plan *plan, job_id job, uint32_t units, uint32_t least);

/* At any decision: start who fits into what is free, and ask for the next epoch. */
void elastic_between(struct elastic *elastic, const struct view *view,
                     struct plan *plan);

/* For 'explain'. */
void elastic_explain(const struct elastic *elastic, const struct view *view, job_id job,
                     struct reasons *reasons);
