/*
 * loss_history.h - a job's loss reports, and how much it still has to learn.
 *
 * Progress is the share of the way from the first loss to the limit of the fitted
 * curve: 0 at the beginning, 1 when nothing is left to gain.  So jobs can be compared
 * whatever their losses are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "predict/family.h"

#define LOSS_HISTORY_POINTS 32
#define LOSS_HISTORY_POINTS_LEAST 3 /* fewer are not fitted */

struct loss_history {
    double steps[LOSS_HISTORY_POINTS], losses[LOSS_HISTORY_POINTS];
    double many[LOSS_HISTORY_POINTS]; /* reports that each is the mean of */
    uint32_t count;
    double first; /* loss                                            */
    double least; /* seen so far                                     */
    struct family_fit inv, exp, best;
    bool fitted; /* there is a fit, of all points or nearly all */
    bool stale;  /* points were added since */
};

void loss_history_init(struct loss_history *history);

/* Add a report.  Steps that go back mean a restart: later reports are dropped. */
void loss_history_add(struct loss_history *history, double steps, double loss);

/* Points were added since the last fit, and there are enough for one. */
bool loss_history_wants_fit(const struct loss_history *history);

/* Fit again if there is something new. */
void loss_history_fit(struct loss_history *history);

/* There are enough points, and the curve falls to a limit. */
bool loss_history_has_limit(const struct loss_history *history);

/* How far reports lie from the curve, as a share of the way. */
double loss_history_noise(const struct loss_history *history);

/* The share of the way done at a step. */
double loss_history_share(const struct loss_history *history, double step);

/*
 * The step at which that share of the way is done, searched from 'step' on; or
 * INFINITY.
 */
double loss_history_step_at(const struct loss_history *history, double share,
                            double step);
