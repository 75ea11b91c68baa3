/*
 * timeline.h - a simulation's spans (occupancy.h) for the report and for Perfetto.
 *
 * Keeps the bars of the report's Gantt chart, a bounded number of them, and writes, if there
 * is a file, a trace that opens in Perfetto or chrome://tracing, with one track per GPU and a
 * second one where two jobs shared it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "metrics/occupancy.h"
#include "model/event.h"
#include "model/view.h"

struct arena;
struct pair_entry;

/* How a bar ends; the numbers are those of the report's data. */
enum timeline_end {
    TIMELINE_FINISHED,
    TIMELINE_PREEMPTED,
    TIMELINE_LOST,
    TIMELINE_RUNNING
};

/* One job on one GPU. */
struct timeline_bar {
    uint32_t gpu; /* row of the chart */
    enum job_class class;
    enum timeline_end end;
    uint64_t job;
    double start_s, end_s;
    uint32_t lane; /* 1: the GPU was in use by another job at the start */
};

/* Two jobs that shared GPUs from then on, and the parts of their speed that they kept. */
struct timeline_pair {
    uint64_t jobs[2];
    double from_s, kept[2];
};

#define TIMELINE_GPUS 64
#define TIMELINE_BARS 20000
#define TIMELINE_PAIRS 20000

struct timeline {
    struct occupancy occupancy;
    const struct cluster *cluster;
    FILE *trace;            /* borrowed, or NULL                            */
    struct buf line;        /* the entry being written to it                */
    bool has_written;       /* an entry was written to it                   */
    uint32_t *first_gpu;    /* by node: number of its first GPU             */
    bool *has_second_track; /* by GPU: it has been named                  */
    struct timeline_bar *bars;
    uint32_t bar_count;
    bool is_full;                /* more bars than there is room for */
    struct timeline_pair *pairs; /* the first so many */
    uint32_t pair_count;
};

/* 'chart': keep bars for a Gantt chart. */
void timeline_init(struct timeline *timeline, struct arena *run,
                   const struct view *view, FILE *trace, bool chart);
void timeline_event(void *self, const struct view *view, const struct event *event);

/* For the observer of a pair ledger: keep the pair once it has ended. */
void timeline_add_pair(void *self, const struct pair_entry *entry);

/* Close what is still open, and the trace. */
void timeline_end(struct timeline *timeline, int64_t now_ns);
void timeline_release(struct timeline *timeline);
