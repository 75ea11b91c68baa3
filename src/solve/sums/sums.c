/* sums.c - goals that maximise a sum or a ratio of sums, by prices (auction.h). */
#include "solve/sums/sums.h"

#include <string.h>

#include "base/arena.h"
#include "solve/row_classes.h"
#include "solve/sums/auction.h"

/* Rows of all that an auction knows of a job. */
static const double *bidder_rows(const struct problem *problem,
                                 const struct auction *auction, uint32_t *ret_width)
{
    uint32_t types = auction->type_count, width = 2 * types + 2;
    double *rows =
        arena_array(problem->arena, double, (size_t)auction->job_count *width);
    for (uint32_t j = 0; j < auction->job_count; j++) {
        double *row = &rows[(size_t)j * width];
        memcpy(row, &auction->rate[(size_t)j * types], types * sizeof *row);
        memcpy(row + types, &auction->value[(size_t)j * types], types * sizeof *row);
        row[2 * types] = auction->gang[j];
        row[2 * types + 1] = auction->floor ? auction->floor[j] : 0;
    }
    *ret_width = width;
    return rows;
}

/*
 * Identical jobs bid as one, as many times as large and as worthy: some optimal answer
 * treats them equally.
 */
static int auction_classes(const struct problem *problem, const struct auction *auction,
                           const struct row_classes *alike, double *ret_x,
                           struct auction_answer *ret_answer, struct error *err)
{
    struct arena *arena = problem->arena;
    uint32_t types = auction->type_count, count = alike->class_count;
    double *gang = arena_array(arena, double, count);
    double *floor = arena_array(arena, double, count);
    double *value = arena_array(arena, double, (size_t)count *types);
    double *rate = arena_array(arena, double, (size_t)count *types);
    double *x = arena_array(arena, double, (size_t)count *types);
    for (uint32_t c = 0; c < count; c++) {
        uint32_t job = alike->first[c];
        gang[c] = auction->gang[job] * alike->count[c];
        floor[c] = auction->floor ? auction->floor[job] : 0;
        for (uint32_t t = 0; t < types; t++) {
            size_t from = (size_t)job * types + t, to = (size_t)c * types + t;
            value[to] = auction->value[from] * alike->count[c];
            rate[to] = auction->rate[from];
        }
    }
    struct auction fewer = *auction;
    fewer.job_count = count;
    fewer.gang = gang;
    fewer.value = value;
    fewer.rate = rate;
    fewer.floor = auction->floor ? floor : NULL;
    int r = auction_solve(&fewer, PROBLEM_TOLERANCE, x, ret_answer, err);
    for (uint32_t j = 0; r == 0 && j < auction->job_count; j++)
        memcpy(&ret_x[(size_t)j * types], &x[(size_t)alike->class_of[j] * types],
               types * sizeof *x);
    return r;
}

static int auction_solve_classes(const struct problem *problem,
                                 const struct auction *auction, bool apart,
                                 double *ret_x, struct auction_answer *ret_answer,
                                 struct error *err)
{
    if (!apart) {
        uint32_t width;
        const double *rows = bidder_rows(problem, auction, &width);
        struct row_classes alike =
            row_classes_find(rows, auction->job_count, width, problem->arena);
        if (alike.class_count < auction->job_count)
            return auction_classes(problem, auction, &alike, ret_x, ret_answer, err);
    }
    return auction_solve(auction, PROBLEM_TOLERANCE, ret_x, ret_answer, err);
}

void sums_break_ties(const struct problem *problem, const double *floor,
                     struct shares *shares)
{
    const struct programme *p = problem->programme;
    size_t cells = (size_t)p->job_count * p->type_count;
    double *x = arena_array(problem->arena, double, cells);
    double *rates = arena_array(problem->arena, double, p->job_count);
    double *lower = arena_array(problem->arena, double, p->job_count);
    for (uint32_t j = 0; j < p->job_count; j++)
        lower[j] = floor[j] * (1 - PROBLEM_FLOOR_SLACK);
    const struct auction auction = {
        .job_count = p->job_count,
        .type_count = p->type_count,
        .capacity = p->capacity,
        .gang = p->gang,
        .value = problem_normalised_values(problem),
        .rate = p->rate,
        .floor = lower,
        .scratch = problem->arena,
    };
    struct auction_answer answer;
    bool apart =
        problem_rows_differ(problem, &(struct problem_demands){ .unit = floor });
    if (auction_solve_classes(problem, &auction, apart, x, &answer, NULL) < 0 ||
        !answer.feasible)
        return;
    shares->iterations += answer.passes;
    problem_drop_useless(problem, x);
    problem_rates(problem, x, rates);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (rates[j] < floor[j] * (1 - PROBLEM_KEPT))
            return;
    memcpy(shares->x, x, cells * sizeof *x);
}

int sums_solve(const struct problem *problem, double *prices, struct shares *shares,
               struct error *err)
{
    const struct programme *p = problem->programme;
    size_t cells = (size_t)p->job_count * p->type_count;
    const double *floors;
    bool reachable = problem_reachable_floors(problem, &floors);
    struct auction auction = {
        .job_count = p->job_count,
        .type_count = p->type_count,
        .capacity = p->capacity,
        .gang = p->gang,
        .value = problem_values(problem),
        .rate = p->rate,
        .floor = floors,
        .cost = p->goal == GOAL_COST_RATIO ? p->price : NULL,
        .near = prices,
        .scratch = problem->arena,
    };
    struct auction_answer answer = { .feasible = false };
    bool apart =
        problem_rows_differ(problem, &(struct problem_demands){ .unit = p->gang });
    int r = reachable ? auction_solve_classes(problem, &auction, apart, shares->x,
                                              &answer, err)
                      : 0;
    shares->iterations = answer.passes;
    if (r == 0 && !answer.feasible) {
        problem_drop_floors(problem, shares);
        auction.floor = NULL;
        r = auction_solve_classes(problem, &auction, apart, shares->x, &answer, err);
        shares->iterations += answer.passes;
    }
    if (r < 0)
        return r;
    if (prices)
        memcpy(prices, answer.price, p->type_count * sizeof *prices);
    problem_drop_useless(problem, shares->x);
    double load = p->goal == GOAL_COST_RATIO ? problem_load(problem, shares->x) : 1;
    for (size_t i = 0; i < cells && load > 0; i++)
        shares->x[i] /= load; /* a ratio stays what it is, floors are kept the better */
    shares->objective = problem_objective(problem, shares->x);
    shares->gap = problem_relative_gap(answer.bound, shares->objective);
    return 0;
}
