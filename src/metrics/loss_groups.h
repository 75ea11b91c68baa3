/*
 * loss_groups.h - whose the GPUs are: by how much those who hold them still have to learn.
 *
 * At any time the jobs that learn are put in order of their normalised loss: the quarter
 * with the highest, the next quarter, the other half; a fraction of a job may be in each.
 * What is asked is which part of all units each group holds, over the whole run.
 *
 * Jobs are told of when they are done, as only then their last loss is known.  So what is
 * kept is not jobs but how much time and how many unit-seconds they had by stretch of time
 * and by loss, the losses in classes a quarter of an octave wide.  Memory is fixed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOSS_BINS 256
#define LOSS_CLASSES 64

enum loss_group { LOSS_HIGH, LOSS_MEDIUM, LOSS_LOW, LOSS_GROUPS };

struct loss_cell {
    double job_s, unit_s;
};

struct loss_groups {
    int64_t bin_ns;
    struct loss_cell (*bins)[LOSS_CLASSES]; /* NULL: nothing was said yet */
};

void loss_groups_init(struct loss_groups *groups);
void loss_groups_release(struct loss_groups *groups);

/* A job held so many units from one time to another, and its loss went in a line. */
void loss_groups_add(struct loss_groups *groups, int64_t from_ns, int64_t to_ns,
                     double loss_from, double loss_to, double units);

/* The part of each group; false: there were never enough jobs to tell. */
bool loss_groups_shares(const struct loss_groups *groups, double shares[LOSS_GROUPS]);
