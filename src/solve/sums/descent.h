/*
 * descent.h - prices at which demand equals capacity: the minimum of the dual function.
 *
 * At prices p every bidder takes what is best for it (bid.h).  The sum
 *
 *     g(p) = p.capacity + sum over bidders of gang * (net worth of its best bid)
 *
 * is convex and piecewise linear, and its minimum is the largest total worth that the
 * capacities allow.  The search follows edges from vertex to vertex, as a simplex
 * method does, but in as many dimensions as there are types: at a vertex as many
 * bidders are split between two bids as prices are free.  Their parts follow from the
 * capacities; where one is below 0 or above 1, there is an edge along which g falls,
 * and it is followed to its minimum, past any number of breakpoints at which bidders
 * change their bids.
 */
#pragma once

#include <stdint.h>

#include "solve/sums/bid.h"

struct arena;

/* Those without a floor come first. */
struct bidders {
    uint32_t type_count, free_count, count;
    double *worth; /* [bidder][type], per accelerator            */
    double *speed; /* [bidder - free_count][type], rate to floor */
    double *gang;  /* [bidder]                                   */
};

/* A bid that a bidder takes for a part of its time. */
struct split_bid {
    uint32_t bidder;
    struct bid bid;
    double part;
};

struct descent {
    const struct bidders *bidders;
    double capacity[BID_TYPES_MAX];
    double low[BID_TYPES_MAX], high[BID_TYPES_MAX]; /* prices are searched in here */
    double price[BID_TYPES_MAX + 1];                /* where to begin; the answer  */
    double check_price; /* from that price on g is compared with 'infeasible_below' */
    double infeasible_below;

    struct split_bid split[2 * BID_TYPES_MAX]; /* by bidder; parts of one sum to 1 */
    uint32_t split_count;
    uint32_t steps;
};

enum descent_end {
    DESCENT_LOWEST,
    DESCENT_INFEASIBLE, /* g is below 'infeasible_below' at these prices                           */
    DESCENT_LOST, /* no convergence: vertices so close that rounding hides them */
};

/* 'arena' is for scratch memory. */
enum descent_end descent_run(struct descent *descent, struct arena *arena);

/* The speeds of a bidder; NULL for one without a floor. */
static inline const double *bidders_speed(const struct bidders *bidders,
                                          uint32_t bidder)
{
    if (bidder < bidders->free_count)
        return 0;
    return bidders->speed +
           (uint64_t)(bidder - bidders->free_count) * bidders->type_count;
}

static inline const double *bidders_worth(const struct bidders *bidders,
                                          uint32_t bidder)
{
    return bidders->worth + (uint64_t)bidder * bidders->type_count;
}

static inline struct bid bidders_bid(const struct bidders *bidders, uint32_t bidder,
                                     const double *price)
{
    const double *worth = bidders_worth(bidders, bidder);
    if (bidder < bidders->free_count)
        return bid_free(worth, price, bidders->type_count);
    return bid_floored(worth, bidders_speed(bidders, bidder), price,
                       bidders->type_count);
}

/* What its bid takes per unit of 'of_type', an array with an entry for nothing. */
static inline double bidders_dot(const struct bidders *bidders, uint32_t bidder,
                                 struct bid bid, const double *of_type)
{
    double part = bid_part(bidders_speed(bidders, bidder), bid, bidders->type_count);
    return part * of_type[bid.high] + (1 - part) * of_type[bid.low];
}

/* Net worth of a bid at prices, per accelerator. */
static inline double bidders_net(const struct bidders *bidders, uint32_t bidder,
                                 struct bid bid, const double *price)
{
    const double *worth = bidders_worth(bidders, bidder);
    uint32_t k = bidders->type_count;
    double part = bid_part(bidders_speed(bidders, bidder), bid, k);
    return part * (bid_at(worth, bid.high, k) - price[bid.high]) +
           (1 - part) * (bid_at(worth, bid.low, k) - price[bid.low]);
}

/* Add what a bid takes to 'usage', an array with an entry for nothing. */
static inline void bidders_take(const struct bidders *bidders, uint32_t bidder,
                                struct bid bid, double times, double *usage)
{
    double part = bid_part(bidders_speed(bidders, bidder), bid, bidders->type_count);
    double gang = bidders->gang[bidder] * times;
    usage[bid.high] += part * gang;
    usage[bid.low] += (1 - part) * gang;
}
