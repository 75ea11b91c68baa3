/*
 * price_search.h - search for the prices that prove the least upper bound on the level.
 *
 * At any prices p with sum p * room = 1, the cost of all jobs' cheapest ways to level z
 * grows with z, and a level at which it exceeds 1 is out of reach: prices give upper
 * bounds.  What the jobs used at some prices, per level, is a column of the master
 * programme; mixtures of columns that fit into the capacities give lower bounds, and
 * the duals of the best mixture are the prices to try next.
 */
#pragma once

#include "base/arena.h"
#include "solve/prices/active_set.h"
#include "solve/prices/simplex.h"

#define PRICE_SEARCH_COLUMNS 224

struct price_search {
    struct active_set *set;
    const double *capacity; /* of all jobs */

    double ceiling;      /* the level that some job's own fastest type allows */
    double lower, upper; /* bounds within the set                              */
    bool priced;         /* 'upper' was proven by prices, not by the ceiling     */
    double
        best[BATCH_TYPES_MAX]; /* the prices that proved it, or came nearest         */
    double best_cost;
    double steepness; /* how much faster than the level the cost grows there, >= 1 */

    uint32_t row_count, type_of_row[BATCH_TYPES_MAX];
    struct simplex master, scratch;
    struct price_point points[PRICE_SEARCH_COLUMNS]; /* by column */
    struct price_point
        held[BATCH_TYPES_MAX]; /* a mixture found below the upper bound ...  */
    uint32_t held_count;
    double held_level; /* ... and what it reaches; 0: there is none */
    double narrow_gap; /* the gap at which to compute a smaller box */
    double box_width;  /* of the last one                                      */
};

void price_search_init(struct price_search *search, struct arena *arena,
                       struct active_set *set, const double *capacity);

/* Begin on the set as it is now, with no columns; 'upper' is the ceiling or less. */
void price_search_begin(struct price_search *search, double upper);

/* Begin again, from the most useful columns so far; at most 'keep' of them. */
void price_search_restart(struct price_search *search, double upper, uint32_t keep);

/* Until the gap is at most 'tolerance' (relative); false where it does not get there. */
bool price_search_run(struct price_search *search, double tolerance, bool narrow);

/* Leave out the least useful columns; the mixture stays. */
void price_search_prune(struct price_search *search, uint32_t keep);

/*
 * Add (1) or subtract (-1) what the job in a slot uses at each column's prices.  With
 * all jobs active that keeps columns true without evaluating any other job.
 * price_search_refresh() mixes them again.
 */
void price_search_count_job(struct price_search *search, uint32_t slot, double sign);
void price_search_refresh(struct price_search *search);

/* The mixture that reaches 'lower'; how many points it has. */
uint32_t price_search_mixture(const struct price_search *search,
                              struct price_point *ret_points, double *ret_level);
