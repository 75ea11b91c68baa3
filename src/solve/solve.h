/*
 * solve.h - how much of which accelerator type should each job get?  The mathematics of
 * shares of time; the only header of this folder that other folders include.
 *
 *     programme_solve()        Gavel's policies as linear programmes, of up to 100,000 jobs
 *     shares_...()             shares that need no programme: closed forms, FIFO, AlloX
 *     pairs_...()              programmes in which two jobs may share accelerators
 *     interior_point_solve()   of all optimal shares, those that an interior-point solver
 *                              ends in
 *
 * Behind it: maxmin/ finds the largest level that all jobs can have, by prices; sums/ the
 * largest sum, by prices; pairs/ generates columns; lp/ has the general solver.
 * docs/internals/solver.md and solver-sums-and-pairs.md have the mathematics.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct error;

#define SOLVE_TYPES_MAX 16 /* accelerator types in a programme */

/* --- programmes ------------------------------------------------------------------- */

enum goal {
    GOAL_MAX_MIN, /* maximise the least of gang/weight * rate/rate_even            */
    GOAL_WATER_FILLING, /* then the next least, and so on: lexicographic           */
    GOAL_HIERARCHICAL,  /* the same between groups, then within each               */
    GOAL_MAKESPAN,      /* minimise the time of the last job, in seconds           */
    GOAL_FINISH_TIME,   /* minimise the largest finish time relative to that alone */
    GOAL_SUM,        /* maximise the sum of rates (over prices, if any) with floors */
    GOAL_COST_RATIO, /* maximise the sum of rates over that of prices paid, with floors */
};

/* By prices, and by the general solver where the structure is missing; or CLP alone. */
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
    const double *age_s;    /* since submission: FINISH_TIME                     */
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
     * defined choice that leaves no capacity unused.
     */
    bool tidy;

    /* SUM: begin near the prices that the solver found last, for sums that differ little. */
    bool near;
};

enum shares_status {
    SHARES_OPTIMAL,
    SHARES_EMPTY, /* no job can run: no jobs, no capacity, or rates all 0          */
    SHARES_FLOORS_DROPPED, /* the floors cannot all be kept: solved without them   */
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
 * Solve it; the answer is allocated in 'arena'.  -EINVAL for numbers that make no sense (NaN,
 * negative, a pair of unequal gangs), -EDOM when no solver converged.  A job that can
 * run nowhere gets nothing and lowers no other job's level; the same holds for a job of
 * weight 0, which may get what is left.
 */
int programme_solve(const struct programme *programme, enum solve_engine engine,
                    struct solver *solver, struct arena *arena,
                    struct shares *ret_shares, struct error *err);

/* --- shares that need no programme ------------------------------------------------ */

#define SHARES_NO_TYPE UINT32_MAX

/* Each job an equal part of every type, and no more time than there is:
 *     x[j][t] = capacity[t] / jobs / gang[j], a row divided by its sum where that is > 1 */
void shares_isolated(uint32_t job_count, uint32_t type_count, const double *capacity,
                     const double *gang, double *ret_x);

/* Each job's time split over the types in proportion to their capacities.  It ignores the
 * other jobs, so these shares are a yardstick and in general not feasible. */
void shares_proportional(uint32_t job_count, uint32_t type_count,
                         const double *capacity, double *ret_x);

/*
 * First come, first served (Gavel's FIFO): jobs in their order, each a whole type that has
 * room for its gang, until one finds none; a job that could not run even alone is skipped.
 * 'aware' takes the type where the job is fastest, otherwise the first with room.
 * With pairs: a job that finds no room joins the placed job of equal gang beside which the
 * two together do best, if that is more than 1.5 times one alone, until one finds none.
 */
struct fifo_shares {
    uint32_t job_count, type_count, pair_count;
    const double *capacity;
    const double *gang;
    const double *rate; /* [job][type] */
    const struct programme_pair *pairs;
    const double *pair_rate; /* [pair][type][2] */
    const uint32_t *held;    /* [job] type it is on and stays on, or SHARES_NO_TYPE;
                                or NULL */
    bool aware;

    /*
     * The released system's behaviour, defects and all: a job is skipped if it finds room
     * only where it cannot run, and without 'aware' jobs go to the last type on the list
     * of types with room, whether it has any or not; when it is used up exactly, a type
     * drawn at random leaves the list.  'draw' gives a number below 'count'.
     */
    bool released;
    uint32_t (*draw)(void *context, uint32_t count);
    void *draw_context;
};

void shares_fifo(const struct fifo_shares *queue, struct arena *scratch, double *ret_x);

/*
 * AlloX: jobs of one accelerator each, assigned to (worker, place counted from the end of
 * its queue) so that the sum of completion times is least; the first job in line at a
 * worker gets it.  A rate of 0 counts as 1e-10, no job gets a type it cannot use, and a
 * job that can use none is left out.  Returns the sum, in seconds.
 */
struct allox {
    uint32_t job_count, type_count;
    const double *capacity; /* whole workers that are free */
    const double *rate;     /* [job][type]                 */
    const double *steps;    /* left                        */
    const double *age_s;    /* since submission            */
    bool fast; /* many jobs: a sum that no single job can lower, in little time */
};

double shares_allox(const struct allox *allox, struct arena *scratch, double *ret_x);

/* --- programmes with pairs of jobs ------------------------------------------------ */

/*
 * Pairs tie two jobs together, so there are no closed forms: it is a linear programme with
 * few of its columns in it (column generation).  Jobs alone come first, pairs only when the
 * duals say that they help, and it ends when no pair is left that would: that is a proof.
 *
 * Identical jobs are a class, with a count: shares of a class are spread evenly over its
 * members, and those of two classes over all pairs of their members.  That loses nothing,
 * and a hundred thousand jobs of two hundred classes are two hundred rows.
 */
struct pairs_input {
    uint32_t class_count, type_count, pair_count;
    const double *capacity; /* [type] accelerators                                   */
    const double *count;    /* [class] members, whole numbers >= 1; NULL: all 1      */
    const double *gang;     /* [class] accelerators that a member needs at once      */
    const double *rate;     /* [class][type] of a member alone; 0: cannot            */
    const struct programme_pair *pairs; /* of classes of equal gang, none twice;
                                           'first' may be 'second': its members      */
    const double *pair_rate; /* [pair][type][2]: of first, of second; 0: cannot      */
};

struct pairs_answer {
    bool feasible;    /* false: the floors cannot all be kept; nothing else is said   */
    double reached;   /* by the shares: the level, or the sum                         */
    double bound;     /* no shares reach more: proven                                 */
    uint32_t rounds;  /* of adding columns                                            */
    uint32_t columns; /* of pairs that were added, of pair_count * type_count         */
    uint32_t iterations;
};

/*
 * What is kept between solutions.  Where classes, rates and pairs are those of the last
 * one, and only counts, capacities and goals differ, it goes on from there.
 */
struct pairs_solver;
struct pairs_solver *pairs_solver_new(void);
void pairs_solver_free(struct pairs_solver *solver);

/*
 * The largest z so that every member of class c gets at least
 *     need[c] z / (1 - ahead[c] z)
 * steps per second: max-min, makespan, finish-time fairness.  need 0: the level is not
 * about this class.  'ahead' may be NULL: all 0.
 *
 * Shares are written as x[line][type], the classes and then the pairs: for a class the
 * part of its time that each member spends there alone, for a pair how many such pairs
 * run there at a time.  They are feasible to 1e-9.  A class that could not run at all
 * makes the level 0.
 *
 * 0; -EINVAL for numbers that make no sense; -EDOM when the bound stays further than
 * 'tolerance' (1e-7), relative, from what is reached.  The answer then holds what it has.
 */
int pairs_level(struct pairs_solver *solver, const struct pairs_input *input,
                const double *need, const double *ahead, double tolerance,
                double *ret_x, struct pairs_answer *ret_answer, struct error *err);

/*
 * Water filling: the largest level for all, then for all that can have more, and so on;
 * ret_level[class] is in units of need.  Classes of need 0 have level 0.
 */
int pairs_water_fill(struct pairs_solver *solver, const struct pairs_input *input,
                     const double *need, double tolerance, double *ret_x,
                     double *ret_level, struct pairs_answer *ret_answer,
                     struct error *err);

/*
 * The largest sum of value[line][type] * (members or pairs that run there), where every
 * member of class c gets at least floor[c] steps per second; 'floor' may be NULL.
 */
int pairs_sum(struct pairs_solver *solver, const struct pairs_input *input,
              const double *value, const double *floor, double tolerance, double *ret_x,
              struct pairs_answer *ret_answer, struct error *err);

/* --- the analytic centre of all optimal shares ------------------------------------ */

/*
 * Optimal shares are seldom unique.  An interior-point solver ends in the analytic centre
 * of all of them, where the product of the slacks of all bounds is largest; a simplex
 * solver ends in a corner.  The published system was measured with the first kind, so
 * this finds what such a solver finds, by following the central path.
 *
 * Maximise z so that rate[j].x[j] >= z need[j]; or, without needs, the sum of value x.
 */
struct interior_point {
    uint32_t job_count, type_count;
    const double
        *capacity;       /* [type] > 0                                              */
    const double *gang;  /* [job]                                                   */
    const double *rate;  /* [job][type]; with needs                                 */
    const double *need;  /* [job] >= 0, 0: none; or NULL                            */
    const double *value; /* [job][type]; where need is NULL                         */
    double enough;       /* with needs: stop at this z; 0: as far as can be         */
    bool
        inverse; /* the rate's inverse is bounded, by a cone: its slack counts as such */
};

/*
 * Writes x[job][type].  The caller leaves out jobs and types without use: a job with a
 * need has a rate somewhere.  -EDOM if it does not converge.
 */
int interior_point_solve(const struct interior_point *problem, struct arena *scratch,
                         double *ret_x, struct error *err);
