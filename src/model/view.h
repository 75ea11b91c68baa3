/* view.h - everything a policy may know, and nothing it may change. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"

#define LOSS_POINTS 128 /* newest reports kept per job */

struct calendar;
struct cluster;
struct free_index;
struct throughput;

/* The newest loss reports of a job, as a ring. */
struct loss_ring {
    double steps[LOSS_POINTS];
    double losses[LOSS_POINTS];
    uint32_t count; /* ever reported; the newest is at (count - 1) % LOSS_POINTS */
    uint32_t next_free;
};

/*
 * Time is a field, not a call: a policy that cannot read the clock cannot tell a
 * simulation from a cluster.  Jobs carry what is declared, measured or estimated; the
 * truth of a simulated job is known to the simulated executor only.
 */
struct view {
    int64_t now_ns;
    bool closed;                   /* no more jobs are expected                      */
    const struct job *jobs;        /* live jobs, by slot                             */
    uint32_t job_max;              /* slots there are                                */
    const struct seat *seats;      /* what job.seats and job.next point into         */
    const struct cluster *cluster; /* nodes, accelerator types, capacities, racks    */
    const struct free_index *free; /* nodes by what is free on them, kept by engine  */
    const uint64_t *foreign; /* by node: GPUs in use by others than our jobs          */
    const struct calendar *calendar; /* what will be unavailable, and for whom        */
    const struct throughput *rates; /* how fast each kind of job runs on each type    */
    const struct loss_ring *losses; /* what job.loss_ring points into                 */
};

static inline const struct seat *view_seats(const struct view *view, job_id job)
{
    return &view->seats[view->jobs[job].seats.first];
}

/* What it has reported so far, as far as it is kept, or NULL. */
static inline const struct loss_ring *view_losses(const struct view *view, job_id job)
{
    uint32_t ring = view->jobs[job].loss_ring;
    return ring == UINT32_MAX || !view->losses ? NULL : &view->losses[ring];
}

/*
 * Time until 'job' is done if it runs from now on: for a running job where it is, for a
 * waiting one on the fastest type it may use.  INT64_MAX when its work is unknown.
 */
int64_t view_remaining_ns(const struct view *view, job_id job);

/*
 * The rest of its work on the fastest type it may use, loading not counted: a measure
 * that is the same whether it waits or runs, and wherever it runs.
 */
int64_t view_work_left_ns(const struct view *view, job_id job);

/* The same on the slowest: so long at most, wherever it is put. */
int64_t view_work_left_at_most_ns(const struct view *view, job_id job);
