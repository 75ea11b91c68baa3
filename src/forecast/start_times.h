/*
 * start_times.h - when will jobs start and end: quantiles over many possible futures.
 *
 *     start_times_make(&setup, engine, NULL, 0, &times, &err);
 *     ... times.jobs[i].start_ns[QUANTILE_50] ...
 *     start_times_release(&times);
 *
 * Each replicate draws how much work every job truly has (run_times.h) and what is yet to be
 * submitted (arrivals.h), and plays that future with the policy in charge (replicate.h).  Of n
 * replicates the quantile p is the value of rank p (n + 1), between two values in proportion.
 *
 * The work is bounded by a number of events.  Where they do not suffice, the times up to which all
 * replicates were played are told, and the rest is "later"; nothing is said of jobs without any
 * history.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "model/job.h"

struct arrivals;
struct engine;
struct error;
struct run_times;

#define START_REPLICATES 32 /* at most */
#define START_EVENTS 4000000

enum quantile { QUANTILE_10, QUANTILE_50, QUANTILE_90, QUANTILE_COUNT };
extern const double quantile_levels[QUANTILE_COUNT];

#define TIME_LATER INT64_MAX /* beyond the horizon */

/* A held job, and what it waits for: a time, and the ends of other jobs.  By public ids. */
struct start_release {
    uint64_t id;
    int64_t at_ns;
    uint32_t first, count; /* of the ids in 'after' */
};

struct start_releases {
    struct start_release *list;
    uint64_t *after;
    uint32_t count;
};

struct start_setup {
    const char *settings; /* of the engine's policy, or NULL       */
    const struct run_times *times;
    const struct arrivals *arrivals; /* or NULL: no job will be submitted     */
    int64_t horizon_ns;              /* so far from now                       */
    uint32_t replicates;             /* 0: START_REPLICATES                   */
    uint64_t event_max;              /* of all replicates; 0: START_EVENTS    */
    uint64_t seed;
    const struct start_releases *releases; /* or NULL */
    bool sizes_only; /* run times are those of jobs of the same size, of all users */
    bool
        starts_only; /* ends are not asked for, nor told: running jobs are of no interest */
    const atomic_bool *cancelled; /* or NULL: when it becomes true, -ECANCELED      */
    uint32_t without_user;        /* that submits no jobs; 0: all do */

    /* Optional: room for what happened in each replicate.  All are played to the horizon, and no
     * job's times are asked for. */
    struct replicate_figures *figures;
};

/* What is expected of a job. */
struct job_times {
    uint64_t id;
    job_id slot;
    bool waits; /* it had no seats */
    int64_t start_ns
        [QUANTILE_COUNT]; /* its next start: of a running job, if it is preempted */
    int64_t end_ns[QUANTILE_COUNT];
    double starts_later, ends_later; /* shares of the replicates beyond the horizon */
    const char *basis;    /* of its run time: "name", "user", …           */
    uint32_t basis_count; /* jobs that this is from                       */
};

struct start_times {
    struct job_times *jobs; /* in order of their ids */
    uint32_t count;
    int64_t made_ns,
        horizon_ns; /* absolute; the horizon is nearer if events did not suffice */
    uint32_t replicates;
    uint64_t event_count;
};

/* Of these jobs, or with 0 of all that wait or run.  -EINVAL with the reason if a policy fails. */
int start_times_make(const struct start_setup *setup, const struct engine *engine,
                     const job_id *of, uint32_t of_count, struct start_times *ret_times,
                     struct error *err);
void start_times_release(struct start_times *times);

/* The quantile of 'count' values in order; TIME_LATER among the last of them. */
int64_t start_times_quantile(const int64_t *sorted, uint32_t count, double level);
