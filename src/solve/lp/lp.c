/*
 * lp.c - a linear programme in, a solution out, by CLP.
 *
 * CLP minimises and this interface maximises, so gains go in and duals come out with
 * their signs turned.  New rows and columns are collected here and handed over in one
 * piece.
 *
 * The library is loaded when the first programme is made: with its own dependencies
 * (C++, LAPACK, Fortran's runtime) that takes longer than most commands do, and few of
 * them solve anything.
 */
#include "solve/lp/lp.h"

#include <coin/Clp_C_Interface.h>
#include <dlfcn.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/memory.h"

#define LIBRARY "libClp.so.1"
#define TOLERANCE 1e-10 /* of rows and reduced costs: our answers are good to 1e-6 */
#define PATIENCE 200    /* steps per row and column before it gives up            */

/* --- the library ------------------------------------------------------------------------ */

/* clang-format off */
#define EACH_FUNCTION(X)                                                                \
    X(addColumns) X(addRows) X(columnLower) X(columnUpper) X(deleteModel) X(dual)       \
    X(dualRowSolution) X(modifyCoefficient) X(newModel) X(numberIterations)             \
    X(objective) X(objectiveValue) X(primal) X(primalColumnSolution) X(rowLower)        \
    X(rowUpper) X(setDualTolerance) X(setLogLevel) X(setMaximumIterations)              \
    X(setPrimalTolerance) X(status)
/* clang-format on */

/* Its functions, by their names without "Clp_". */
static struct {
#define POINTER(name) __typeof__(Clp_##name) *name;
    EACH_FUNCTION(POINTER)
} clp;

static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static char *why_not; /* it is not there; NULL: it is */

static void load_library(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool whole = library != NULL;
    /* C converts an object pointer to a function pointer only through memory. */
#define FIND(name) \
    whole = whole && (*(void **)(void *)&clp.name = dlsym(library, "Clp_" #name));
    EACH_FUNCTION(FIND)
    if (whole)
        return;
    const char *said = dlerror();
    why_not = memory_text(said ? said : LIBRARY);
}

int lp_load(struct error *err)
{
    pthread_once(&loaded, load_library);
    if (!why_not)
        return 0;
    return error_set(err, -ELIBACC,
                     "this needs the solver CLP (package coinor-libclp1), which cannot "
                     "be loaded: %.300s",
                     why_not);
}

/* --- a programme ------------------------------------------------------------------------ */

struct lp {
    Clp_Simplex *model;
    uint32_t row_count, column_count; /* with those that wait to be handed over */

    /* rows that wait */
    uint32_t fresh_count, fresh_max;
    double *fresh_lows, *fresh_highs;

    /* columns that wait */
    uint32_t new_count, new_max;
    uint32_t entry_count, entry_max;
    double *gains, *lows, *highs;
    int *starts; /* new_count + 1 */
    int *rows;
    double *coefficients;

    double *duals;
    uint32_t dual_max;
    uint32_t iterations;
};

struct lp *lp_new(void)
{
    struct error err;
    if (lp_load(&err) <
        0) { /* callers that can report it better call lp_load() first */
        fprintf(stderr, "berth: %s\n", err.text);
        abort();
    }
    struct lp *lp = memory_resize(NULL, 1, sizeof *lp);
    *lp = (struct lp){ .model = clp.newModel() };
    clp.setLogLevel(lp->model, 0);
    clp.setPrimalTolerance(lp->model, TOLERANCE);
    clp.setDualTolerance(lp->model, TOLERANCE);
    return lp;
}

void lp_free(struct lp *lp)
{
    if (!lp)
        return;
    clp.deleteModel(lp->model);
    free(lp->fresh_lows);
    free(lp->fresh_highs);
    free(lp->gains);
    free(lp->lows);
    free(lp->highs);
    free(lp->starts);
    free(lp->rows);
    free(lp->coefficients);
    free(lp->duals);
    free(lp);
}

static double clp_bound(double value)
{
    if (value >= LP_INFINITY)
        return DBL_MAX;
    return value <= -LP_INFINITY ? -DBL_MAX : value;
}

/* Hand over what waits: rows first, since the columns may name them. */
static void flush_pending(struct lp *lp)
{
    if (lp->fresh_count > 0) {
        const double none = 0;
        const int column = 0;
        int *starts = memory_resize(NULL, lp->fresh_count + 1, sizeof *starts);
        memset(starts, 0, (lp->fresh_count + 1) * sizeof *starts);
        clp.addRows(lp->model, (int)lp->fresh_count, lp->fresh_lows, lp->fresh_highs,
                    starts, &column, &none);
        free(starts);
        lp->fresh_count = 0;
    }
    if (lp->new_count == 0)
        return;
    lp->starts[lp->new_count] = (int)lp->entry_count;
    clp.addColumns(lp->model, (int)lp->new_count, lp->lows, lp->highs, lp->gains,
                   lp->starts, lp->rows, lp->coefficients);
    lp->new_count = 0;
    lp->entry_count = 0;
}

uint32_t lp_add_row(struct lp *lp, double low, double high)
{
    if (lp->new_count > 0)
        flush_pending(lp);
    if (lp->fresh_count == lp->fresh_max) {
        lp->fresh_max = grow_room(lp->fresh_max, lp->fresh_count + 1);
        lp->fresh_lows =
            memory_resize(lp->fresh_lows, lp->fresh_max, sizeof *lp->fresh_lows);
        lp->fresh_highs =
            memory_resize(lp->fresh_highs, lp->fresh_max, sizeof *lp->fresh_highs);
    }
    lp->fresh_lows[lp->fresh_count] = clp_bound(low);
    lp->fresh_highs[lp->fresh_count++] = clp_bound(high);
    return lp->row_count++;
}

uint32_t lp_add_cut(struct lp *lp, double low, double high, uint32_t count,
                    const uint32_t *columns, const double *coefficients)
{
    flush_pending(lp);
    const int starts[2] = { 0, (int)count };
    low = clp_bound(low);
    high = clp_bound(high);
    clp.addRows(lp->model, 1, &low, &high, starts, (const int *)columns, coefficients);
    return lp->row_count++;
}

uint32_t lp_add_column(struct lp *lp, double gain, double low, double high,
                       uint32_t count, const uint32_t *rows, const double *coefficients)
{
    if (lp->new_count == lp->new_max) {
        lp->new_max = grow_room(lp->new_max, lp->new_count + 1);
        lp->gains = memory_resize(lp->gains, lp->new_max, sizeof *lp->gains);
        lp->lows = memory_resize(lp->lows, lp->new_max, sizeof *lp->lows);
        lp->highs = memory_resize(lp->highs, lp->new_max, sizeof *lp->highs);
        lp->starts = memory_resize(lp->starts, lp->new_max + 1, sizeof *lp->starts);
    }
    if (lp->entry_count + count > lp->entry_max) {
        lp->entry_max = grow_room(lp->entry_max, lp->entry_count + count);
        lp->rows = memory_resize(lp->rows, lp->entry_max, sizeof *lp->rows);
        lp->coefficients =
            memory_resize(lp->coefficients, lp->entry_max, sizeof *lp->coefficients);
    }
    lp->gains[lp->new_count] = -gain;
    lp->lows[lp->new_count] = clp_bound(low);
    lp->highs[lp->new_count] = clp_bound(high);
    lp->starts[lp->new_count++] = (int)lp->entry_count;
    for (uint32_t i = 0; i < count; i++) {
        lp->rows[lp->entry_count] = (int)rows[i];
        lp->coefficients[lp->entry_count++] = coefficients[i];
    }
    return lp->column_count++;
}

void lp_set_row(struct lp *lp, uint32_t row, double low, double high)
{
    flush_pending(lp);
    clp.rowLower(lp->model)[row] = clp_bound(low);
    clp.rowUpper(lp->model)[row] = clp_bound(high);
}

void lp_set_column(struct lp *lp, uint32_t column, double low, double high)
{
    flush_pending(lp);
    clp.columnLower(lp->model)[column] = clp_bound(low);
    clp.columnUpper(lp->model)[column] = clp_bound(high);
}

void lp_set_gain(struct lp *lp, uint32_t column, double gain)
{
    flush_pending(lp);
    clp.objective(lp->model)[column] = -gain;
}

void lp_set_coefficient(struct lp *lp, uint32_t row, uint32_t column, double value)
{
    flush_pending(lp);
    clp.modifyCoefficient(lp->model, (int)row, (int)column, value, true);
}

enum lp_status lp_maximise(struct lp *lp, enum lp_method method)
{
    flush_pending(lp);
    double size = (double)lp->row_count + lp->column_count;
    clp.setMaximumIterations(lp->model, (int)fmin(PATIENCE * size + 1000, 1e9));
    if (method == LP_DUAL)
        clp.dual(lp->model, 0);
    else
        clp.primal(lp->model, 0);
    lp->iterations = (uint32_t)clp.numberIterations(lp->model);
    switch (clp.status(lp->model)) {
    case 0:
        break;
    case 1:
        return LP_INFEASIBLE;
    case 2:
        return LP_UNBOUNDED;
    default:
        return LP_GAVE_UP;
    }
    if (lp->row_count > lp->dual_max) {
        lp->dual_max = lp->row_count;
        lp->duals = memory_resize(lp->duals, lp->dual_max, sizeof *lp->duals);
    }
    const double *duals = clp.dualRowSolution(lp->model);
    for (uint32_t row = 0; row < lp->row_count; row++)
        lp->duals[row] = -duals[row];
    return LP_OPTIMAL;
}

double lp_objective(const struct lp *lp)
{
    return -clp.objectiveValue(lp->model);
}

const double *lp_columns(const struct lp *lp)
{
    return clp.primalColumnSolution(lp->model);
}

const double *lp_duals(const struct lp *lp)
{
    return lp->duals;
}

uint32_t lp_iterations(const struct lp *lp)
{
    return lp->iterations;
}
