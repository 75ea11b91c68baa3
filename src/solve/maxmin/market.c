/*
 * market.c - the largest level that every job can have.
 *
 * A market holds the jobs and decides which active sets are searched: that of a sample
 * of the jobs, of a larger sample, and of all jobs in the box of prices that the
 * samples suggest; at the end one pass over all jobs proves the bound.  A market that
 * was solved before begins in a small box around its last prices and keeps that set
 * from then on: a job that is added or removed changes a few sums, or one place among
 * the active jobs.
 */
#include "solve/maxmin/market.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "solve/prices/price_search.h"

#define SAMPLE_SHIFT 3   /* each sample is one job in eight of the next               */
#define SAMPLE_MIN 384   /* jobs in the smallest one                                  */
#define SAMPLE_GAP 1e-4  /* how well a sample is solved                               */
#define SAMPLE_ERROR 2.0 /* over the root of its size: how far off its prices may be  */
#define BOX_TRIES 3      /* wider boxes before we do without                          */
#define WARM_WIDTH 0.004 /* of the box around the last prices                         */
#define WARM_TRIES 2     /* times four each                                           */
#define CHANGES_MAX 4096 /* after so many, sums are computed anew */
#define SAFE 1e-12 /* shares are smaller than they could be by this, for rounding */

struct market {
    struct arena arena; /* all of it; nothing where it is in another arena */
    uint32_t type_count, slot_max, job_count;
    uint32_t convex_count; /* jobs with a convex due */
    double capacity[BATCH_TYPES_MAX];
    struct job_batch jobs; /* by slot */
    double *own;           /* [slot]: the level that its own fastest open type allows */
    uint64_t *since;       /* [slot]: solutions before the job was added */
    uint64_t solutions;
    double own_least; /* of them all                                             */
    bool own_stale;
    double limit;   /* a level that is enough                                  */
    double ceiling; /* of the last solution: the lesser of the two             */

    struct active_set set;
    struct price_search search;
    bool known;       /* solved before: search.best are good prices                 */
    bool warm;        /* the set is that of all jobs, in a box and kept up to date */
    bool capped;      /* so are the columns: the level was the ceiling              */
    uint32_t changes; /* since either was made                                      */

    double level, bound; /* of the last solution */
    double price[BATCH_TYPES_MAX];
    struct price_point mixture[BATCH_TYPES_MAX];
    uint32_t mixture_count;
};

struct market *market_new_in(struct arena *arena, uint32_t type_count,
                             const double *capacity, uint32_t slot_max)
{
    struct market *market = arena_alloc(arena, 1, sizeof *market, 64);
    market->type_count = type_count;
    market->slot_max = slot_max;
    market->own_least = market->limit = market->ceiling = INFINITY;
    batch_init(&market->jobs, arena, type_count, slot_max);
    market->own = arena_array(arena, double, slot_max);
    market->since = arena_array(arena, uint64_t, slot_max);
    active_set_init(&market->set, arena, &market->jobs);
    price_search_init(&market->search, arena, &market->set, market->capacity);
    market_set_capacity(market, capacity);
    return market;
}

struct market *market_new(uint32_t type_count, const double *capacity,
                          uint32_t slot_max)
{
    struct arena arena;
    arena_init(&arena, 0);
    struct market *market = market_new_in(&arena, type_count, capacity, slot_max);
    market->arena = arena;
    return market;
}

void market_free(struct market *market)
{
    if (!market)
        return;
    struct arena arena = market->arena; /* the market is in it */
    arena_release(&arena);
}

static bool is_occupied(const struct market *market, uint32_t slot)
{
    return slot < market->jobs.count &&
           batch_gang(&market->jobs, batch_at(&market->jobs, slot)) > 0;
}

/* z at which need z / (1 - ahead z) is what the fastest open type gives. */
static double find_own_level(const struct market *market, const double *at)
{
    double least = BATCH_NEVER;
    for (uint32_t t = 0; t < market->type_count; t++)
        if (market->capacity[t] > 0)
            least = fmin(least, at[t * BATCH_LANES]);
    if (least >= BATCH_NEVER)
        return 0;
    return 1 / (least + batch_bend(&market->jobs, at));
}

void market_set_capacity(struct market *market, const double *capacity)
{
    bool opened = false;
    for (uint32_t t = 0; t < market->type_count; t++) {
        assert(capacity[t] >= 0);
        assert(isfinite(capacity[t]));
        opened |= (capacity[t] > 0) != (market->capacity[t] > 0);
        if (capacity[t] != market->capacity[t])
            market->warm = market->capped = false;
        market->capacity[t] = capacity[t];
    }
    if (!opened)
        return;
    market->own_stale = true;
    for (uint32_t slot = 0; slot < market->jobs.count; slot++)
        if (is_occupied(market, slot))
            market->own[slot] = find_own_level(market, batch_at(&market->jobs, slot));
}

static void write_job(struct market *market, double *at, const struct buyer *buyer)
{
    uint32_t k = market->type_count;
    assert(buyer->gang > 0);
    assert(buyer->need > 0);
    assert(buyer->ahead >= 0);
    for (uint32_t t = 0; t < k; t++) {
        double inverse = buyer->need / buyer->rate[t];
        at[t * BATCH_LANES] = inverse < BATCH_NEVER ? inverse : BATCH_NEVER;
    }
    at[k * BATCH_LANES] = buyer->gang;
    at[(k + 1) * BATCH_LANES] = buyer->ahead;
}

/* Sums that were changed often, or for other jobs by now, are not kept. */
static void count_change(struct market *market)
{
    if (++market->changes > CHANGES_MAX ||
        market->changes > 64 + market->job_count / 16)
        market->warm = market->capped = false;
}

void market_put(struct market *market, uint32_t slot, const struct buyer *buyer)
{
    assert(slot < market->slot_max);
    if (is_occupied(market, slot))
        market_drop(market, slot);
    if (slot >= market->jobs.count) {
        for (uint32_t s = market->jobs.count; s < slot; s++)
            market->own[s] = INFINITY;
        market->jobs.count = slot + 1; /* slots in between use nothing */
    }
    double *at = batch_at(&market->jobs, slot);
    write_job(market, at, buyer);
    market->job_count++;
    market->convex_count += buyer->ahead > 0;
    market->own[slot] = find_own_level(market, at);
    market->since[slot] = market->solutions;
    count_change(market);
    market->own_least = fmin(market->own_least, market->own[slot]);
    if (market->own[slot] < market->ceiling)
        market->capped = false;
    if (buyer->ahead > 0 && market->set.due == DUE_LINEAR)
        market->warm = market->capped = false;
    if (market->warm)
        active_set_add(&market->set, slot);
    if (market->capped)
        price_search_count_job(&market->search, slot, 1);
}

void market_drop(struct market *market, uint32_t slot)
{
    assert(is_occupied(market, slot));
    count_change(market);
    if (market->own[slot] <= market->own_least)
        market->own_stale = true;
    if (market->warm)
        active_set_remove(&market->set, slot);
    if (market->capped)
        price_search_count_job(&market->search, slot, -1);
    double *at = batch_at(&market->jobs, slot);
    market->convex_count -= batch_bend(&market->jobs, at) > 0;
    market->job_count--;
    market->own[slot] = INFINITY;
    batch_clear_slot(&market->jobs, slot);
}

void market_set_limit(struct market *market, double level)
{
    assert(level > 0);
    market->limit = level;
}

static void find_ceiling(struct market *market)
{
    if (market->own_stale) {
        market->own_least = INFINITY;
        for (uint32_t slot = 0; slot < market->jobs.count; slot++)
            market->own_least = fmin(market->own_least, market->own[slot]);
        market->own_stale = false;
    }
    double ceiling = fmin(market->own_least, market->limit);
    market->capped = market->capped && market->ceiling == ceiling;
    market->ceiling = market->search.ceiling = ceiling;
}

static enum batch_due market_due(const struct market *market)
{
    return market->convex_count > 0 ? DUE_CONVEX : DUE_LINEAR;
}

/* A box around the best prices, and a range of levels up to 'upper'. */
static void make_box(const struct market *market, const double *price, double width,
                     double level, double upper, struct price_box *ret_box)
{
    const struct price_search *search = &market->search;
    *ret_box = (struct price_box){ .z_low = level * (1 - width),
                                   .z_high = fmin(upper, level * (1 + width)) };
    if (ret_box->z_high <= ret_box->z_low)
        ret_box->z_low = ret_box->z_high * (1 - width);
    for (uint32_t row = 0; row < search->row_count; row++) {
        uint32_t t = search->type_of_row[row];
        double slack = 0.02 * width / (search->row_count * market->set.room[t]);
        ret_box->low[t] = fmax(0, price[t] * (1 - width) - slack);
        ret_box->high[t] = price[t] * (1 + width) + slack;
    }
}

/* Evaluate all jobs at the best prices: a bound that needs no box. */
static double prove_bound(struct market *market)
{
    struct price_search *search = &market->search;
    struct batch_demand demand;
    double z = search->upper * (1 + 1e-11);
    for (uint32_t i = 0; i < 4 && z < market->ceiling; i++) {
        batch_pass(&market->jobs, market_due(market), search->best, z, &demand);
        market->set.evaluated += market->jobs.count;
        if (!(demand.slope > 0))
            return market->ceiling;
        double root = z - (demand.cost - 1) / demand.slope;
        if (demand.cost >= 1)
            return fmin(root, market->ceiling);
        z = root * (1 + 1e-9); /* a tangent from below ends above the root */
    }
    return market->ceiling;
}

/* Accept what the search has found; is it good enough? */
static bool accept_mixture(struct market *market, double bound, double tolerance)
{
    struct price_search *search = &market->search;
    double level;
    market->mixture_count = price_search_mixture(search, market->mixture, &level);
    if (level > bound) {
        for (uint32_t i = 0; i < market->mixture_count; i++)
            market->mixture[i].weight *= bound / level;
        level = bound;
    }
    for (uint32_t i = 0; i < market->mixture_count; i++)
        market->mixture[i].weight *= 1 - SAFE;
    market->level = level * (1 - SAFE);
    if (bound <= market->bound) {
        market->bound = bound;
        memcpy(market->price, search->best, sizeof market->price);
    }
    return market->bound - market->level <= tolerance * market->bound;
}

/* Search among all jobs; none is pinned but by the search itself. */
static bool solve_whole(struct market *market, double tolerance, bool narrow)
{
    struct price_search *search = &market->search;
    bool seeded = search->master.column_count > 0;
    active_set_take_all(&market->set, market_due(market), market->capacity);
    if (seeded)
        price_search_restart(search, market->ceiling, 2 * market->type_count);
    else
        price_search_begin(search, market->ceiling);
    price_search_run(search, tolerance * 0.5, narrow);
    bool all_active = market->set.all_active;
    if (!accept_mixture(market, all_active ? search->upper : prove_bound(market),
                        tolerance))
        return false;
    market->capped = all_active && !search->priced;
    market->changes = 0;
    if (market->capped)
        price_search_prune(search, 2 * search->row_count);
    return true;
}

/* The level was one job's own limit; the columns may prove that it still is. */
static bool solve_capped(struct market *market, double tolerance)
{
    struct price_search *search = &market->search;
    price_search_refresh(search);
    return search->lower >= market->ceiling &&
           accept_mixture(market, market->ceiling, tolerance);
}

/* Are these prices, times active factor, in the set's box? */
static bool is_in_box(const struct market *market, const double *price)
{
    const struct price_search *search = &market->search;
    const struct price_box *box = &market->set.box;
    double least = 0, most = INFINITY;
    for (uint32_t row = 0; row < search->row_count; row++) {
        uint32_t t = search->type_of_row[row];
        if (price[t] > 0) {
            least = fmax(least, box->low[t] / price[t]);
            most = fmin(most, box->high[t] / price[t]);
        } else if (box->low[t] > 0) {
            return false;
        }
    }
    return least <= most;
}

/*
 * From the last prices, in a box around them.  While the prices stay in it, what the
 * set says holds for all jobs without a proof by a pass over them; but for convex dues,
 * of which the chords cost a little more than they do.
 */
static bool solve_warm(struct market *market, double level, double tolerance)
{
    struct price_search *search = &market->search;
    struct active_set *set = &market->set;
    double width = WARM_WIDTH;
    for (uint32_t i = 0; i < WARM_TRIES; i++, width *= 4) {
        struct price_box box;
        bool fresh = !market->warm;
        if (fresh) {
            make_box(market, search->best, width, level, INFINITY, &box);
            active_set_build(set, market_due(market), market->capacity, 0, &box);
            market->warm = true;
            market->changes = 0;
        }
        price_search_restart(search, fmin(market->ceiling, set->box.z_high),
                             2 * search->row_count);
        price_search_run(search, tolerance * 0.5, false);
        bool inside = search->upper > set->box.z_low && is_in_box(market, search->best);
        bool proven = search->priced && inside && set->due == DUE_LINEAR;
        if (search->upper > set->box.z_low &&
            accept_mixture(market, proven ? search->upper : prove_bound(market),
                           tolerance))
            return true;
        market->warm = false;
        if (!fresh)
            width /= 4;
    }
    return false;
}

/* Prices from a sample; how far off they may be. */
static double solve_samples(struct market *market)
{
    struct price_search *search = &market->search;
    struct price_box box, *known = NULL;
    double width = INFINITY;
    for (uint32_t shift = 2 * SAMPLE_SHIFT; shift > 0; shift -= SAMPLE_SHIFT) {
        uint32_t count = market->job_count >> shift;
        if (count < SAMPLE_MIN)
            continue;
        active_set_build(&market->set, market_due(market), market->capacity, shift,
                         known);
        if (known)
            price_search_restart(search, known->z_high, 4 * search->row_count);
        else
            price_search_begin(search, market->ceiling);
        price_search_run(search, SAMPLE_GAP, true);
        width = fmin(0.3, SAMPLE_ERROR / sqrt(count));
        make_box(market, search->best, width, search->lower, market->ceiling, &box);
        known = search->priced ? &box : NULL;
    }
    return width;
}

/* Search among all jobs, in a box of this width around the best prices so far. */
static bool solve_boxed(struct market *market, double width, double level,
                        double tolerance)
{
    struct price_search *search = &market->search;
    struct active_set *set = &market->set;
    struct price_box box;
    double best[BATCH_TYPES_MAX];
    memcpy(best, search->best, sizeof best);
    make_box(market, best, width, level, market->ceiling, &box);
    active_set_build(set, market_due(market), market->capacity, 0, &box);
    price_search_restart(search, box.z_high, 4 * search->row_count);
    price_search_run(search, tolerance * 0.5, true);
    if (!(search->upper > set->box.z_low)) /* the range was wrong, shares are too */
        return false;
    return accept_mixture(market, prove_bound(market), tolerance);
}

static bool solve_cold(struct market *market, double tolerance)
{
    struct price_search *search = &market->search;
    market->warm = market->capped = false;
    simplex_clear(&search->master);
    double width = solve_samples(market);
    double level = search->lower;
    if (isfinite(width) && search->priced) {
        for (uint32_t i = 0; i < BOX_TRIES; i++, width *= 3)
            if (solve_boxed(market, width, level, tolerance))
                return true;
    }
    return solve_whole(market, tolerance, true) ||
           solve_whole(market, tolerance, false);
}

static bool solve_best_way(struct market *market, double tolerance)
{
    double level = market->level;
    market->level = 0;
    market->bound = market->ceiling;
    if (!market->known)
        return solve_cold(market, tolerance);
    if (market->capped && solve_capped(market, tolerance))
        return true;
    bool was_capped = market->capped;
    market->capped = false;
    if (was_capped && solve_whole(market, tolerance, true))
        return true;
    market->bound = market->ceiling;
    if (!was_capped && solve_warm(market, level, tolerance))
        return true;
    market->bound = market->ceiling;
    return solve_cold(market, tolerance);
}

int market_solve(struct market *market, double tolerance,
                 struct market_answer *ret_answer, struct error *err)
{
    bool solved = true;
    market->set.evaluated = 0;
    market->mixture_count = 0;
    market->solutions++;
    find_ceiling(market);
    if (market->job_count > 0 && market->ceiling > 0) {
        solved = solve_best_way(market, fmax(tolerance, 1e-10));
        market->known = solved;
    } else {
        market->level = market->bound = 0;
        market->known = market->warm = market->capped = false;
        memset(market->price, 0, sizeof market->price);
    }
    *ret_answer =
        (struct market_answer){ .level = market->level, .bound = market->bound };
    if (market->job_count > 0)
        ret_answer->passes = (uint32_t)(market->set.evaluated / market->job_count) + 1;
    for (uint32_t t = 0; t < market->type_count; t++)
        if (market->price[t] < BATCH_CLOSED)
            ret_answer->price[t] = market->price[t];
    if (solved)
        return 0;
    return error_set(err, -EDOM,
                     "the market of %u jobs does not settle: level %.9g, bound %.9g",
                     market->job_count, market->level, market->bound);
}

void market_share(const struct market *market, uint32_t slot, double *ret_x)
{
    for (uint32_t t = 0; t < market->type_count; t++)
        ret_x[t] = 0;
    if (market->mixture_count == 0 || !is_occupied(market, slot) ||
        market->since[slot] == market->solutions)
        return;
    active_set_share(&market->set, slot, market->mixture, market->mixture_count, ret_x);
    for (uint32_t t = 0; t < market->type_count; t++)
        ret_x[t] = fmax(ret_x[t], 0);
}
