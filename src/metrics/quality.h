/*
 * quality.h - how soon models improve: losses over time, as jobs report them.
 *
 * Losses are normalised when a job is done: 1 is its first, 0 its last.  Between two
 * reports they are interpolated linearly.  A job that reports no loss is not counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "metrics/series.h"
#include "model/event.h"
#include "model/learning.h"
#include "model/view.h"

struct arena;

/*
 * GPU-time by how much the jobs that hold it have left to learn.  At any time the jobs that
 * learn are sorted by their normalised loss: the quarter with the highest, the next quarter,
 * the other half; a job may be in two groups in part.  The figure is the share of all GPU-time
 * that each group held, over the whole run.
 *
 * The normalised loss of a job is known only when it is done.  So what is kept is not jobs
 * but their time and GPU-time by bin of time and class of loss, a quarter of an octave wide.
 * Memory is fixed.
 */
#define LOSS_BINS 256
#define LOSS_CLASSES 64

enum loss_group { LOSS_HIGH, LOSS_MEDIUM, LOSS_LOW, LOSS_GROUPS };

struct loss_cell {
    double job_s, gpu_s;
};

struct loss_groups {
    int64_t bin_ns;
    struct loss_cell (*bins)[LOSS_CLASSES]; /* NULL: nothing was added yet */
};

/* Kinds of events it needs, as bits. */
#define QUALITY_KINDS \
    (1u << EVENT_SUBMITTED | 1u << EVENT_REJECTED | 1u << EVENT_PROGRESS | \
     1u << EVENT_FINISHED | 1u << EVENT_FAILED | 1u << EVENT_STOPPED | \
     1u << EVENT_LOST | 1u << EVENT_DROPPED)

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

void loss_groups_init(struct loss_groups *groups);
void loss_groups_release(struct loss_groups *groups);

/* A job held so many GPUs from one time to another, and its loss changed linearly. */
void loss_groups_add(struct loss_groups *groups, int64_t from_ns, int64_t to_ns,
                     double loss_from, double loss_to, double gpus);

/* The share of each group; false: there were never enough jobs at once. */
bool loss_groups_shares(const struct loss_groups *groups, double shares[LOSS_GROUPS]);
