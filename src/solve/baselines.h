/*
 * baselines.h - shares that need no linear programme: closed forms, first come, first
 * served, and AlloX.
 *
 * Plain arrays, so that policies and 'berth solve' use the same code.  Shares are
 * x[job][type], for pairs x[job, then pair][type].
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct programme_pair;

#define SHARES_NO_TYPE UINT32_MAX

/* Each job an equal part of every type, and no more time than there is:
 *     x[j][t] = capacity[t] / jobs / gang[j], a row divided by its sum where that is > 1 */
void shares_isolated(uint32_t job_count, uint32_t type_count, const double *capacity,
                     const double *gang, double *ret_x);

/* Each job's time split over the types as the accelerators are; it ignores who else is
 * there, so these shares are a yardstick and in general not feasible. */
void shares_proportional(uint32_t job_count, uint32_t type_count,
                         const double *capacity, double *ret_x);

/*
 * First come, first served (Gavel's FIFO): jobs in their order, each a whole type that has
 * room for its gang, until one finds none; a job that could not run even alone is passed
 * over.  'aware' takes the type where it is fastest, otherwise the first with room.
 * With pairs: who finds no room joins the placed job of equal gang beside which the two
 * together do best, if that is more than 1.5 times one alone, until one finds nobody.
 */
struct fifo_queue {
    uint32_t job_count, type_count, pair_count;
    const double *capacity;
    const double *gang;
    const double *rate; /* [job][type] */
    const struct programme_pair *pairs;
    const double *pair_rate; /* [pair][type][2] */
    const uint32_t
        *held; /* [job] type it is on and stays on, or SHARES_NO_TYPE; or NULL */
    bool aware;

    /*
     * The released system's behaviour, defects and all: passed over is who finds room
     * only where it cannot run, and without 'aware' jobs go to the last type on the list of types
     * with room, whether it has any or not; when it is used up exactly, a type drawn at
     * random leaves the list.  'draw' gives a number below 'count'.
     */
    bool released;
    uint32_t (*draw)(void *context, uint32_t count);
    void *draw_context;
};

void shares_fifo(const struct fifo_queue *queue, struct arena *scratch, double *ret_x);

/*
 * AlloX: jobs of one accelerator each, assigned to (worker, place counted from the end of
 * its queue) so that the sum of completion times is least; who is first in line at a
 * worker gets it.  A rate of 0 counts as 1e-10, nobody gets a type it cannot use, and
 * who can use none is left out.  Returns the sum, in seconds.
 */
struct allox {
    uint32_t job_count, type_count;
    const double *capacity; /* whole workers that are free           */
    const double *rate;     /* [job][type]                           */
    const double *steps;    /* left                                  */
    const double *age_s;    /* since it came                         */
};

double shares_allox(const struct allox *allox, struct arena *scratch, double *ret_x);
