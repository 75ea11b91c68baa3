/*
 * loss_groups.h - GPU-time by how much the jobs that hold it have left to learn.
 *
 * At any time the jobs that learn are sorted by their normalised loss: the quarter with the
 * highest, the next quarter, the other half; a job may be in two groups in part.  The figure
 * is the share of all GPU-time that each group held, over the whole run.
 *
 * The normalised loss of a job is known only when it is done.  So what is kept is not jobs
 * but their time and GPU-time by bin of time and class of loss, a quarter of an octave wide.
 * Memory is fixed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

void loss_groups_init(struct loss_groups *groups);
void loss_groups_release(struct loss_groups *groups);

/* A job held so many GPUs from one time to another, and its loss changed linearly. */
void loss_groups_add(struct loss_groups *groups, int64_t from_ns, int64_t to_ns,
                     double loss_from, double loss_to, double gpus);

/* The share of each group; false: there were never enough jobs at once. */
bool loss_groups_shares(const struct loss_groups *groups, double shares[LOSS_GROUPS]);
