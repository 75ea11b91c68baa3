/* goal.h - what each goal of a programme wants of a job's rate, and what shares reach. */
#pragma once

#include "solve/problem.h"

/*
 * MAX_MIN, WATER_FILLING, MAKESPAN: the least unit[j] * rate[j] is to be large.
 * HIERARCHICAL: unit[j] * rate[j] is what groups share out.
 * 0: the job has no part in it (runs nowhere, weight 0, no steps left).
 */
double *problem_units(const struct problem *problem);

/*
 * FINISH_TIME, with z = 1 / rho: the rate is to be need z / (1 - ahead z), where
 *     need = steps / fair and ahead = age / fair, fair = alone + steps / isolated rate.
 * need = 0: the job has no part in it.
 */
struct finish_terms {
    double *need, *ahead;
};
struct finish_terms problem_finish_terms(const struct problem *problem);

/*
 * HIERARCHICAL: how fast levels rise while these jobs are done.  Within a group by weight
 * among those who are not, or all of it for the first of them.
 */
void problem_group_speeds(const struct problem *problem, const bool *done,
                          double *ret_speed);

/* What z = 1 / rho a rate is good for, and what rate a z asks for. */
static inline double finish_level(double need, double ahead, double rate)
{
    return rate / (need + ahead * rate);
}
static inline double finish_rate(double need, double ahead, double level)
{
    return need * level / (1 - ahead * level);
}

/* [line][type]: what a whole share adds to a sum of rates (over price, for SUM). */
double *problem_values(const struct problem *problem);

/* [line][type]: what it adds to the sum of normalised rates: how ties are broken. */
double *problem_normalised_values(const struct problem *problem);

/* What the goal is worth at these shares; 0 where no job has a part in it. */
double problem_objective(const struct problem *problem, const double *x);
