/*
 * filling.c - levels that rise until something holds them.
 *
 * How far can all rise?  For a given height the dues are fixed numbers, and a market with
 * these needs says whether all can be met: level 1 or less.  If less, its prices prove it,
 * and the height at which the cheapest ways cost what there is at these prices is a new
 * and lower one; three or four such steps end at the largest height.
 *
 * Who has to stay?  A type that is not scarce at the end costs nothing, so whoever would
 * be faster on such a type than it is now can go on.  Everybody else would have to pay
 * for more, and all that can be paid is spent.  Those who stay keep their level, not their
 * shares: in the next round they may make room where they are indifferent.
 */
#include "solve/filling.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/crowd.h"
#include "solve/market.h"

#define STEPS_MAX 60  /* heights in one rise                        */
#define ROOT_MAX 100  /* passes to find where the money is spent    */
#define ROUNDS_MAX 64 /* rises of a water filling                   */

struct filler {
    struct arena arena;
    uint32_t job_count, type_count;
    double capacity[CROWD_TYPES];
    double tolerance;   /* of the markets                                           */
    const double *gang; /* [job]                                                    */
    const double *rate; /* [job][type]                                              */
    struct crowd jobs;  /* by job; bend is the height at which it stops             */
    double *top;        /* [job]                                                    */
    double *due;        /* [job] what the market has as its need; 0: it is not in it */
    struct market *market;
    struct market_answer answer; /* of the last solution */
    uint32_t solves;
};

/* Dues as functions of the height h: the lesser of top and base + speed h. */
struct dues {
    const double *base, *speed;
    bool plain; /* whoever rises does so from 0 at speed 1: vectors can do it */
};

static double due_at(const struct filler *filler, const struct dues *dues, uint32_t job,
                     double height)
{
    return fmin(filler->top[job], dues->base[job] + dues->speed[job] * height);
}

struct filler *filler_new(const struct filling *filling, double tolerance)
{
    struct filler *filler = calloc(1, sizeof *filler);
    if (!filler)
        abort();
    uint32_t n = filling->job_count, k = filling->type_count;
    arena_init(&filler->arena, 0);
    filler->job_count = n;
    filler->type_count = k;
    filler->tolerance = 0.1 * tolerance;
    filler->gang = filling->gang;
    filler->rate = filling->rate;
    filler->top = arena_array(&filler->arena, double, n);
    filler->due = arena_array(&filler->arena, double, n);
    crowd_init(&filler->jobs, &filler->arena, k, n);
    filler->jobs.count = n;
    for (uint32_t t = 0; t < k; t++)
        filler->capacity[t] = filling->capacity[t];
    for (uint32_t j = 0; j < n; j++) {
        double *at = crowd_at(&filler->jobs, j);
        const double *rate = filling->rate + (uint64_t)j * k;
        for (uint32_t t = 0; t < k; t++) {
            double inverse = 1 / rate[t];
            at[t * CROWD_LANES] = inverse < CROWD_NEVER ? inverse : CROWD_NEVER;
            if (filling->capacity[t] > 0)
                filler->top[j] = fmax(filler->top[j], rate[t]);
        }
        if (filler->top[j] > 0)
            at[k * CROWD_LANES] = filling->gang[j];
        else
            crowd_empty(&filler->jobs, j);
    }
    filler->market = market_new(k, filling->capacity, n);
    market_set_limit(filler->market, 1);
    return filler;
}

void filler_free(struct filler *filler)
{
    if (!filler)
        return;
    market_free(filler->market);
    arena_release(&filler->arena);
    free(filler);
}

double filler_top(const struct filler *filler, uint32_t job)
{
    return filler->top[job];
}

uint32_t filler_solves(const struct filler *filler)
{
    return filler->solves;
}

/* Need 'due' of everybody; only what changed is put anew. */
static void set_due(struct filler *filler, uint32_t job, double due)
{
    if (due == filler->due[job])
        return;
    if (due > 0) {
        struct buyer buyer = { .rate =
                                   filler->rate + (uint64_t)job * filler->type_count,
                               .gang = filler->gang[job],
                               .need = due };
        market_put(filler->market, job, &buyer);
    } else {
        market_drop(filler->market, job);
    }
    filler->due[job] = due;
}

/* Can all dues be met?  0, -EDOM, and in the answer the part of them that can be. */
static int meet(struct filler *filler, const struct dues *dues, double height,
                struct error *err)
{
    bool any = false;
    for (uint32_t j = 0; j < filler->job_count; j++) {
        double due = due_at(filler, dues, j, height);
        set_due(filler, j, due);
        any |= due > 0;
    }
    filler->solves++;
    int r = market_solve(filler->market, filler->tolerance, &filler->answer, err);
    if (!any)
        filler->answer.level = 1;
    return r;
}

/* What the dues cost at this height, at prices at which all there is costs 1. */
static double spent(const struct filler *filler, const struct dues *dues,
                    const double *price, double height, double *ret_slope)
{
    if (dues->plain) {
        struct demand demand;
        crowd_pass(&filler->jobs, DUE_CAPPED, price, height, &demand);
        *ret_slope = demand.slope;
        return demand.cost;
    }
    double cost = 0;
    for (uint32_t j = 0; j < filler->job_count; j++) {
        double due = due_at(filler, dues, j, height);
        if (!(due > 0))
            continue;
        struct choice choice =
            crowd_choose(&filler->jobs, crowd_at(&filler->jobs, j), price, due);
        cost += filler->gang[j] * (choice.x_slow * price[choice.slow] +
                                   choice.x_fast * price[choice.fast]);
    }
    *ret_slope = 0;
    return cost;
}

/*
 * The height at which all is spent, from above: Newton where it stays in the bracket,
 * halving where not.  Tops make the cost turn down again, so tangents may miss.
 */
static double height_spent(const struct filler *filler, const struct dues *dues,
                           const double *price, double low, double high)
{
    double slope, at = high;
    for (uint32_t i = 0; i < ROOT_MAX && high - low > 1e-14 * high; i++) {
        double over = spent(filler, dues, price, at, &slope) - 1;
        if (over > 0)
            high = at;
        else
            low = at;
        if (over > 0 && over < 1e-14)
            break;
        double next = at - over / slope;
        /* a hair above the root, so that the bracket closes from both sides */
        next += 1e-14 * next;
        at = slope > 0 && next > low && next < high ? next : 0.5 * (low + high);
    }
    return high;
}

static void market_prices(const struct filler *filler, double *ret_price)
{
    for (uint32_t t = 0; t < filler->type_count; t++)
        ret_price[t] = filler->capacity[t] > 0 ? filler->answer.price[t] : CROWD_CLOSED;
}

/* Could it go on, on a type that costs nothing? */
static bool can_go_on(const struct filler *filler, const bool *scarce, uint32_t job,
                      double due)
{
    const double *rate = filler->rate + (uint64_t)job * filler->type_count;
    for (uint32_t t = 0; t < filler->type_count; t++)
        if (!scarce[t] && rate[t] > due * (1 + 1e-7))
            return true;
    return false;
}

/* What more of its due costs a job: the slope of its least cost. */
static double pull(const struct filler *filler, const double *price, uint32_t job,
                   double due)
{
    const double *at = crowd_at(&filler->jobs, job);
    double more = due * (1 + 1e-6), cost[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct choice choice = crowd_choose(&filler->jobs, at, price, i ? more : due);
        cost[i] =
            choice.x_slow * price[choice.slow] + choice.x_fast * price[choice.fast];
    }
    return filler->gang[job] * (cost[1] - cost[0]);
}

/* Nobody was found stuck although types ran out: take whom the prices press most. */
static void hold_the_pressed(const struct filler *filler, const struct dues *dues,
                             double height, bool *stuck)
{
    double price[CROWD_TYPES], most = 0;
    market_prices(filler, price);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t j = 0; j < filler->job_count; j++) {
            double due = due_at(filler, dues, j, height);
            if (stuck[j] || !(dues->speed[j] > 0) || !(due > 0))
                continue;
            double here = pull(filler, price, j, due);
            if (round == 0)
                most = fmax(most, here);
            else
                stuck[j] = here >= 1e-3 * most;
        }
    }
}

static void find_stuck(const struct filler *filler, const struct dues *dues,
                       const bool *scarce, double height, bool *ret_stuck)
{
    bool news = false;
    for (uint32_t j = 0; j < filler->job_count; j++) {
        double due = due_at(filler, dues, j, height);
        bool at_top = due >= filler->top[j] * (1 - 1e-9);
        ret_stuck[j] = at_top || !can_go_on(filler, scarce, j, due);
        news |= ret_stuck[j] && !at_top && dues->speed[j] > 0;
    }
    if (!news)
        hold_the_pressed(filler, dues, height, ret_stuck);
}

int filler_rise(struct filler *filler, const double *base, const double *speed,
                double most, struct rise *ret_rise, bool *ret_stuck, struct error *err)
{
    struct dues dues = { .base = base, .speed = speed, .plain = true };
    double height = most, price[CROWD_TYPES];
    bool scarce[CROWD_TYPES];
    for (uint32_t j = 0; j < filler->job_count; j++) {
        bool rises = speed[j] > 0;
        dues.plain &= rises ? speed[j] == 1 && base[j] == 0 : true;
        if (filler->top[j] > 0)
            crowd_at(&filler->jobs, j)[(filler->type_count + 1) * CROWD_LANES] =
                rises ? filler->top[j] : fmin(base[j], filler->top[j]);
    }
    *ret_rise = (struct rise){ .by = most };
    for (uint32_t i = 0; i < STEPS_MAX; i++) {
        int r = meet(filler, &dues, height, err);
        if (r < 0)
            return r;
        if (filler->answer.level >= 1 - 2 * filler->tolerance) {
            ret_rise->by = height;
            if (ret_rise->held)
                find_stuck(filler, &dues, scarce, height, ret_stuck);
            return 0;
        }
        market_prices(filler, price);
        market_scarce(filler->market, scarce);
        ret_rise->held = true;
        double next = height_spent(filler, &dues, price, 0, height);
        if (!(next < height * (1 - 1e-13)))
            next = height * (1 - filler->tolerance);
        height = next;
    }
    return error_set(err, -EDOM, "the levels of %u jobs do not settle",
                     filler->job_count);
}

int filler_shares(struct filler *filler, const double *level, double *ret_x,
                  double *ret_part, struct error *err)
{
    for (uint32_t j = 0; j < filler->job_count; j++)
        set_due(filler, j, fmin(level[j], filler->top[j]));
    filler->solves++;
    int r = market_solve(filler->market, filler->tolerance, &filler->answer, err);
    if (r < 0)
        return r;
    for (uint32_t j = 0; j < filler->job_count; j++)
        market_share(filler->market, j, ret_x + (uint64_t)j * filler->type_count);
    *ret_part = fmin(1, filler->answer.level);
    return 0;
}

/* Rise until nobody can go on; levels stay a little below, so that all remain feasible. */
static int fill(struct filler *filler, double *level, struct filling_answer *answer,
                struct error *err)
{
    uint32_t n = filler->job_count;
    double *base = arena_array(&filler->arena, double, n);
    double *speed = arena_array(&filler->arena, double, n);
    bool *stuck = arena_array(&filler->arena, bool, n);
    for (uint32_t j = 0; j < n; j++)
        speed[j] = filler->top[j] > 0;
    for (answer->rounds = 0; answer->rounds < ROUNDS_MAX; answer->rounds++) {
        struct rise rise;
        double most = 0;
        for (uint32_t j = 0; j < n; j++)
            if (speed[j] > 0)
                most = fmax(most, filler->top[j]);
        if (most == 0)
            return 0;
        int r = filler_rise(filler, base, speed, most, &rise, stuck, err);
        if (r < 0)
            return r;
        for (uint32_t j = 0; j < n; j++) {
            if (speed[j] == 0 || (rise.held && !stuck[j]))
                continue;
            double reached = fmin(rise.by, filler->top[j]);
            level[j] = base[j] = reached * (1 - 3 * filler->tolerance);
            speed[j] = 0;
        }
    }
    return error_set(err, -EDOM, "the levels of %u jobs do not settle", n);
}

int filling_solve(const struct filling *filling, double tolerance, double *ret_level,
                  double *ret_x, struct filling_answer *ret_answer, struct error *err)
{
    struct filler *filler = filler_new(filling, tolerance);
    double part = 1;
    *ret_answer = (struct filling_answer){ 0 };
    for (uint32_t j = 0; j < filling->job_count; j++)
        ret_level[j] = 0;
    int r = fill(filler, ret_level, ret_answer, err);
    if (r == 0)
        r = filler_shares(filler, ret_level, ret_x, &part, err);
    for (uint32_t j = 0; j < filling->job_count; j++)
        ret_level[j] *= part;
    ret_answer->solves = filler->solves;
    filler_free(filler);
    return r;
}
