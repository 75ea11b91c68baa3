/*
 * spans.h - who held which accelerator from when to when.
 *
 * Feeds the Gantt chart of the report (bounded: the first accelerators, the first
 * spans) and, if there is a file, a trace that opens in Perfetto or chrome://tracing,
 * one track per accelerator.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/event.h"
#include "model/view.h"

struct arena;

enum span_end { SPAN_FINISHED, SPAN_PREEMPTED, SPAN_LOST, SPAN_RUNNING };

struct span {
    uint32_t gpu; /* row of the chart */
    enum job_class class;
    enum span_end end;
    uint64_t job;
    double start_s, end_s;
    uint32_t lane; /* 1: came to an accelerator that somebody had already */
};

#define GANTT_GPUS 64
#define GANTT_SPANS 20000

struct spans {
    FILE *trace; /* borrowed, or NULL */
    bool any;    /* something was written to it */
    const struct view *view;
    uint32_t *first_gpu; /* by node: its first accelerator's number            */
    uint32_t gpu_count;
    uint32_t *first_of; /* by slot: 1 + first track it holds                  */
    struct span_track {
        job_id job; /* JOB_NONE: free */
        uint32_t next;
        int64_t start_ns;
    } * tracks; /* two per accelerator: it may be shared */
    struct span *chart;
    uint32_t chart_count;
    bool chart_full;
};

/* 'chart': keep spans for a Gantt chart. */
void spans_init(struct spans *spans, struct arena *run, const struct view *view,
                FILE *trace, bool chart);
void spans_event(void *self, const struct view *view, const struct event *event);

/* Close what is still open. */
void spans_end(struct spans *spans, int64_t now_ns);
