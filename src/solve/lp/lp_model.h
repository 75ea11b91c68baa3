/*
 * lp_model.h - the shares of a programme as the columns of a linear programme.
 *
 *     maximise  z  or  sum value x
 *     so that   sum gang x <= capacity             for each type
 *               sum x <= 1                         for each job
 *               unit sum rate x >= floor + need z  for each job with a floor or need
 *
 * Built once and changed between solutions, which then continue from each other.  It
 * proves a bound of its own from the duals, so that the solver need not be trusted.
 */
#pragma once

#include "solve/problem.h"
#include "solve/lp/lp.h"

struct lp_model {
    const struct problem *problem;
    struct lp *lp;
    uint32_t *columns;   /* [line][type], or LP_MODEL_NONE                */
    const double *unit;  /* [job]                                       */
    const double *value; /* [line][type], or NULL                       */
    double *need;        /* [job]                                       */
    double *floor;       /* [job]                                       */
    uint32_t time_rows;  /* the first row of jobs' time; others follow  */
    uint32_t rate_rows;  /* the first row of jobs' rates                */
    uint32_t level;      /* the column of z                             */
    uint32_t iterations; /* in all                                      */
};

#define LP_MODEL_NONE UINT32_MAX

/*
 * Lines get columns if 'value' is NULL and a member's unit is not 0, or if they have a
 * value.  Values are gains unless taken away.
 */
void lp_model_init(struct lp_model *model, const struct problem *problem,
                   const double *unit, const double *value);
void lp_model_release(struct lp_model *model);

/* What a job is to have, at least; 0: nothing. */
void lp_model_set_floor(struct lp_model *model, uint32_t job, double floor);

/* Add z, which is at most 'most', and what each job is to have per unit of it. */
void lp_model_add_level(struct lp_model *model, double most, const double *need);
void lp_model_set_need(struct lp_model *model, uint32_t job, double need);

enum lp_status lp_model_maximise(struct lp_model *model);

/* The shares, made feasible. */
void lp_model_shares(const struct lp_model *model, double *ret_x);

/* A bound on z or the sum, proven from the duals without trusting the solver. */
double lp_model_bound(const struct lp_model *model);

/* A job's dual: how much z or the sum falls per unit of its floor. */
double lp_model_job_price(const struct lp_model *model, uint32_t job);
