/*
 * simplex.c - linear programmes with a handful of rows.
 *
 * The revised primal simplex method with a dense inverse of the basis.  The column with
 * the largest reduced gain enters; when that leads nowhere for a while (degenerate
 * steps), the first one that improves does, which cannot cycle.  The inverse is made anew
 * from the columns every few dozen steps and at the end, so that rounding does not add up.
 */
#include "solve/prices/simplex.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"

#define GAIN_EPS 1e-12  /* a reduced gain below this part of its terms is none     */
#define PIVOT_EPS 1e-10 /* a pivot below this part of its direction is none        */
#define NEGATIVE 1e-10  /* a basic value below minus this part of its terms is one */
#define ROUNDING 1e-12  /* and of the largest terms of all */
#define STEP_EPS 1e-14  /* a step that gains less than this part of all is none */
#define REFACTOR 40     /* steps between inversions                                */
#define PATIENCE 60     /* steps per row and column before giving up               */

void simplex_init(struct simplex *simplex, struct arena *arena, uint32_t row_count,
                  uint32_t column_max)
{
    assert(row_count > 0);
    assert(row_count <= SIMPLEX_ROWS);
    memset(simplex, 0, sizeof *simplex);
    simplex->row_count = row_count;
    simplex->column_max = column_max;
    simplex->amount = arena_array(arena, double, column_max);
    simplex->gain = arena_array(arena, double, column_max);
    simplex->coefficient =
        arena_alloc(arena, column_max, sizeof *simplex->coefficient, 64);
    simplex->basic = arena_array(arena, bool, column_max + row_count);
    simplex_restart(simplex);
}

void simplex_remove(struct simplex *simplex, uint32_t column)
{
    assert(column < simplex->column_count);
    assert(!simplex->basic[column]);
    uint32_t last = --simplex->column_count;
    if (column == last)
        return;
    simplex_set(simplex, column, simplex->gain[last], simplex->coefficient[last]);
    simplex->amount[column] = simplex->amount[last];
    simplex->basic[column] = simplex->basic[last];
    simplex->basic[last] = false;
    for (uint32_t i = 0; i < simplex->row_count; i++)
        if (simplex->basis[i] == last)
            simplex->basis[i] = column;
}

void simplex_clear(struct simplex *simplex)
{
    simplex->column_count = 0;
    simplex_restart(simplex);
}

void simplex_restart(struct simplex *simplex)
{
    uint32_t rows = simplex->row_count;
    memset(simplex->basic, 0, (simplex->column_max + rows) * sizeof *simplex->basic);
    for (uint32_t i = 0; i < rows; i++) {
        memset(simplex->inverse[i], 0, rows * sizeof simplex->inverse[i][0]);
        simplex->basis[i] = simplex->column_max + i;
        simplex->basic[simplex->column_max + i] = true;
        simplex->inverse[i][i] = 1;
        simplex->value[i] = simplex->bound[i];
    }
}

static double gain_of(const struct simplex *simplex, uint32_t variable)
{
    return variable < simplex->column_max ? simplex->gain[variable] : 0;
}

/* Element 'row' of a column or of a slack. */
static double element_of(const struct simplex *simplex, uint32_t variable, uint32_t row)
{
    if (variable < simplex->column_max)
        return simplex->coefficient[variable][row];
    return variable - simplex->column_max == row ? 1 : 0;
}

/* Swap two rows of both halves of the matrix that is being inverted. */
static void swap_rows(double a[][SIMPLEX_ROWS], uint32_t p, uint32_t q, uint32_t rows)
{
    for (uint32_t c = 0; c < rows && p != q; c++) {
        double cell = a[p][c];
        a[p][c] = a[q][c];
        a[q][c] = cell;
    }
}

/* Invert the basis anew from its columns; false where it is singular. */
static bool invert_basis(struct simplex *simplex)
{
    uint32_t rows = simplex->row_count;
    double a[SIMPLEX_ROWS][SIMPLEX_ROWS], b[SIMPLEX_ROWS][SIMPLEX_ROWS];
    for (uint32_t i = 0; i < rows; i++) {
        memset(b[i], 0, rows * sizeof b[i][0]);
        b[i][i] = 1;
        for (uint32_t j = 0; j < rows; j++)
            a[i][j] = element_of(simplex, simplex->basis[j], i);
    }
    for (uint32_t j = 0; j < rows; j++) {
        uint32_t best = j;
        double column_max = 0;
        for (uint32_t i = 0; i < rows; i++) {
            column_max = fmax(column_max, fabs(a[i][j]));
            if (i > j && fabs(a[i][j]) > fabs(a[best][j]))
                best = i;
        }
        if (!(fabs(a[best][j]) > 1e-13 * column_max))
            return false;
        swap_rows(a, j, best, rows);
        swap_rows(b, j, best, rows);
        double scale = 1 / a[j][j];
        for (uint32_t c = 0; c < rows; c++) {
            a[j][c] *= scale;
            b[j][c] *= scale;
        }
        for (uint32_t i = 0; i < rows; i++) {
            double factor = a[i][j];
            if (i == j || factor == 0)
                continue;
            for (uint32_t c = 0; c < rows; c++) {
                a[i][c] -= factor * a[j][c];
                b[i][c] -= factor * b[j][c];
            }
        }
    }
    for (uint32_t i = 0; i < rows; i++)
        memcpy(simplex->inverse[i], b[i], rows * sizeof b[i][0]);
    return true;
}

/*
 * Values of the basis from inverse and bounds; false where one is negative.  A value
 * that should be 0 is the rounding of the other rows, hence the second tolerance.
 */
static bool evaluate_basis(struct simplex *simplex)
{
    uint32_t rows = simplex->row_count;
    double terms[SIMPLEX_ROWS] = { 0 }, terms_max = 0;
    for (uint32_t i = 0; i < rows; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < rows; j++) {
            double term = simplex->inverse[i][j] * simplex->bound[j];
            sum += term;
            terms[i] += fabs(term);
        }
        simplex->value[i] = sum;
        terms_max = fmax(terms_max, terms[i]);
    }
    bool feasible = true;
    for (uint32_t i = 0; i < rows; i++) {
        if (simplex->value[i] < -NEGATIVE * terms[i] - ROUNDING * terms_max)
            feasible = false;
        simplex->value[i] = fmax(simplex->value[i], 0);
    }
    return feasible;
}

bool simplex_refresh(struct simplex *simplex)
{
    if (invert_basis(simplex) && evaluate_basis(simplex))
        return true;
    simplex_restart(simplex);
    return false;
}

static void price_rows(struct simplex *simplex)
{
    uint32_t rows = simplex->row_count;
    for (uint32_t j = 0; j < rows; j++)
        simplex->dual[j] = 0;
    for (uint32_t i = 0; i < rows; i++) {
        double gain = gain_of(simplex, simplex->basis[i]);
        if (gain != 0)
            for (uint32_t j = 0; j < rows; j++)
                simplex->dual[j] += gain * simplex->inverse[i][j];
    }
}

double simplex_reduced(const struct simplex *simplex, double gain,
                       const double *coefficients)
{
    double terms = fabs(gain);
    for (uint32_t i = 0; i < simplex->row_count; i++) {
        double term = simplex->dual[i] * coefficients[i];
        gain -= term;
        terms += fabs(term);
    }
    return fabs(gain) > GAIN_EPS * terms ? gain : 0;
}

/* The column or slack to enter, or none: UINT32_MAX. */
static uint32_t choose_entering(const struct simplex *simplex, bool first,
                                double *ret_gain)
{
    uint32_t best = UINT32_MAX;
    double best_gain = 0, dual_max = 0;
    *ret_gain = 0;
    for (uint32_t c = 0; c < simplex->column_count; c++) {
        if (simplex->basic[c])
            continue;
        double gain =
            simplex_reduced(simplex, simplex->gain[c], simplex->coefficient[c]);
        if (gain <= best_gain)
            continue;
        best = c;
        *ret_gain = best_gain = gain;
        if (first)
            return best;
    }
    for (uint32_t i = 0; i < simplex->row_count; i++)
        dual_max = fmax(dual_max, fabs(simplex->dual[i]));
    for (uint32_t i = 0; i < simplex->row_count; i++) {
        double gain = -simplex->dual[i];
        uint32_t slack = simplex->column_max + i;
        if (simplex->basic[slack] || gain <= best_gain || gain <= GAIN_EPS * dual_max)
            continue;
        best = slack;
        *ret_gain = best_gain = gain;
        if (first)
            return best;
    }
    return best;
}

static void direction_of(const struct simplex *simplex, uint32_t variable,
                         double *ret_direction)
{
    uint32_t rows = simplex->row_count;
    for (uint32_t i = 0; i < rows; i++) {
        double sum = 0;
        if (variable >= simplex->column_max)
            sum = simplex->inverse[i][variable - simplex->column_max];
        else
            for (uint32_t j = 0; j < rows; j++)
                sum += simplex->inverse[i][j] * simplex->coefficient[variable][j];
        ret_direction[i] = sum;
    }
}

/* The row of the basic variable that leaves, or none: UINT32_MAX. */
static uint32_t choose_leaving(const struct simplex *simplex, const double *direction,
                               bool first)
{
    double largest = 0, least = INFINITY;
    for (uint32_t i = 0; i < simplex->row_count; i++)
        largest = fmax(largest, fabs(direction[i]));
    for (uint32_t i = 0; i < simplex->row_count; i++)
        if (direction[i] > PIVOT_EPS * largest)
            least = fmin(least, simplex->value[i] / direction[i]);
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < simplex->row_count; i++) {
        if (!(direction[i] > PIVOT_EPS * largest) ||
            simplex->value[i] / direction[i] > least * (1 + 1e-12))
            continue;
        if (best == UINT32_MAX || (first ? simplex->basis[i] < simplex->basis[best]
                                         : direction[i] > direction[best]))
            best = i;
    }
    return best;
}

static void exchange_basis(struct simplex *simplex, uint32_t row, uint32_t variable,
                           const double *direction)
{
    uint32_t rows = simplex->row_count;
    double step = simplex->value[row] / direction[row];
    double scale = 1 / direction[row];
    for (uint32_t j = 0; j < rows; j++)
        simplex->inverse[row][j] *= scale;
    for (uint32_t i = 0; i < rows; i++) {
        if (i == row)
            continue;
        simplex->value[i] = fmax(simplex->value[i] - step * direction[i], 0);
        for (uint32_t j = 0; j < rows; j++)
            simplex->inverse[i][j] -= direction[i] * simplex->inverse[row][j];
    }
    simplex->value[row] = step;
    simplex->basic[simplex->basis[row]] = false;
    simplex->basis[row] = variable;
    simplex->basic[variable] = true;
}

static double objective_of(const struct simplex *simplex)
{
    double sum = 0;
    for (uint32_t i = 0; i < simplex->row_count; i++)
        sum += gain_of(simplex, simplex->basis[i]) * simplex->value[i];
    return fabs(sum);
}

/* Pivot until optimal.  False where the inverse was lost to rounding. */
static bool run_pivots(struct simplex *simplex, uint32_t pivots_max,
                       enum simplex_status *ret_status)
{
    double direction[SIMPLEX_ROWS];
    uint32_t since_inversion = 0, stuck = 0;
    for (;;) {
        price_rows(simplex);
        bool first = stuck > 2 * simplex->row_count;
        double gain = 0;
        uint32_t variable = choose_entering(simplex, first, &gain);
        *ret_status = SIMPLEX_OPTIMAL;
        if (variable == UINT32_MAX)
            return since_inversion == 0 ||
                   (invert_basis(simplex) && evaluate_basis(simplex));
        *ret_status = SIMPLEX_GAVE_UP;
        if (simplex->pivots >= pivots_max)
            return invert_basis(simplex) && evaluate_basis(simplex);
        direction_of(simplex, variable, direction);
        uint32_t row = choose_leaving(simplex, direction, first);
        *ret_status = SIMPLEX_UNBOUNDED;
        if (row == UINT32_MAX)
            return true;
        double step = simplex->value[row] / direction[row];
        stuck = step * gain > STEP_EPS * objective_of(simplex) ? 0 : stuck + 1;
        exchange_basis(simplex, row, variable, direction);
        simplex->pivots++;
        if (++since_inversion < REFACTOR)
            continue;
        since_inversion = 0;
        if (!invert_basis(simplex) || !evaluate_basis(simplex))
            return false;
    }
}

static void collect_solution(struct simplex *simplex)
{
    price_rows(simplex);
    for (uint32_t c = 0; c < simplex->column_count; c++)
        simplex->amount[c] = 0;
    simplex->objective = 0;
    for (uint32_t i = 0; i < simplex->row_count; i++) {
        simplex->dual[i] = fmax(simplex->dual[i], 0);
        if (simplex->basis[i] >= simplex->column_max)
            continue;
        simplex->amount[simplex->basis[i]] = simplex->value[i];
        simplex->objective += gain_of(simplex, simplex->basis[i]) * simplex->value[i];
    }
}

enum simplex_status simplex_solve(struct simplex *simplex)
{
    enum simplex_status status;
    uint32_t pivots_max =
        PATIENCE * (simplex->row_count + simplex->column_count) + 1000;
    simplex->pivots = 0;
    if (!run_pivots(simplex, pivots_max, &status)) {
        /* The basis was singular: once more, from the slacks. */
        simplex_restart(simplex);
        simplex->pivots = 0;
        if (!run_pivots(simplex, pivots_max, &status)) {
            simplex_restart(simplex);
            status = SIMPLEX_GAVE_UP;
        }
    }
    collect_solution(simplex);
    return status;
}
