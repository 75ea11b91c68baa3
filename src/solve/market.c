/*
 * market.c - the largest level that every job can have.
 *
 * Here stand the jobs, and the order in which fields are tried: a sample of the jobs, a
 * larger one, everybody in the box of prices that the samples suggest; at the end one
 * pass over everybody proves the bound.  A market that was solved before begins in a
 * small box around its last prices and keeps that field from then on: a job that comes
 * or goes changes a few sums, or one place among those who are asked.
 */
#include "solve/market.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/search.h"

#define SAMPLE_SHIFT 3   /* each sample is one job in eight of the next               */
#define SAMPLE_MIN 384   /* jobs in the smallest one                                  */
#define SAMPLE_GAP 1e-4  /* how well a sample is solved                               */
#define SAMPLE_ERROR 3.5 /* over the root of its size: how far off its prices may be  */
#define BOX_TRIES 3      /* wider boxes before we do without                          */
#define WARM_WIDTH 0.004 /* of the box around the last prices                         */
#define WARM_TRIES 2     /* times four each                                           */
#define CHANGES_MAX 4096 /* after so many, sums are made anew                         */
#define SAFE 1e-12       /* shares are less than they could be by this, for rounding  */

struct market {
    struct arena arena;
    uint32_t type_count, slot_max, job_count;
    uint32_t bent_count; /* jobs that are ahead of a straight line */
    double capacity[CROWD_TYPES];
    struct crowd jobs; /* by slot */
    double *own;       /* [slot]: the level that its own fastest open type allows */
    double ceiling;    /* the least of them                                       */
    bool ceiling_stale;

    struct field field;
    struct search search;
    bool known;       /* solved before: search.best are good prices                 */
    bool warm;        /* the field is that of everybody, up to date, and boxed      */
    uint32_t changes; /* since the field was built                                  */

    double level, bound; /* of the last solution */
    double price[CROWD_TYPES];
    struct point mixture[CROWD_TYPES];
    uint32_t mixture_count;
};

struct market *market_new(uint32_t type_count, const double *capacity,
                          uint32_t slot_max)
{
    struct market *market = calloc(1, sizeof *market);
    if (!market)
        abort();
    arena_init(&market->arena, 0);
    market->type_count = type_count;
    market->slot_max = slot_max;
    market->ceiling = INFINITY;
    crowd_init(&market->jobs, &market->arena, type_count, slot_max);
    market->own = arena_array(&market->arena, double, slot_max);
    field_init(&market->field, &market->arena, &market->jobs);
    search_init(&market->search, &market->arena, &market->field, market->capacity);
    market_set_capacity(market, capacity);
    return market;
}

void market_free(struct market *market)
{
    if (!market)
        return;
    arena_release(&market->arena);
    free(market);
}

static bool occupied(const struct market *market, uint32_t slot)
{
    return slot < market->jobs.count &&
           crowd_gang(&market->jobs, crowd_at(&market->jobs, slot)) > 0;
}

/* z at which need z / (1 - ahead z) is what the fastest open type gives. */
static double own_level(const struct market *market, const double *at)
{
    double least = CROWD_NEVER;
    for (uint32_t t = 0; t < market->type_count; t++)
        if (market->capacity[t] > 0)
            least = fmin(least, at[t * CROWD_LANES]);
    if (least >= CROWD_NEVER)
        return 0;
    return 1 / (least + crowd_bend(&market->jobs, at));
}

void market_set_capacity(struct market *market, const double *capacity)
{
    bool opened = false;
    for (uint32_t t = 0; t < market->type_count; t++) {
        assert(capacity[t] >= 0);
        assert(isfinite(capacity[t]));
        opened |= (capacity[t] > 0) != (market->capacity[t] > 0);
        if (capacity[t] != market->capacity[t])
            market->warm = false;
        market->capacity[t] = capacity[t];
    }
    if (!opened)
        return;
    market->ceiling_stale = true;
    for (uint32_t slot = 0; slot < market->jobs.count; slot++)
        if (occupied(market, slot))
            market->own[slot] = own_level(market, crowd_at(&market->jobs, slot));
}

static void write_buyer(struct market *market, double *at, const struct buyer *buyer)
{
    uint32_t k = market->type_count;
    assert(buyer->gang > 0);
    assert(buyer->need > 0);
    assert(buyer->ahead >= 0);
    for (uint32_t t = 0; t < k; t++) {
        double inverse = buyer->need / buyer->rate[t];
        at[t * CROWD_LANES] = inverse < CROWD_NEVER ? inverse : CROWD_NEVER;
    }
    at[k * CROWD_LANES] = buyer->gang;
    at[(k + 1) * CROWD_LANES] = buyer->ahead;
}

static void count_change(struct market *market)
{
    if (++market->changes > CHANGES_MAX ||
        market->changes > 64 + market->job_count / 16)
        market->warm = false;
}

void market_put(struct market *market, uint32_t slot, const struct buyer *buyer)
{
    assert(slot < market->slot_max);
    if (occupied(market, slot))
        market_drop(market, slot);
    if (slot >= market->jobs.count) {
        for (uint32_t s = market->jobs.count; s < slot; s++)
            market->own[s] = INFINITY;
        market->jobs.count = slot + 1; /* places in between use nothing */
    }
    double *at = crowd_at(&market->jobs, slot);
    write_buyer(market, at, buyer);
    market->job_count++;
    market->bent_count += buyer->ahead > 0;
    market->own[slot] = own_level(market, at);
    market->ceiling = fmin(market->ceiling, market->own[slot]);
    count_change(market);
    if (market->warm && market->bent_count > 0 && market->field.due == DUE_PLAIN)
        market->warm = false;
    if (market->warm)
        field_put(&market->field, slot);
}

void market_drop(struct market *market, uint32_t slot)
{
    assert(occupied(market, slot));
    count_change(market);
    if (market->warm)
        field_drop(&market->field, slot);
    double *at = crowd_at(&market->jobs, slot);
    market->bent_count -= crowd_bend(&market->jobs, at) > 0;
    market->job_count--;
    market->ceiling_stale |= market->own[slot] <= market->ceiling;
    market->own[slot] = INFINITY;
    crowd_empty(&market->jobs, slot);
}

static void find_ceiling(struct market *market)
{
    if (!market->ceiling_stale)
        return;
    market->ceiling = INFINITY;
    for (uint32_t slot = 0; slot < market->jobs.count; slot++)
        market->ceiling = fmin(market->ceiling, market->own[slot]);
    market->ceiling_stale = false;
}

static enum crowd_due due_of(const struct market *market)
{
    return market->bent_count > 0 ? DUE_BENT : DUE_PLAIN;
}

/* A box around the best prices, and a range of levels up to 'upper'. */
static void box_around(const struct market *market, const double *price, double width,
                       double level, double upper, struct box *ret_box)
{
    const struct search *search = &market->search;
    *ret_box = (struct box){ .z_low = level * (1 - width),
                             .z_high = fmin(upper, level * (1 + width)) };
    if (ret_box->z_high <= ret_box->z_low)
        ret_box->z_low = ret_box->z_high * (1 - width);
    for (uint32_t row = 0; row < search->row_count; row++) {
        uint32_t t = search->type_of_row[row];
        double slack = 0.02 * width / (search->row_count * market->field.room[t]);
        ret_box->low[t] = fmax(0, price[t] * (1 - width) - slack);
        ret_box->high[t] = price[t] * (1 + width) + slack;
    }
}

/* Everybody is asked at the best prices: a bound that needs no box. */
static double prove(struct market *market)
{
    struct search *search = &market->search;
    struct demand demand;
    double z = search->upper * (1 + 1e-11);
    for (uint32_t i = 0; i < 4 && z < market->ceiling; i++) {
        crowd_pass(&market->jobs, due_of(market), search->best, z, &demand);
        market->field.asked += market->jobs.count;
        if (!(demand.slope > 0))
            return market->ceiling;
        double root = z - (demand.cost - 1) / demand.slope;
        if (demand.cost >= 1)
            return fmin(root, market->ceiling);
        z = root * (1 + 1e-9); /* a tangent from below ends above the root */
    }
    return market->ceiling;
}

/* Take what the search has found as the answer; is it good enough? */
static bool settle(struct market *market, double bound, double tolerance)
{
    struct search *search = &market->search;
    double level;
    market->mixture_count = search_mixture(search, market->mixture, &level);
    if (level > bound) {
        for (uint32_t i = 0; i < market->mixture_count; i++)
            market->mixture[i].weight *= bound / level;
        level = bound;
    }
    for (uint32_t i = 0; i < market->mixture_count; i++)
        market->mixture[i].weight *= 1 - SAFE;
    market->level = level * (1 - SAFE);
    market->bound = fmin(market->bound, bound);
    memcpy(market->price, search->best, sizeof market->price);
    return market->bound - market->level <= tolerance * market->bound;
}

/* Search among everybody, nobody pinned but whom the search itself finds settled. */
static bool solve_whole(struct market *market, double tolerance, bool narrow)
{
    struct search *search = &market->search;
    bool seeded = search->master.column_count > 0;
    field_whole(&market->field, due_of(market), market->capacity);
    if (seeded)
        search_again(search, market->ceiling, 2 * market->type_count);
    else
        search_begin(search, market->ceiling);
    search_run(search, tolerance * 0.5, narrow);
    return settle(market, market->field.whole ? search->upper : prove(market),
                  tolerance);
}

/* Prices from a sample; how far off they may be. */
static double solve_samples(struct market *market)
{
    struct search *search = &market->search;
    struct box box, *known = NULL;
    double width = INFINITY;
    for (uint32_t shift = 2 * SAMPLE_SHIFT; shift > 0; shift -= SAMPLE_SHIFT) {
        uint32_t count = market->job_count >> shift;
        if (count < SAMPLE_MIN)
            continue;
        field_build(&market->field, due_of(market), market->capacity, shift, known);
        if (known)
            search_again(search, known->z_high, 4 * search->row_count);
        else
            search_begin(search, market->ceiling);
        search_run(search, SAMPLE_GAP, true);
        width = fmin(0.3, SAMPLE_ERROR / sqrt(count));
        box_around(market, search->best, width, search->lower, market->ceiling, &box);
        known = search->priced ? &box : NULL;
    }
    return width;
}

/* Search among everybody, in a box of this width around the best prices so far. */
static bool solve_boxed(struct market *market, double width, double level,
                        double tolerance)
{
    struct search *search = &market->search;
    struct field *field = &market->field;
    struct box box;
    double best[CROWD_TYPES];
    memcpy(best, search->best, sizeof best);
    box_around(market, best, width, level, market->ceiling, &box);
    field_build(field, due_of(market), market->capacity, 0, &box);
    search_again(search, box.z_high, 4 * search->row_count);
    search_run(search, tolerance * 0.5, true);
    if (!(search->upper > field->box.z_low)) /* the range was wrong, shares are too */
        return false;
    return settle(market, prove(market), tolerance);
}

static bool solve_cold(struct market *market, double tolerance)
{
    struct search *search = &market->search;
    market->warm = false;
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

int market_solve(struct market *market, double tolerance,
                 struct market_answer *ret_answer, struct error *err)
{
    bool solved = true;
    market->field.asked = 0;
    market->mixture_count = 0;
    market->level = market->bound = 0;
    memset(market->price, 0, sizeof market->price);
    find_ceiling(market);
    if (market->job_count > 0 && market->ceiling > 0) {
        market->bound = market->ceiling;
        solved = solve_cold(market, fmax(tolerance, 1e-10));
        market->known = solved;
    }
    *ret_answer =
        (struct market_answer){ .level = market->level, .bound = market->bound };
    if (market->job_count > 0)
        ret_answer->passes = (uint32_t)(market->field.asked / market->job_count) + 1;
    for (uint32_t t = 0; t < market->type_count; t++)
        if (market->price[t] < CROWD_CLOSED)
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
    if (market->mixture_count == 0 || !occupied(market, slot))
        return;
    field_share(&market->field, slot, market->mixture, market->mixture_count, ret_x);
    for (uint32_t t = 0; t < market->type_count; t++)
        ret_x[t] = fmax(ret_x[t], 0);
}
