/* pairs_problem.c - goals where pairs of jobs may share, by columns that pay. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "solve/pairs/pairs_problem.h"
#include "solve/solve.h"

/* The programme as one for pairs: every job a class of its own. */
static struct pairs_input make_input(const struct problem *problem)
{
    const struct programme *p = problem->programme;
    return (struct pairs_input){ .class_count = p->job_count,
                                 .type_count = p->type_count,
                                 .pair_count = p->pair_count,
                                 .capacity = p->capacity,
                                 .gang = p->gang,
                                 .rate = p->rate,
                                 .pairs = p->pairs,
                                 .pair_rate = p->pair_rate };
}

/* Of all shares that give every job its floor, the largest sum of normalised rates. */
static void break_ties(const struct problem *problem, struct pairs_solver *solver,
                       const struct pairs_input *input, double *floor,
                       struct shares *shares)
{
    size_t cells = (size_t)problem->line_count * input->type_count;
    double *x = arena_array(problem->arena, double, cells);
    double *rates = arena_array(problem->arena, double, input->class_count);
    for (uint32_t j = 0; j < input->class_count; j++)
        floor[j] *= 1 - PROBLEM_FLOOR_SLACK;
    struct pairs_answer answer;
    int r = pairs_sum(solver, input, problem_normalised_values(problem), floor,
                      PROBLEM_TOLERANCE, x, &answer, NULL);
    shares->iterations += answer.iterations;
    if (r < 0 || !answer.feasible)
        return;
    problem_make_feasible(problem, x);
    problem_rates(problem, x, rates);
    for (uint32_t j = 0; j < input->class_count; j++)
        if (rates[j] < floor[j] * (1 - PROBLEM_KEPT))
            return;
    memcpy(shares->x, x, cells * sizeof *x);
}

/* What every job needs per unit of the level. */
static double *job_needs(const struct problem *problem,
                         const struct problem_demands *demands)
{
    uint32_t count = problem->programme->job_count;
    double *need = arena_array(problem->arena, double, count);
    for (uint32_t j = 0; j < count; j++)
        if (demands->unit[j] > 0)
            need[j] = demands->need ? demands->need[j] : 1 / demands->unit[j];
    return need;
}

static int solve_level(const struct problem *problem, struct pairs_solver *solver,
                       struct shares *shares, struct error *err)
{
    const struct programme *p = problem->programme;
    struct problem_demands demands = problem_demands(problem);
    struct pairs_input input = make_input(problem);
    struct pairs_answer answer;
    int r = pairs_level(solver, &input, job_needs(problem, &demands), demands.ahead,
                        PROBLEM_TOLERANCE, shares->x, &answer, err);
    if (r < 0)
        return r;
    problem_make_feasible(problem, shares->x);
    shares->iterations = answer.iterations;
    shares->objective = problem_objective(problem, shares->x);
    if (p->tidy) {
        double *floor = problem_demand_rates(problem, &demands, shares->objective);
        break_ties(problem, solver, &input, floor, shares);
        shares->objective = problem_objective(problem, shares->x);
    }
    shares->gap =
        problem_relative_gap(answer.bound, problem_level(problem, shares->objective));
    return 0;
}

static int solve_water_filling(const struct problem *problem,
                               struct pairs_solver *solver, struct shares *shares,
                               struct error *err)
{
    const struct programme *p = problem->programme;
    struct problem_demands demands = problem_demands(problem);
    struct pairs_input input = make_input(problem);
    struct pairs_answer answer;
    double *level = arena_array(problem->arena, double, p->job_count);
    int r = pairs_water_fill(solver, &input, job_needs(problem, &demands),
                             PROBLEM_TOLERANCE, shares->x, level, &answer, err);
    if (r < 0)
        return r;
    bool leftovers = false;
    problem_make_feasible(problem, shares->x);
    problem_rates(problem, shares->x, level);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (!(demands.unit[j] > 0)) {
            leftovers = leftovers || problem->even[j] > 0;
            level[j] = 0;
        }
    shares->iterations = answer.iterations;
    if (p->tidy && leftovers)
        break_ties(problem, solver, &input, level, shares);
    shares->objective = problem_objective(problem, shares->x);
    shares->gap = problem_relative_gap(answer.bound, answer.reached);
    return 0;
}

static int solve_sum(const struct problem *problem, struct pairs_solver *solver,
                     struct shares *shares, struct error *err)
{
    struct pairs_input input = make_input(problem);
    const double *floors, *values = problem_values(problem);
    struct pairs_answer answer = { .feasible = false };
    int r = 0;
    if (problem_reachable_floors(problem, &floors))
        r = pairs_sum(solver, &input, values, floors, PROBLEM_TOLERANCE, shares->x,
                      &answer, err);
    shares->iterations = answer.iterations;
    if (r == 0 && !answer.feasible) {
        problem_drop_floors(problem, shares);
        r = pairs_sum(solver, &input, values, NULL, PROBLEM_TOLERANCE, shares->x,
                      &answer, err);
        shares->iterations += answer.iterations;
    }
    if (r < 0)
        return r;
    problem_make_feasible(problem, shares->x);
    shares->objective = problem_objective(problem, shares->x);
    shares->gap = problem_relative_gap(answer.bound, shares->objective);
    return 0;
}

int pairs_solve_problem(const struct problem *problem, struct pairs_solver *solver,
                        struct shares *shares, struct error *err)
{
    switch (problem->programme->goal) {
    case GOAL_MAX_MIN:
    case GOAL_MAKESPAN:
    case GOAL_FINISH_TIME:
        return solve_level(problem, solver, shares, err);
    case GOAL_WATER_FILLING:
        return solve_water_filling(problem, solver, shares, err);
    case GOAL_SUM:
        return solve_sum(problem, solver, shares, err);
    default:
        return -ENOTSUP;
    }
}
