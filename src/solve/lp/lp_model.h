/*
 * lp_model.h - a programme's shares as the columns of a linear programme.
 *
 *     maximise  z  or  sum value x
 *     so that   sum gang x <= capacity             for each type
 *               sum x <= 1                         for each job
 *               unit sum rate x >= floor + need z  for each job that asks for it
 *
 * Built once and changed between solutions, which then go on from each other.  From the
 * duals it proves a bound of its own, so that an answer need not be believed.
 */
#pragma once

#include "solve/problem.h"
#include "solve/lp/lp.h"

struct linear {
    const struct frame *frame;
    struct lp *lp;
    uint32_t *columns;   /* [line][type], or LINEAR_NONE                */
    const double *unit;  /* [job]                                       */
    const double *value; /* [line][type], or NULL                       */
    double *need;        /* [job]                                       */
    double *floor;       /* [job]                                       */
    uint32_t level;      /* the column of z                             */
    uint32_t spare;      /* the first of the columns of spare, by job   */
    uint32_t iterations; /* in all                                      */
};

#define LINEAR_NONE UINT32_MAX

/*
 * Lines get columns if 'value' is NULL and a member's unit is not 0, or if they have a
 * value.  Values are gains unless taken away.
 */
void linear_init(struct linear *linear, const struct frame *frame, const double *unit,
                 const double *value);
void linear_release(struct linear *linear);

/* What a job is to have, at least; 0: nothing. */
void linear_set_floor(struct linear *linear, uint32_t job, double floor);

/* Add z, which is at most 'most', and what each job is to have per unit of it. */
void linear_add_level(struct linear *linear, double most, const double *need);
void linear_set_need(struct linear *linear, uint32_t job, double need);

/* Let z be wanted, and up to 'most'; or keep it at 0, where 'most' is 0. */
void linear_set_level(struct linear *linear, double most);

/* Other values for the same lines. */
void linear_set_value(struct linear *linear, const double *value);

/* One more condition: the sum of coefficient[line][type] x is at least 'low'.  After it
 * linear_bound() proves nothing. */
void linear_add_cut(struct linear *linear, const double *coefficients, double low);

/*
 * Add a column per job that holds what it has beyond its floor, kept at 0 at first:
 *     unit sum rate x - spare >= floor + need z
 */
void linear_add_spare(struct linear *linear);
void linear_set_spare(struct linear *linear, uint32_t job, double most);

enum lp_status linear_maximise(struct linear *linear);

/* What came out for z, and for a job's spare. */
double linear_level(const struct linear *linear);
double linear_spare(const struct linear *linear, uint32_t job);

/* The shares, made feasible. */
void linear_shares(const struct linear *linear, double *ret_x);

/* No shares reach more than this, whatever the solver says: proven from the duals. */
double linear_bound(const struct linear *linear);

/* A job's dual: how much z or the sum falls per unit of its floor. */
double linear_pull(const struct linear *linear, uint32_t job);
