/*
 * learner.h - what a job's own reports say about how much it still has to learn.
 *
 * Progress is counted in shares of the way from its first loss to the limit that the
 * fitted curve goes to: 0 at the beginning, 1 when nothing is left to gain.  So jobs can
 * be compared whatever their losses are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "predict/family.h"

#define LOSS_HISTORY_POINTS 32
#define LOSS_HISTORY_POINTS_LEAST 3 /* before that nothing is said */

struct loss_history {
    double steps[LOSS_HISTORY_POINTS], losses[LOSS_HISTORY_POINTS];
    double many[LOSS_HISTORY_POINTS]; /* reports that each is the mean of */
    uint32_t count;
    double first; /* loss                                            */
    double least; /* seen so far                                     */
    struct family_fit inv, exp, best;
    bool fitted; /* there is a fit, of all points or nearly all     */
    bool stale;  /* points have come since                          */
};

void loss_history_init(struct loss_history *history);

/* A report.  Steps that go back mean a restart: what was reported beyond is forgotten. */
void loss_history_add(struct loss_history *history, double steps, double loss);

/* Points have come since the last fit, and they are enough for one. */
bool loss_history_wants_fit(const struct loss_history *history);

/* Fit again if there is something new. */
void loss_history_fit(struct loss_history *history);

/* There are points enough, and the curve goes down to a limit. */
bool loss_history_has_limit(const struct loss_history *history);

/* Share of the way behind it at a step. */
double loss_history_share(const struct loss_history *history, double step);

/* The step at which so much of the way is behind it, looking from 'step' on; INFINITY. */
double loss_history_step_at(const struct loss_history *history, double share,
                            double step);
