/*
 * auction.c - the largest sum of what jobs are worth on the types they get.
 *
 * descent.c finds the prices.  This file makes it quick for many jobs, and its answer a
 * proof:
 *
 * - One job in eight is solved first, by the same rule.  Its prices are nearly right;
 *   in a box around them most jobs make the same bid at every price, so they are
 *   counted once and only the others go into the search.  An answer inside the box is
 *   the answer, since g is convex; otherwise the box grows.
 * - Identical jobs would be indifferent at the same prices.  Every worth is perturbed
 *   by 1e-12 of itself, so that no two vertices coincide.  The perturbation never
 *   enters the proof: shares and bound are computed from the true values.
 * - Floors that cannot be kept show as prices that rise without end while g falls below
 *   what any shares are worth.
 *
 * A ratio is a sequence of sums (Dinkelbach): if r is the best ratio, the best of
 * "values less r times cost" is exactly 0; until then r is the ratio that was reached.
 */
#include "solve/sums/auction.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "solve/sums/descent.h"

#define SMALL 2048         /* jobs; fewer are solved without a sample */
#define ONE_IN 8           /* jobs in the sample                                */
#define BOX_TRIES 6        /* then without                                      */
#define NEAR_WIDTH 0.1     /* of the first box around prices that are given */
#define PERTURBATION 1e-12 /* of each worth                                      */
#define SPEED_PERTURBATION \
    1e-11 /* and of its speeds: upwards, so that bounds stay bounds */
#define PERTURBATION_TRIES 4 /* each a hundred times as large as the last */
#define FLOOR_SLACK 1e-9     /* floors may be missed by that, if they must        */
#define NO_LIMIT 1e13        /* times the largest worth: no price is that high    */
#define DOUBT 1e3            /* times the largest worth: are the floors too high?     */
#define ROOM 0.02 /* more, where a sample's floors do not fit its part of it */
#define ROOM_TRIES 3
#define RATIO_STEPS_MAX 60

enum auction_outcome {
    FOUND,
    TOO_HIGH,
    LOST
}; /* TOO_HIGH: the floors cannot be kept */

/* Prices and ratio that are nearly right. */
struct price_guess {
    bool known;
    bool given; /* by the caller */
    double price[BID_TYPES_MAX];
    double ratio;
    double width; /* relative, of the box that should hold the answer */
};

/* An auction as descent.h wants it: types with capacity only, jobs with floors last. */
struct auction_state {
    const struct auction *auction;
    struct arena *arena;
    uint32_t k;
    uint32_t type[BID_TYPES_MAX]; /* as the caller numbers it */
    double capacity[BID_TYPES_MAX];
    double cost[BID_TYPES_MAX];
    struct bidders bidders; /* perturbed worths */
    uint32_t *job;          /* [bidder]                   */
    double ceiling[BID_TYPES_MAX];
    double largest, least; /* worth of one job; sum of all jobs' least worths */
    double price[BID_TYPES_MAX + 1];
    struct split_bid split[2 * BID_TYPES_MAX];
    uint32_t split_count;
    uint32_t steps;
};

/* What shares are worth, by the true values. */
struct auction_verdict {
    double value, cost; /* sums over the shares                             */
    double size;        /* of the values and costs: what a gap is relative to */
    double bound;       /* no shares have more value - ratio * cost         */
    double least;       /* any shares have at least that                    */
};

static double job_floor(const struct auction *auction, uint32_t job)
{
    return auction->floor ? auction->floor[job] : 0;
}

static double job_worth(const struct auction_state *state, uint32_t job, uint32_t t,
                        double ratio)
{
    const struct auction *a = state->auction;
    double value = a->value[(uint64_t)job * a->type_count + state->type[t]];
    return value / a->gang[job] - ratio * state->cost[t];
}

/* In -1..1, fixed for every job and type. */
static double perturbation_of(uint64_t job, uint64_t type, uint64_t lot)
{
    uint64_t z = hash_mix((job * 16 + type + 1) * 0x9e3779b97f4a7c15u + lot);
    return (double)(int64_t)z * 0x1p-63;
}

/* The fastest type may miss the floor by the slack that it is given. */
static bool set_speed(const struct auction_state *state, uint32_t job, double slack,
                      double *ret_speed)
{
    const struct auction *a = state->auction;
    uint32_t best = 0;
    for (uint32_t t = 0; t < state->k; t++) {
        double rate = a->rate[(uint64_t)job * a->type_count + state->type[t]];
        double perturbation = SPEED_PERTURBATION * fabs(perturbation_of(job, t, 2));
        ret_speed[t] = rate / job_floor(a, job) * (1 + slack + perturbation);
        best = ret_speed[t] > ret_speed[best] ? t : best;
    }
    if (ret_speed[best] < 1 && ret_speed[best] >= 1 - FLOOR_SLACK)
        ret_speed[best] = 1;
    return ret_speed[best] >= 1;
}

/* False when a job cannot keep its floor even alone. */
static bool set_speeds(struct auction_state *state, double slack)
{
    struct bidders *bidders = &state->bidders;
    for (uint32_t b = bidders->free_count; b < bidders->count; b++)
        if (!set_speed(state, state->job[b], slack,
                       bidders->speed + (uint64_t)(b - bidders->free_count) * state->k))
            return false;
    return true;
}

static void set_worths(struct auction_state *state, double ratio, double perturbation)
{
    struct bidders *bidders = &state->bidders;
    double highest[BID_TYPES_MAX] = { 0 };
    double largest = 0;
    state->least = 0;
    for (uint32_t b = 0; b < bidders->count; b++) {
        double *worth = bidders->worth + (uint64_t)b * state->k;
        double most = 0;
        double least = 0;
        for (uint32_t t = 0; t < state->k; t++) {
            worth[t] = job_worth(state, state->job[b], t, ratio);
            most = fmax(most, fabs(worth[t]));
            least = fmin(least, worth[t]);
        }
        state->least += bidders->gang[b] * least;
        for (uint32_t t = 0; t < state->k; t++) {
            worth[t] *=
                1 + perturbation * perturbation_of(state->job[b], t,
                                                   (uint64_t)(perturbation * 1e15));
            highest[t] = fmax(highest[t], worth[t]);
        }
        largest = fmax(largest, most);
    }
    state->largest = largest > 0 ? largest : 1;
    state->least -= 1e-6 * fabs(state->least) + 1e-6 * state->largest;
    for (uint32_t t = 0; t < state->k; t++) {
        state->ceiling[t] = highest[t] + 0.1 * largest + 1e-300; /* no job pays that */
        if (bidders->count > bidders->free_count)
            state->ceiling[t] = NO_LIMIT * state->largest;
    }
}

/* Leave out types without capacity; sort jobs with floors to the end. */
static void auction_open(struct auction_state *state, const struct auction *auction,
                         struct arena *arena)
{
    *state = (struct auction_state){ .auction = auction, .arena = arena };
    for (uint32_t t = 0; t < auction->type_count; t++) {
        if (auction->capacity[t] <= 0)
            continue;
        state->cost[state->k] = auction->cost ? auction->cost[t] : 0;
        state->capacity[state->k] = auction->capacity[t];
        state->type[state->k++] = t;
    }
    uint32_t n = auction->job_count;
    struct bidders *bidders = &state->bidders;
    state->job = arena_array(arena, uint32_t, n + 1);
    for (uint32_t job = 0; job < n; job++)
        if (job_floor(auction, job) <= 0)
            state->job[bidders->count++] = job;
    bidders->free_count = bidders->count;
    for (uint32_t job = 0; job < n; job++)
        if (job_floor(auction, job) > 0)
            state->job[bidders->count++] = job;
    bidders->type_count = state->k;
    bidders->worth = arena_array(arena, double, (uint64_t)n * state->k + 1);
    bidders->speed = arena_array(
        arena, double, (uint64_t)(bidders->count - bidders->free_count) * state->k + 1);
    bidders->gang = arena_array(arena, double, n + 1);
    for (uint32_t b = 0; b < n; b++)
        bidders->gang[b] = auction->gang[state->job[b]];
}

/* ---- a box of prices ------------------------------------------------------------- */

/* Its bid stays the best one at every price of the box. */
static bool is_settled(const struct bidders *bidders, uint32_t bidder, struct bid bid,
                       const double *low, const double *high)
{
    const double *worth = bidders_worth(bidders, bidder);
    uint32_t k = bidders->type_count;
    if (bid.low == bid.high) {
        double least = bid_at(worth, bid.high, k) - high[bid.high];
        for (uint32_t t = 0; t <= k; t++)
            if (t != bid.high && bid_at(worth, t, k) - low[t] >= least)
                return false;
        return true;
    }
    /* On an edge of the hull: it falls, and every other point lies below its line. */
    const double *speed = bidders_speed(bidders, bidder);
    double from = bid_at(speed, bid.low, k);
    double per_speed = 1 / (speed[bid.high] - from);
    if (bid_at(worth, bid.low, k) - high[bid.low] <= worth[bid.high] - low[bid.high])
        return false;
    for (uint32_t t = 0; t <= k; t++) {
        if (t == bid.low || t == bid.high)
            continue;
        double far = (bid_at(speed, t, k) - from) * per_speed;
        double near = 1 - far;
        double line =
            near * (bid_at(worth, bid.low, k) - (near > 0 ? high : low)[bid.low]) +
            far * (worth[bid.high] - (far > 0 ? high : low)[bid.high]);
        if (line <= bid_at(worth, t, k) - low[t])
            return false;
    }
    return true;
}

static void copy_bidder(const struct bidders *from, uint32_t bidder, struct bidders *to)
{
    uint32_t k = from->type_count;
    memcpy(to->worth + (uint64_t)to->count * k, bidders_worth(from, bidder),
           k * sizeof(double));
    if (bidder >= from->free_count)
        memcpy(to->speed + (uint64_t)(to->count - to->free_count) * k,
               bidders_speed(from, bidder), k * sizeof(double));
    else
        to->free_count++;
    to->gang[to->count++] = from->gang[bidder];
}

/* The bidders with more than one bid in the box; what the others use is added up. */
static void select_open_bidders(const struct bidders *all, const struct descent *d,
                                struct arena *arena, struct bidders *ret_open,
                                uint32_t *ret_bidder, double *ret_taken)
{
    uint32_t k = all->type_count;
    double low[BID_TYPES_MAX + 1] = { 0 }, high[BID_TYPES_MAX + 1] = { 0 };
    memcpy(low, d->low, k * sizeof *low);
    memcpy(high, d->high, k * sizeof *high);
    *ret_open = (struct bidders){ .type_count = k };
    ret_open->worth = arena_array(arena, double, (uint64_t)all->count *k + 1);
    ret_open->speed =
        arena_array(arena, double, (uint64_t)(all->count - all->free_count) * k + 1);
    ret_open->gang = arena_array(arena, double, all->count + 1);
    for (uint32_t b = 0; b < all->count; b++) {
        struct bid bid = bidders_bid(all, b, d->price);
        if (is_settled(all, b, bid, low, high)) {
            bidders_take(all, b, bid, 1, ret_taken);
            continue;
        }
        ret_bidder[ret_open->count] = b;
        copy_bidder(all, b, ret_open);
    }
}

/* ---- prices ---------------------------------------------------------------------- */

static void note_prices(struct auction_state *state, const struct descent *d,
                        const uint32_t *bidder)
{
    memcpy(state->price, d->price, sizeof state->price);
    state->split_count = d->split_count;
    for (uint32_t i = 0; i < d->split_count; i++) {
        state->split[i] = d->split[i];
        if (bidder)
            state->split[i].bidder = bidder[d->split[i].bidder];
    }
}

/* With all jobs, at any price. */
static enum auction_outcome search_all(struct auction_state *state)
{
    struct descent d = { .bidders = &state->bidders };
    memcpy(d.capacity, state->capacity, sizeof d.capacity);
    memcpy(d.high, state->ceiling, sizeof d.high);
    memcpy(d.price, state->price, sizeof d.price);
    d.check_price = DOUBT * state->largest;
    d.infeasible_below = state->least;
    enum descent_end end = descent_run(&d, state->arena);
    state->steps += d.steps;
    note_prices(state, &d, NULL);
    if (end == DESCENT_INFEASIBLE)
        return TOO_HIGH;
    if (end == DESCENT_LOST)
        return LOST;
    for (uint32_t t = 0; t < state->k; t++)
        if (state->bidders.count > state->bidders.free_count &&
            d.price[t] >= state->ceiling[t])
            return TOO_HIGH;
    return FOUND;
}

/* A box around the price; prices near 0 get one as wide as the others have. */
static void set_box(const struct auction_state *state, double width, struct descent *d)
{
    double mean = 0;
    for (uint32_t t = 0; t < state->k; t++)
        mean += state->price[t] / state->k;
    for (uint32_t t = 0; t < state->k; t++) {
        double half = width * (state->price[t] + 0.2 * mean);
        if (mean == 0)
            half = width * state->ceiling[t];
        d->price[t] = state->price[t];
        d->low[t] = fmax(state->price[t] - half, 0);
        d->high[t] = fmin(state->price[t] + half, state->ceiling[t]);
    }
}

static bool is_inside(const struct auction_state *state, const struct descent *d)
{
    for (uint32_t t = 0; t < state->k; t++)
        if ((d->price[t] <= d->low[t] && d->low[t] > 0) ||
            (d->price[t] >= d->high[t] && d->high[t] < state->ceiling[t]))
            return false;
    return true;
}

/* In boxes that grow around the current prices; then without a box. */
static enum auction_outcome search_near(struct auction_state *state, double width)
{
    uint32_t *bidder = arena_array(state->arena, uint32_t, state->bidders.count + 1);
    for (uint32_t i = 0; i < BOX_TRIES; i++, width *= 2) {
        struct bidders open;
        struct descent d = { .bidders = &open };
        double taken[BID_TYPES_MAX + 1] = { 0 };
        set_box(state, width, &d);
        select_open_bidders(&state->bidders, &d, state->arena, &open, bidder, taken);
        for (uint32_t t = 0; t < state->k; t++)
            d.capacity[t] = state->capacity[t] - taken[t];
        d.check_price = INFINITY;
        enum descent_end end = descent_run(&d, state->arena);
        state->steps += d.steps;
        if (end == DESCENT_LOST)
            return LOST;
        note_prices(state, &d, bidder);
        if (is_inside(state, &d))
            return FOUND;
    }
    return search_all(state);
}

/* ---- shares and their bound ------------------------------------------------------ */

/* Add a bid to a job's shares. */
static void add_share(const struct auction_state *state, uint32_t bidder,
                      struct bid bid, double times, double *x)
{
    double part = bid_part(bidders_speed(&state->bidders, bidder), bid, state->k);
    if (bid.high < state->k)
        x[state->type[bid.high]] += times * part;
    if (bid.low < state->k)
        x[state->type[bid.low]] += times * (1 - part);
}

static void write_shares(const struct auction_state *state, double *ret_x)
{
    const struct auction *a = state->auction;
    memset(ret_x, 0, (uint64_t)a->job_count * a->type_count * sizeof *ret_x);
    for (uint32_t b = 0; b < state->bidders.count; b++)
        add_share(state, b, bidders_bid(&state->bidders, b, state->price), 1,
                  ret_x + (uint64_t)state->job[b] * a->type_count);
    for (uint32_t i = 0; i < state->split_count; i++) {
        const struct split_bid *split = &state->split[i];
        double *x = ret_x + (uint64_t)state->job[split->bidder] * a->type_count;
        if (i == 0 || state->split[i - 1].bidder != split->bidder)
            memset(x, 0, a->type_count * sizeof *x);
        add_share(state, split->bidder, split->bid, split->part, x);
    }
}

/* Rounding may leave a type a little over; false where it is more than that. */
static bool fit_capacities(const struct auction_state *state, double *x)
{
    const struct auction *a = state->auction;
    double usage[BID_TYPES_MAX] = { 0 };
    for (uint32_t job = 0; job < a->job_count; job++)
        for (uint32_t t = 0; t < a->type_count; t++)
            usage[t] += a->gang[job] * x[(uint64_t)job * a->type_count + t];
    for (uint32_t t = 0; t < a->type_count; t++) {
        if (usage[t] <= a->capacity[t] * (1 + 1e-12))
            continue;
        if (usage[t] > a->capacity[t] * (1 + FLOOR_SLACK))
            return false;
        for (uint32_t job = 0; job < a->job_count; job++)
            x[(uint64_t)job * a->type_count + t] *= a->capacity[t] / usage[t];
    }
    return true;
}

/* The true net worth of a job's best bid, and its least worth. */
static double best_net(const struct auction_state *state, uint32_t bidder, double ratio,
                       double *ret_least)
{
    double net[BID_TYPES_MAX + 1];
    uint32_t k = state->k;
    double least = 0;
    for (uint32_t t = 0; t < k; t++) {
        net[t] = job_worth(state, state->job[bidder], t, ratio);
        least = fmin(least, net[t]);
    }
    *ret_least = least;
    const double *speed = bidders_speed(&state->bidders, bidder);
    struct bid bid = speed ? bid_floored(net, speed, state->price, k)
                           : bid_free(net, state->price, k);
    double part = bid_part(speed, bid, k);
    return part * (bid_at(net, bid.high, k) - state->price[bid.high]) +
           (1 - part) * (bid_at(net, bid.low, k) - state->price[bid.low]);
}

static void judge_bound(const struct auction_state *state, double ratio,
                        struct auction_verdict *verdict)
{
    for (uint32_t t = 0; t < state->k; t++)
        verdict->bound += state->price[t] * state->capacity[t];
    for (uint32_t b = 0; b < state->bidders.count; b++) {
        double least;
        double gang = state->bidders.gang[b];
        verdict->bound += gang * best_net(state, b, ratio, &least);
        verdict->least += gang * least;
    }
}

static void judge_shares(const struct auction_state *state, double ratio,
                         const double *x, struct auction_verdict *verdict)
{
    const struct auction *a = state->auction;
    for (uint32_t job = 0; job < a->job_count; job++) {
        double value = 0;
        double cost = 0;
        for (uint32_t t = 0; t < a->type_count; t++) {
            uint64_t i = (uint64_t)job * a->type_count + t;
            value += a->value[i] * x[i];
            cost += a->cost ? a->cost[t] * a->gang[job] * x[i] : 0;
        }
        verdict->value += value;
        verdict->cost += cost;
        verdict->size += fabs(value) + fabs(ratio) * cost;
    }
}

/* ---- one sum --------------------------------------------------------------------- */

/*
 * Prices, shares and their proof for "values less ratio times cost".  TOO_HIGH only
 * where it is proven that the floors cannot be kept.
 */
static enum auction_outcome try_sum(struct auction_state *state,
                                    const struct price_guess *guess, double ratio,
                                    double perturbation, double *ret_x,
                                    struct auction_verdict *ret_verdict)
{
    *ret_verdict = (struct auction_verdict){ 0 };
    set_worths(state, ratio, perturbation);
    memset(state->price, 0, sizeof state->price);
    if (guess->known)
        memcpy(state->price, guess->price, sizeof guess->price);
    bool near = guess->known && (guess->given || state->bidders.count > SMALL);
    enum auction_outcome outcome =
        near ? search_near(state, guess->width) : search_all(state);
    if (outcome == LOST)
        return LOST;
    judge_bound(state, ratio, ret_verdict);
    if (outcome == TOO_HIGH)
        return ret_verdict->bound < ret_verdict->least ? TOO_HIGH : LOST;
    write_shares(state, ret_x);
    if (!fit_capacities(state, ret_x))
        return LOST;
    judge_shares(state, ratio, ret_x, ret_verdict);
    return FOUND;
}

static enum auction_outcome solve_sum(struct auction_state *state,
                                      const struct price_guess *guess, double ratio,
                                      double tolerance, double *ret_x,
                                      struct auction_verdict *ret_verdict)
{
    double perturbation = PERTURBATION;
    for (uint32_t i = 0; i < PERTURBATION_TRIES; i++, perturbation *= 100) {
        enum auction_outcome outcome =
            try_sum(state, guess, ratio, perturbation, ret_x, ret_verdict);
        if (outcome == TOO_HIGH)
            return TOO_HIGH;
        double reached = ret_verdict->value - ratio * ret_verdict->cost;
        if (outcome == FOUND &&
            ret_verdict->bound - reached <=
                tolerance * ret_verdict->size - 1e-12 * ret_verdict->least)
            return FOUND;
    }
    return LOST;
}

/* ---- a ratio of two sums --------------------------------------------------------- */

/* The least that keeping all floors can cost, were there room for it. */
static double least_cost(const struct auction_state *state)
{
    static const double nothing[BID_TYPES_MAX];
    const struct bidders *bidders = &state->bidders;
    double price[BID_TYPES_MAX + 1] = { 0 };
    double sum = 0;
    memcpy(price, state->cost, state->k * sizeof *price);
    for (uint32_t b = bidders->free_count; b < bidders->count; b++) {
        const double *speed = bidders_speed(bidders, b);
        struct bid bid = bid_floored(nothing, speed, price, state->k);
        sum += bidders->gang[b] * bidders_dot(bidders, b, bid, price);
    }
    return sum;
}

/* The best ratio of one job on one type: nothing does better where there are no floors. */
static double best_alone(const struct auction_state *state)
{
    double best = 0;
    for (uint32_t b = 0; b < state->bidders.count; b++)
        for (uint32_t t = 0; t < state->k; t++) {
            double worth = job_worth(state, state->job[b], t, 0);
            if (worth > 0 && worth > best * state->cost[t])
                best = state->cost[t] > 0 ? worth / state->cost[t] : INFINITY;
        }
    return best;
}

static double ratio_of(const struct auction_verdict *verdict)
{
    if (verdict->cost > 0)
        return verdict->value / verdict->cost;
    return verdict->value > 0 ? INFINITY : 0;
}

/* Without floors: as many jobs of the best ratio as there is room for. */
static enum auction_outcome solve_free_ratio(struct auction_state *state,
                                             double tolerance, double *ret_x,
                                             struct auction_answer *ret_answer)
{
    struct auction_verdict verdict;
    double best = best_alone(state);
    double charged = best * (1 - FLOOR_SLACK);
    if (isinf(best)) { /* something costs nothing: only that */
        charged = 0;
        for (uint32_t b = 0; b < state->bidders.count; b++)
            for (uint32_t t = 0; t < state->k; t++)
                if (state->cost[t] > 0)
                    charged = fmax(charged, job_worth(state, state->job[b], t, 0) /
                                                state->cost[t]);
        charged *= 2;
    }
    enum auction_outcome outcome = solve_sum(state, &(struct price_guess){ 0 }, charged,
                                             tolerance, ret_x, &verdict);
    ret_answer->objective = ratio_of(&verdict);
    ret_answer->bound = best;
    return outcome;
}

static enum auction_outcome solve_ratio(struct auction_state *state,
                                        struct price_guess *guess, double tolerance,
                                        double *ret_x,
                                        struct auction_answer *ret_answer)
{
    if (state->bidders.free_count == state->bidders.count)
        return solve_free_ratio(state, tolerance, ret_x, ret_answer);
    double least = least_cost(state);
    for (uint32_t i = 0; i < RATIO_STEPS_MAX; i++) {
        struct auction_verdict verdict;
        enum auction_outcome outcome =
            solve_sum(state, guess, guess->ratio, tolerance, ret_x, &verdict);
        if (outcome != FOUND)
            return outcome;
        double reached = ratio_of(&verdict);
        /* Shares of a higher ratio r' have cost (r' - r) <= bound. */
        double cost = least > 0 ? least : verdict.cost;
        double bound = guess->ratio + fmax(verdict.bound, 0) / cost;
        ret_answer->objective = reached;
        ret_answer->bound = isinf(reached) ? reached : fmax(bound, reached);
        if (isinf(reached) || bound - reached <= tolerance * fabs(reached))
            return FOUND;
        /* No further: what is left of the bound is rounding, over a small cost. */
        if (fabs(reached - guess->ratio) <= 1e-13 * fabs(reached) &&
            verdict.bound <= 1e-3 * tolerance * verdict.size)
            return FOUND;
        guess->ratio = reached;
        guess->known = true;
        guess->width = i == 0 ? 0.2 : 0.02;
        memcpy(guess->price, state->price, sizeof guess->price);
    }
    return LOST;
}

/* ---- all of it ------------------------------------------------------------------- */

static enum auction_outcome run_auction(const struct auction *auction,
                                        struct arena *arena, double slack,
                                        double tolerance, double *ret_x,
                                        struct auction_answer *ret_answer,
                                        struct price_guess *ret_guess);

/* One job of every few, and their part of the capacity. */
static void draw_sample(const struct auction *all, struct arena *arena,
                        double *capacity, struct auction *ret_some)
{
    uint32_t k = all->type_count;
    uint32_t n = all->job_count / ONE_IN;
    double *gang = arena_array(arena, double, n);
    double *value = arena_array(arena, double, (uint64_t)n *k);
    double *rate = all->floor ? arena_array(arena, double, (uint64_t)n *k) : NULL;
    double *floor = all->floor ? arena_array(arena, double, n) : NULL;
    double theirs = 0, sum = 0;
    for (uint32_t job = 0; job < all->job_count; job++)
        sum += all->gang[job];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t skip = (uint32_t)(fabs(perturbation_of(i, 0, 1)) * ONE_IN);
        uint32_t job = i * ONE_IN + (skip < ONE_IN ? skip : 0);
        gang[i] = all->gang[job];
        theirs += gang[i];
        memcpy(value + (uint64_t)i * k, all->value + (uint64_t)job * k,
               k * sizeof *value);
        if (floor) {
            floor[i] = all->floor[job];
            memcpy(rate + (uint64_t)i * k, all->rate + (uint64_t)job * k,
                   k * sizeof *rate);
        }
    }
    for (uint32_t t = 0; t < k; t++)
        capacity[t] = all->capacity[t] * theirs / sum;
    *ret_some = (struct auction){ .job_count = n,
                                  .type_count = k,
                                  .capacity = capacity,
                                  .gang = gang,
                                  .value = value,
                                  .rate = rate,
                                  .floor = floor,
                                  .cost = all->cost };
}

/* A sample of jobs with tight floors may need a little more capacity. */
static void guess_from_sample(const struct auction *auction, struct arena *arena,
                              double slack, struct price_guess *ret_guess)
{
    struct auction sample;
    struct price_guess guess = { 0 };
    double *capacity = arena_array(arena, double, auction->type_count);
    draw_sample(auction, arena, capacity, &sample);
    double *x =
        arena_array(arena, double, (uint64_t)sample.job_count *sample.type_count);
    for (uint32_t i = 0; i <= ROOM_TRIES; i++) {
        struct auction_answer answer = { 0 };
        enum auction_outcome outcome =
            run_auction(&sample, arena, slack, 1e-3, x, &answer, &guess);
        if (outcome != TOO_HIGH) {
            *ret_guess = guess;
            ret_guess->known = outcome == FOUND;
            ret_guess->width = (i == 0 ? 4 : 8) / sqrt(sample.job_count);
            return;
        }
        for (uint32_t t = 0; t < sample.type_count; t++)
            capacity[t] *= 1 + ROOM;
    }
}

static void guess_given(const struct auction_state *state, const double *near,
                        struct price_guess *ret_guess)
{
    for (uint32_t t = 0; t < state->k; t++) {
        ret_guess->price[t] = near[state->type[t]];
        ret_guess->known = ret_guess->known || near[state->type[t]] > 0;
    }
    ret_guess->given = ret_guess->known;
    ret_guess->width = NEAR_WIDTH;
}

static enum auction_outcome run_auction(const struct auction *auction,
                                        struct arena *arena, double slack,
                                        double tolerance, double *ret_x,
                                        struct auction_answer *ret_answer,
                                        struct price_guess *ret_guess)
{
    struct auction_state state;
    struct auction_verdict verdict;
    struct price_guess guess = { 0 };
    auction_open(&state, auction, arena);
    if (!set_speeds(&state, slack))
        return TOO_HIGH;
    bool has_floors = state.bidders.count > state.bidders.free_count;
    if (auction->job_count > SMALL && (has_floors || !auction->cost))
        guess_from_sample(auction, arena, slack, &guess);
    if (auction->near && !auction->cost && !guess.known)
        guess_given(&state, auction->near, &guess);
    enum auction_outcome outcome;
    if (auction->cost) {
        outcome = solve_ratio(&state, &guess, tolerance, ret_x, ret_answer);
    } else {
        outcome = solve_sum(&state, &guess, 0, tolerance, ret_x, &verdict);
        if (guess.given && outcome != FOUND) /* as if it had not been */
            outcome = solve_sum(&state, &(struct price_guess){ 0 }, 0, tolerance, ret_x,
                                &verdict);
        ret_answer->objective = verdict.value;
        ret_answer->bound = fmax(verdict.bound, verdict.value);
    }
    ret_answer->passes += state.steps;
    *ret_guess = (struct price_guess){ .ratio = guess.ratio };
    memcpy(ret_guess->price, state.price, sizeof ret_guess->price);
    for (uint32_t t = 0; t < state.k; t++)
        ret_answer->price[state.type[t]] = state.price[t];
    return outcome;
}

static int check_job(const struct auction *a, uint32_t job, struct error *err)
{
    double floor = job_floor(a, job);
    if (!(a->gang[job] > 0) || !isfinite(a->gang[job]))
        return error_set(err, -EINVAL, "job %u: its gang is %g, want more than 0", job,
                         a->gang[job]);
    if (!(floor >= 0) || !isfinite(floor))
        return error_set(err, -EINVAL, "job %u: its floor is %g, want 0 or more", job,
                         floor);
    for (uint32_t t = 0; t < a->type_count; t++) {
        uint64_t i = (uint64_t)job * a->type_count + t;
        if (!isfinite(a->value[i]))
            return error_set(err, -EINVAL, "job %u, type %u: its value is %g", job, t,
                             a->value[i]);
        if (floor > 0 && (!(a->rate[i] >= 0) || !isfinite(a->rate[i])))
            return error_set(err, -EINVAL,
                             "job %u, type %u: its rate is %g, want 0 or more", job, t,
                             a->rate[i]);
    }
    return 0;
}

static int check_auction(const struct auction *a, struct error *err)
{
    if (a->type_count == 0 || a->type_count > BID_TYPES_MAX)
        return error_set(err, -EINVAL, "%u types, want 1 to %d", a->type_count,
                         BID_TYPES_MAX);
    for (uint32_t t = 0; t < a->type_count; t++) {
        if (!(a->capacity[t] >= 0) || !isfinite(a->capacity[t]))
            return error_set(err, -EINVAL,
                             "type %u: its capacity is %g, want 0 or more", t,
                             a->capacity[t]);
        if (a->cost && (!(a->cost[t] >= 0) || !isfinite(a->cost[t])))
            return error_set(err, -EINVAL, "type %u: its cost is %g, want 0 or more", t,
                             a->cost[t]);
    }
    int r = 0;
    for (uint32_t job = 0; r == 0 && job < a->job_count; job++)
        r = check_job(a, job, err);
    return r;
}

int auction_solve(const struct auction *auction, double tolerance, double *ret_x,
                  struct auction_answer *ret_answer, struct error *err)
{
    int r = check_auction(auction, err);
    if (r < 0)
        return r;
    struct arena own;
    struct arena *arena = auction->scratch ? auction->scratch : &own;
    struct price_guess guess;
    arena_init(&own, (size_t)auction->job_count * auction->type_count * 64);
    *ret_answer = (struct auction_answer){ 0 };
    enum auction_outcome outcome =
        run_auction(auction, arena, 0, tolerance, ret_x, ret_answer, &guess);
    if (outcome != FOUND && auction->floor) {
        bool proven = outcome == TOO_HIGH;
        outcome = run_auction(auction, arena, FLOOR_SLACK, tolerance, ret_x, ret_answer,
                              &guess);
        if (outcome == LOST && proven)
            outcome = TOO_HIGH; /* without the slack they cannot be kept */
    }
    arena_release(&own);
    ret_answer->feasible = outcome == FOUND;
    if (outcome == LOST)
        return error_set(err, -EDOM, "no prices were found for %u jobs on %u types",
                         auction->job_count, auction->type_count);
    return 0;
}
