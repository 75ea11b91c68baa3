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

#define LEARNER_POINTS 32
#define LEARNER_POINTS_LEAST 3 /* before that nothing is said */

struct learner {
    double steps[LEARNER_POINTS], losses[LEARNER_POINTS];
    double many[LEARNER_POINTS]; /* reports that each is the mean of */
    uint32_t count;
    double first; /* loss                                            */
    double least; /* seen so far                                     */
    struct family_fit inv, exp, best;
    bool fitted; /* there is a fit, of all points or nearly all     */
    bool stale;  /* points have come since                          */
};

void learner_init(struct learner *learner);

/* A report.  Steps that go back mean a restart: what was reported beyond is forgotten. */
void learner_add(struct learner *learner, double steps, double loss);

/* Points have come since the last fit, and they are enough for one. */
bool learner_wants_fit(const struct learner *learner);

/* Fit again if there is something new. */
void learner_fit(struct learner *learner);

/* There are points enough, and the curve goes down to a limit. */
bool learner_knows(const struct learner *learner);

/* Share of the way behind it at a step. */
double learner_share(const struct learner *learner, double step);

/* The step at which so much of the way is behind it, looking from 'step' on; INFINITY. */
double learner_reaches(const struct learner *learner, double share, double step);
