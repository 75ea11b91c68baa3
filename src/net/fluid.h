/*
 * fluid.h - distributed jobs that compute and communicate in turn, as fluid flows.
 *
 * A step of a job is computing, then sending (traffic.h); part of the sending may
 * overlap with computing.  Where in its step a job begins is drawn from the seed: jobs
 * that all began together would stay in step, and strict levels would look better than
 * they are.  The step is rotated, not cut: (1-u) of the computing, the sending, u of
 * the computing, so that n steps of a job alone take exactly n times one.
 *
 * Exact: rates are recomputed whenever a job begins or ends to send, for the jobs that
 * the change can reach.  That costs as much as there are steps, so beyond a number of
 * jobs or of changes the model switches, for good, to mean rates, where a job's speed
 * changes only when jobs join, leave or change their level.
 *
 * The simulator asks how many steps a job has made, and is told when it has reached a
 * target.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "net/crossings.h"
#include "net/fluid_setup.h"
#include "net/rates.h"
#include "net/topology.h"

struct arena;

#define FLUID_NONE UINT32_MAX

/* A job as the network sees it. */
struct fluid_spec {
    uint64_t id; /* public, and the attempt: where in its step it begins */
    uint32_t attempt;
    enum sync sync;
    double bytes;   /* gradients of a step                  */
    double overlap; /* share of computing beside the sending */
    double step_s;  /* computing time of a step             */
    uint32_t level;
    const uint32_t *hosts; /* borrowed for the call; at least two */
    uint32_t host_count;
};

struct fluid_job;
struct mean_rates_job;

/* The mean speed of jobs, without following their steps. */
struct mean_rates {
    const struct topology *topology;
    struct crossings crossings;
    struct mean_rates_job *jobs; /* by the caller's number */
    uint32_t job_room;
    uint32_t round;
    uint32_t *changed; /* jobs with a new time */
    uint32_t changed_count, changed_room;
};

struct fluid {
    struct topology topology;
    struct fluid_setup setup;
    uint64_t seed;
    struct rates rates;
    struct mean_rates mean;
    bool is_mean; /* uses mean rates now */
    bool was_exact;
    struct fluid_job *jobs;
    uint32_t job_used, job_room, job_free;
    uint32_t job_count; /* that are in the network now */
    uint32_t job_most;  /* ever at once                */
    uint32_t *owners;   /* jobs, by bundle             */
    uint32_t owner_room;
    struct heap_pool pool;
    struct heap due;
    uint64_t sequence;
    uint64_t change_count; /* times a job began or ended to send */
    double bytes_sent;     /* over all flows                        */
};

void fluid_init(struct fluid *fluid, struct arena *arena, const struct cluster *cluster,
                const struct fluid_setup *setup, uint64_t seed);
void fluid_release(struct fluid *fluid);

/* A job begins its first step now; its number until it leaves. */
uint32_t fluid_join(struct fluid *fluid, const struct fluid_spec *spec, int64_t now_ns);
void fluid_leave(struct fluid *fluid, uint32_t job, int64_t now_ns);

/* Steps made since it joined; a step that is not over counts by its part. */
double fluid_steps(const struct fluid *fluid, uint32_t job, int64_t now_ns);

/* Report when it has made so many steps since it joined; INFINITY: never. */
void fluid_set_target(struct fluid *fluid, uint32_t job, double steps, int64_t now_ns);

/* Change the computing time of a step; change the level of its packets. */
void fluid_set_step(struct fluid *fluid, uint32_t job, double step_s, int64_t now_ns);
void fluid_set_level(struct fluid *fluid, uint32_t job, uint32_t level, int64_t now_ns);

/* Steps per second with the network to itself. */
double fluid_alone_per_s(const struct fluid *fluid, uint32_t job);

/* The time of the next change; INT64_MAX: none. */
int64_t fluid_next_ns(const struct fluid *fluid);

/*
 * Process the next change: returns a job that has now reached its target, or
 * FLUID_NONE.  Such a job stands still until it gets another target or leaves.
 */
uint32_t fluid_happen(struct fluid *fluid);

/* "exact", "mean", or "exact, then mean". */
const char *fluid_mode_name(const struct fluid *fluid);

/* Assert that bytes sent are bytes due.  For tests. */
void fluid_check(const struct fluid *fluid, int64_t now_ns);
