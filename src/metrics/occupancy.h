/*
 * occupancy.h - which job held which GPUs from when to when.
 *
 * The one place where events become spans: one job's GPUs on one node during one attempt.
 * A span begins as pending when the job is placed, is held from its start on, and closes
 * with a reason.  The report's chart, the Perfetto trace, the dashboard and 'berth top'
 * all draw these spans.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "model/job.h"

struct event_record;

/* Why a job no longer holds the GPUs of a span. */
enum occupancy_end {
    OCCUPANCY_OPEN, /* it does */
    OCCUPANCY_FINISHED,
    OCCUPANCY_PREEMPTED,
    OCCUPANCY_FAILED,
    OCCUPANCY_LOST,
    OCCUPANCY_CANCELLED,
    OCCUPANCY_RESIZED,
};

struct occupancy_span {
    uint64_t job;     /* public id                                                */
    int64_t start_ns; /* -1: pending                                              */
    int64_t end_ns;   /* -1: not yet                                              */
    uint64_t gpus;    /* of the node, as bits                                     */
    uint64_t shared;  /* those of them that another job held already at the start */
    node_id node;
    uint32_t attempt;
    uint32_t next; /* number of the job's span on another node; MAP_NONE: the last */
    enum job_class class;
    enum occupancy_end end;
};

struct occupancy {
    struct occupancy_span *spans;
    uint32_t room;
    uint32_t
        keep_max;   /* the newest spans are kept, closed ones too; 0: open ones only */
    uint32_t count; /* numbers given to spans so far */
    uint32_t free;  /* keep_max 0: first unused number; linked by 'next' */
    struct map held, pending; /* public id to the number of the job's first span */
    struct map cancelled;     /* jobs that were cancelled and still hold GPUs    */
    uint64_t *in_use;         /* by node: GPUs that some job holds without sharing */
    uint32_t node_room;

    /* Optional.  A span that was held has closed, by this event. */
    void (*closed)(void *self, const struct occupancy_span *span,
                   const struct event_record *cause);
    void *self;
};

void occupancy_init(struct occupancy *occupancy, uint32_t keep_max);
void occupancy_release(struct occupancy *occupancy);

/* Events must come in order; those of the same time in the order they were applied. */
void occupancy_apply(struct occupancy *occupancy, const struct event_record *record);

/* The first span that a job holds, and the span after one; NULL: no more. */
const struct occupancy_span *occupancy_held(const struct occupancy *occupancy,
                                            uint64_t job);
const struct occupancy_span *occupancy_next(const struct occupancy *occupancy,
                                            const struct occupancy_span *span);

/* Spans that are kept have the numbers from first to count - 1, in order of placement. */
uint32_t occupancy_first(const struct occupancy *occupancy);
const struct occupancy_span *occupancy_at(const struct occupancy *occupancy,
                                          uint32_t number);

/* Pending, or held at or after 'since_ns'. */
bool occupancy_is_current(const struct occupancy_span *span, int64_t since_ns);

/* "finished", as in the API; NULL while it is open. */
const char *occupancy_end_name(enum occupancy_end end);
