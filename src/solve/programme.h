/*
 * programme.h - how much of which type is each job due?  Gavel's policies as programmes.
 *
 * One description for all of them, and one answer; which solver finds it is chosen
 * here: prices where the structure allows, the general one (lp.h) where it does not or
 * where it is asked for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct error;

enum goal {
    GOAL_MAX_MIN, /* the least of gang/weight * rate/rate_even as large as can be     */
    GOAL_WATER_FILLING, /* the same, then the next least, and so on: lexicographic          */
    GOAL_HIERARCHICAL, /* the same between groups, then within each                        */
    GOAL_MAKESPAN, /* the last job done as early as can be; objective in seconds       */
    GOAL_FINISH_TIME, /* the largest finish time, relative to that alone, as small as
                           can be                                                           */
    GOAL_SUM, /* sum of rates (over price, where there are prices), floors kept   */
    GOAL_COST_RATIO, /* sum of rates over sum of prices paid, floors kept                */
};

enum solve_engine { SOLVE_FAST, SOLVE_CLP };

/* Two jobs on the same accelerators; 'first' < 'second', equal gangs. */
struct programme_pair {
    uint32_t first, second;
};

struct programme_group {
    double weight;
    bool fifo; /* inside: the earliest unfinished job; otherwise fairness by weight */
};

/* Arrays are by job unless said otherwise; those a goal does not read may be NULL. */
struct programme {
    enum goal goal;
    uint32_t job_count, type_count, pair_count, group_count;
    const double *capacity; /* [type] accelerators                               */
    const double *gang;     /* accelerators it needs at once                     */
    const double *rate;     /* [job][type] steps per second of the whole gang    */
    const double *weight;   /* NULL: all 1                                       */
    const double *steps;    /* left: MAKESPAN, FINISH_TIME                       */
    const double *age_s;    /* since it came: FINISH_TIME                        */
    const double *alone_s;  /* what it did so far would have taken alone: FINISH_TIME */
    const double *floor;    /* least rate, 0: none: SUM, COST_RATIO              */
    const double *price;    /* [type]: SUM (may be NULL), COST_RATIO             */
    const uint32_t *group;  /* HIERARCHICAL                                      */
    const struct programme_group *groups;
    const struct programme_pair *pairs;
    const double
        *pair_rate; /* [pair][type][2]: of 'first', of 'second'; 0: cannot     */

    /*
     * Of several optima take the one with the largest sum of normalised rates: a
     * defined choice, and nothing is left lying about.
     */
    bool tidy;
};

enum shares_status {
    SHARES_OPTIMAL,
    SHARES_EMPTY, /* no job can run: no jobs, no capacity, or rates all 0     */
    SHARES_FLOORS_DROPPED, /* the floors cannot all be kept: solved without them       */
};

struct shares {
    enum shares_status status;
    double objective;
    double gap; /* proven: the optimum is at most so much better, relative  */
    uint32_t iterations;
    double *x;      /* [job, then pair][type]                               */
    double *level;  /* [job]: WATER_FILLING, HIERARCHICAL; else NULL        */
    bool *unserved; /* [job]: its floor was dropped; NULL where none was    */
};

/* What is kept between solutions of programmes that differ little; NULL is allowed. */
struct solver;
struct solver *solver_new(void);
void solver_free(struct solver *solver);

/*
 * Solve it; the answer lives in 'arena'.  -EINVAL for numbers that make no sense (NaN,
 * negative, a pair of unequal gangs), -EDOM when no solver converged.  A job that can
 * run nowhere gets nothing and holds nobody back; so does one of weight 0, which may
 * get what is left.
 */
int programme_solve(const struct programme *programme, enum solve_engine engine,
                    struct solver *solver, struct arena *arena,
                    struct shares *ret_shares, struct error *err);
