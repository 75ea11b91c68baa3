/*
 * bid.h - the best choice of one job when every type has a price: closed forms.
 *
 * A job has 'worth[t]' per accelerator on type t, and pays 'price[t]'.  Without a floor
 * it takes the type where the difference is largest, or nothing.  With one it must
 * reach speed 1 (its rate over its floor).  Draw its types as points (speed, net
 * worth), and doing nothing as the origin: what it can reach is the upper hull, and its
 * best choice is the top of that hull, or, where the top is too slow, on the hull's
 * edge above speed 1:
 *
 *     net
 *      |   A                 A is best but too slow; it takes A and B in turns, just
 *      |    `-.              often enough to reach speed 1.
 *      |       `*-. B
 *      +--------1--------- speed
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BID_TYPES_MAX 16

/*
 * Two types taken in turns; equal where it is one.  Doing nothing is the type numbered
 * type_count.  'price' arrays have an entry for it, which is 0.
 */
struct bid {
    uint8_t low, high; /* the slower one first */
};

static inline bool bid_same(struct bid a, struct bid b)
{
    return a.low == b.low && a.high == b.high;
}

static inline double bid_at(const double *of_type, uint32_t type, uint32_t type_count)
{
    return type == type_count ? 0 : of_type[type];
}

/* The best of a job without a floor. */
static inline struct bid bid_free(const double *worth, const double *price,
                                  uint32_t type_count)
{
    uint32_t best = type_count;
    double most = 0;
    for (uint32_t t = 0; t < type_count; t++) {
        double net = worth[t] - price[t];
        best = net > most ? t : best;
        most = net > most ? net : most;
    }
    return (struct bid){ (uint8_t)best, (uint8_t)best };
}

/* From 'low' along the hull to the next point that is faster. */
static inline uint32_t bid_next(const double *net, const double *speed, uint32_t low,
                                uint32_t type_count)
{
    double from = bid_at(speed, low, type_count);
    double steepest = 0;
    uint32_t next = type_count;
    for (uint32_t t = 0; t < type_count; t++) {
        if (speed[t] <= from)
            continue;
        double slope = (net[t] - net[low]) / (speed[t] - from);
        if (next == type_count || slope > steepest) {
            steepest = slope;
            next = t;
        }
    }
    return next;
}

/* The best of a job with a floor; some type has speed >= 1. */
static inline struct bid bid_floored(const double *worth, const double *speed,
                                     const double *price, uint32_t type_count)
{
    double net[BID_TYPES_MAX + 1];
    uint32_t low = type_count;
    net[type_count] = 0;
    for (uint32_t t = 0; t < type_count; t++) {
        net[t] = worth[t] - price[t];
        low = net[t] > net[low] ? t : low;
    }
    if (low < type_count && speed[low] >= 1)
        return (struct bid){ (uint8_t)low, (uint8_t)low };
    uint32_t high = bid_next(net, speed, low, type_count);
    while (high < type_count && speed[high] < 1) {
        low = high;
        high = bid_next(net, speed, low, type_count);
    }
    if (high == type_count || speed[high] <= 1)
        low = high; /* exactly 1: one type is enough */
    return (struct bid){ (uint8_t)low, (uint8_t)high };
}

/* The part of its time that it spends on 'high'; 'speed' is NULL without a floor. */
static inline double bid_part(const double *speed, struct bid bid, uint32_t type_count)
{
    if (bid.low == bid.high)
        return 1;
    double slow = bid_at(speed, bid.low, type_count);
    return (1 - slow) / (speed[bid.high] - slow);
}
