/*
 * reports.h - when a simulated job reports progress, and with what loss.
 *
 * About a hundred times over its run, more often at its beginning, and at every step at
 * which one of the levels of learning.h is reached, so that these times are exact for
 * observers that see only events.
 */
#pragma once

#include <stdint.h>

#include "model/learning.h"

struct reports {
    struct learning curve;             /* LEARNING_NONE: it reports steps only */
    float points[LEARNING_POINTS_MAX]; /* of the curve, if given by points */
    double every;                      /* steps */
    double total;                      /* steps */
    uint64_t salt;                     /* seed of its noise */
    double marks[LEARNING_LEVELS + LEARNING_ACCURACIES]; /* steps, in order */
};

/* For a job of this many steps; 'curve' may be NULL. */
void reports_init(struct reports *reports, const struct learning *curve, double steps);

/* The step of the next report after 'steps'. */
double reports_next(const struct reports *reports, double steps);

/*
 * The loss reported then; NAN: none.  Noise depends on the curve and the step alone,
 * so a job reports the same under every policy.  The first and the last report are
 * exact: progress is measured between them.
 */
double reports_loss(const struct reports *reports, double steps);
