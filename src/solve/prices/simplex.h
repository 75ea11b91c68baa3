/*
 * simplex.h - linear programmes with a handful of rows.
 *
 *     maximise gain.y  so that  A y <= bound,  y >= 0,      bound >= 0
 *
 * The master programme of the price search: as many rows as there are types, columns
 * that are added one by one.  Since bounds are not negative, no column at all is a
 * first solution.  The inverse of the basis is kept, so one more column costs a few
 * pivots.  No memory is allocated after simplex_init().
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define SIMPLEX_ROWS 18 /* at most */

struct arena;

enum simplex_status {
    SIMPLEX_OPTIMAL,
    SIMPLEX_UNBOUNDED,
    SIMPLEX_GAVE_UP, /* rounding won; the last solution is feasible */
};

/* Callers may read all of it and write by the functions below. */
struct simplex {
    uint32_t row_count, column_count, column_max;

    /* of the last solution */
    double objective;
    double dual[SIMPLEX_ROWS]; /* gain per unit of bound, >= 0 */
    double *amount;            /* [column] y                   */
    uint32_t pivots;           /* of the last call             */

    /* the programme */
    double bound[SIMPLEX_ROWS];
    double *gain;                        /* [column] */
    double (*coefficient)[SIMPLEX_ROWS]; /* [column] */

    /* the basis: columns, or column_max + row for the slack of a row */
    uint32_t basis[SIMPLEX_ROWS];
    bool *basic; /* [column, then slack] */
    double value[SIMPLEX_ROWS];
    double inverse[SIMPLEX_ROWS][SIMPLEX_ROWS];
};

void simplex_init(struct simplex *simplex, struct arena *arena, uint32_t row_count,
                  uint32_t column_max);

/* Change the bounds; call simplex_refresh() or simplex_restart() afterwards. */
static inline void simplex_bounds(struct simplex *simplex, const double *bound)
{
    for (uint32_t i = 0; i < simplex->row_count; i++) {
        assert(bound[i] >= 0);
        simplex->bound[i] = bound[i];
    }
}

/* Change a column; call simplex_refresh() or simplex_restart() when all are changed. */
static inline void simplex_set(struct simplex *simplex, uint32_t column, double gain,
                               const double *coefficients)
{
    assert(column < simplex->column_count);
    simplex->gain[column] = gain;
    for (uint32_t i = 0; i < simplex->row_count; i++)
        simplex->coefficient[column][i] = coefficients[i];
}

/* Add a column; its number is returned.  The basis stays what it is. */
static inline uint32_t simplex_add(struct simplex *simplex, double gain,
                                   const double *coefficients)
{
    assert(simplex->column_count < simplex->column_max);
    uint32_t column = simplex->column_count++;
    simplex->basic[column] = false;
    simplex->amount[column] = 0;
    simplex_set(simplex, column, gain, coefficients);
    return column;
}

/* Remove a column that is not in the basis; the last one takes its number. */
void simplex_remove(struct simplex *simplex, uint32_t column);

/* Remove all columns and go back to the slacks. */
void simplex_clear(struct simplex *simplex);

/* Go on from the slacks. */
void simplex_restart(struct simplex *simplex);

/*
 * Go on from the last basis with what columns and bounds are now.  False where that basis
 * is no longer a feasible one; then from the slacks, as after simplex_restart().
 */
bool simplex_refresh(struct simplex *simplex);

enum simplex_status simplex_solve(struct simplex *simplex);

/* What a unit of this column would gain: > 0 improves the last solution. */
double simplex_reduced(const struct simplex *simplex, double gain,
                       const double *coefficients);
