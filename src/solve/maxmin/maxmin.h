/*
 * maxmin.h - goals that raise the least level, by prices: few types, many jobs.
 *
 * 0, or -EDOM with a sentence when the search does not converge; the general solver is
 * there then.
 */
#pragma once

#include "solve/problem.h"

struct market_classes;

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
