/* series.c - sums over bins of time, in fixed memory. */
#include "metrics/series.h"

#include <string.h>

void series_init(struct series *series)
{
    *series = (struct series){ .bin_ns = 1000000000 };
}

static void merge_bins(struct series *series)
{
    for (uint32_t row = 0; row < SERIES_ROWS; row++) {
        double *sums = series->sums[row];
        for (uint32_t i = 0; i < SERIES_BINS / 2; i++)
            sums[i] = sums[2 * i] + sums[2 * i + 1];
        memset(&sums[SERIES_BINS / 2], 0, SERIES_BINS / 2 * sizeof *sums);
    }
    series->bin_ns *= 2;
    series->bin_count = (series->bin_count + 1) / 2;
}

/* The bin of a time, made if it is beyond the last. */
static uint32_t bin_at(struct series *series, int64_t at_ns)
{
    while (at_ns >= series->bin_ns * SERIES_BINS)
        merge_bins(series);
    uint32_t bin = (uint32_t)(at_ns / series->bin_ns);
    if (bin >= series->bin_count)
        series->bin_count = bin + 1;
    return bin;
}

void series_add(struct series *series, uint32_t row, int64_t at_ns, double amount)
{
    series->sums[row][bin_at(series, at_ns)] += amount;
}

static void add_to_bin(struct series *series, uint32_t bin, int64_t time_ns,
                       const double values[SERIES_ROWS])
{
    double s = (double)time_ns * 1e-9;
    for (uint32_t row = 0; row < SERIES_ROWS; row++)
        series->sums[row][bin] += s * values[row];
}

void series_spread(struct series *series, int64_t from_ns, int64_t to_ns,
                   const double values[SERIES_ROWS])
{
    if (series->bin_count > 0 && from_ns >= (series->bin_count - 1) * series->bin_ns &&
        to_ns <= series->bin_count * series->bin_ns) {
        /* Most often it stays within the last bin. */
        add_to_bin(series, series->bin_count - 1, to_ns - from_ns, values);
        return;
    }
    if (to_ns > from_ns)
        bin_at(series, to_ns - 1);
    while (from_ns < to_ns) {
        uint32_t bin = bin_at(series, from_ns);
        int64_t end_ns = ((int64_t)bin + 1) * series->bin_ns;
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        add_to_bin(series, bin, end_ns - from_ns, values);
        from_ns = end_ns;
    }
}
