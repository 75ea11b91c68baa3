/*
 * rate_completion.h - how fast a kind of job would run where it was not measured.
 *
 * Kinds and types make a matrix of ln(steps per second), of which cells are known:
 *
 *                  v100    p100    k80
 *     resnet       2.30    1.61     ?
 *     lm           4.10     ?      3.59
 *     new           ?      0.20     ?
 *
 * A cell is close to (how fast the kind is) + (how fast the type is) + a product of few
 * factors, since kinds that are alike gain alike.  The speed of types is fitted first, drawn
 * towards the speeds that the cluster's description gives; then factors of kinds and types
 * are fitted to what is left, by alternating ridge regressions, as Gavel's estimator does
 * for pairs of jobs (estimate.h).  Of the kinds, the FIT_KINDS_MAX with the newest reports
 * are fitted; the factors of others follow from those of the types.
 *
 * The deviation of an estimate is what such estimates were off by for the kinds of the fit:
 * each of their known cells is estimated from their others.
 */
#pragma once

#include <stdint.h>

struct rate_table;

/*
 * Make the levels of all kinds that were measured or used since the last time, and of all
 * that have jobs if what they rest on has changed.  'changed' is called for each kind whose
 * levels have.
 */
void rate_completion_update(struct rate_table *rates,
                            void (*changed)(void *context, uint32_t kind),
                            void *context);
