/*
 * market.h - the largest level that every job can have, found by prices.
 *
 *     maximise z  so that   sum_t rate[j][t] x[j][t] >= need[j] z / (1 - ahead[j] z)
 *                           sum_t x[j][t] <= 1              (of a job's time)
 *                           sum_j gang[j] x[j][t] <= capacity[t]
 *
 * That is weighted max-min fairness (ahead = 0), makespan (z = 1 / makespan, need =
 * steps) and finish-time fairness (z = 1 / rho).  Few types and many jobs: each type
 * gets a price, a job's cheapest way to its due is then a closed form, and only the
 * prices are searched for.  Every answer comes with a proven bound.
 *
 * Jobs are buyers in slots, added and removed one by one; a market that was solved
 * before continues from its last prices.  Results do not depend on the machine's vector
 * unit.
 *
 * Jobs with identical rates, need, ahead and gang are better put as one buyer of gang *
 * count: each of them then has the share of that buyer, the level is the same, and the
 * solver has less to do.  docs/internals/solver.md has the mathematics.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct error;
struct market;

/* A job.  A type it cannot use has rate 0. */
struct buyer {
    const double *rate; /* [type], finite, >= 0; at least one > 0  */
    double gang;        /* accelerators it needs at once, > 0      */
    double need;        /* > 0                                     */
    double ahead;       /* >= 0; 0 for what is linear              */
};

struct market_answer {
    double level;    /* z, reached by the shares                          */
    double bound;    /* no shares reach more                              */
    uint32_t passes; /* over the jobs, as a measure of work               */

    /*
     * Of an accelerator of each type, scaled so that all of them cost 1 together.  At
     * these prices the cheapest ways to the bound cost at least 1, which proves it; but
     * for a bound that is the limit, or that one job's own fastest type sets.
     */
    double price[16];
};

/* Capacities are finite and >= 0. */
struct market *market_new(uint32_t type_count, const double *capacity,
                          uint32_t slot_max);
void market_free(struct market *market);

/* In an arena, and as long as what is in it: it is not to be freed. */
struct market *market_new_in(struct arena *arena, uint32_t type_count,
                             const double *capacity, uint32_t slot_max);

/* Put a job into a slot, in place of the one in it; remove it. */
void market_put(struct market *market, uint32_t slot, const struct buyer *buyer);
void market_drop(struct market *market, uint32_t slot);
void market_set_capacity(struct market *market, const double *capacity);

/* A level that is enough: the search stops there.  INFINITY: no limit. */
void market_set_limit(struct market *market, double level);

/*
 * Find level and shares, to a relative gap of 'tolerance' (1e-7).  0, or -EDOM with a
 * sentence when it does not get there; the answer then holds what it has proven.
 * No jobs: level and bound are 0.
 */
int market_solve(struct market *market, double tolerance,
                 struct market_answer *ret_answer, struct error *err);

/* The shares of the job in 'slot', as of the last solution; 0 if it was added later. */
void market_share(const struct market *market, uint32_t slot, double *ret_x);
