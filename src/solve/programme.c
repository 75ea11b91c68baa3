/* programme.c - check a programme, choose its solver, and solve it. */
#include "solve/solve.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "solve/lp/lp.h"
#include "solve/lp/lp_goals.h"
#include "solve/maxmin/maxmin.h"
#include "solve/pairs/pairs_problem.h"
#include "solve/problem.h"
#include "solve/sums/sums.h"

#define PROVEN 1e-6 /* a gap above it is no answer */

/*
 * Beyond so many lines the general solver takes too long to be waited for: then the
 * fast one's failure is reported.  Levels are many programmes one after the other.
 */
#define LINES_MAX 20000
#define LEVEL_LINES_MAX 4000
#define UNCOVERED_LINES_MAX 200000

#define RATIO_TIDY_MAX 2000 /* jobs; the general solver breaks the ties of a ratio */

struct solver {
    struct market_classes *classes;
    struct pairs_solver *pairs;
    double prices[SOLVE_TYPES_MAX]; /* of the last sum that was near another; 0: none */
};

struct solver *solver_new(void)
{
    struct solver *solver = memory_checked(calloc(1, sizeof *solver));
    solver->classes = market_classes_new();
    solver->pairs = pairs_solver_new();
    return solver;
}

void solver_free(struct solver *solver)
{
    if (!solver)
        return;
    market_classes_free(solver->classes);
    pairs_solver_free(solver->pairs);
    free(solver);
}

/* --- checks ---------------------------------------------------------------------- */

#define NUMBER_MAX 1e15 /* beyond it rounding eats what is added up */

/* A number from 'least' to NUMBER_MAX; 'inside': 'least' itself is allowed. */
static bool is_sensible(double number, double least, bool inside)
{
    return number <= NUMBER_MAX && (inside ? number >= least : number > least);
}

struct checked_array {
    const char *name;
    const double *values;
    bool needed;
    bool positive; /* 0 is not allowed */
};

static int check_fields(const struct checked_array *fields, uint32_t count,
                        uint32_t rows, const char *row_name, struct error *err)
{
    for (uint32_t f = 0; f < count; f++) {
        if (!fields[f].values && fields[f].needed && rows > 0)
            return error_set(err, -EINVAL, "%s is missing", fields[f].name);
        for (uint32_t i = 0; fields[f].values && i < rows; i++)
            if (!is_sensible(fields[f].values[i], 0, !fields[f].positive))
                return error_set(err, -EINVAL, "%s %u: %s is %g, want a number %s",
                                 row_name, i, fields[f].name, fields[f].values[i],
                                 fields[f].positive ? "greater than 0"
                                                    : "from 0 to 1e15");
    }
    return 0;
}

static int check_jobs(const struct programme *p, struct error *err)
{
    bool timed = p->goal == GOAL_FINISH_TIME;
    const struct checked_array fields[] = {
        { "gang", p->gang, true, true },
        { "weight", p->weight, false, false },
        { "steps", p->steps, p->goal == GOAL_MAKESPAN || timed, false },
        { "age", p->age_s, timed, false },
        { "time alone", p->alone_s, timed, false },
    };
    int r =
        check_fields(fields, sizeof fields / sizeof *fields, p->job_count, "job", err);
    if (r < 0)
        return r;
    if (!p->rate && p->job_count > 0)
        return error_set(err, -EINVAL, "rates are missing");
    for (uint32_t j = 0; j < p->job_count; j++)
        for (uint32_t t = 0; t < p->type_count; t++)
            if (!is_sensible(p->rate[(size_t)j * p->type_count + t], 0, true))
                return error_set(err, -EINVAL,
                                 "job %u: rate on type %u is %g, want a number from 0 "
                                 "to 1e15",
                                 j, t, p->rate[(size_t)j * p->type_count + t]);
    /* A floor may be infinite: a deadline that has passed. */
    for (uint32_t j = 0; p->floor && j < p->job_count; j++)
        if (!(p->floor[j] >= 0))
            return error_set(err, -EINVAL, "job %u: floor is %g, want 0 or more", j,
                             p->floor[j]);
    return 0;
}

static int check_groups(const struct programme *p, struct error *err)
{
    if (p->job_count > 0 && (!p->group || !p->groups))
        return error_set(err, -EINVAL, "groups are missing");
    for (uint32_t g = 0; g < p->group_count; g++)
        if (!is_sensible(p->groups[g].weight, 0, true))
            return error_set(err, -EINVAL, "group %u: weight is %g, want 0 to 1e15", g,
                             p->groups[g].weight);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (p->group[j] >= p->group_count)
            return error_set(err, -EINVAL, "job %u: there is no group %u", j,
                             p->group[j]);
    return 0;
}

static int check_pair(const struct programme *p, uint32_t i, struct map *seen,
                      struct error *err)
{
    const struct programme_pair *pair = &p->pairs[i];
    if (pair->first >= pair->second || pair->second >= p->job_count)
        return error_set(err, -EINVAL, "pair %u: want two jobs, the first one first",
                         i);
    if (p->gang[pair->first] != p->gang[pair->second])
        return error_set(err, -EINVAL, "pair %u: gangs of %g and %g, want equal ones",
                         i, p->gang[pair->first], p->gang[pair->second]);
    uint64_t key = (uint64_t)pair->first << 32 | pair->second;
    if (map_find(seen, key) != MAP_NONE)
        return error_set(err, -EINVAL, "pair %u: the same as pair %u", i,
                         map_find(seen, key));
    map_put(seen, key, i);
    for (uint32_t t = 0; t < p->type_count; t++)
        for (uint32_t place = 0; place < 2; place++) {
            double rate = p->pair_rate[((size_t)i * p->type_count + t) * 2 + place];
            if (!is_sensible(rate, 0, true))
                return error_set(err, -EINVAL,
                                 "pair %u: rate on type %u is %g, want a number from "
                                 "0 to 1e15",
                                 i, t, rate);
        }
    return 0;
}

static int check_pairs(const struct programme *p, struct error *err)
{
    struct map seen = { 0 };
    int r = 0;
    if (p->pair_count == 0)
        return 0;
    if (!p->pairs || !p->pair_rate)
        return error_set(err, -EINVAL, "pairs are missing");
    for (uint32_t i = 0; r == 0 && i < p->pair_count; i++)
        r = check_pair(p, i, &seen, err);
    map_release(&seen);
    return r;
}

static int check_programme(const struct programme *p, struct error *err)
{
    if (p->type_count > SOLVE_TYPES_MAX)
        return error_set(err, -EINVAL, "%u types, at most %d can be solved for",
                         p->type_count, SOLVE_TYPES_MAX);
    const struct checked_array fields[] = {
        { "capacity", p->capacity, true, false },
        { "price", p->price, p->goal == GOAL_COST_RATIO, true },
    };
    int r = check_fields(fields, 2, p->type_count, "type", err);
    if (r == 0)
        r = check_jobs(p, err);
    if (r == 0 && p->goal == GOAL_HIERARCHICAL)
        r = check_groups(p, err);
    return r < 0 ? r : check_pairs(p, err);
}

/* --- solving ---------------------------------------------------------------------- */

/* Is there a job that the goal is about and that can run? */
static bool anything_to_do(const struct problem *problem)
{
    const struct programme *p = problem->programme;
    const double *unit = problem_units(problem);
    for (uint32_t j = 0; j < p->job_count; j++)
        switch (p->goal) {
        case GOAL_MAX_MIN:
        case GOAL_WATER_FILLING:
        case GOAL_HIERARCHICAL:
        case GOAL_MAKESPAN:
            if (unit[j] > 0)
                return true;
            break;
        case GOAL_FINISH_TIME:
            if (problem->even[j] > 0 && p->steps[j] > 0)
                return true;
            break;
        case GOAL_SUM:
        case GOAL_COST_RATIO:
            if (problem->top[j] > 0)
                return true;
            break;
        }
    return false;
}

static int solve_clp(const struct problem *problem, struct shares *shares,
                     struct error *err)
{
    static int (*const by_goal[])(const struct problem *, struct shares *,
                                  struct error *) = {
        [GOAL_MAX_MIN] = lp_solve_least,
        [GOAL_WATER_FILLING] = lp_solve_levels,
        [GOAL_HIERARCHICAL] = lp_solve_levels,
        [GOAL_MAKESPAN] = lp_solve_least,
        [GOAL_FINISH_TIME] = lp_solve_finish_time,
        [GOAL_SUM] = lp_solve_sum,
        [GOAL_COST_RATIO] = lp_solve_ratio,
    };
    int r = lp_load(err);
    return r < 0 ? r : by_goal[problem->programme->goal](problem, shares, err);
}

/* How large a programme the general solver gets after the fast one returned 'r'. */
static uint32_t lines_max(enum goal goal, int r)
{
    if (r != -EDOM)
        return UNCOVERED_LINES_MAX;
    return goal == GOAL_WATER_FILLING || goal == GOAL_HIERARCHICAL ? LEVEL_LINES_MAX
                                                                   : LINES_MAX;
}

/* -ENOTSUP where the structure that prices need is missing. */
static int solve_by_prices(const struct problem *problem, struct solver *solver,
                           bool keeps, struct shares *shares, struct error *err)
{
    const struct programme *p = problem->programme;
    if (p->pair_count > 0)
        return pairs_solve_problem(problem, solver->pairs, shares, err);
    switch (p->goal) {
    case GOAL_MAX_MIN:
    case GOAL_MAKESPAN:
    case GOAL_FINISH_TIME:
        return maxmin_solve_level(problem, solver->classes, keeps, shares, err);
    case GOAL_WATER_FILLING:
        return maxmin_solve_water_filling(problem, shares, err);
    case GOAL_HIERARCHICAL:
        return maxmin_solve_hierarchical(problem, shares, err);
    case GOAL_COST_RATIO:
        if (p->tidy && p->job_count <= RATIO_TIDY_MAX)
            return -ENOTSUP;
        return sums_solve(problem, NULL, shares, err);
    case GOAL_SUM:
        return sums_solve(problem, p->near && keeps ? solver->prices : NULL, shares,
                          err);
    }
    return -ENOTSUP;
}

/* By prices, and by the general solver where that fails. */
static int solve_fast(const struct problem *problem, struct solver *solver,
                      struct shares *shares, struct error *err)
{
    struct solver *own = solver ? NULL : solver_new();
    struct shares blank = *shares;
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    int r = solve_by_prices(problem, own ? own : solver, !own, shares, err);
    solver_free(own);
    if (r == 0 && shares->gap <= PROVEN)
        return 0;
    if (r == 0)
        r = error_set(err, -EDOM, "the prices found prove no more than a gap of %.1e",
                      shares->gap);
    if (problem->line_count > lines_max(problem->programme->goal, r))
        return r == -EDOM ? r
                          : error_set(err, -EDOM,
                                      "%u lines are too many for the general solver",
                                      problem->line_count);
    *shares = blank;
    for (size_t i = 0; i < cells; i++)
        shares->x[i] = 0;
    return solve_clp(problem, shares, err);
}

/* Each job's level, from the shares themselves. */
static void set_levels(const struct problem *problem, struct shares *shares)
{
    const struct programme *p = problem->programme;
    if (p->goal != GOAL_WATER_FILLING && p->goal != GOAL_HIERARCHICAL)
        return;
    const double *unit = problem_units(problem);
    shares->level = arena_array(problem->arena, double, p->job_count);
    problem_rates(problem, shares->x, shares->level);
    for (uint32_t j = 0; j < p->job_count; j++)
        shares->level[j] *= unit[j];
}

int programme_solve(const struct programme *programme, enum solve_engine engine,
                    struct solver *solver, struct arena *arena,
                    struct shares *ret_shares, struct error *err)
{
    int r = check_programme(programme, err);
    if (r < 0)
        return r;
    struct problem problem;
    problem_init(&problem, programme, arena);
    struct shares shares = {
        .status = SHARES_OPTIMAL,
        .x = arena_array(arena, double,
                         (size_t)problem.line_count * programme->type_count),
    };
    if (anything_to_do(&problem))
        r = engine == SOLVE_FAST ? solve_fast(&problem, solver, &shares, err)
                                 : solve_clp(&problem, &shares, err);
    else
        shares.status = SHARES_EMPTY;
    if (r < 0)
        return r;
    set_levels(&problem, &shares);
    *ret_shares = shares;
    return 0;
}
