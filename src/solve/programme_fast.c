/* programme_fast.c - goals by prices: few types, many jobs. */
#include "solve/programme_fast.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "solve/row_classes.h"
#include "solve/sums/auction.h"
#include "solve/maxmin/market_classes.h"
#include "solve/goal.h"
#include "solve/maxmin/market.h"
#include "solve/lp/lp_goals.h"

#define RATIO_TIDY_MAX 2000 /* jobs; the general solver breaks the ties of a ratio */
#define SAMPLE 256          /* jobs that are looked at to see whether many are alike */

struct problem_demands problem_demands(const struct problem *problem)
{
    const struct programme *p = problem->programme;
    if (p->goal != GOAL_FINISH_TIME)
        return (struct problem_demands){ .unit = problem_units(problem) };
    struct finish_terms terms = problem_finish_terms(problem);
    double *unit = arena_array(problem->arena, double, p->job_count);
    for (uint32_t j = 0; j < p->job_count; j++)
        unit[j] = terms.need[j] > 0 ? 1 : 0;
    return (struct problem_demands){ unit, terms.need, terms.ahead };
}

/* The job as a buyer; 'rate' has room for its rates. */
static struct buyer buyer_of(const struct problem *problem,
                             const struct problem_demands *demands, uint32_t job,
                             double *rate)
{
    const struct programme *p = problem->programme;
    const double *row = &p->rate[(size_t)job * p->type_count];
    for (uint32_t t = 0; t < p->type_count; t++)
        rate[t] = p->capacity[t] > 0 ? row[t] * demands->unit[job] : 0;
    return (struct buyer){ .rate = rate,
                           .gang = p->gang[job],
                           .need = demands->need ? demands->need[job] : 1,
                           .ahead = demands->ahead ? demands->ahead[job] : 0 };
}

/* Do a few rows, taken from everywhere, hardly repeat each other? */
static bool problem_rows_differ(const struct problem *problem,
                                const struct problem_demands *demands)
{
    const struct programme *p = problem->programme;
    uint32_t count = p->job_count < SAMPLE ? p->job_count : SAMPLE;
    uint32_t alike = 0;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t job = (uint32_t)((uint64_t)i * p->job_count / count);
        const double *row = &p->rate[(size_t)job * p->type_count];
        for (uint32_t k = 0; k < i; k++) {
            uint32_t other = (uint32_t)((uint64_t)k * p->job_count / count);
            if (p->gang[job] == p->gang[other] &&
                demands->unit[job] == demands->unit[other] &&
                (!demands->need || demands->need[job] == demands->need[other]) &&
                memcmp(row, &p->rate[(size_t)other * p->type_count],
                       p->type_count * sizeof *row) == 0) {
                alike++;
                break;
            }
        }
    }
    return alike < count / 8;
}

double problem_demand_rate(const struct problem_demands *demands, uint32_t job,
                           double level)
{
    if (!(demands->unit[job] > 0))
        return 0;
    return demands->need ? finish_rate(demands->need[job], demands->ahead[job], level)
                         : level / demands->unit[job];
}

/* Prices of 0 hand them out. */
void problem_drop_useless(const struct problem *problem, double *x)
{
    size_t cells =
        (size_t)problem->programme->job_count * problem->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        if (!(problem->programme->rate[i] > 0))
            x[i] = 0;
    problem_make_feasible(problem, x);
}

double problem_level(const struct problem *problem, double objective)
{
    bool inverse = problem->programme->goal == GOAL_MAKESPAN ||
                   problem->programme->goal == GOAL_FINISH_TIME;
    return !inverse ? objective : objective > 0 ? 1 / objective : 0;
}

/* Rows of all that an auction knows of a job. */
static const double *bidders(const struct problem *problem,
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
 * Jobs that are alike bid as one, as many times as large and as worthy: some best answer
 * treats them alike.
 */
static int auction_together(const struct problem *problem,
                            const struct auction *auction,
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
    int r = auction_solve(&fewer, FAST_TOLERANCE, x, ret_answer, err);
    for (uint32_t j = 0; r == 0 && j < auction->job_count; j++)
        memcpy(&ret_x[(size_t)j * types], &x[(size_t)alike->class_of[j] * types],
               types * sizeof *x);
    return r;
}

static int auction_of(const struct problem *problem, const struct auction *auction,
                      bool apart, double *ret_x, struct auction_answer *ret_answer,
                      struct error *err)
{
    if (!apart) {
        uint32_t width;
        const double *rows = bidders(problem, auction, &width);
        struct row_classes alike =
            row_classes_find(rows, auction->job_count, width, problem->arena);
        if (alike.class_count < auction->job_count)
            return auction_together(problem, auction, &alike, ret_x, ret_answer, err);
    }
    return auction_solve(auction, FAST_TOLERANCE, ret_x, ret_answer, err);
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
        lower[j] = floor[j] * (1 - FAST_FLOOR_SLACK);
    const struct auction auction = {
        .job_count = p->job_count,
        .type_count = p->type_count,
        .capacity = p->capacity,
        .gang = p->gang,
        .value = problem_normalised_values(problem),
        .rate = p->rate,
        .floor = lower,
    };
    struct auction_answer answer;
    bool apart =
        problem_rows_differ(problem, &(struct problem_demands){ .unit = floor });
    if (auction_of(problem, &auction, apart, x, &answer, NULL) < 0 || !answer.feasible)
        return;
    shares->iterations += answer.passes;
    problem_drop_useless(problem, x);
    problem_rates(problem, x, rates);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (rates[j] < floor[j] * (1 - FAST_KEPT))
            return;
    memcpy(shares->x, x, cells * sizeof *x);
}

/* MAX_MIN, MAKESPAN, FINISH_TIME. */
static int maxmin_solve_level(const struct problem *problem,
                              const struct fast_memory *memory, struct shares *shares,
                              struct error *err)
{
    const struct programme *p = problem->programme;
    struct market_classes *classes = memory->classes;
    struct problem_demands demands = problem_demands(problem);
    double rate[SOLVE_TYPES_MAX];
    uint32_t *place = arena_array(problem->arena, uint32_t, p->job_count);
    /* Where the market is kept for the next time, those who stay must be recognised. */
    bool apart = !(memory->keeps && p->goal == GOAL_MAX_MIN) &&
                 problem_rows_differ(problem, &demands);
    market_classes_begin(classes, p->type_count, p->capacity, p->job_count, apart);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (demands.unit[j] > 0) {
            struct buyer buyer = buyer_of(problem, &demands, j, rate);
            place[j] = market_classes_put(classes, &buyer);
        }
    struct market *market = market_classes_end(classes);
    struct market_answer answer;
    int r = market_solve(market, FAST_TOLERANCE, &answer, err);
    if (r < 0)
        return r;
    for (uint32_t j = 0; j < p->job_count; j++)
        if (demands.unit[j] > 0)
            market_share(market, place[j], &shares->x[(size_t)j * p->type_count]);
    problem_make_feasible(problem, shares->x);
    shares->iterations = answer.passes;
    shares->objective = problem_objective(problem, shares->x);
    if (p->tidy) {
        double *floor = arena_array(problem->arena, double, p->job_count);
        for (uint32_t j = 0; j < p->job_count; j++)
            floor[j] = problem_demand_rate(&demands, j,
                                           problem_level(problem, shares->objective));
        sums_break_ties(problem, floor, shares);
        shares->objective = problem_objective(problem, shares->x);
    }
    shares->gap =
        problem_relative_gap(answer.bound, problem_level(problem, shares->objective));
    return 0;
}

/* --- sums and ratios --- */

bool problem_reachable_floors(const struct problem *problem, const double **ret_floors)
{
    const struct programme *p = problem->programme;
    double *floor = arena_array(problem->arena, double, p->job_count);
    bool any = false, reachable = true;
    for (uint32_t j = 0; p->floor && j < p->job_count; j++) {
        floor[j] = p->floor[j] * (1 - FAST_FLOOR_SLACK);
        any = any || floor[j] > 0;
        reachable = reachable && floor[j] <= problem->top[j];
    }
    *ret_floors = any ? floor : NULL;
    return reachable;
}

/* SUM and COST_RATIO. */
static int sums_solve(const struct problem *problem, struct shares *shares,
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
    };
    struct auction_answer answer = { .feasible = false };
    bool apart =
        problem_rows_differ(problem, &(struct problem_demands){ .unit = p->gang });
    int r =
        reachable ? auction_of(problem, &auction, apart, shares->x, &answer, err) : 0;
    shares->iterations = answer.passes;
    if (r == 0 && !answer.feasible) {
        problem_drop_floors(problem, shares);
        auction.floor = NULL;
        r = auction_of(problem, &auction, apart, shares->x, &answer, err);
        shares->iterations += answer.passes;
    }
    if (r < 0)
        return r;
    problem_drop_useless(problem, shares->x);
    double load = p->goal == GOAL_COST_RATIO ? problem_load(problem, shares->x) : 1;
    for (size_t i = 0; i < cells && load > 0; i++)
        shares->x[i] /= load; /* a ratio stays what it is, floors are kept the better */
    shares->objective = problem_objective(problem, shares->x);
    shares->gap = problem_relative_gap(answer.bound, shares->objective);
    return 0;
}

int fast_solve(const struct problem *problem, const struct fast_memory *memory,
               struct shares *shares, struct error *err)
{
    const struct programme *p = problem->programme;
    if (p->pair_count > 0)
        return pairs_solve_problem(problem, memory, shares, err);
    switch (p->goal) {
    case GOAL_MAX_MIN:
    case GOAL_MAKESPAN:
    case GOAL_FINISH_TIME:
        return maxmin_solve_level(problem, memory, shares, err);
    case GOAL_WATER_FILLING:
        return maxmin_solve_water_filling(problem, shares, err);
    case GOAL_HIERARCHICAL:
        return maxmin_solve_hierarchical(problem, shares, err);
    case GOAL_COST_RATIO:
        if (p->tidy && p->job_count <= RATIO_TIDY_MAX)
            return -ENOTSUP;
        return sums_solve(problem, shares, err);
    case GOAL_SUM:
        return sums_solve(problem, shares, err);
    }
    return -ENOTSUP;
}
