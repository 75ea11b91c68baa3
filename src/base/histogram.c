/* histogram.c - log-linear buckets: 32 to a power of two. */
#include "base/histogram.h"

static uint32_t bucket_of(uint64_t value)
{
    if (value < 32)
        return (uint32_t)value;
    uint32_t shift =
        58 - (uint32_t)__builtin_clzll(value); /* value >> shift in 32..63 */
    return shift * 32 + (uint32_t)(value >> shift);
}

static uint64_t bucket_top(uint32_t bucket)
{
    if (bucket < 32)
        return bucket;
    uint32_t shift = bucket / 32 - 1;
    uint64_t lead = bucket - shift * 32;
    return (lead << shift) + (((uint64_t)1 << shift) - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->counts[bucket_of(value)]++;
    histogram->count++;
    if (value > histogram->max)
        histogram->max = value;
}

uint64_t histogram_quantile(const struct histogram *histogram, double q)
{
    uint64_t before = (uint64_t)(q * (double)histogram->count);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen > before) {
            uint64_t top = bucket_top(i);
            return top < histogram->max ? top : histogram->max;
        }
    }
    return histogram->max;
}
