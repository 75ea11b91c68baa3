/*
 * sums.h - goals that maximise a sum or a ratio of sums, by prices.
 *
 * 0, or -EDOM with a sentence when no prices were found; the general solver is there then.
 */
#pragma once

#include "solve/problem.h"

/* SUM and COST_RATIO. */
int sums_solve(const struct problem *problem, double *prices, struct shares *shares,
               struct error *err);

/*
 * Without pairs: of all shares that give every job floor[j] steps per second, those with
 * the largest sum of normalised rates.  Where that fails the shares stay as they are.
 */
void sums_break_ties(const struct problem *problem, const double *floor,
                     struct shares *shares);
