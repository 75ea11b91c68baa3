/* programme.c - Gavel's policies as programmes: what is asked, and by whom it is solved. */
#include "solve/programme.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/maxmin/market_classes.h"
#include "solve/problem.h"
#include "solve/goal.h"
#include "solve/lp/lp.h"
#include "solve/pairs.h"
#include "solve/lp/lp_goals.h"
#include "solve/programme_fast.h"

#define PROVEN 1e-6 /* a gap above it is no answer */

/*
 * Beyond so many lines the general solver takes longer than anybody waits: then a fast
 * one that did not end says so.  Levels are many programmes one after the other.
 */
#define LINES_MAX 20000
#define LEVEL_LINES_MAX 4000
#define UNCOVERED_LINES_MAX 200000

struct solver {
    struct fast_memory memory;
};

struct solver *solver_new(void)
{
    struct solver *solver = calloc(1, sizeof *solver);
    if (!solver)
        abort();
    solver->memory = (struct fast_memory){ .classes = market_classes_new(),
                                           .pairs = pairs_solver_new() };
    return solver;
}

void solver_free(struct solver *solver)
{
    if (!solver)
        return;
    market_classes_free(solver->memory.classes);
    pairs_solver_free(solver->memory.pairs);
    free(solver);
}

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

/* How much the general solver is asked to do after the fast one answered 'r'. */
static uint32_t lines_max(enum goal goal, int r)
{
    if (r != -EDOM)
        return UNCOVERED_LINES_MAX;
    return goal == GOAL_WATER_FILLING || goal == GOAL_HIERARCHICAL ? LEVEL_LINES_MAX
                                                                   : LINES_MAX;
}

/* By prices where they do, by the general solver where they do not. */
static int solve_fast(const struct problem *problem, struct solver *solver,
                      struct shares *shares, struct error *err)
{
    struct solver *own = solver ? NULL : solver_new();
    struct shares blank = *shares;
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    struct fast_memory memory = own ? own->memory : solver->memory;
    memory.keeps = !own;
    int r = fast_solve(problem, &memory, shares, err);
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

/* What each job came to, from the shares themselves. */
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
    int r = programme_check(programme, err);
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
