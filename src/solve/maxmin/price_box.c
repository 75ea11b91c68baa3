/*
 * price_box.c - bounds on the best prices.
 *
 * Both programmes are solved as their duals, which have as many rows as there are
 * prices and start from the slacks:
 *
 *     least pi_t  = max  sum v_i - upper w
 *                   so that  sum v_i u_ij - w <= [j = t]
 *
 *     largest pi_t = upper - (least of what the others and the slack take)
 *                  = upper - max  sum v_i (1 - upper u_it) - upper w
 *                   so that  sum v_i (u_ij - u_it) - w <= 1   (j other than t)
 *                            sum v_i (     - u_it) - w <= 1
 */
#include "solve/maxmin/price_box.h"

#include "solve/maxmin/simplex.h"

#define MARGIN 1e-7 /* for rounding: of the value, and of the sum of prices */

static bool find_least(const struct simplex *master, double upper, uint32_t row,
                       struct simplex *scratch, double *ret_value)
{
    double coefficient[SIMPLEX_ROWS], bound[SIMPLEX_ROWS] = { 0 };
    bound[row] = 1;
    simplex_clear(scratch);
    simplex_bounds(scratch, bound);
    simplex_restart(scratch);
    for (uint32_t c = 0; c < master->column_count; c++)
        simplex_add(scratch, 1, master->coefficient[c]);
    for (uint32_t j = 0; j < master->row_count; j++)
        coefficient[j] = -1;
    simplex_add(scratch, -upper, coefficient);
    if (simplex_solve(scratch) != SIMPLEX_OPTIMAL)
        return false;
    *ret_value = scratch->objective;
    return true;
}

static bool find_largest(const struct simplex *master, double upper, uint32_t row,
                         struct simplex *scratch, double *ret_value)
{
    double coefficient[SIMPLEX_ROWS], bound[SIMPLEX_ROWS];
    for (uint32_t j = 0; j < master->row_count; j++)
        bound[j] = 1;
    simplex_clear(scratch);
    simplex_bounds(scratch, bound);
    simplex_restart(scratch);
    for (uint32_t c = 0; c < master->column_count; c++) {
        double own = master->coefficient[c][row];
        for (uint32_t j = 0; j < master->row_count; j++)
            coefficient[j] = (j == row ? 0 : master->coefficient[c][j]) - own;
        simplex_add(scratch, 1 - upper * own, coefficient);
    }
    for (uint32_t j = 0; j < master->row_count; j++)
        coefficient[j] = -1;
    simplex_add(scratch, -upper, coefficient);
    if (simplex_solve(scratch) != SIMPLEX_OPTIMAL)
        return false;
    *ret_value = upper - scratch->objective;
    return true;
}

bool price_box_find(const struct simplex *master, double upper, struct simplex *scratch,
                    double *ret_low, double *ret_high)
{
    upper *= 1 + MARGIN * MARGIN;
    for (uint32_t row = 0; row < master->row_count; row++) {
        double low, high;
        if (!find_least(master, upper, row, scratch, &low) ||
            !find_largest(master, upper, row, scratch, &high) || !(low <= high))
            return false;
        low -= MARGIN * (low + upper * 1e-3);
        high += MARGIN * (high + upper * 1e-3);
        ret_low[row] = low > 0 ? low : 0;
        ret_high[row] = high;
    }
    return true;
}
