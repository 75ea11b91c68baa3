/*
 * reports.h - when a simulated job says how far it is, and what loss it reports.
 *
 * About a hundred times over its life, more often at its beginning, and at every step
 * at which it has come as far as is asked for (learning.h), so that such times are exact
 * whatever listens hears of no more than events.
 */
#pragma once

#include <stdint.h>

#include "model/learning.h"

struct reports {
    struct learning curve;             /* LEARNING_NONE: it reports steps only */
    float points[LEARNING_POINTS_MAX]; /* of the curve, if it is made of such */
    double every;                      /* steps */
    double total;                      /* steps */
    uint64_t salt;                     /* of its noise */
    double marks[LEARNING_LEVELS + LEARNING_ACCURACIES]; /* steps, in order */
};

/* Of a job of so many steps; 'curve' may be NULL. */
void reports_init(struct reports *reports, const struct learning *curve, double steps);

/* After how many steps it reports next, if it has made so many. */
double reports_next(const struct reports *reports, double steps);

/*
 * What it reports then; NAN: no loss.  Noise depends on the curve and the step alone, so a
 * job reports the same whoever schedules it.  The first and the last report are exact:
 * progress is measured between them.
 */
double reports_loss(const struct reports *reports, double steps);
