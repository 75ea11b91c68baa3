/*
 * what_if_outcomes.h - what became of each job of a simulated run: an observer of its events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct map;

/* Of one job that ended well, or did not. */
struct what_if_outcome {
    double jct_s;      /* from its submission to its end               */
    double wait_s;     /* without GPUs                                 */
    double slowdown;   /* jct over its time alone on the fastest type  */
    double lost_gpu_s; /* GPU-time of its pauses, further loading and work made twice */
    uint32_t preemptions;
    bool completed;
};

struct what_if_slot;

struct what_if_outcomes {
    const struct map *places;     /* job's public id to its place; borrowed */
    struct what_if_outcome *jobs; /* by place                               */
    struct what_if_slot *slots;   /* of jobs that live                      */
    uint32_t slot_room;
};

/* 'places' and 'jobs' outlive it. */
void what_if_outcomes_init(struct what_if_outcomes *outcomes, const struct map *places,
                           struct what_if_outcome *jobs);
void what_if_outcomes_release(struct what_if_outcomes *outcomes);

struct engine_observer what_if_outcomes_observer(struct what_if_outcomes *outcomes);
