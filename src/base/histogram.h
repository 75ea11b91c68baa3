/* histogram.h - percentiles in fixed memory. */
#pragma once

#include <stdint.h>

/*
 * Counts of whole numbers in buckets that are exact below 32 and then about 3 % wide,
 * up to 2^63.
 */
#define HISTOGRAM_BUCKETS 1920

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;
    uint64_t max;
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* The value below which a share 'q' (0..1) lies; 0 while it is empty. */
uint64_t histogram_quantile(const struct histogram *histogram, double q);
