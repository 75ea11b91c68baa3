/*
 * auction.h - the largest sum of what jobs are worth on the types they get.
 *
 *     maximise sum_jt value[j][t] x[j][t]
 *     so that  sum_t rate[j][t] x[j][t] >= floor[j]    (jobs with a floor)
 *              sum_t x[j][t] <= 1,  sum_j gang[j] x[j][t] <= capacity[t]
 *
 * Solved by prices like market.h, with the same promises.  With 'cost' instead of plain
 * values it maximises a ratio: sum of values over sum of cost[t] gang[j] x[j][t].
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;

struct auction {
    uint32_t job_count, type_count;
    const double *capacity; /* [type]                                           */
    const double *gang;     /* [job]                                            */
    const double *value;    /* [job][type]; may be negative                     */
    const double *rate;     /* [job][type]; NULL where there are no floors      */
    const double *floor;    /* [job]; 0: none; NULL: nobody has one             */
    const double *cost; /* [type] per accelerator: the ratio's denominator; or NULL */
};

struct auction_answer {
    bool feasible;    /* false: the floors cannot all be kept; nothing else is said */
    double objective; /* reached by the shares                                      */
    double bound;     /* no shares reach more                                       */
    uint32_t passes;
    double price[16];
};

/* Writes x[job][type].  0, or -EDOM with a sentence when it does not converge. */
int auction_solve(const struct auction *auction, double tolerance, double *ret_x,
                  struct auction_answer *ret_answer, struct error *err);
