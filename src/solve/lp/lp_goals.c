/*
 * lp_goals.c - goals by linear programmes: least levels, finish times, sums, ratios.
 *
 * Rows are scaled so that what is looked for is near 1: the solver's tolerances are
 * absolute, ours are relative.
 */
#include "solve/lp/lp_goals.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/goal.h"
#include "solve/lp/lp_model.h"

#define CLOSE 1e-10      /* relative gap at which a search has ended        */
#define SLACK 1e-10      /* what a floor that is known to be reachable gives */
#define KEPT 1e-8        /* a floor that is kept to this is kept */
#define SEARCH_MAX 60    /* steps of a search; it takes about five          */
#define FLOOR_SLACK 1e-9 /* floors at the boundary count as reachable       */

int clp_gave_up(struct error *err)
{
    return error_set(err, -EDOM, "the linear programme's solver gave up");
}

static double *new_shares(const struct frame *frame)
{
    return arena_array(frame->arena, double,
                       (size_t)frame->line_count * frame->programme->type_count);
}

double clp_scale(const struct frame *frame, const double *unit)
{
    const struct programme *p = frame->programme;
    double *x = new_shares(frame);
    double *rates = arena_array(frame->arena, double, p->job_count);
    frame_isolated(frame, x);
    frame_rates(frame, x, rates);
    double least = INFINITY;
    for (uint32_t j = 0; j < p->job_count; j++)
        if (unit[j] > 0) /* who runs in pairs only has no rate here */
            least = fmin(least,
                         unit[j] * fmax(rates[j], frame->top[j] / p->job_count / 16));
    return least;
}

/* Take the new shares unless rounding broke somebody's floor. */
static void take_if_kept(const struct frame *frame, const double *unit,
                         const double *floor, const double *x, struct shares *shares)
{
    uint32_t count = frame->programme->job_count;
    double *rates = arena_array(frame->arena, double, count);
    frame_rates(frame, x, rates);
    for (uint32_t j = 0; j < count; j++)
        if (unit[j] > 0 && unit[j] * rates[j] < floor[j] * (1 - KEPT))
            return;
    memcpy(shares->x, x,
           (size_t)frame->line_count * frame->programme->type_count * sizeof *x);
}

void clp_tidy(const struct frame *frame, const double *unit, const double *floor,
              struct shares *shares)
{
    struct linear linear;
    linear_init(&linear, frame, unit, goal_normalised(frame));
    for (uint32_t j = 0; j < frame->programme->job_count; j++)
        if (unit[j] > 0 && floor[j] > 0)
            linear_set_floor(&linear, j, floor[j] * (1 - SLACK));
    if (linear_maximise(&linear) == LP_OPTIMAL) {
        double *x = new_shares(frame);
        linear_shares(&linear, x);
        take_if_kept(frame, unit, floor, x, shares);
    }
    shares->iterations += linear.iterations;
    linear_release(&linear);
}

/* One and the same floor for everybody who has a part in it. */
static void tidy_level(const struct frame *frame, const double *unit,
                       struct shares *shares)
{
    uint32_t count = frame->programme->job_count;
    double *rates = arena_array(frame->arena, double, count);
    double *floor = arena_array(frame->arena, double, count);
    frame_rates(frame, shares->x, rates);
    double least = INFINITY;
    for (uint32_t j = 0; j < count; j++)
        if (unit[j] > 0)
            least = fmin(least, unit[j] * rates[j]);
    for (uint32_t j = 0; j < count; j++)
        floor[j] = least;
    clp_tidy(frame, unit, floor, shares);
}

static double relative_gap(double bound, double reached)
{
    return bound > 0 ? fmax(0, (bound - reached) / bound) : 0;
}

/* MAX_MIN and MAKESPAN: the largest z with unit * rate >= z for all. */
int clp_least(const struct frame *frame, struct shares *shares, struct error *err)
{
    uint32_t count = frame->programme->job_count;
    double *unit = goal_units(frame);
    double *need = arena_array(frame->arena, double, count);
    double scale = clp_scale(frame, unit);
    double most = INFINITY;
    for (uint32_t j = 0; j < count; j++)
        if (unit[j] > 0) {
            unit[j] /= scale;
            need[j] = 1;
            most = fmin(most, unit[j] * frame->top[j]);
        }
    struct linear linear;
    linear_init(&linear, frame, unit, NULL);
    linear_add_level(&linear, 2 * most, need);
    bool solved = linear_maximise(&linear) == LP_OPTIMAL;
    shares->iterations = linear.iterations;
    if (solved) {
        linear_shares(&linear, shares->x);
        most = fmin(most, linear_bound(&linear));
    }
    linear_release(&linear);
    if (!solved)
        return clp_gave_up(err);

    if (frame->programme->tidy)
        tidy_level(frame, unit, shares);
    shares->objective = goal_reached(frame, shares->x);
    double level = frame->programme->goal == GOAL_MAKESPAN ? 1 / shares->objective
                                                           : shares->objective;
    shares->gap = relative_gap(most * scale, level);
    return 0;
}

/* --- finish times: a few linear programmes, each at the last one's bound --- */

struct finish {
    const struct frame *frame;
    struct finish_terms terms;
    double low, high; /* z: reached, and proven not to be exceeded */
    double *unit;     /* [job] 1 / the rate asked for at the first z */
    double *need;
    double *best; /* shares that reach 'low' */
};

/* How much is asked for at z, at these prices per job; grows with z, faster and faster. */
static double asked(const struct finish *finish, const struct linear *linear, double z)
{
    double sum = 0;
    for (uint32_t j = 0; j < finish->frame->programme->job_count; j++)
        if (finish->terms.need[j] > 0)
            sum += linear_pull(linear, j) * finish->unit[j] *
                   finish_rate(finish->terms.need[j], finish->terms.ahead[j], z);
    return sum;
}

/*
 * At the duals y of the programme for z, y . asked(z) is at most what the bound allows:
 * a z that asks for more is out of reach.
 */
static double lowered(const struct finish *finish, const struct linear *linear,
                      double z)
{
    double budget = linear_bound(linear) * asked(finish, linear, z);
    double low = finish->low, high = finish->high;
    if (!(asked(finish, linear, high) > budget))
        return high;
    for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
        double middle = low + (high - low) / 2;
        if (asked(finish, linear, middle) > budget)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Take the shares if they are the best so far. */
static void keep_better(struct finish *finish, const double *x)
{
    const struct frame *frame = finish->frame;
    double reached = goal_reached(frame, x);
    if (!(reached > 0) || 1 / reached <= finish->low)
        return;
    finish->low = 1 / reached;
    size_t cells = (size_t)frame->line_count * frame->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        finish->best[i] = x[i];
}

/* One programme at z = high: better shares, or a lower bound. */
static int finish_step(struct finish *finish, struct linear *linear, double *scratch,
                       struct error *err)
{
    double z = finish->high;
    for (uint32_t j = 0; j < finish->frame->programme->job_count; j++)
        if (finish->terms.need[j] > 0)
            linear_set_need(linear, j,
                            finish->unit[j] * finish_rate(finish->terms.need[j],
                                                          finish->terms.ahead[j], z));
    if (linear_maximise(linear) != LP_OPTIMAL)
        return clp_gave_up(err);
    linear_shares(linear, scratch);
    keep_better(finish, scratch);
    finish->high = lowered(finish, linear, z);
    return 0;
}

static void finish_start(struct finish *finish, const struct frame *frame,
                         double *scratch)
{
    uint32_t count = frame->programme->job_count;
    uint32_t types = frame->programme->type_count;
    *finish = (struct finish){
        .frame = frame,
        .terms = goal_finish_terms(frame),
        .high = INFINITY,
        .unit = arena_array(frame->arena, double, count),
        .need = arena_array(frame->arena, double, count),
        .best = new_shares(frame),
    };
    frame_isolated(frame, scratch);
    for (uint32_t j = 0; j < count; j++)
        for (uint32_t t = 0; t < types; t++)
            if (!line_usable(frame, j, t))
                scratch[(size_t)j * types + t] = 0;
    frame_tidy_up(frame, scratch);
    keep_better(finish, scratch);
    for (uint32_t j = 0; j < count; j++)
        if (finish->terms.need[j] > 0) {
            double need = finish->terms.need[j], ahead = finish->terms.ahead[j];
            finish->high = fmin(finish->high, finish_level(need, ahead, frame->top[j]));
            finish->unit[j] = 1 / finish_rate(need, ahead, finish->low);
            finish->need[j] = 1;
        }
}

int clp_finish_time(const struct frame *frame, struct shares *shares, struct error *err)
{
    struct finish finish;
    struct linear linear;
    finish_start(&finish, frame, shares->x);
    linear_init(&linear, frame, finish.unit, NULL);
    linear_add_level(&linear, LP_INFINITY, finish.need);
    int r = 0;
    for (int i = 0; i < SEARCH_MAX && r == 0; i++) {
        if (finish.high - finish.low <= CLOSE * finish.high)
            break;
        r = finish_step(&finish, &linear, shares->x, err);
    }
    shares->iterations = linear.iterations;
    linear_release(&linear);
    if (r < 0)
        return r;
    size_t cells = (size_t)frame->line_count * frame->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        shares->x[i] = finish.best[i];
    if (frame->programme->tidy) {
        double *floor = arena_array(frame->arena, double, frame->programme->job_count);
        for (uint32_t j = 0; j < frame->programme->job_count; j++)
            if (finish.terms.need[j] > 0)
                floor[j] =
                    finish.unit[j] * finish_rate(finish.terms.need[j],
                                                 finish.terms.ahead[j], finish.low);
        clp_tidy(frame, finish.unit, floor, shares);
    }
    shares->objective = goal_reached(frame, shares->x);
    shares->gap = relative_gap(finish.high, 1 / shares->objective);
    return 0;
}

/* --- sums and ratios --- */

/* The best rate of a job that has the cluster to itself. */
static double rate_alone(const struct frame *frame, uint32_t job)
{
    const struct programme *p = frame->programme;
    bool taken[SOLVE_TYPES_MAX] = { false };
    double time = 1, rate = 0;
    for (;;) {
        uint32_t best = SOLVE_TYPES_MAX;
        for (uint32_t t = 0; t < p->type_count; t++)
            if (!taken[t] && line_usable(frame, job, t) &&
                (best == SOLVE_TYPES_MAX ||
                 line_rate(frame, job, t, 0) > line_rate(frame, job, best, 0)))
                best = t;
        if (best == SOLVE_TYPES_MAX || time <= 0)
            return rate;
        double share = fmin(time, p->capacity[best] / p->gang[job]);
        rate += share * line_rate(frame, job, best, 0);
        time -= share;
        taken[best] = true;
    }
}

void floors_dropped(const struct frame *frame, struct shares *shares)
{
    const struct programme *p = frame->programme;
    bool found = false;
    shares->status = SHARES_FLOORS_DROPPED;
    shares->unserved = arena_array(frame->arena, bool, p->job_count);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (p->floor[j] > rate_alone(frame, j) * (1 + FLOOR_SLACK))
            shares->unserved[j] = found = true;
    for (uint32_t j = 0; j < p->job_count && !found; j++)
        shares->unserved[j] = p->floor[j] > 0;
}

/* Rows for the floors: unit * rate >= 1.  False if one is beyond reach already. */
static bool add_floors(struct linear *linear)
{
    const struct programme *p = linear->frame->programme;
    for (uint32_t j = 0; p->floor && j < p->job_count; j++) {
        if (p->floor[j] > 0)
            linear_set_floor(linear, j, 1 - FLOOR_SLACK);
        if (p->floor[j] > linear->frame->top[j] * (1 + FLOOR_SLACK))
            return false;
    }
    return true;
}

static double *floor_units(const struct frame *frame)
{
    const struct programme *p = frame->programme;
    double *unit = arena_array(frame->arena, double, p->job_count);
    for (uint32_t j = 0; p->floor && j < p->job_count; j++)
        unit[j] = p->floor[j] > 0 ? 1 / p->floor[j] : 0;
    return unit;
}

/* Values scaled so that the largest is 1; returns by how much. */
static double scale_values(const struct frame *frame, double *values)
{
    size_t cells = (size_t)frame->line_count * frame->programme->type_count;
    double most = 0;
    for (size_t i = 0; i < cells; i++)
        most = fmax(most, values[i]);
    for (size_t i = 0; i < cells && most > 0; i++)
        values[i] /= most;
    return most;
}

/* Start with the plain sum, with the floors if they can be kept. */
static int sum_first(const struct frame *frame, struct linear *linear, double *values,
                     struct shares *shares, struct error *err)
{
    linear_init(linear, frame, floor_units(frame), values);
    if (add_floors(linear)) {
        enum lp_status status = linear_maximise(linear);
        if (status == LP_OPTIMAL)
            return 0;
        if (status != LP_INFEASIBLE)
            return clp_gave_up(err);
    }
    floors_dropped(frame, shares);
    for (uint32_t j = 0; j < frame->programme->job_count; j++)
        linear_set_floor(linear, j, 0);
    return linear_maximise(linear) == LP_OPTIMAL ? 0 : clp_gave_up(err);
}

int clp_sum(const struct frame *frame, struct shares *shares, struct error *err)
{
    double *values = goal_values(frame);
    double scale = scale_values(frame, values);
    struct linear linear;
    int r = sum_first(frame, &linear, values, shares, err);
    if (r == 0) {
        linear_shares(&linear, shares->x);
        shares->objective = goal_reached(frame, shares->x);
        shares->gap = relative_gap(linear_bound(&linear) * scale, shares->objective);
    }
    shares->iterations = linear.iterations;
    linear_release(&linear);
    return r;
}

/* What each share costs. */
static double *costs(const struct frame *frame)
{
    const struct programme *p = frame->programme;
    double *cost = new_shares(frame);
    for (uint32_t line = 0; line < frame->line_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++)
            cost[(size_t)line * p->type_count + t] =
                line_gang(frame, line) * p->price[t];
    return cost;
}

/*
 * What the best shares cost at least.  They can be blown up until a type or a job's time
 * is used up without changing the ratio, and they pay for the floors.
 */
static double least_cost(const struct frame *frame, bool floors)
{
    const struct programme *p = frame->programme;
    double blown_up = INFINITY, paid = 0;
    for (uint32_t t = 0; t < p->type_count; t++)
        if (p->capacity[t] > 0)
            blown_up = fmin(blown_up, p->price[t] * p->capacity[t]);
    for (uint32_t j = 0; j < p->job_count; j++) {
        double cheapest = INFINITY, step = INFINITY;
        for (uint32_t t = 0; t < p->type_count; t++)
            if (line_usable(frame, j, t)) {
                cheapest = fmin(cheapest, p->gang[j] * p->price[t]);
                step = fmin(step, p->gang[j] * p->price[t] / line_rate(frame, j, t, 0));
            }
        blown_up = fmin(blown_up, cheapest);
        /* With pairs two jobs may share what is paid. */
        if (floors && p->floor && p->floor[j] > 0 && p->pair_count == 0)
            paid += p->floor[j] * step;
    }
    return fmax(blown_up, paid);
}

/* Of all shares with that ratio, those with the largest sum of normalised rates. */
static void tidy_ratio(const struct frame *frame, const double *net,
                       struct shares *shares)
{
    struct linear linear;
    linear_init(&linear, frame, floor_units(frame), goal_normalised(frame));
    if (shares->status != SHARES_FLOORS_DROPPED)
        add_floors(&linear);
    linear_add_cut(&linear, net, -SLACK);
    if (linear_maximise(&linear) == LP_OPTIMAL)
        linear_shares(&linear, shares->x);
    shares->iterations += linear.iterations;
    linear_release(&linear);
}

/*
 * Dinkelbach: r := rates / costs of the shares that maximise rates - r costs.  It rises
 * until nothing is left to gain, in a handful of steps.
 */
int clp_ratio(const struct frame *frame, struct shares *shares, struct error *err)
{
    size_t cells = (size_t)frame->line_count * frame->programme->type_count;
    double *values = goal_values(frame);
    double scale = scale_values(frame, values);
    const double *cost = costs(frame);
    double *net = new_shares(frame);
    double *x = new_shares(frame);
    double best = 0, excess = INFINITY;
    struct linear linear;
    int r = sum_first(frame, &linear, values, shares, err);
    for (int i = 0; r == 0 && i < SEARCH_MAX; i++) {
        linear_shares(&linear, x);
        double reached = goal_reached(frame, x) / scale;
        if (i > 0 && reached <= best * (1 + 1e-13))
            break;
        best = reached;
        for (size_t c = 0; c < cells; c++) {
            shares->x[c] = x[c];
            net[c] = values[c] - best * cost[c];
        }
        linear_set_value(&linear, net);
        if (linear_maximise(&linear) != LP_OPTIMAL)
            r = clp_gave_up(err);
        else
            excess = linear_bound(&linear);
    }
    shares->iterations = linear.iterations;
    linear_release(&linear);
    if (r < 0)
        return r;
    if (frame->programme->tidy)
        tidy_ratio(frame, net, shares);
    double load = frame_load(frame, shares->x);
    for (size_t c = 0; c < cells && load > 0; c++)
        shares->x[c] /= load; /* the ratio stays, floors are kept the better */
    shares->objective = goal_reached(frame, shares->x);
    bool floors = shares->status != SHARES_FLOORS_DROPPED;
    double bound = best + fmax(0, excess) / least_cost(frame, floors);
    shares->gap = relative_gap(bound * scale, shares->objective);
    return 0;
}
