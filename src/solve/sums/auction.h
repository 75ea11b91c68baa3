/*
 * auction.h - the largest sum of what jobs are worth on the types they get.
 *
 *     maximise sum_jt value[j][t] x[j][t]
 *     so that  sum_t rate[j][t] x[j][t] >= floor[j]    (jobs with a floor)
 *              sum_t x[j][t] <= 1,  sum_j gang[j] x[j][t] <= capacity[t]
 *
 * Solved by prices like market.h, with the same guarantees: the shares are feasible to
 * 1e-9, the bound is proven, and the same auction has the same answer, bit for bit.
 * Floors may be missed by 1e-9, relative, where they could not be kept otherwise: so
 * those that come out of a solved level can be used as floors.
 *
 * With 'cost' it maximises a ratio instead: the sum of values over the sum of cost[t]
 * gang[j] x[j][t].  Without floors that is the ratio of the best job on the best type
 * alone; jobs that reach it run, as far as there is room, and no others.  Where
 * something has a value and costs nothing the ratio is infinite.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct error;

struct auction {
    uint32_t job_count, type_count;
    const double *capacity; /* [type]                                           */
    const double *gang;     /* [job]                                            */
    const double *value;    /* [job][type]; may be negative                     */
    const double *rate;     /* [job][type]; NULL where there are no floors      */
    const double *floor;    /* [job]; 0: none; NULL: no job has one */
    const double *cost; /* [type] per accelerator: the ratio's denominator; or NULL */
    const double *near; /* [type] prices that may be nearly right; or NULL */
    struct arena *scratch; /* memory to work in; NULL: its own */
};

struct auction_answer {
    bool feasible;    /* false: the floors cannot all be kept; the rest is not set */
    double objective; /* reached by the shares                                      */
    double bound;     /* no shares reach more                                       */
    uint32_t passes;
    double price[16];
};

/*
 * Writes x[job][type], to a gap of 'tolerance' (1e-6) relative to the values shared out.
 * 0; -EINVAL with a sentence for numbers that make no sense; -EDOM when it does not
 * converge.
 */
int auction_solve(const struct auction *auction, double tolerance, double *ret_x,
                  struct auction_answer *ret_answer, struct error *err);
