/*
 * lp_goals.c - goals by linear programmes: least levels, finish times, sums, ratios.
 *
 * Rows are scaled so that the optimum is near 1: the solver's tolerances are absolute,
 * those here are relative.
 */
#include "solve/lp/lp_goals.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "solve/problem.h"
#include "solve/lp/lp_model.h"

#define CLOSE 1e-10      /* relative gap at which a search has ended        */
#define SLACK 1e-10      /* what a floor that is known to be reachable gives */
#define KEPT 1e-8        /* a floor that is kept to this is kept */
#define SEARCH_MAX 60    /* steps of a search; it takes about five          */
#define FLOOR_SLACK 1e-9 /* floors at the boundary count as reachable       */

static double *new_shares(const struct problem *problem)
{
    return arena_array(problem->arena, double,
                       (size_t)problem->line_count * problem->programme->type_count);
}

double lp_level_scale(const struct problem *problem, const double *unit)
{
    const struct programme *p = problem->programme;
    double *x = new_shares(problem);
    double *rates = arena_array(problem->arena, double, p->job_count);
    problem_isolated_shares(problem, x);
    problem_rates(problem, x, rates);
    double least = INFINITY;
    for (uint32_t j = 0; j < p->job_count; j++)
        if (unit[j] > 0) /* a job that runs in pairs only has no rate here */
            least = fmin(least,
                         unit[j] * fmax(rates[j], problem->top[j] / p->job_count / 16));
    return least;
}

/* Take the new shares unless rounding broke a floor. */
static void keep_if_floors_hold(const struct problem *problem, const double *unit,
                                const double *floor, const double *x,
                                struct shares *shares)
{
    uint32_t count = problem->programme->job_count;
    double *rates = arena_array(problem->arena, double, count);
    problem_rates(problem, x, rates);
    for (uint32_t j = 0; j < count; j++)
        if (unit[j] > 0 && unit[j] * rates[j] < floor[j] * (1 - KEPT))
            return;
    memcpy(shares->x, x,
           (size_t)problem->line_count * problem->programme->type_count * sizeof *x);
}

void lp_break_ties(const struct problem *problem, const double *unit,
                   const double *floor, struct shares *shares)
{
    struct lp_model model;
    lp_model_init(&model, problem, unit, problem_normalised_values(problem));
    for (uint32_t j = 0; j < problem->programme->job_count; j++)
        if (unit[j] > 0 && floor[j] > 0)
            lp_model_set_floor(&model, j, floor[j] * (1 - SLACK));
    if (lp_model_maximise(&model) == LP_OPTIMAL) {
        double *x = new_shares(problem);
        lp_model_shares(&model, x);
        keep_if_floors_hold(problem, unit, floor, x, shares);
    }
    shares->iterations += model.iterations;
    lp_model_release(&model);
}

/* The same floor for every job that the goal is about. */
static void break_level_ties(const struct problem *problem, const double *unit,
                             struct shares *shares)
{
    uint32_t count = problem->programme->job_count;
    double *rates = arena_array(problem->arena, double, count);
    double *floor = arena_array(problem->arena, double, count);
    problem_rates(problem, shares->x, rates);
    double least = INFINITY;
    for (uint32_t j = 0; j < count; j++)
        if (unit[j] > 0)
            least = fmin(least, unit[j] * rates[j]);
    for (uint32_t j = 0; j < count; j++)
        floor[j] = least;
    lp_break_ties(problem, unit, floor, shares);
}

/* MAX_MIN and MAKESPAN: the largest z with unit * rate >= z for all. */
int lp_solve_least(const struct problem *problem, struct shares *shares,
                   struct error *err)
{
    uint32_t count = problem->programme->job_count;
    double *unit = problem_units(problem);
    double *need = arena_array(problem->arena, double, count);
    double scale = lp_level_scale(problem, unit);
    double most = INFINITY;
    for (uint32_t j = 0; j < count; j++)
        if (unit[j] > 0) {
            unit[j] /= scale;
            need[j] = 1;
            most = fmin(most, unit[j] * problem->top[j]);
        }
    struct lp_model model;
    lp_model_init(&model, problem, unit, NULL);
    lp_model_add_level(&model, 2 * most, need);
    bool solved = lp_model_maximise(&model) == LP_OPTIMAL;
    shares->iterations = model.iterations;
    if (solved) {
        lp_model_shares(&model, shares->x);
        most = fmin(most, lp_model_bound(&model));
    }
    lp_model_release(&model);
    if (!solved)
        return lp_gave_up(err);

    if (problem->programme->tidy)
        break_level_ties(problem, unit, shares);
    shares->objective = problem_objective(problem, shares->x);
    double level = problem->programme->goal == GOAL_MAKESPAN ? 1 / shares->objective
                                                             : shares->objective;
    shares->gap = problem_relative_gap(most * scale, level);
    return 0;
}

/* --- finish times: a few linear programmes, each at the last one's bound --- */

struct finish_search {
    const struct problem *problem;
    struct finish_terms terms;
    double low, high; /* z: reached, and proven not to be exceeded */
    double *unit;     /* [job] 1 / the rate demanded at the first z */
    double *need;
    double *best; /* shares that reach 'low' */
};

/* What the demands at z cost, at these prices per job: convex in z. */
static double demand_cost(const struct finish_search *finish,
                          const struct lp_model *model, double z)
{
    double sum = 0;
    for (uint32_t j = 0; j < finish->problem->programme->job_count; j++)
        if (finish->terms.need[j] > 0)
            sum += lp_model_job_price(model, j) * finish->unit[j] *
                   finish_rate(finish->terms.need[j], finish->terms.ahead[j], z);
    return sum;
}

/*
 * At the duals y of the programme for z, y . demand(z) is at most what the bound
 * allows: a z that demands more is out of reach.
 */
static double lower_bound(const struct finish_search *finish,
                          const struct lp_model *model, double z)
{
    double budget = lp_model_bound(model) * demand_cost(finish, model, z);
    double low = finish->low, high = finish->high;
    if (!(demand_cost(finish, model, high) > budget))
        return high;
    for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
        double middle = low + (high - low) / 2;
        if (demand_cost(finish, model, middle) > budget)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Keep the shares if they are the best so far. */
static void keep_better(struct finish_search *finish, const double *x)
{
    const struct problem *problem = finish->problem;
    double reached = problem_objective(problem, x);
    if (!(reached > 0) || 1 / reached <= finish->low)
        return;
    finish->low = 1 / reached;
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        finish->best[i] = x[i];
}

/* One programme at z = high: better shares, or a lower bound. */
static int step_finish_search(struct finish_search *finish, struct lp_model *model,
                              double *scratch, struct error *err)
{
    double z = finish->high;
    for (uint32_t j = 0; j < finish->problem->programme->job_count; j++)
        if (finish->terms.need[j] > 0)
            lp_model_set_need(model, j,
                              finish->unit[j] * finish_rate(finish->terms.need[j],
                                                            finish->terms.ahead[j], z));
    if (lp_model_maximise(model) != LP_OPTIMAL)
        return lp_gave_up(err);
    lp_model_shares(model, scratch);
    keep_better(finish, scratch);
    finish->high = lower_bound(finish, model, z);
    return 0;
}

static void start_finish_search(struct finish_search *finish,
                                const struct problem *problem, double *scratch)
{
    uint32_t count = problem->programme->job_count;
    uint32_t types = problem->programme->type_count;
    *finish = (struct finish_search){
        .problem = problem,
        .terms = problem_finish_terms(problem),
        .high = INFINITY,
        .unit = arena_array(problem->arena, double, count),
        .need = arena_array(problem->arena, double, count),
        .best = new_shares(problem),
    };
    problem_isolated_shares(problem, scratch);
    for (uint32_t j = 0; j < count; j++)
        for (uint32_t t = 0; t < types; t++)
            if (!problem_line_usable(problem, j, t))
                scratch[(size_t)j * types + t] = 0;
    problem_make_feasible(problem, scratch);
    keep_better(finish, scratch);
    for (uint32_t j = 0; j < count; j++)
        if (finish->terms.need[j] > 0) {
            double need = finish->terms.need[j], ahead = finish->terms.ahead[j];
            finish->high =
                fmin(finish->high, finish_level(need, ahead, problem->top[j]));
            finish->unit[j] = 1 / finish_rate(need, ahead, finish->low);
            finish->need[j] = 1;
        }
}

int lp_solve_finish_time(const struct problem *problem, struct shares *shares,
                         struct error *err)
{
    struct finish_search finish;
    struct lp_model model;
    start_finish_search(&finish, problem, shares->x);
    lp_model_init(&model, problem, finish.unit, NULL);
    lp_model_add_level(&model, LP_INFINITY, finish.need);
    int r = 0;
    for (int i = 0; i < SEARCH_MAX && r == 0; i++) {
        if (finish.high - finish.low <= CLOSE * finish.high)
            break;
        r = step_finish_search(&finish, &model, shares->x, err);
    }
    shares->iterations = model.iterations;
    lp_model_release(&model);
    if (r < 0)
        return r;
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        shares->x[i] = finish.best[i];
    if (problem->programme->tidy) {
        double *floor =
            arena_array(problem->arena, double, problem->programme->job_count);
        for (uint32_t j = 0; j < problem->programme->job_count; j++)
            if (finish.terms.need[j] > 0)
                floor[j] =
                    finish.unit[j] * finish_rate(finish.terms.need[j],
                                                 finish.terms.ahead[j], finish.low);
        lp_break_ties(problem, finish.unit, floor, shares);
    }
    shares->objective = problem_objective(problem, shares->x);
    shares->gap = problem_relative_gap(finish.high, 1 / shares->objective);
    return 0;
}

/* Rows for the floors: unit * rate >= 1.  False if one is beyond reach already. */
static bool add_floors(struct lp_model *model)
{
    const struct programme *p = model->problem->programme;
    for (uint32_t j = 0; p->floor && j < p->job_count; j++) {
        if (p->floor[j] > 0)
            lp_model_set_floor(model, j, 1 - FLOOR_SLACK);
        if (p->floor[j] > model->problem->top[j] * (1 + FLOOR_SLACK))
            return false;
    }
    return true;
}

static double *floor_units(const struct problem *problem)
{
    const struct programme *p = problem->programme;
    double *unit = arena_array(problem->arena, double, p->job_count);
    for (uint32_t j = 0; p->floor && j < p->job_count; j++)
        unit[j] = p->floor[j] > 0 ? 1 / p->floor[j] : 0;
    return unit;
}

/* Scale values so that the largest is 1; returns the factor. */
static double scale_values(const struct problem *problem, double *values)
{
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    double most = 0;
    for (size_t i = 0; i < cells; i++)
        most = fmax(most, values[i]);
    for (size_t i = 0; i < cells && most > 0; i++)
        values[i] /= most;
    return most;
}

/* Start with the plain sum, with the floors if they can be kept. */
static int solve_first_sum(const struct problem *problem, struct lp_model *model,
                           double *values, struct shares *shares, struct error *err)
{
    lp_model_init(model, problem, floor_units(problem), values);
    if (add_floors(model)) {
        enum lp_status status = lp_model_maximise(model);
        if (status == LP_OPTIMAL)
            return 0;
        if (status != LP_INFEASIBLE)
            return lp_gave_up(err);
    }
    problem_drop_floors(problem, shares);
    for (uint32_t j = 0; j < problem->programme->job_count; j++)
        lp_model_set_floor(model, j, 0);
    return lp_model_maximise(model) == LP_OPTIMAL ? 0 : lp_gave_up(err);
}

int lp_solve_sum(const struct problem *problem, struct shares *shares,
                 struct error *err)
{
    double *values = problem_values(problem);
    double scale = scale_values(problem, values);
    struct lp_model model;
    int r = solve_first_sum(problem, &model, values, shares, err);
    if (r == 0) {
        lp_model_shares(&model, shares->x);
        shares->objective = problem_objective(problem, shares->x);
        shares->gap =
            problem_relative_gap(lp_model_bound(&model) * scale, shares->objective);
    }
    shares->iterations = model.iterations;
    lp_model_release(&model);
    return r;
}

/* What each share costs. */
static double *share_costs(const struct problem *problem)
{
    const struct programme *p = problem->programme;
    double *cost = new_shares(problem);
    for (uint32_t line = 0; line < problem->line_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++)
            cost[(size_t)line * p->type_count + t] =
                problem_line_gang(problem, line) * p->price[t];
    return cost;
}

/*
 * What the best shares cost at least.  They can be blown up until a type or a job's time
 * is used up without changing the ratio, and they pay for the floors.
 */
static double least_ratio_cost(const struct problem *problem, bool floors)
{
    const struct programme *p = problem->programme;
    double blown_up = INFINITY, paid = 0;
    for (uint32_t t = 0; t < p->type_count; t++)
        if (p->capacity[t] > 0)
            blown_up = fmin(blown_up, p->price[t] * p->capacity[t]);
    for (uint32_t j = 0; j < p->job_count; j++) {
        double cheapest = INFINITY, step = INFINITY;
        for (uint32_t t = 0; t < p->type_count; t++)
            if (problem_line_usable(problem, j, t)) {
                cheapest = fmin(cheapest, p->gang[j] * p->price[t]);
                step = fmin(step, p->gang[j] * p->price[t] /
                                      problem_line_rate(problem, j, t, 0));
            }
        blown_up = fmin(blown_up, cheapest);
        /* With pairs two jobs may share what is paid. */
        if (floors && p->floor && p->floor[j] > 0 && p->pair_count == 0)
            paid += p->floor[j] * step;
    }
    return fmax(blown_up, paid);
}

/* One more condition: the sum of coefficient[line][type] x is at least 'low'.  After it
 * lp_model_bound() proves nothing. */
static void add_cut(struct lp_model *model, const double *coefficients, double low)
{
    const struct problem *problem = model->problem;
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    uint32_t *columns = arena_array(problem->arena, uint32_t, cells);
    double *values = arena_array(problem->arena, double, cells);
    uint32_t used = 0;
    for (size_t i = 0; i < cells; i++)
        if (model->columns[i] != LP_MODEL_NONE && coefficients[i] != 0) {
            columns[used] = model->columns[i];
            values[used++] = coefficients[i];
        }
    lp_add_cut(model->lp, low, LP_INFINITY, used, columns, values);
}

/* Of all shares with that ratio, those with the largest sum of normalised rates. */
static void break_ratio_ties(const struct problem *problem, const double *net,
                             struct shares *shares)
{
    struct lp_model model;
    lp_model_init(&model, problem, floor_units(problem),
                  problem_normalised_values(problem));
    if (shares->status != SHARES_FLOORS_DROPPED)
        add_floors(&model);
    add_cut(&model, net, -SLACK);
    if (lp_model_maximise(&model) == LP_OPTIMAL)
        lp_model_shares(&model, shares->x);
    shares->iterations += model.iterations;
    lp_model_release(&model);
}

/* Other values for the same lines. */
static void replace_values(struct lp_model *model, const double *value)
{
    const struct problem *problem = model->problem;
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        if (model->columns[i] != LP_MODEL_NONE)
            lp_set_gain(model->lp, model->columns[i], value[i]);
    model->value = value;
}

/*
 * Dinkelbach: r := rates / costs of the shares that maximise rates - r costs.  It rises
 * until nothing is left to gain, in a handful of steps.
 */
int lp_solve_ratio(const struct problem *problem, struct shares *shares,
                   struct error *err)
{
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    double *values = problem_values(problem);
    double scale = scale_values(problem, values);
    const double *cost = share_costs(problem);
    double *net = new_shares(problem);
    double *x = new_shares(problem);
    double best = 0, excess = INFINITY;
    struct lp_model model;
    int r = solve_first_sum(problem, &model, values, shares, err);
    for (int i = 0; r == 0 && i < SEARCH_MAX; i++) {
        lp_model_shares(&model, x);
        double reached = problem_objective(problem, x) / scale;
        if (i > 0 && reached <= best * (1 + 1e-13))
            break;
        best = reached;
        for (size_t c = 0; c < cells; c++) {
            shares->x[c] = x[c];
            net[c] = values[c] - best * cost[c];
        }
        replace_values(&model, net);
        if (lp_model_maximise(&model) != LP_OPTIMAL)
            r = lp_gave_up(err);
        else
            excess = lp_model_bound(&model);
    }
    shares->iterations = model.iterations;
    lp_model_release(&model);
    if (r < 0)
        return r;
    if (problem->programme->tidy)
        break_ratio_ties(problem, net, shares);
    double load = problem_load(problem, shares->x);
    for (size_t c = 0; c < cells && load > 0; c++)
        shares->x[c] /= load; /* the ratio stays, floors are kept the better */
    shares->objective = problem_objective(problem, shares->x);
    bool floors = shares->status != SHARES_FLOORS_DROPPED;
    double bound = best + fmax(0, excess) / least_ratio_cost(problem, floors);
    shares->gap = problem_relative_gap(bound * scale, shares->objective);
    return 0;
}
