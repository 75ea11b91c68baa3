/*
 * programme_fast.h - goals by prices: few types, many jobs.
 *
 * 0; -ENOTSUP where the structure does not cover the programme; -EDOM with a sentence
 * when the search does not end.  In both cases the general solver is there.
 */
#pragma once

#include <math.h>

#include "solve/problem.h"

struct market_classes;
struct pairs_solver;

#define FAST_TOLERANCE 1e-8   /* of what is searched for                            */
#define FAST_FLOOR_SLACK 1e-9 /* floors at the boundary count as reachable          */
#define FAST_KEPT 1e-8        /* a level that is kept to this is kept               */

/* What is kept for the next programme. */
struct fast_memory {
    struct market_classes *classes;
    struct pairs_solver *pairs;
    bool keeps; /* there will be a next one */
};

int fast_solve(const struct problem *problem, const struct fast_memory *memory,
               struct shares *shares, struct error *err);

/* By kind of goal. */
int maxmin_solve_water_filling(const struct problem *problem, struct shares *shares,
                               struct error *err);
int maxmin_solve_hierarchical(const struct problem *problem, struct shares *shares,
                              struct error *err);
int pairs_solve_problem(const struct problem *problem, const struct fast_memory *memory,
                        struct shares *shares, struct error *err);

/* What the jobs ask for in a market: rate * unit >= need z / (1 - ahead z). */
struct problem_demands {
    const double *unit;  /* [job]; 0: has no part in it */
    const double *need;  /* [job]; NULL: 1              */
    const double *ahead; /* [job]; NULL: 0              */
};
struct problem_demands problem_demands(const struct problem *problem);

/* The steps per second that a job asks for at that level. */
double problem_demand_rate(const struct problem_demands *demands, uint32_t job,
                           double level);

/* What the goal calls its objective, as a level, and the other way. */
double problem_level(const struct problem *problem, double objective);

/* The floors as solvers want them, NULL where there are none; false: one is beyond reach. */
bool problem_reachable_floors(const struct problem *problem, const double **ret_floors);

/*
 * Jobs only: of all shares that give every job floor[j] steps per second, those with the
 * largest sum of normalised rates.  Where that does not work out the shares stay.
 */
void sums_break_ties(const struct problem *problem, const double *floor,
                     struct shares *shares);

/* No share on a type that the job cannot use, and no more than there is. */
void problem_drop_useless(const struct problem *problem, double *x);

static inline double problem_relative_gap(double bound, double reached)
{
    return bound > 0 ? fmax(0, (bound - reached) / bound) : 0;
}
