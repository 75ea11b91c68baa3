/*
 * problem.h - a programme made ready for a solver: what may run where, what the goal asks
 * of each job, and what shares are worth.
 *
 * A line is a row of the table of shares: a job alone, or a pair of jobs on the same
 * accelerators.  Lines 0 ... jobs - 1 are the jobs, the pairs follow.  A line is usable on a
 * type that has accelerators and where all of its members have a rate.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solve/solve.h"

struct arena;

#define PROBLEM_TOLERANCE 1e-8 /* relative gap to which the fast solvers go           */
#define PROBLEM_FLOOR_SLACK \
    1e-9                  /* floors at the boundary count as reachable           */
#define PROBLEM_KEPT 1e-8 /* a floor or level that is kept to this is kept       */

struct problem {
    const struct programme *programme;
    struct arena *arena;
    uint32_t line_count;
    double
        *even;   /* [job] its rate when it has each type by capacity; 0: runs nowhere */
    double *top; /* [job] its best rate, alone or in a pair                           */
};

void problem_init(struct problem *problem, const struct programme *programme,
                  struct arena *arena);

/* --- lines ------------------------------------------------------------------------ */

/* The jobs of a line; returns how many: one or two. */
static inline uint32_t problem_line_members(const struct problem *problem,
                                            uint32_t line, uint32_t members[2])
{
    uint32_t jobs = problem->programme->job_count;
    members[0] = line < jobs ? line : problem->programme->pairs[line - jobs].first;
    members[1] = line < jobs ? line : problem->programme->pairs[line - jobs].second;
    return line < jobs ? 1 : 2;
}

/* The rate of its first or second member (place 0 or 1). */
static inline double problem_line_rate(const struct problem *problem, uint32_t line,
                                       uint32_t type, uint32_t place)
{
    const struct programme *p = problem->programme;
    if (line < p->job_count)
        return p->rate[(size_t)line * p->type_count + type];
    size_t cell = (size_t)(line - p->job_count) * p->type_count + type;
    return p->pair_rate[cell * 2 + place];
}

static inline double problem_line_gang(const struct problem *problem, uint32_t line)
{
    uint32_t members[2];
    problem_line_members(problem, line, members);
    return problem->programme->gang[members[0]];
}

bool problem_line_usable(const struct problem *problem, uint32_t line, uint32_t type);

/* --- shares ----------------------------------------------------------------------- */

/* What every job gets from these shares, in steps per second. */
void problem_rates(const struct problem *problem, const double *x, double *ret_rates);

/*
 * The largest part of a capacity or of a job's time that is used; 1: one of them is used
 * up, more: the shares are too large by that factor.
 */
double problem_load(const struct problem *problem, const double *x);

/* Remove what a solver's rounding left: negative shares, and a load above 1. */
void problem_make_feasible(const struct problem *problem, double *x);

/* Without pairs: also remove shares on types that the job cannot use. */
void problem_drop_useless(const struct problem *problem, double *x);

/* Every job an equal part of each type, none more than its time (Gavel's isolated). */
void problem_isolated_shares(const struct problem *problem, double *ret_x);

/* The goal's objective at these shares; 0 where the goal is about no job. */
double problem_objective(const struct problem *problem, const double *x);

/* The objective as a level, of which more is better: makespan and rho are inverted. */
double problem_level(const struct problem *problem, double objective);

static inline double problem_relative_gap(double bound, double reached)
{
    return bound > 0 ? fmax(0, (bound - reached) / bound) : 0;
}

/* --- what the goal asks of each job ------------------------------------------------ */

/*
 * MAX_MIN, WATER_FILLING, MAKESPAN: the least unit[j] * rate[j] is maximised.
 * HIERARCHICAL: unit[j] * rate[j] is what groups share out.
 * 0: the goal is not about this job (it runs nowhere, has weight 0, or no steps left).
 */
double *problem_units(const struct problem *problem);

/*
 * FINISH_TIME, with z = 1 / rho: the rate should be need z / (1 - ahead z), where
 *     need = steps / fair and ahead = age / fair, fair = alone + steps / isolated rate.
 * need = 0: the goal is not about this job.
 */
struct finish_terms {
    double *need, *ahead;
};
struct finish_terms problem_finish_terms(const struct problem *problem);

/* The z = 1 / rho that a rate is good for, and the rate that a z asks for. */
static inline double finish_level(double need, double ahead, double rate)
{
    return rate / (need + ahead * rate);
}
static inline double finish_rate(double need, double ahead, double level)
{
    return need * level / (1 - ahead * level);
}

/* All level goals in one form: rate * unit >= need z / (1 - ahead z). */
struct problem_demands {
    const double *unit;  /* [job]; 0: the goal is not about it */
    const double *need;  /* [job]; NULL: 1                     */
    const double *ahead; /* [job]; NULL: 0                     */
};
struct problem_demands problem_demands(const struct problem *problem);

/* The steps per second that each job asks for at the level of the objective. */
double *problem_demand_rates(const struct problem *problem,
                             const struct problem_demands *demands, double objective);

/* True where hardly any jobs of a sample have equal rows: then classes do not pay. */
bool problem_rows_differ(const struct problem *problem,
                         const struct problem_demands *demands);

/*
 * HIERARCHICAL: how fast levels rise while the jobs in 'done' do not.  Within a group by
 * weight among the others, or all of it for the first of them.
 */
void problem_group_speeds(const struct problem *problem, const bool *done,
                          double *ret_speed);

/* [line][type]: what a whole share adds to a sum of rates (over price, for SUM). */
double *problem_values(const struct problem *problem);

/* [line][type]: what it adds to the sum of normalised rates, by which ties are broken. */
double *problem_normalised_values(const struct problem *problem);

/* The floors as the solvers want them, NULL without any; false: one is out of reach. */
bool problem_reachable_floors(const struct problem *problem, const double **ret_floors);

/*
 * The floors cannot all be kept: set the status, and mark the jobs that could not keep
 * theirs even alone, or all jobs with a floor where there is none such.
 */
void problem_drop_floors(const struct problem *problem, struct shares *shares);
