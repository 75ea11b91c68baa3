/*
 * price_box.h - bounds on the best prices: the box that must contain them.
 *
 * The columns of the master programme (what the jobs used at some prices) and an upper
 * bound on the level leave only some prices possible: with u_i the columns,
 *     pi >= 0,   pi . u_i >= 1 for all i,   sum pi <= upper
 * The box around them is found by two small programmes per row.
 */
#pragma once

#include <stdbool.h>

struct simplex;

/*
 * 'master' has bounds of 1 and gains of 1.  'scratch' has as many rows, and room for a
 * column more; it is overwritten.  Writes low[row] and high[row].  False where no box
 * was found.
 */
bool price_box_find(const struct simplex *master, double upper, struct simplex *scratch,
                    double *ret_low, double *ret_high);
