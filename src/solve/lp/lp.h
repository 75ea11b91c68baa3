/*
 * lp.h - a linear programme in, a solution out.
 *
 * The general path, and the reference that tests compare the fast ones with.  Only lp.c
 * includes the library.
 */
#pragma once

#include <stdint.h>

struct error;
struct lp; /* maximise gain.x over low <= x <= high and rows low <= Ax <= high */

#define LP_INFINITY 1e300 /* no bound */

enum lp_method { LP_DUAL, LP_PRIMAL };

enum lp_status {
    LP_OPTIMAL,
    LP_INFEASIBLE,
    LP_UNBOUNDED,
    LP_GAVE_UP, /* numbers or patience ran out */
};

/*
 * See whether the solver is there: it is loaded when it is first wanted.  0, or -ELIBACC
 * and a sentence; lp_new() without it ends the program.
 */
int lp_load(struct error *err);

struct lp *lp_new(void);
void lp_free(struct lp *lp);

/* Add a row or a column; its number is returned, counted from 0.  Rows come first: a
 * column may only name rows that are there.  Coefficients of 0 may be left out. */
uint32_t lp_add_row(struct lp *lp, double low, double high);
uint32_t lp_add_column(struct lp *lp, double gain, double low, double high,
                       uint32_t count, const uint32_t *rows,
                       const double *coefficients);

/* Change it; the next call of lp_maximise() continues from the last basis. */
void lp_set_row(struct lp *lp, uint32_t row, double low, double high);
void lp_set_column(struct lp *lp, uint32_t column, double low, double high);
void lp_set_gain(struct lp *lp, uint32_t column, double gain);
void lp_set_coefficient(struct lp *lp, uint32_t row, uint32_t column, double value);

/* A further row over columns that are there. */
uint32_t lp_add_cut(struct lp *lp, double low, double high, uint32_t count,
                    const uint32_t *columns, const double *coefficients);

enum lp_status lp_maximise(struct lp *lp, enum lp_method method);

/* Of the last solution; valid until the programme is changed. */
double lp_objective(const struct lp *lp);
const double *lp_columns(const struct lp *lp); /* x                                  */
const double *lp_duals(const struct lp *lp);   /* gain per unit of each row's bound  */
uint32_t lp_iterations(const struct lp *lp);   /* of the last call                   */
