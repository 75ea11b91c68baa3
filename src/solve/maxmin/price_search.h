/*
 * price_search.h - look for the prices at which a field's level is least, and thereby largest.
 *
 * At any prices p with sum p * room = 1, what the crowd's cheapest ways cost at level z
 * grows with z, and a level at which they cost more than 1 is out of reach: prices give
 * upper bounds.  What the crowd used at some prices, per level, is a column; mixtures of
 * columns that fit into the capacities give lower bounds, and the duals of the best
 * mixture are the prices to try next.
 */
#pragma once

#include "base/arena.h"
#include "solve/maxmin/active_set.h"
#include "solve/maxmin/simplex.h"

#define SEARCH_COLUMNS 224

struct search {
    struct field *field;
    const double *capacity; /* of everybody */

    double ceiling;           /* the level that somebody's own fastest type allows    */
    double lower, upper;      /* bounds within the field                              */
    bool priced;              /* 'upper' was proven by prices, not by the ceiling     */
    double best[CROWD_TYPES]; /* the prices that proved it, or came nearest         */
    double best_cost;
    double steepness; /* how much faster than the level the cost grows there, >= 1 */

    uint32_t row_count, type_of_row[CROWD_TYPES];
    struct simplex master, scratch;
    struct point points[SEARCH_COLUMNS]; /* by column */
    struct point held[CROWD_TYPES]; /* a mixture found below the upper bound ...  */
    uint32_t held_count;
    double held_level; /* ... and what it reaches; 0: there is none */
    double narrow_gap; /* the gap at which to look for a smaller box           */
    double box_width;  /* of the last one                                      */
};

void search_init(struct search *search, struct arena *arena, struct field *field,
                 const double *capacity);

/* Begin on the field as it is now, with no columns; 'upper' is the ceiling or less. */
void search_begin(struct search *search, double upper);

/* Begin again, from the most useful columns so far; at most 'keep' of them. */
void search_again(struct search *search, double upper, uint32_t keep);

/* Until the gap is at most 'tolerance' (relative); false where it does not get there. */
bool search_run(struct search *search, double tolerance, bool narrow);

/* Leave out the least useful columns; the mixture stays. */
void search_forget(struct search *search, uint32_t keep);

/*
 * Add (1) or subtract (-1) what the job in a slot uses at each column's prices: with the
 * whole field this keeps columns true without asking anybody else.  search_refresh()
 * mixes them again.
 */
void search_count(struct search *search, uint32_t slot, double sign);
void search_refresh(struct search *search);

/* The mixture that reaches 'lower'; how many points it has. */
uint32_t search_mixture(const struct search *search, struct point *ret_points,
                        double *ret_level);
