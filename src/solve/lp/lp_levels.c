/*
 * lp_levels.c - water filling, and shares between groups, by linear programmes.
 *
 * Every job has a level and a speed.  All levels rise, each at its speed, until some
 * jobs cannot follow without another level falling; those stop, speeds are computed
 * anew, and the rest goes on.  With constant speeds that is the lexicographic optimum:
 * no job can have more unless one that has no more gets less.  With speeds that pass a
 * stopped job's part on to its group it is Gavel's hierarchical policy.
 *
 * Which jobs have to stop?  A positive dual proves it.  For the others one programme
 * maximises the spare rate above their levels, again for those that got none, until no
 * job gets any: exact, and without integers.
 */
#include "solve/lp/lp_goals.h"

#include <math.h>
#include <stddef.h>

#include "base/arena.h"
#include "solve/problem.h"
#include "solve/lp/lp_model.h"

#define PULLS 1e-7  /* a dual above it is one                                    */
#define MOVES 1e-8  /* relative spare above it is some                           */
#define FULL 1e-10  /* so near to its job's best rate a level is at it           */
#define SLACK 1e-12 /* what a level gives so that rounding does not make it fail */

struct level_search {
    const struct problem *problem;
    struct lp_model model;
    double *unit;   /* [job] scaled so that levels are near 1                  */
    double *level;  /* [job] unit * rate that it has for sure                  */
    double *speed;  /* [job] 0: does not rise now                              */
    bool *done;     /* [job] will not rise again                               */
    bool *asks;     /* [job] it is not known yet whether it can go on          */
    uint32_t spare; /* the first of the columns of spare rates, by job        */
    double gap;     /* the largest so far                                      */
};

/*
 * Add a column per job that holds what it has beyond its floor, kept at 0 at first:
 *     unit sum rate x - spare >= floor + need z
 */
static void add_spare_columns(struct level_search *levels)
{
    struct lp_model *model = &levels->model;
    const double minus = -1;
    for (uint32_t j = 0; j < levels->problem->programme->job_count; j++) {
        uint32_t row = model->rate_rows + j;
        uint32_t column = lp_add_column(model->lp, 0, 0, 0, 1, &row, &minus);
        if (j == 0)
            levels->spare = column;
    }
}

/* Let z or a job's spare be wanted, and up to 'most'; or keep it at 0, where 'most' is 0. */
static void want_column(struct lp_model *model, uint32_t column, double most)
{
    lp_set_column(model->lp, column, 0, most);
    lp_set_gain(model->lp, column, most > 0 ? 1 : 0);
}

/* False when no job rises any more. */
static bool set_speeds(struct level_search *levels)
{
    const struct programme *p = levels->problem->programme;
    double *speed = arena_array(levels->problem->arena, double, p->job_count);
    bool any = false;
    if (p->goal == GOAL_HIERARCHICAL)
        problem_group_speeds(levels->problem, levels->done, speed);
    for (uint32_t j = 0; j < p->job_count; j++) {
        if (p->goal != GOAL_HIERARCHICAL)
            speed[j] = levels->done[j] ? 0 : 1;
        if (speed[j] != levels->speed[j])
            lp_model_set_need(&levels->model, j, speed[j]);
        levels->speed[j] = speed[j];
        any = any || speed[j] > 0;
    }
    return any;
}

static enum lp_status maximise_levels(struct level_search *levels)
{
    enum lp_status status = LP_INFEASIBLE;
    for (double slack = SLACK; status != LP_OPTIMAL && slack < 1e-6; slack *= 10) {
        for (uint32_t j = 0; j < levels->problem->programme->job_count; j++)
            if (levels->level[j] > 0)
                lp_model_set_floor(&levels->model, j, levels->level[j] * (1 - slack));
        status = lp_model_maximise(&levels->model);
    }
    return status;
}

/* No level exceeds what the shares give, so that the next rise starts feasible. */
static void lower_to_shares(struct level_search *levels, double *x)
{
    uint32_t count = levels->problem->programme->job_count;
    double *rates = arena_array(levels->problem->arena, double, count);
    lp_model_shares(&levels->model, x);
    problem_rates(levels->problem, x, rates);
    for (uint32_t j = 0; j < count; j++)
        levels->level[j] = fmin(levels->level[j], levels->unit[j] * rates[j]);
}

/* How far levels can rise before one is at its job's best rate. */
static double room_to_rise(const struct level_search *levels)
{
    double least = INFINITY;
    for (uint32_t j = 0; j < levels->problem->programme->job_count; j++)
        if (levels->speed[j] > 0)
            least = fmin(
                least, (levels->unit[j] * levels->problem->top[j] - levels->level[j]) /
                           levels->speed[j]);
    return fmax(0, least);
}

/* Raise all levels that rise, and stop the jobs with a positive dual. */
static int raise_levels(struct level_search *levels, double *x, struct error *err)
{
    struct lp_model *model = &levels->model;
    double most = room_to_rise(levels);
    want_column(model, model->level, 2 * most + 1);
    if (maximise_levels(levels) != LP_OPTIMAL)
        return lp_gave_up(err);
    double step = fmin(lp_columns(model->lp)[model->level], most);
    double bound = fmin(lp_model_bound(model), most);
    double pulls = 0, strongest = 0;
    uint32_t count = levels->problem->programme->job_count, held = 0;
    for (uint32_t j = 0; j < count; j++) {
        double pull = lp_model_job_price(model, j) * levels->speed[j];
        pulls += pull;
        if (pull > strongest) {
            strongest = pull;
            held = j;
        }
    }
    for (uint32_t j = 0; j < count; j++) {
        if (levels->speed[j] <= 0)
            continue;
        levels->level[j] += step * levels->speed[j];
        levels->gap = fmax(levels->gap, (bound - step) * levels->speed[j] /
                                            fmax(levels->level[j], 1));
        bool full =
            levels->level[j] >= levels->unit[j] * levels->problem->top[j] * (1 - FULL);
        bool pulled = lp_model_job_price(model, j) * levels->speed[j] > PULLS * pulls;
        levels->done[j] = full || pulled || (j == held && strongest > 0);
        levels->asks[j] = !levels->done[j];
    }
    lower_to_shares(levels, x);
    return 0;
}

/* How much spare to maximise up to: as much again as the job has, or an equal part. */
static double spare_to_ask(const struct level_search *levels, uint32_t job)
{
    double top = levels->unit[job] * levels->problem->top[job];
    return fmin(fmax(levels->level[job], 1), top - levels->level[job]);
}

/* Find out which of the other jobs can go on; those that cannot are done. */
static int stop_held(struct level_search *levels, struct error *err)
{
    uint32_t count = levels->problem->programme->job_count;
    struct lp_model *model = &levels->model;
    bool asking = false, moved = true;
    for (uint32_t j = 0; j < count; j++)
        asking = asking || levels->asks[j];
    if (!asking)
        return 0;
    want_column(model, model->level, 0);
    for (uint32_t j = 0; j < count; j++)
        if (levels->asks[j])
            want_column(model, levels->spare + j, spare_to_ask(levels, j));
    while (asking && moved) {
        if (maximise_levels(levels) != LP_OPTIMAL)
            return lp_gave_up(err);
        asking = moved = false;
        for (uint32_t j = 0; j < count; j++) {
            if (!levels->asks[j])
                continue;
            bool free = lp_columns(model->lp)[levels->spare + j] >
                        MOVES * fmax(levels->level[j], 1e-3);
            if (free)
                levels->asks[j] = false;
            moved = moved || free;
            asking = asking || !free;
        }
        /* Only after all were read: changing the programme ends its solution. */
        for (uint32_t j = 0; j < count && moved; j++)
            if (!levels->asks[j])
                want_column(model, levels->spare + j, 0);
    }
    for (uint32_t j = 0; j < count; j++)
        if (levels->asks[j]) {
            levels->done[j] = true;
            want_column(model, levels->spare + j, 0);
        }
    return 0;
}

static void level_search_init(struct level_search *levels,
                              const struct problem *problem)
{
    uint32_t count = problem->programme->job_count;
    *levels = (struct level_search){
        .problem = problem,
        .unit = problem_units(problem),
        .level = arena_array(problem->arena, double, count),
        .speed = arena_array(problem->arena, double, count),
        .done = arena_array(problem->arena, bool, count),
        .asks = arena_array(problem->arena, bool, count),
    };
    double scale = lp_level_scale(problem, levels->unit);
    for (uint32_t j = 0; j < count; j++) {
        levels->done[j] = !(levels->unit[j] > 0);
        levels->unit[j] /= scale;
    }
    lp_model_init(&levels->model, problem, levels->unit, NULL);
    lp_model_add_level(&levels->model, 1, levels->speed);
    add_spare_columns(levels);
}

/* Is there a job outside the goal that could use what is left? */
static bool has_leftovers(const struct level_search *levels)
{
    for (uint32_t j = 0; j < levels->problem->programme->job_count; j++)
        if (!(levels->unit[j] > 0) && levels->problem->even[j] > 0)
            return true;
    return false;
}

static uint32_t count_done(const struct level_search *levels)
{
    uint32_t count = 0;
    for (uint32_t j = 0; j < levels->problem->programme->job_count; j++)
        count += levels->done[j];
    return count;
}

int lp_solve_levels(const struct problem *problem, struct shares *shares,
                    struct error *err)
{
    struct level_search levels;
    int r = 0;
    level_search_init(&levels, problem);
    while (r == 0 && set_speeds(&levels)) {
        uint32_t before = count_done(&levels);
        r = raise_levels(&levels, shares->x, err);
        if (r == 0)
            r = stop_held(&levels, err);
        if (r == 0 && count_done(&levels) == before)
            r = lp_gave_up(err); /* some job always has to stop, but for rounding */
    }
    shares->iterations = levels.model.iterations;
    lp_model_release(&levels.model);
    if (r < 0)
        return r;
    if (problem->programme->tidy && has_leftovers(&levels))
        lp_break_ties(problem, levels.unit, levels.level, shares);
    shares->gap = levels.gap;
    shares->objective = problem_objective(problem, shares->x);
    return 0;
}
