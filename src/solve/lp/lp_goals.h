/*
 * lp_goals.h - every goal by linear programmes: the general path.
 *
 * Each function fills in everything but 'status', which it sets where floors are
 * dropped; 'x' is allocated.  0, or -EDOM with a sentence when the solver gives up.
 */
#pragma once

#include <errno.h>

#include "base/error.h"
#include "solve/problem.h"

int lp_solve_least(const struct problem *problem, struct shares *shares,
                   struct error *err);
int lp_solve_finish_time(const struct problem *problem, struct shares *shares,
                         struct error *err);
int lp_solve_levels(const struct problem *problem, struct shares *shares,
                    struct error *err);
int lp_solve_sum(const struct problem *problem, struct shares *shares,
                 struct error *err);
int lp_solve_ratio(const struct problem *problem, struct shares *shares,
                   struct error *err);

/* -EDOM and its sentence. */
static inline int lp_gave_up(struct error *err)
{
    return error_set(err, -EDOM, "the linear programme's solver gave up");
}

/*
 * Of all shares that keep unit[j] * rate[j] >= floor[j], those with the largest sum of
 * normalised rates.  Where the solver gives up the shares stay as they are.
 */
void lp_break_ties(const struct problem *problem, const double *unit,
                   const double *floor, struct shares *shares);

/* The least level that jobs have when each has an equal part: a scale for the others. */
double lp_level_scale(const struct problem *problem, const double *unit);
