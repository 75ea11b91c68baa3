/*
 * baselines.h - the assignment problem: a column for every row at the least total cost.
 *
 * Shortest augmenting paths: rows^2 * columns steps at most, in practice far fewer.
 */
#pragma once

#include <stdint.h>

struct arena;

struct assignment {
    uint32_t row_count, column_count; /* no more rows than columns */
    double (*cost)(const void *context, uint32_t row, uint32_t column); /* finite */
    const void *context;
};

/*
 * Write each row's column and return the total cost.  Of equal paths the one to a free
 * column is taken, then in general the one to the smaller number; so equal inputs give
 * equal answers, and those that published runs of AlloX were made with.
 */
double assignment_solve(const struct assignment *assignment, struct arena *scratch,
                        uint32_t *ret_columns);
