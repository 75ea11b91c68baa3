/*
 * maxmin.h - goals that raise the least level, by prices: few types, many jobs.
 *
 * 0, or -EDOM with a sentence when the search does not converge; the general solver is
 * there then.
 */
#pragma once

#include "solve/problem.h"

/*
 * Identical jobs as one buyer in a market.  Jobs with the same rates, gang and demand have
 * equal shares in some optimal answer, so they are one buyer, with a gang as many times as
 * large.  A hundred thousand jobs of a table with two hundred rows are a market of two
 * hundred.  A class that the next programme has too stays in the market, which then
 * continues from its last prices.
 */
struct market_classes;
struct market_classes *market_classes_new(void);
void market_classes_free(struct market_classes *classes);

/*
 * MAX_MIN, MAKESPAN and FINISH_TIME: one level for all jobs.  'keeps': 'classes' serves the
 * next programme too.
 */
int maxmin_solve_level(const struct problem *problem, struct market_classes *classes,
                       bool keeps, struct shares *shares, struct error *err);

/* WATER_FILLING and HIERARCHICAL: after the least level the next least, and so on. */
int maxmin_solve_water_filling(const struct problem *problem, struct shares *shares,
                               struct error *err);
int maxmin_solve_hierarchical(const struct problem *problem, struct shares *shares,
                              struct error *err);
