/*
 * water_filling.c - water filling by prices.
 *
 * How far can all levels rise?  For a given height the dues are fixed numbers, and a
 * market with these needs tells whether all can be met: level 1 or less.  If less, its
 * prices prove it, and the height at which the cheapest ways cost just what there is at
 * these prices is a new and lower one; three or four such steps end at the largest
 * height.
 *
 * Which jobs are stuck?  A type that is not scarce at the end costs nothing, so a job
 * that would be faster on such a type than it is now can go on.  Every other job would
 * have to pay for more, and all that can be paid is spent.  For the same reason a job
 * that goes on never uses a scarce type again: while no level falls, the stuck jobs
 * need all of them.
 *
 * Stuck jobs keep their shares, which are the only ones that serve them at these
 * prices, and what they use leaves the capacities.  Only a job that is indifferent
 * between types keeps its level instead of its shares: it may make room for others
 * later.
 */
#include "solve/maxmin/water_filling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "solve/prices/batch.h"
#include "solve/maxmin/market.h"

#define COARSE 1e-5    /* gap to which a market is first solved */
#define STEPS_MAX 60   /* heights in one rise                        */
#define ROOT_MAX 100   /* passes to find where all is spent */
#define ROUNDS_MAX 64  /* rises of a water filling                   */
#define NEARLY 1e-3    /* prices are not known better than this ... */
#define BY_CHANCE 0.3  /* ... and so few jobs are as near by chance */
#define NEAR_ENOUGH 20 /* times the markets' tolerance                */
#define PRICED 1e-6    /* of the average price: less is none         */
#define SPARE 1e-6     /* of a type: more is not all used            */

struct water_filler {
    struct arena own;
    struct arena *arena; /* the caller's, or its own */
    uint32_t job_count, type_count;
    double room[BATCH_TYPES_MAX]; /* capacity that is left */
    double tolerance;    /* of the markets                                           */
    const double *gang;  /* [job]                                                    */
    const double *ahead; /* [job] or NULL: speeds are needs, see water_filling.h     */
    double *rate;        /* [job][type]; 0 where it may not be used, or not any more */
    struct job_batch
        jobs;      /* by job; bend is the height at which it stops             */
    double *top;   /* [job]                                                    */
    double *due;   /* [job] its need in the market; 0: it is not in it         */
    bool *changed; /* [job] its rates are not those in the market              */
    bool *stuck;   /* [job] was found stuck                                    */
    bool *settled; /* [job] and keeps the shares in x */
    double *x;     /* [job][type]                                              */
    double
        price[BATCH_TYPES_MAX]; /* at which the last rise was held                   */
    bool scarce[BATCH_TYPES_MAX]; /* has run out, in this rise or an earlier one */
    struct market *market;
    struct market_answer answer; /* of the last solution */
    uint32_t solves;
};

/* Dues as functions of the height h: the lesser of top and base + speed h. */
struct filling_dues {
    const double *base, *speed;
    bool uniform; /* all jobs that rise do so from 0 at speed 1: vectors can do it */
};

static double risen_to(const struct water_filler *filler,
                       const struct filling_dues *dues, uint32_t job, double height)
{
    if (filler->ahead && dues->speed[job] > 0) {
        double part = 1 - filler->ahead[job] * height;
        return part > 0 ? fmin(filler->top[job], dues->speed[job] * height / part)
                        : filler->top[job];
    }
    return fmin(filler->top[job], dues->base[job] + dues->speed[job] * height);
}

static double due_at(const struct water_filler *filler, const struct filling_dues *dues,
                     uint32_t job, double height)
{
    return filler->settled[job] ? 0 : risen_to(filler, dues, job, height);
}

/* How fast a due that is not at its top rises. */
static double due_slope(const struct water_filler *filler,
                        const struct filling_dues *dues, uint32_t job, double height)
{
    double part = filler->ahead ? 1 - filler->ahead[job] * height : 1;
    return dues->speed[job] / (part * part);
}

/* Remove the types that a job may not use, and set its best level without them. */
static void set_rates(struct water_filler *filler, uint32_t job, const bool *closed)
{
    uint32_t k = filler->type_count;
    double *at = batch_at(&filler->jobs, job);
    double *rate = filler->rate + (uint64_t)job * k;
    filler->top[job] = 0;
    filler->changed[job] = true;
    for (uint32_t t = 0; t < k; t++) {
        if (closed[t])
            rate[t] = 0;
        double inverse = 1 / rate[t];
        at[t * BATCH_LANES] = inverse < BATCH_NEVER ? inverse : BATCH_NEVER;
        filler->top[job] = fmax(filler->top[job], rate[t]);
    }
    at[k * BATCH_LANES] = filler->gang[job];
    if (filler->top[job] == 0)
        batch_clear_slot(&filler->jobs, job);
}

struct water_filler *water_filler_new(const struct water_filling *filling,
                                      double tolerance)
{
    struct water_filler *filler = memory_checked(calloc(1, sizeof *filler));
    uint32_t n = filling->job_count, k = filling->type_count;
    bool closed[BATCH_TYPES_MAX];
    arena_init(&filler->own, 0);
    filler->arena = filling->scratch ? filling->scratch : &filler->own;
    filler->job_count = n;
    filler->type_count = k;
    filler->tolerance = 0.01 * tolerance;
    filler->gang = filling->gang;
    filler->ahead = filling->ahead;
    filler->rate = arena_array(filler->arena, double, (uint64_t)n *k);
    filler->top = arena_array(filler->arena, double, n);
    filler->due = arena_array(filler->arena, double, n);
    filler->changed = arena_array(filler->arena, bool, n);
    filler->stuck = arena_array(filler->arena, bool, n);
    filler->settled = arena_array(filler->arena, bool, n);
    filler->x = arena_array(filler->arena, double, (uint64_t)n *k);
    batch_init(&filler->jobs, filler->arena, k, n);
    filler->jobs.count = n;
    for (uint32_t t = 0; t < k; t++) {
        filler->room[t] = filling->capacity[t];
        closed[t] = !(filling->capacity[t] > 0);
    }
    memcpy(filler->rate, filling->rate, (uint64_t)n * k * sizeof *filler->rate);
    for (uint32_t j = 0; j < n; j++)
        set_rates(filler, j, closed);
    filler->market = market_new_in(filler->arena, k, filling->capacity, n);
    market_set_limit(filler->market, 1);
    return filler;
}

void water_filler_free(struct water_filler *filler)
{
    if (!filler)
        return;
    arena_release(&filler->own);
    free(filler);
}

double water_filler_top(const struct water_filler *filler, uint32_t job)
{
    return filler->top[job];
}

uint32_t water_filler_solves(const struct water_filler *filler)
{
    return filler->solves;
}

/* Set a job's need; the market changes only if it is a new one. */
static void set_due(struct water_filler *filler, uint32_t job, double due)
{
    if (due == filler->due[job] && !filler->changed[job])
        return;
    if (due > 0) {
        struct buyer buyer = { .rate =
                                   filler->rate + (uint64_t)job * filler->type_count,
                               .gang = filler->gang[job],
                               .need = due };
        market_put(filler->market, job, &buyer);
    } else if (filler->due[job] > 0) {
        market_drop(filler->market, job);
    }
    filler->changed[job] = false;
    filler->due[job] = due;
}

/* Solve the market only as well as needed: is the level 1, or less? */
static int solve_market(struct water_filler *filler, struct error *err)
{
    double tolerance = COARSE;
    for (;;) {
        tolerance = fmax(tolerance, filler->tolerance);
        filler->solves++;
        int r = market_solve(filler->market, tolerance, &filler->answer, err);
        if (r < 0 || tolerance == filler->tolerance ||
            filler->answer.level >= 1 - 2 * filler->tolerance ||
            filler->answer.bound < 1 - 10 * tolerance)
            return r;
        tolerance *= 0.01;
    }
}

/* Can all dues be met?  0, -EDOM, and in the answer the part of them that can be. */
static int solve_at_height(struct water_filler *filler, const struct filling_dues *dues,
                           double height, struct error *err)
{
    bool any = false;
    for (uint32_t j = 0; j < filler->job_count; j++) {
        double due = due_at(filler, dues, j, height);
        set_due(filler, j, due);
        any |= due > 0;
    }
    int r = solve_market(filler, err);
    if (!any)
        filler->answer.level = 1;
    return r;
}

/* What a little more of the due costs: the slope of the edge of the choice. */
static double edge_slope(const struct water_filler *filler, uint32_t job,
                         const double *price, struct batch_choice choice)
{
    const double *rate = filler->rate + (uint64_t)job * filler->type_count;
    uint32_t slow = choice.slow, fast = choice.fast;
    if (fast == slow)
        return price[slow] / rate[slow];
    return (price[fast] - price[slow]) / (rate[fast] - rate[slow]);
}

/* What the dues cost at this height, at prices at which all there is costs 1. */
static double cost_at_height(const struct water_filler *filler,
                             const struct filling_dues *dues, const double *price,
                             double height, double *ret_slope)
{
    if (dues->uniform) {
        struct batch_demand demand;
        batch_pass(&filler->jobs, DUE_CAPPED, price, height, &demand);
        *ret_slope = demand.slope;
        return demand.cost;
    }
    double cost = 0;
    *ret_slope = 0;
    for (uint32_t j = 0; j < filler->job_count; j++) {
        double due = due_at(filler, dues, j, height);
        if (!(due > 0))
            continue;
        struct batch_choice choice =
            batch_choose(&filler->jobs, batch_at(&filler->jobs, j), price, due);
        cost += filler->gang[j] * (choice.x_slow * price[choice.slow] +
                                   choice.x_fast * price[choice.fast]);
        if (due < filler->top[j])
            *ret_slope += filler->gang[j] * due_slope(filler, dues, j, height) *
                          edge_slope(filler, j, price, choice);
    }
    return cost;
}

/*
 * The height at which all is spent, from above: Newton where it stays in the bracket,
 * halving where not.  Tops make the cost turn down again, so tangents may miss.
 */
static double find_height_spent(const struct water_filler *filler,
                                const struct filling_dues *dues, const double *price,
                                double low, double high)
{
    double slope, at = high;
    for (uint32_t i = 0; i < ROOT_MAX && high - low > 1e-13 * high; i++) {
        double over = cost_at_height(filler, dues, price, at, &slope) - 1;
        if (over > 0)
            high = at;
        else
            low = at;
        double step = slope > 0 ? over / slope : INFINITY;
        if (over > 0 && step < 1e-13 * at)
            break;
        /* a little above the root, so that the last step comes from above */
        double next = (at - step) * (1 + 2e-14);
        at = next > low && next < high ? next : 0.5 * (low + high);
    }
    return high;
}

/* Could the job go on, on a type that costs nothing? */
static bool can_go_on(const struct water_filler *filler, uint32_t job, double due)
{
    const double *rate = filler->rate + (uint64_t)job * filler->type_count;
    for (uint32_t t = 0; t < filler->type_count; t++)
        if (!filler->scarce[t] && rate[t] > due * (1 + 1e-7))
            return true;
    return false;
}

/* What more of its due costs a job: the slope of its least cost. */
static double marginal_cost(const struct water_filler *filler, const double *price,
                            uint32_t job, double due)
{
    const double *at = batch_at(&filler->jobs, job);
    double more = due * (1 + 1e-6), cost[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct batch_choice choice =
            batch_choose(&filler->jobs, at, price, i ? more : due);
        cost[i] =
            choice.x_slow * price[choice.slow] + choice.x_fast * price[choice.fast];
    }
    return filler->gang[job] * (cost[1] - cost[0]);
}

/*
 * No job was found stuck although types ran out: stop those with the largest marginal
 * cost.
 */
static void stop_most_pressed(struct water_filler *filler,
                              const struct filling_dues *dues, double height)
{
    double most = 0;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t j = 0; j < filler->job_count; j++) {
            double due = due_at(filler, dues, j, height);
            if (filler->stuck[j] || !(dues->speed[j] > 0) || !(due > 0))
                continue;
            double here = marginal_cost(filler, filler->price, j, due);
            if (round == 0)
                most = fmax(most, here);
            else
                filler->stuck[j] = here >= 1e-3 * most;
        }
    }
}

/* Is another type as good at these prices, or so nearly that rounding hides it? */
static bool is_indifferent(const struct water_filler *filler, uint32_t job, double due)
{
    const double *rate = filler->rate + (uint64_t)job * filler->type_count;
    const double *price = filler->price;
    bool at_top = due >= filler->top[job] * (1 - 1e-9);
    double nearly = fmin(NEARLY, BY_CHANCE / filler->job_count);
    struct batch_choice choice =
        batch_choose(&filler->jobs, batch_at(&filler->jobs, job), price, due);
    uint32_t slow = choice.slow, fast = choice.fast;
    double worth = edge_slope(filler, job, price, choice);
    double budget = fast == slow ? 0 : worth * rate[slow] - price[slow];
    for (uint32_t t = 0; t < filler->type_count; t++) {
        if (t == slow || t == fast || !(rate[t] > 0) || !(filler->room[t] > 0))
            continue;
        double pays = worth * rate[t], costs = price[t] + budget;
        if (at_top ? rate[t] >= due * (1 - 1e-7)
                   : costs - pays < nearly * (costs + pays))
            return true;
    }
    return false;
}

/* Stuck jobs that are not indifferent keep their shares and leave the market. */
static void release_settled(struct water_filler *filler,
                            const struct filling_dues *dues, double height)
{
    uint32_t k = filler->type_count;
    bool needed[BATCH_TYPES_MAX] = { false };
    for (uint32_t j = 0; j < filler->job_count; j++) {
        double due = due_at(filler, dues, j, height);
        const double *x = filler->x + (uint64_t)j * k;
        if (filler->settled[j] || !filler->stuck[j])
            continue;
        if (due > 0 && is_indifferent(filler, j, due)) {
            for (uint32_t t = 0; t < k; t++)
                needed[t] |= filler->rate[(uint64_t)j * k + t] > 0;
            continue;
        }
        for (uint32_t t = 0; t < k; t++)
            filler->room[t] -= filler->gang[j] * x[t];
        set_due(filler, j, 0);
        batch_clear_slot(&filler->jobs, j);
        filler->settled[j] = true;
    }
    for (uint32_t t = 0; t < k; t++)
        if (filler->room[t] < 0 || (filler->scarce[t] && !needed[t]))
            filler->room[t] = 0;
    market_set_capacity(filler->market, filler->room);
}

/* What would be left of each type if only the jobs that cannot go on used it. */
static void find_spare(const struct water_filler *filler,
                       const struct filling_dues *dues, double height,
                       double *ret_spare)
{
    uint32_t k = filler->type_count;
    for (uint32_t t = 0; t < k; t++)
        ret_spare[t] = filler->room[t];
    for (uint32_t j = 0; j < filler->job_count; j++) {
        double due = due_at(filler, dues, j, height);
        if (!(due > 0) || (!filler->stuck[j] && due < filler->top[j] * (1 - 1e-9) &&
                           can_go_on(filler, j, due)))
            continue;
        for (uint32_t t = 0; t < k; t++)
            ret_spare[t] -= filler->gang[j] * filler->x[(uint64_t)j * k + t];
    }
}

/*
 * A type is scarce if it has a price and the stuck jobs use all of it.  Prices carry a
 * little noise: a type that is not all used is no longer scarce, the least used first.
 */
static void find_scarce(struct water_filler *filler, const struct filling_dues *dues,
                        double height)
{
    uint32_t k = filler->type_count;
    double all = 0, left[BATCH_TYPES_MAX];
    bool before[BATCH_TYPES_MAX];
    for (uint32_t t = 0; t < k; t++)
        all += filler->room[t];
    for (uint32_t t = 0; t < k; t++) {
        before[t] = filler->scarce[t];
        filler->scarce[t] |= filler->room[t] > 0 && filler->price[t] * all > PRICED;
    }
    for (uint32_t i = 0; i < k; i++) {
        uint32_t worst = k;
        double most = SPARE;
        find_spare(filler, dues, height, left);
        for (uint32_t t = 0; t < k; t++) {
            if (before[t] || !filler->scarce[t] || left[t] <= most * filler->room[t])
                continue;
            most = left[t] / filler->room[t];
            worst = t;
        }
        if (worst == k)
            return;
        filler->scarce[worst] = false;
    }
}

static void find_stuck(struct water_filler *filler, const struct filling_dues *dues,
                       double height, bool *ret_stuck)
{
    bool news = false;
    for (uint32_t j = 0; j < filler->job_count; j++) {
        double due = due_at(filler, dues, j, height);
        bool at_top = due >= filler->top[j] * (1 - 1e-9);
        if (filler->stuck[j] || (!at_top && can_go_on(filler, j, due)))
            continue;
        filler->stuck[j] = true;
        news |= dues->speed[j] > 0;
    }
    if (!news)
        stop_most_pressed(filler, dues, height);
    for (uint32_t j = 0; j < filler->job_count; j++) {
        ret_stuck[j] = filler->stuck[j];
        if (!ret_stuck[j])
            set_rates(filler, j, filler->scarce);
    }
}

static void begin_rise(struct water_filler *filler, struct filling_dues *dues)
{
    dues->uniform = !filler->ahead;
    for (uint32_t j = 0; j < filler->job_count; j++) {
        bool rises = dues->speed[j] > 0;
        if (filler->settled[j] || !(filler->top[j] > 0))
            continue;
        dues->uniform &= rises ? dues->speed[j] == 1 && dues->base[j] == 0 : true;
        batch_at(&filler->jobs, j)[(filler->type_count + 1) * BATCH_LANES] =
            rises ? filler->top[j] : fmin(dues->base[j], filler->top[j]);
    }
}

/* The height cannot be met: keep the prices that prove it. */
static void keep_prices(struct water_filler *filler)
{
    for (uint32_t t = 0; t < filler->type_count; t++)
        filler->price[t] = filler->room[t] > 0 ? filler->answer.price[t] : BATCH_CLOSED;
}

/* The rise ends at this height: find scarce types and stuck jobs. */
static void end_rise(struct water_filler *filler, const struct filling_dues *dues,
                     double height, bool *ret_stuck)
{
    for (uint32_t j = 0; j < filler->job_count; j++)
        if (!filler->settled[j])
            market_share(filler->market, j,
                         filler->x + (uint64_t)j * filler->type_count);
    find_scarce(filler, dues, height);
    find_stuck(filler, dues, height, ret_stuck);
    release_settled(filler, dues, height);
}

int water_filler_rise(struct water_filler *filler, const double *base,
                      const double *speed, double most, struct water_rise *ret_rise,
                      bool *ret_stuck, struct error *err)
{
    struct filling_dues dues = { .base = base, .speed = speed };
    *ret_rise = (struct water_rise){ .by = most };
    begin_rise(filler, &dues);
    for (uint32_t i = 0; i < STEPS_MAX; i++) {
        double height = ret_rise->by;
        int r = solve_at_height(filler, &dues, height, err);
        if (r < 0)
            return r;
        double missed = 1 - filler->answer.level;
        if (missed > 2 * filler->tolerance) {
            keep_prices(filler);
            ret_rise->held = true;
            ret_rise->by = find_height_spent(filler, &dues, filler->price, 0, height);
            if (ret_rise->by < height * (1 - 1e-13))
                continue;
            /* Prices prove no more: near enough, or a little less. */
            ret_rise->by = height;
            if (missed > NEAR_ENOUGH * filler->tolerance) {
                ret_rise->by *= 1 - missed;
                continue;
            }
        }
        if (ret_rise->held)
            end_rise(filler, &dues, height, ret_stuck);
        return 0;
    }
    return error_set(err, -EDOM, "the levels of %u jobs do not settle",
                     filler->job_count);
}

int water_filler_shares(struct water_filler *filler, const double *level, double *ret_x,
                        struct error *err)
{
    uint32_t k = filler->type_count;
    for (uint32_t j = 0; j < filler->job_count; j++)
        if (!filler->settled[j])
            set_due(filler, j, fmin(level[j], filler->top[j]));
    int r = solve_market(filler, err);
    if (r < 0)
        return r;
    for (uint32_t j = 0; j < filler->job_count; j++) {
        double *x = ret_x + (uint64_t)j * k;
        if (filler->settled[j])
            memcpy(x, filler->x + (uint64_t)j * k, k * sizeof *x);
        else
            market_share(filler->market, j, x);
    }
    return 0;
}

static double height_at_top(const struct water_filler *filler, uint32_t job,
                            double speed)
{
    double ahead = filler->ahead ? filler->ahead[job] : 0;
    return filler->top[job] / (speed + ahead * filler->top[job]);
}

/*
 * Rise until no job can go on; levels stay a little below, so that all remain feasible.
 */
static int fill_levels(struct water_filler *filler, const double *need, double *level,
                       struct water_filling_answer *answer, struct error *err)
{
    uint32_t n = filler->job_count;
    double *base = arena_array(filler->arena, double, n);
    double *speed = arena_array(filler->arena, double, n);
    bool *stuck = arena_array(filler->arena, bool, n);
    for (uint32_t j = 0; j < n; j++)
        speed[j] = filler->top[j] > 0 ? (need ? need[j] : 1) : 0;
    for (answer->rounds = 0; answer->rounds < ROUNDS_MAX; answer->rounds++) {
        struct filling_dues dues = { .base = base, .speed = speed };
        struct water_rise rise;
        double most = 0;
        for (uint32_t j = 0; j < n; j++)
            if (speed[j] > 0)
                most = fmax(most, height_at_top(filler, j, speed[j]));
        if (most == 0)
            return 0;
        int r = water_filler_rise(filler, base, speed, most, &rise, stuck, err);
        if (r < 0)
            return r;
        for (uint32_t j = 0; j < n; j++) {
            if (speed[j] == 0 || (rise.held && !stuck[j]))
                continue;
            double reached = risen_to(filler, &dues, j, rise.by);
            level[j] = base[j] = reached * (1 - 3 * filler->tolerance);
            speed[j] = 0;
        }
    }
    return error_set(err, -EDOM, "the levels of %u jobs do not settle", n);
}

/* The level that the shares give a job. */
static double reached_level(const struct water_filling *filling, uint32_t job,
                            const double *x)
{
    double level = 0;
    for (uint32_t t = 0; t < filling->type_count; t++) {
        uint64_t cell = (uint64_t)job * filling->type_count + t;
        level += filling->rate[cell] * x[cell];
    }
    return level;
}

int water_filling_solve(const struct water_filling *filling, double tolerance,
                        double *ret_level, double *ret_x,
                        struct water_filling_answer *ret_answer, struct error *err)
{
    struct water_filler *filler = water_filler_new(filling, tolerance);
    *ret_answer = (struct water_filling_answer){ 0 };
    for (uint32_t j = 0; j < filling->job_count; j++)
        ret_level[j] = 0;
    int r = fill_levels(filler, filling->need, ret_level, ret_answer, err);
    if (r == 0)
        r = water_filler_shares(filler, ret_level, ret_x, err);
    for (uint32_t j = 0; r == 0 && j < filling->job_count; j++)
        ret_level[j] = reached_level(filling, j, ret_x);
    ret_answer->solves = filler->solves;
    water_filler_free(filler);
    return r;
}
