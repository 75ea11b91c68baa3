/* pairs_goals.c - the goals of pairs.c: one level for all, water filling, a sum. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "solve/pairs/pairs_internal.h"

#define NEWTON_MAX 60
#define FLOOR_SLACK 1e-9    /* floors may be missed by that                          */
#define KEPT_SLACK 1e-9     /* levels are kept to that, or rounding forbids them     */
#define KEPT_SLACK_MAX 2e-7 /* or to that, where a solution is not found otherwise   */
#define PRICED 1e-9         /* of the highest price: less is none                    */

/* ---- levels ---------------------------------------------------------------------- */

static double due_at(double need, double ahead, double level)
{
    return need * level / (1 - ahead * level);
}

static double level_at(double need, double ahead, double rate)
{
    return rate / (need + ahead * rate);
}

static double ahead_of(const double *ahead, uint32_t class)
{
    return ahead ? ahead[class] : 0;
}

/*
 * No level is above what the slowest class could have with all the cluster to itself.
 */
static double level_cap(const struct pairs_solver *p, const double *need,
                        const double *ahead)
{
    double *top = p->best;
    memset(top, 0, p->class_count * sizeof *top);
    for (uint32_t line = 0; line < p->line_count; line++) {
        uint32_t members[2];
        uint32_t size = members_of(p, line, members);
        for (uint32_t t = 0; t < p->type_count; t++)
            for (uint32_t i = 0; i < size && can_run(p, line, t); i++)
                top[members[i]] = fmax(top[members[i]], rate_of(p, line, t, i));
    }
    double cap = INFINITY;
    for (uint32_t c = 0; c < p->class_count; c++)
        if (need[c] > 0)
            cap = fmin(cap, level_at(need[c], ahead_of(ahead, c), top[c]));
    return cap;
}

/* The largest level that the prices allow: sum pi count due(level) = worth of all. */
static double level_allowed(const struct pairs_solver *p, const double *need,
                            const double *ahead, double cap)
{
    double all = pairs_worth_of_all(p);
    double level = cap;
    for (uint32_t i = 0; i < NEWTON_MAX; i++) { /* from above, of a convex function */
        double asked = -all, slope = 0;
        for (uint32_t c = 0; c < p->class_count; c++) {
            double a = ahead_of(ahead, c);
            double pays = p->pi[c] * count_of(p, c);
            if (need[c] <= 0 || pays <= 0)
                continue;
            asked += pays * due_at(need[c], a, level);
            slope += pays * need[c] / ((1 - a * level) * (1 - a * level));
        }
        if (asked <= 1e-15 * all || slope <= 0)
            break;
        level -= asked / slope;
    }
    return level;
}

static double level_reached(const struct pairs_solver *p, const double *need,
                            const double *ahead)
{
    double level = INFINITY;
    for (uint32_t c = 0; c < p->class_count; c++)
        if (need[c] > 0)
            level = fmin(level, level_at(need[c], ahead_of(ahead, c),
                                         p->rates[c] / count_of(p, c)));
    return level;
}

static int report_no_shares(const struct pairs_solver *p, struct error *err)
{
    return error_set(err, -EDOM, "no shares were found for %u jobs and %u pairs",
                     p->class_count, p->pair_count);
}

static void clear_shares(const struct pairs_solver *p, double *ret_x)
{
    memset(ret_x, 0, (size_t)p->line_count * p->type_count * sizeof *ret_x);
}

/*
 * Newton: at a level that is too high the prices say how much less is possible, never
 * too little.  One step where the due is linear in the level.
 */
static int find_level(struct pairs_solver *p, const double *need, const double *ahead,
                      double tolerance, double *ret_x, struct error *err)
{
    struct pairs_answer *answer = p->answer;
    double cap = level_cap(p, need, ahead);
    double level = cap;
    answer->bound = cap;
    for (uint32_t i = 0; i < NEWTON_MAX; i++) {
        for (uint32_t c = 0; c < p->class_count; c++)
            p->due[c] = need[c] > 0 ? due_at(need[c], ahead_of(ahead, c), level) : 0;
        pairs_set_programme(p);
        if (pairs_generate_columns(p, LP_DUAL) != LP_OPTIMAL)
            return report_no_shares(p, err);
        pairs_read_shares(p, ret_x);
        answer->reached = fmax(answer->reached, level_reached(p, need, ahead));
        pairs_read_prices(p);
        pairs_raise_time_prices(p);
        answer->bound = fmin(answer->bound, level_allowed(p, need, ahead, cap));
        if (answer->bound - answer->reached <= tolerance * answer->bound)
            return 0;
        if (answer->bound >= level * (1 - 1e-15))
            break;
        level = answer->bound;
    }
    return error_set(err, -EDOM, "the level is between %g and %g, want it to %g",
                     answer->reached, answer->bound, tolerance);
}

/* False when no class has a due. */
static bool set_dues(struct pairs_solver *p, const double *due)
{
    bool any = false;
    for (uint32_t c = 0; c < p->class_count; c++) {
        p->due[c] = due ? due[c] : 0;
        any |= p->due[c] > 0;
    }
    return any;
}

int pairs_level(struct pairs_solver *p, const struct pairs_input *pairing,
                const double *need, const double *ahead, double tolerance,
                double *ret_x, struct pairs_answer *ret_answer, struct error *err)
{
    int r = pairs_begin(p, pairing, NULL, ret_answer, err);
    if (r < 0)
        return r;
    clear_shares(p, ret_x);
    if (!set_dues(p, need) || !pairs_add_needed_columns(p))
        return 0;
    r = find_level(p, need, ahead, tolerance, ret_x, err);
    pairs_per_member(p, ret_x);
    return r;
}

/* ---- levels, one above the other ------------------------------------------------- */

/* What the prices allow the rising classes, when the others keep what they have. */
static double rise_allowed(const struct pairs_solver *p, const double *need)
{
    double left = pairs_worth_of_all(p);
    double asked = 0;
    for (uint32_t c = 0; c < p->class_count; c++) {
        double pays = p->pi[c] * count_of(p, c);
        if (p->due[c] > 0)
            asked += pays * need[c];
        else
            left -= pays * p->kept[c];
    }
    return asked > 0 ? left / asked : INFINITY;
}

static double rise_reached(const struct pairs_solver *p, const double *need)
{
    double level = INFINITY;
    for (uint32_t c = 0; c < p->class_count; c++)
        if (p->due[c] > 0)
            level = fmin(level, p->rates[c] / count_of(p, c) / need[c]);
    return level;
}

/*
 * A class with a price on its rate has the same rate in every solution: it is frozen.
 * At least one is.  A class that cannot rise but has no price in this solution will
 * have one in the next, at the same level.  Returns how many still rise.
 */
static uint32_t freeze_priced(struct pairs_solver *p, const double *need, double level,
                              double *ret_level)
{
    double most = 0;
    uint32_t rising = 0;
    for (uint32_t c = 0; c < p->class_count; c++)
        if (p->due[c] > 0)
            most = fmax(most, p->pi[c] * count_of(p, c) * need[c]);
    for (uint32_t c = 0; c < p->class_count; c++) {
        if (p->due[c] <= 0)
            continue;
        ret_level[c] = level;
        if (p->pi[c] * count_of(p, c) * need[c] < PRICED * most) {
            rising++;
            continue;
        }
        p->due[c] = 0;
        p->kept[c] = level * need[c] * (1 - KEPT_SLACK);
        pairs_set_due(p, c);
    }
    return rising;
}

/*
 * The next level, above the frozen ones.  They leave it no room but for rounding; after
 * many of them that may be too little, and they give way somewhat more.
 */
static enum lp_status settle_above(struct pairs_solver *p, const double *need,
                                   const double *level, enum lp_method method)
{
    enum lp_status status = pairs_generate_columns(p, method);
    for (double slack = 10 * KEPT_SLACK;
         status != LP_OPTIMAL && slack <= KEPT_SLACK_MAX; slack *= 10) {
        for (uint32_t c = 0; c < p->class_count; c++)
            if (p->due[c] <= 0 && level[c] > 0) {
                p->kept[c] = level[c] * need[c] * (1 - slack);
                pairs_set_due(p, c);
            }
        status = pairs_generate_columns(p, LP_DUAL);
    }
    return status;
}

static int fill_levels(struct pairs_solver *p, const double *need, double tolerance,
                       double *ret_x, double *ret_level, struct error *err)
{
    enum lp_method method = LP_DUAL;
    double last = 0;
    uint32_t rising = 1;
    pairs_set_programme(p);
    for (uint32_t i = 0; rising > 0; i++) {
        assert(i <= p->class_count); /* at least one class freezes every time */
        if (settle_above(p, need, ret_level, method) != LP_OPTIMAL)
            return report_no_shares(p, err);
        pairs_read_shares(p, ret_x);
        pairs_read_prices(p);
        double level = fmax(rise_reached(p, need), last);
        double prices = 0;
        for (uint32_t c = 0; c < p->class_count; c++)
            prices += p->pi[c];
        pairs_raise_time_prices(p);
        double bound = rise_allowed(p, need);
        if (prices <= 0 || bound - level > tolerance * bound)
            return error_set(err, -EDOM, "level %u is between %g and %g, want it to %g",
                             i + 1, level, bound, tolerance);
        if (i == 0) {
            p->answer->reached = level;
            p->answer->bound = fmax(bound, level);
        }
        rising = freeze_priced(p, need, level, ret_level);
        last = level;
        method = LP_PRIMAL; /* what was found stays possible */
    }
    return 0;
}

int pairs_water_fill(struct pairs_solver *p, const struct pairs_input *pairing,
                     const double *need, double tolerance, double *ret_x,
                     double *ret_level, struct pairs_answer *ret_answer,
                     struct error *err)
{
    int r = pairs_begin(p, pairing, NULL, ret_answer, err);
    if (r < 0)
        return r;
    clear_shares(p, ret_x);
    memset(ret_level, 0, p->class_count * sizeof *ret_level);
    if (!set_dues(p, need) || !pairs_add_needed_columns(p))
        return 0;
    r = fill_levels(p, need, tolerance, ret_x, ret_level, err);
    pairs_per_member(p, ret_x);
    return r;
}

/* ---- sums ------------------------------------------------------------------------ */

/*
 * Can the floors be kept?  Solved as a level that should reach 1; that also adds the
 * columns by which they can be.
 */
static int try_floors(struct pairs_solver *p, const double *floor, double *x,
                      struct error *err)
{
    const double *value = p->value;
    if (!pairs_add_needed_columns(p)) {
        p->answer->feasible = false;
        return 0;
    }
    p->value = NULL;
    int r = find_level(p, floor, NULL, 1e-9, x, err);
    p->value = value;
    double level = p->answer->reached;
    p->answer->feasible = level >= 1 - FLOOR_SLACK;
    if (r < 0 && p->answer->feasible)
        r = 0; /* how far above the floors it gets does not matter */
    for (uint32_t c = 0; c < p->class_count; c++)
        p->due[c] = floor[c] * fmin(level, 1);
    return r;
}

static int maximise_sum(struct pairs_solver *p, double tolerance, bool has_floors,
                        double *ret_x, struct error *err)
{
    struct pairs_answer *answer = p->answer;
    pairs_set_programme(p);
    if (pairs_generate_columns(p, has_floors ? LP_PRIMAL : LP_DUAL) != LP_OPTIMAL)
        return report_no_shares(p, err);
    pairs_read_shares(p, ret_x);
    pairs_read_prices(p);
    pairs_raise_time_prices(p);
    double size = 0;
    answer->reached = 0;
    for (size_t i = 0; i < (size_t)p->line_count * p->type_count; i++) {
        answer->reached += p->value[i] * ret_x[i];
        size += fabs(p->value[i] * ret_x[i]);
    }
    answer->bound = pairs_worth_of_all(p);
    for (uint32_t c = 0; c < p->class_count; c++)
        answer->bound -= p->pi[c] * count_of(p, c) * p->due[c];
    if (answer->bound - answer->reached > tolerance * size + 1e-300)
        return error_set(err, -EDOM, "the sum is between %g and %g, want it to %g",
                         answer->reached, answer->bound, tolerance);
    return 0;
}

int pairs_sum(struct pairs_solver *p, const struct pairs_input *pairing,
              const double *value, const double *floor, double tolerance, double *ret_x,
              struct pairs_answer *ret_answer, struct error *err)
{
    int r = pairs_begin(p, pairing, value, ret_answer, err);
    if (r < 0)
        return r;
    clear_shares(p, ret_x);
    bool has_floors = set_dues(p, floor);
    if (has_floors)
        r = try_floors(p, floor, ret_x, err);
    if (r < 0 || !ret_answer->feasible)
        return r;
    r = maximise_sum(p, tolerance, has_floors, ret_x, err);
    pairs_per_member(p, ret_x);
    return r;
}
