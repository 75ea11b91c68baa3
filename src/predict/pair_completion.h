/*
 * pair_completion.h - what kinds of jobs would keep beside others where that was not measured.
 *
 * Two kinds beside each other on a type make a matrix of which cells are known (pair_table.h):
 *
 *                  beside resnet   lm     loader
 *     resnet              0.55    0.71     0.97
 *     lm                  0.60     ?        ?
 *     loader              0.95     ?        ?
 *
 * A cell is close to a sum: what two jobs keep on the whole, how much the one bears and how much
 * the other spares it.  All three are fitted by alternating ridge regressions: the first is drawn
 * towards SHARED_SPEED, the others towards nothing, each as by one more cell.  Products of
 * factors, as Gavel's estimator has them (estimate.h), or a sum of other forms of the parts, were
 * no nearer to the pairs that were measured for Gavel when a third of them was known, and further
 * off when it was less (docs/internals/sharing.md).
 *
 * The deviation of an estimate is what such estimates are off by for the known cells of the type:
 * each is estimated from the others of its kind.
 */
#pragma once

#include <stdint.h>

struct pair_table;
struct rate_table;

/*
 * Fit the types anew of which a part has changed.  'changed' is called for each kind whose
 * estimates have by more than PAIR_NOTED, or count from now on.
 */
void pair_completion_update(struct pair_table *pairs, const struct rate_table *rates,
                            void (*changed)(void *context, uint32_t kind),
                            void *context);
