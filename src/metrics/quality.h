/*
 * quality.h - how soon models improve: losses over time, as jobs report them.
 *
 * Losses are normalised when a job is done: 1 is its first, 0 its last.  Between two
 * reports they are interpolated linearly.  A job that reports no loss is not counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "metrics/loss_groups.h"
#include "metrics/series.h"
#include "model/event.h"
#include "model/learning.h"
#include "model/view.h"

struct arena;

/* Kinds of events it needs, as bits. */
#define QUALITY_KINDS \
    (1u << EVENT_SUBMITTED | 1u << EVENT_REJECTED | 1u << EVENT_PROGRESS | \
     1u << EVENT_FINISHED | 1u << EVENT_FAILED | 1u << EVENT_STOPPED | \
     1u << EVENT_LOST)

/* Rows of the series. */
enum { QUALITY_LOSS, QUALITY_RUNNING };

struct quality_job;

struct quality {
    uint64_t seen, window_from, window_to;
    uint64_t job_count; /* done, with losses reported */
    double loss_s;      /* integral of the normalised loss, from submission */
    double level_s[LEARNING_LEVELS];
    double accuracy_s[LEARNING_ACCURACIES];
    uint64_t accuracy_count;
    int64_t first_ns;
    struct series series; /* sums over jobs from first report to end */
    struct loss_groups groups;

    uint32_t *tracks; /* by slot: 1 + index in 'jobs', 0: none */
    bool *counted;    /* by slot: in the window                */
    struct quality_job *jobs;
    uint32_t job_used, job_room, job_free;
};

void quality_init(struct quality *quality, struct arena *run, const struct view *view,
                  uint64_t window_from, uint64_t window_to);
void quality_release(struct quality *quality);

/* For engine_add_observer(). */
void quality_event(void *self, const struct view *view, const struct event *event);

/* Mean over time of the mean loss of running jobs; NAN: none. */
double quality_mean_loss(const struct quality *quality);
