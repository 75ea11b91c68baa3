/*
 * series.h - sums over bins of time, in fixed memory.
 *
 * When the time outgrows the bins, each two are merged; so a long series uses between half
 * and all of its bins.
 */
#pragma once

#include <stdint.h>

#define SERIES_BINS 512
#define SERIES_ROWS 3

struct series {
    int64_t bin_ns;
    uint32_t bin_count;
    double sums[SERIES_ROWS][SERIES_BINS];
};

/* Starts with bins of a second. */
void series_init(struct series *series);

/* Add an amount to one row at a time since the beginning. */
void series_add(struct series *series, uint32_t row, int64_t at_ns, double amount);

/* Add value x seconds to every row, over a span of time since the beginning. */
void series_spread(struct series *series, int64_t from_ns, int64_t to_ns,
                   const double values[SERIES_ROWS]);
