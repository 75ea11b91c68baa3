/*
 * water_filling.h - maximise the least level, then the next least, and so on.
 *
 * All levels rise together; where types run out, the jobs that could only rise on these
 * are stuck, and the others go on with what is left.  Built on the market (market.h):
 * how far all can rise is a question of prices, and the stuck jobs can be read from
 * them.  No integers, and no more rounds than there are types.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct error;

/*
 * Rates are in units of level: a job that has all of type t is at level rate[job][t].
 */
struct water_filling {
    uint32_t job_count, type_count;
    const double *capacity; /* [type]       */
    const double *gang;     /* [job]        */
    const double *rate;     /* [job][type]  */

    /*
     * For water_filling_solve(): jobs rise as need z / (1 - ahead z), in units of rate, with one z
     * for all (finish-time fairness).  NULL: all rise alike.
     */
    const double *need, *ahead;

    struct arena *scratch; /* NULL: its own */
};

struct water_filling_answer {
    uint32_t rounds; /* rises that ended with stuck jobs */
    uint32_t solves; /* of markets                       */
};

/*
 * Water filling.  Writes level[job] and x[job][type]; levels are good to 'tolerance'
 * (1e-7), and the shares reach them.  0, or -EDOM with a sentence.
 */
int water_filling_solve(const struct water_filling *filling, double tolerance,
                        double *ret_level, double *ret_x,
                        struct water_filling_answer *ret_answer, struct error *err);

/* One rise at a time, for callers with speeds that change on the way. */
struct water_filler;

struct water_filler *water_filler_new(const struct water_filling *filling,
                                      double tolerance);
void water_filler_free(struct water_filler *filler);

/* The best level of a job alone, without the types that ran out; 0: none. */
double water_filler_top(const struct water_filler *filler, uint32_t job);

struct water_rise {
    double by; /* every job can have base + by * speed, or its own top */
    bool held; /* types ran out; false: 'most' was reached                */
};

/*
 * Raise all from base[job], which must be feasible, at speed[job] >= 0, by 'most' at
 * most.  No job rises above its own top.  If 'held', ret_stuck[job] marks the jobs that
 * cannot go on: those at their top, and those that would need a type that ran out.  The
 * others never get any of that again, so levels must not fall from one rise to the
 * next.
 */
int water_filler_rise(struct water_filler *filler, const double *base,
                      const double *speed, double most, struct water_rise *ret_rise,
                      bool *ret_stuck, struct error *err);

/*
 * Shares for levels that were found to be feasible.  A stuck job has the shares it had
 * when it stopped, or as much; 'level' is read for the others.
 */
int water_filler_shares(struct water_filler *filler, const double *level, double *ret_x,
                        struct error *err);

uint32_t water_filler_solves(const struct water_filler *filler);
