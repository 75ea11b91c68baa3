/*
 * metrics.h - counts, times and GPU-time of a run, fed by events.
 *
 * The simulator and the daemon feed the same events, so the figures mean the same.
 * GPU-time is added up in whole nanoseconds.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "metrics/series.h"
#include "model/event.h"
#include "model/view.h"

struct arena;

/* One job that ended well. */
struct metrics_job {
    double jct_s;    /* from submission to end                                      */
    double wait_s;   /* without GPUs                                                */
    double slowdown; /* jct over its time alone on the fastest type                 */
    double fairness; /* jct over its time on an equal share of the cluster (Themis) */
    enum job_class class;
    uint32_t user; /* by admission's number; 0: not known */
};

/* GPU-time that made no new steps, by cause. */
enum overhead {
    OVERHEAD_PAUSE,
    OVERHEAD_LOAD_FIRST,
    OVERHEAD_LOAD_AGAIN,
    OVERHEAD_REDO_PREEMPTED,
    OVERHEAD_REDO_FAILED,
    OVERHEAD_RESIZE,
    OVERHEAD_COUNT
};

/* Rows of the series over time. */
enum { SERIES_GPUS_HELD, SERIES_WAITING, SERIES_RUNNING };

struct metrics_open; /* a live job */

struct metrics {
    uint64_t total, completed, failed, rejected, cancelled, unfinished;
    uint64_t preempted_jobs; /* that were preempted at all */
    uint64_t preemptions, resizes, slo_violations, deadlines;
    uint64_t seen; /* jobs by order of submission, rejected ones included */
    uint64_t window_from, window_to;
    uint64_t window_left; /* of the window: not ended yet */

    int64_t first_ns;                        /* first submission; INT64_MAX: none */
    int64_t last_ns;                         /* last end                          */
    __int128 held_by_type_ns[TYPES_MAX + 1]; /* GPU-time held */
    __int128 overhead_ns[OVERHEAD_COUNT];

    struct metrics_job *jobs;
    size_t job_count;
    uint32_t job_room;

    struct metrics_open *open; /* by slot */
    int64_t now_ns;
    uint32_t gpus_held, waiting, running;
    uint32_t type_count;
    uint32_t gpus_by_type[TYPES_MAX + 1];
    double live_s; /* sum over time of jobs in the system */
    struct series series;
};

/* Jobs numbered from <= n < to count; all with 0 and UINT64_MAX. */
void metrics_init(struct metrics *metrics, struct arena *run, const struct view *view,
                  uint64_t window_from, uint64_t window_to);
void metrics_release(struct metrics *metrics);

/* For engine_add_observer(). */
void metrics_event(void *self, const struct view *view, const struct event *event);

/* At the end of a run: jobs that are still there are unfinished. */
void metrics_end(struct metrics *metrics, const struct view *view);
