/*
 * price_search.c - search for the prices that prove the least upper bound.
 *
 * Kelley's cutting planes in the space of prices, which has few dimensions, stabilised:
 * the next prices lie between the best so far and the duals of the master programme.
 */
#include "solve/prices/price_search.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "solve/prices/simplex.h"

#define NEWTON_MAX 40   /* tangents in a row, at most                              */
#define NEAR 0.98       /* a tangent that falls less than this is the last one     */
#define ROUNDS_MAX 1500 /* prices to try in a run                                  */
#define STUCK_MAX 8     /* of them, those in a row without progress */
#define STEEP 2 /* dues that grow faster than this are also evaluated from below */
#define BELOW_EVERY 3     /* rounds between such evaluations */
#define BELOW_MAX 4       /* steps down in one */
#define NARROW_MIN 8000   /* fewer jobs are not worth a smaller box                  */
#define FIRST_NARROW 0.02 /* gap at which the first box is computed */
#define MARGIN 1e-7       /* for rounding: of the value, and of the sum of prices */

/* ---- the box that must contain the best prices ------------------------------------- */

/*
 * The columns of the master programme (what the jobs used at some prices) and an upper
 * bound on the level leave only some prices possible: with u_i the columns,
 *     pi >= 0,   pi . u_i >= 1 for all i,   sum pi <= upper
 * The box around them is found by two small programmes per row.
 *
 * Both programmes are solved as their duals, which have as many rows as there are
 * prices and start from the slacks:
 *
 *     least pi_t  = max  sum v_i - upper w
 *                   so that  sum v_i u_ij - w <= [j = t]
 *
 *     largest pi_t = upper - (least of what the others and the slack take)
 *                  = upper - max  sum v_i (1 - upper u_it) - upper w
 *                   so that  sum v_i (u_ij - u_it) - w <= 1   (j other than t)
 *                            sum v_i (     - u_it) - w <= 1
 */

static void begin_programme(struct simplex *scratch, const double *bound)
{
    simplex_clear(scratch);
    simplex_bounds(scratch, bound);
    simplex_restart(scratch);
}

/* Add the slack, and solve. */
static bool solve_programme(struct simplex *scratch, double upper)
{
    double coefficient[SIMPLEX_ROWS];
    for (uint32_t j = 0; j < scratch->row_count; j++)
        coefficient[j] = -1;
    simplex_add(scratch, -upper, coefficient);
    return simplex_solve(scratch) == SIMPLEX_OPTIMAL;
}

static bool find_least(const struct simplex *master, double upper, uint32_t row,
                       struct simplex *scratch, double *ret_value)
{
    double bound[SIMPLEX_ROWS] = { 0 };
    bound[row] = 1;
    begin_programme(scratch, bound);
    for (uint32_t c = 0; c < master->column_count; c++)
        simplex_add(scratch, 1, master->coefficient[c]);
    if (!solve_programme(scratch, upper))
        return false;
    *ret_value = scratch->objective;
    return true;
}

static bool find_largest(const struct simplex *master, double upper, uint32_t row,
                         struct simplex *scratch, double *ret_value)
{
    double coefficient[SIMPLEX_ROWS], bound[SIMPLEX_ROWS];
    for (uint32_t j = 0; j < master->row_count; j++)
        bound[j] = 1;
    begin_programme(scratch, bound);
    for (uint32_t c = 0; c < master->column_count; c++) {
        double own = master->coefficient[c][row];
        for (uint32_t j = 0; j < master->row_count; j++)
            coefficient[j] = (j == row ? 0 : master->coefficient[c][j]) - own;
        simplex_add(scratch, 1 - upper * own, coefficient);
    }
    if (!solve_programme(scratch, upper))
        return false;
    *ret_value = upper - scratch->objective;
    return true;
}

/*
 * 'master' has bounds of 1 and gains of 1.  'scratch' has as many rows, and room for a
 * column more; it is overwritten.  Writes low[row] and high[row].  False where no box
 * was found.
 */
static bool find_price_box(const struct simplex *master, double upper,
                           struct simplex *scratch, double *ret_low, double *ret_high)
{
    upper *= 1 + MARGIN * MARGIN;
    for (uint32_t row = 0; row < master->row_count; row++) {
        double low, high;
        if (!find_least(master, upper, row, scratch, &low) ||
            !find_largest(master, upper, row, scratch, &high) || !(low <= high))
            return false;
        low -= MARGIN * (low + upper * 1e-3);
        high += MARGIN * (high + upper * 1e-3);
        ret_low[row] = low > 0 ? low : 0;
        ret_high[row] = high;
    }
    return true;
}

void price_search_init(struct price_search *search, struct arena *arena,
                       struct active_set *set, const double *capacity)
{
    memset(search, 0, sizeof *search);
    search->set = set;
    search->capacity = capacity;
    simplex_init(&search->master, arena, set->type_count, PRICE_SEARCH_COLUMNS);
    simplex_init(&search->scratch, arena, set->type_count, PRICE_SEARCH_COLUMNS + 1);
}

/* One row per open type, in units of its room. */
static void set_rows(struct price_search *search)
{
    double ones[BATCH_TYPES_MAX];
    search->row_count = 0;
    for (uint32_t t = 0; t < search->set->type_count; t++) {
        ones[t] = 1;
        if (search->set->open[t])
            search->type_of_row[search->row_count++] = t;
    }
    assert(search->row_count > 0);
    search->master.row_count = search->row_count;
    search->scratch.row_count = search->row_count;
    simplex_clear(&search->master);
    simplex_bounds(&search->master, ones);
    simplex_restart(&search->master);
}

/* Prices at which each open type costs the same. */
static void set_equal_prices(const struct price_search *search, double *ret_price)
{
    const struct active_set *set = search->set;
    for (uint32_t t = 0; t < set->type_count; t++)
        ret_price[t] =
            set->open[t] ? 1 / (search->row_count * set->room[t]) : BATCH_CLOSED;
}

void price_search_begin(struct price_search *search, double upper)
{
    set_rows(search);
    search->lower = 0;
    search->upper = upper;
    search->priced = false;
    search->best_cost = -1;
    search->steepness = 1;
    search->held_level = 0;
    search->narrow_gap = FIRST_NARROW;
    search->box_width = INFINITY;
    set_equal_prices(search, search->best);
}

/* Prices at which all the room together costs 1. */
static void scale_prices(const struct price_search *search, const double *price,
                         double *ret_price)
{
    const struct active_set *set = search->set;
    double worth = 0;
    for (uint32_t t = 0; t < set->type_count; t++)
        if (set->open[t] && price[t] < BATCH_CLOSED)
            worth += price[t] * set->room[t];
    if (!(worth > 0)) {
        set_equal_prices(search, ret_price);
        return;
    }
    for (uint32_t t = 0; t < set->type_count; t++) {
        if (!set->open[t])
            ret_price[t] = BATCH_CLOSED;
        else
            ret_price[t] = price[t] < BATCH_CLOSED ? price[t] / worth : 0;
    }
}

void price_search_prune(struct price_search *search, uint32_t keep)
{
    struct simplex *master = &search->master;
    while (master->column_count > keep) {
        uint32_t worst = UINT32_MAX;
        double least = INFINITY;
        for (uint32_t c = 0; c < master->column_count; c++) {
            if (master->basic[c])
                continue;
            double gain =
                simplex_reduced(master, master->gain[c], master->coefficient[c]);
            if (gain >= least)
                continue;
            least = gain;
            worst = c;
        }
        if (worst == UINT32_MAX)
            return;
        search->points[worst] = search->points[master->column_count - 1];
        simplex_remove(master, worst);
    }
}

static void add_column(struct price_search *search, const double *price, double z,
                       const struct batch_demand *demand)
{
    double coefficient[BATCH_TYPES_MAX];
    for (uint32_t row = 0; row < search->row_count; row++) {
        uint32_t t = search->type_of_row[row];
        coefficient[row] = fmax(demand->usage[t], 0) / (z * search->set->room[t]);
    }
    if (search->master.column_count == PRICE_SEARCH_COLUMNS)
        price_search_prune(search, PRICE_SEARCH_COLUMNS / 2);
    uint32_t column = simplex_add(&search->master, 1, coefficient);
    struct price_point *point = &search->points[column];
    memcpy(point->price, price, sizeof point->price);
    point->z = z;
    point->weight = 0;
}

/* Try prices, scaled to the set's room.  True where the upper bound fell. */
static bool try_prices(struct price_search *search, const double *price)
{
    double fitted[BATCH_TYPES_MAX] = { 0 }, z = search->upper;
    struct batch_demand demand;
    bool fell = false;
    scale_prices(search, price, fitted);
    for (uint32_t i = 0; i < NEWTON_MAX; i++) {
        z = search->upper;
        active_set_demand(search->set, fitted, z, &demand);
        bool too_much = demand.cost > 1 && demand.slope > 0;
        if (too_much || (!search->priced && demand.cost > search->best_cost)) {
            memcpy(search->best, fitted, sizeof search->best);
            search->best_cost = demand.cost;
        }
        if (!too_much)
            break;
        double root = z - (demand.cost - 1) / demand.slope;
        if (!(root > 0) || !(root < z))
            break;
        search->upper = root;
        search->steepness = fmax(1, z * demand.slope / demand.cost);
        search->priced = true;
        fell = true;
        if (root > NEAR * z)
            break;
    }
    add_column(search, fitted, z, &demand);
    return fell;
}

void price_search_restart(struct price_search *search, double upper, uint32_t keep)
{
    struct price_point points[PRICE_SEARCH_COLUMNS];
    double best[BATCH_TYPES_MAX];
    price_search_prune(search, keep);
    uint32_t count = search->master.column_count;
    memcpy(points, search->points, count * sizeof *points);
    memcpy(best, search->best, sizeof best);
    double narrow_gap = search->narrow_gap, box_width = search->box_width;
    price_search_begin(search, upper);
    search->narrow_gap = narrow_gap;
    search->box_width = box_width;
    try_prices(search, best);
    for (uint32_t i = 0; i < count; i++)
        try_prices(search, points[i].price);
}

/* The best mixture of the columns so far. */
static void mix_columns(struct price_search *search)
{
    simplex_solve(&search->master); /* if it gives up, what it has is a mixture too */
    search->lower = fmin(search->master.objective, search->upper);
    search->lower = fmax(search->lower, fmin(search->held_level, search->upper));
}

void price_search_count_job(struct price_search *search, uint32_t slot, double sign)
{
    const struct active_set *set = search->set;
    struct simplex *master = &search->master;
    double gang = batch_gang(set->jobs, batch_at(set->jobs, slot));
    for (uint32_t c = 0; c < master->column_count; c++) {
        struct price_point point = search->points[c];
        double x[BATCH_TYPES_MAX], coefficient[BATCH_TYPES_MAX];
        point.weight = sign * gang / point.z;
        active_set_share(set, slot, &point, 1, x);
        for (uint32_t row = 0; row < search->row_count; row++) {
            uint32_t t = search->type_of_row[row];
            coefficient[row] =
                fmax(0, master->coefficient[c][row] + x[t] / set->room[t]);
        }
        simplex_set(master, c, 1, coefficient);
    }
}

void price_search_refresh(struct price_search *search)
{
    simplex_refresh(&search->master);
    mix_columns(search);
}

/* Between the best prices so far and those of the master programme. */
static void choose_prices(const struct price_search *search, double towards_best,
                          double *ret_price)
{
    const struct simplex *master = &search->master;
    double worth = 0;
    for (uint32_t row = 0; row < search->row_count; row++)
        worth += master->dual[row];
    for (uint32_t t = 0; t < search->set->type_count; t++)
        ret_price[t] = BATCH_CLOSED;
    for (uint32_t row = 0; row < search->row_count; row++) {
        uint32_t t = search->type_of_row[row];
        double price = worth > 0 ? master->dual[row] / worth / search->set->room[t]
                                 : search->best[t];
        ret_price[t] = towards_best * search->best[t] + (1 - towards_best) * price;
    }
}

/* Pin the jobs to which the prices that are still possible make no difference. */
static void narrow_set(struct price_search *search)
{
    struct price_box box = { 0 };
    double low[BATCH_TYPES_MAX], high[BATCH_TYPES_MAX], width = 0;
    double gap = search->upper - search->lower;
    struct active_set *set = search->set;
    search->narrow_gap = 0.15 * gap / search->upper;
    /* A chord costs a little more than its due; allow for that. */
    double upper = search->upper;
    if (set->due == DUE_CONVEX && set->has_box) {
        double range = (set->box.z_high - set->box.z_low) / upper;
        upper *= 1 + range * range;
    }
    if (!find_price_box(&search->master, upper, &search->scratch, low, high))
        return;
    for (uint32_t row = 0; row < search->row_count; row++) {
        uint32_t t = search->type_of_row[row];
        box.low[t] = low[row] / set->room[t];
        box.high[t] = high[row] / set->room[t];
        width += high[row] - low[row];
    }
    if (width > 0.7 * search->box_width && set->due != DUE_CONVEX)
        return;
    search->box_width = width;
    box.z_low = search->lower * (1 - 1e-9);
    box.z_high = upper;
    active_set_narrow(set, search->capacity, &box);
    price_search_restart(search, upper, 2 * search->row_count + 2);
    mix_columns(search);
}

/* Are the chords of convex dues as good as the dues themselves? */
static bool chords_are_tight(const struct price_search *search, double tolerance)
{
    const struct active_set *set = search->set;
    if (set->due != DUE_CONVEX || !set->has_box)
        return true;
    double range = (set->box.z_high - set->box.z_low) / search->upper;
    return range * range <= tolerance;
}

/* Prices mean nothing while one job's own limit bounds the level. */
static bool should_narrow(const struct price_search *search, double gap,
                          double tolerance)
{
    if (!search->priced || search->upper >= search->ceiling * (1 - 1e-9))
        return false;
    if (!chords_are_tight(search, tolerance))
        return gap <= search->narrow_gap || gap <= tolerance;
    return gap > tolerance && gap <= search->narrow_gap &&
           active_set_count(search->set) > NARROW_MIN;
}

/* Evaluate at a level and at the prices of the best mixture: is it within reach? */
static double mixture_reach(struct price_search *search,
                            const struct price_point *points, uint32_t count, double z)
{
    struct simplex *scratch = &search->scratch;
    double ones[BATCH_TYPES_MAX], coefficient[BATCH_TYPES_MAX];
    struct batch_demand demand;
    for (uint32_t row = 0; row < search->row_count; row++)
        ones[row] = 1;
    simplex_clear(scratch);
    simplex_bounds(scratch, ones);
    simplex_restart(scratch);
    for (uint32_t i = 0; i < count; i++) {
        active_set_demand(search->set, points[i].price, z, &demand);
        for (uint32_t row = 0; row < search->row_count; row++) {
            uint32_t t = search->type_of_row[row];
            coefficient[row] = fmax(demand.usage[t], 0) / (z * search->set->room[t]);
        }
        simplex_add(scratch, 1, coefficient);
    }
    return simplex_solve(scratch) == SIMPLEX_OPTIMAL ? scratch->objective : 0;
}

/*
 * Where dues are steep, a part of what is used just above the best level is far less
 * than what is used just below it: mixing columns from above gives a poor lower bound.
 * Evaluate again a little lower, as far as the slope says that it must be.
 */
static void look_below(struct price_search *search)
{
    const struct simplex *master = &search->master;
    struct price_point points[BATCH_TYPES_MAX + 1];
    uint32_t count = 0;
    for (uint32_t row = 0; row < search->row_count; row++)
        if (master->basis[row] < master->column_max)
            points[count++] = search->points[master->basis[row]];
    memcpy(points[count++].price, search->best, sizeof search->best);
    double part = master->objective / search->upper, z = search->upper;
    for (uint32_t i = 0; i < BELOW_MAX && part > 0; i++) {
        z *= 1 - 1.1 * fmax(1 / part - 1, 1e-15) / search->steepness;
        if (!(z > search->lower))
            return;
        part = mixture_reach(search, points, count, z) / z;
        if (!(part >= 1))
            continue;
        search->held_level = search->lower = z;
        search->held_count = 0;
        for (uint32_t c = 0; c < count; c++) {
            if (!(search->scratch.amount[c] > 0))
                continue;
            struct price_point *held = &search->held[search->held_count++];
            *held = points[c];
            held->z = z;
            held->weight = search->scratch.amount[c] / z / part;
        }
        return;
    }
}

bool price_search_run(struct price_search *search, double tolerance, bool may_narrow)
{
    double alpha = search->row_count <= 3 ? 0.3 : 0.5, price[BATCH_TYPES_MAX];
    bool fell = true;
    uint32_t stuck = 0;
    if (search->master.column_count == 0)
        try_prices(search, search->best);
    mix_columns(search);
    for (uint32_t i = 0; i < ROUNDS_MAX; i++) {
        double gap = (search->upper - search->lower) / search->upper;
        if (may_narrow && should_narrow(search, gap, tolerance)) {
            narrow_set(search);
            continue;
        }
        if (gap <= tolerance)
            return true;
        double upper = search->upper, lower = search->lower;
        double mixed = search->master.objective;
        choose_prices(search, fell ? alpha : 0, price);
        fell = try_prices(search, price);
        mix_columns(search);
        if (search->steepness > STEEP && i % BELOW_EVERY == 0)
            look_below(search);
        bool gained = search->upper < upper || search->lower > lower ||
                      search->master.objective > mixed;
        stuck = gained ? 0 : stuck + 1;
        if (stuck > STUCK_MAX)
            return false;
    }
    return false;
}

uint32_t price_search_mixture(const struct price_search *search,
                              struct price_point *ret_points, double *ret_level)
{
    const struct simplex *master = &search->master;
    double used[BATCH_TYPES_MAX] = { 0 }, level = 0, most = 1;
    uint32_t count = 0;
    if (search->held_level > master->objective) {
        memcpy(ret_points, search->held, search->held_count * sizeof *ret_points);
        *ret_level = fmin(search->held_level, search->upper);
        return search->held_count;
    }
    for (uint32_t row = 0; row < search->row_count; row++) {
        uint32_t column = master->basis[row];
        if (column >= master->column_max || !(master->value[row] > 0))
            continue;
        double amount = master->value[row];
        level += amount;
        for (uint32_t i = 0; i < search->row_count; i++)
            used[i] += amount * master->coefficient[column][i];
        ret_points[count] = search->points[column];
        ret_points[count++].weight = amount / search->points[column].z;
    }
    for (uint32_t i = 0; i < search->row_count; i++)
        most = fmax(most, used[i]);
    double scale = 1 / most;
    if (level * scale > search->upper)
        scale = search->upper / level;
    for (uint32_t i = 0; i < count; i++)
        ret_points[i].weight *= scale;
    *ret_level = level * scale;
    return count;
}
