/* problem.c - a programme made ready for a solver, and what shares are worth in it. */
#include "solve/problem.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"

#define SAMPLE 256 /* jobs that are compared to see whether many have equal rows */

bool problem_line_usable(const struct problem *problem, uint32_t line, uint32_t type)
{
    if (!(problem->programme->capacity[type] > 0))
        return false;
    return problem_line_rate(problem, line, type, 0) > 0 &&
           problem_line_rate(problem, line, type, 1) > 0;
}

void problem_init(struct problem *problem, const struct programme *programme,
                  struct arena *arena)
{
    const struct programme *p = programme;
    *problem = (struct problem){
        .programme = p,
        .arena = arena,
        .line_count = p->job_count + p->pair_count,
        .even = arena_array(arena, double, p->job_count),
        .top = arena_array(arena, double, p->job_count),
    };
    double workers = 0;
    for (uint32_t t = 0; t < p->type_count; t++)
        workers += p->capacity[t];
    for (uint32_t j = 0; j < p->job_count && workers > 0; j++)
        for (uint32_t t = 0; t < p->type_count; t++)
            problem->even[j] +=
                p->rate[(size_t)j * p->type_count + t] * (p->capacity[t] / workers);
    for (uint32_t line = 0; line < problem->line_count; line++) {
        uint32_t members[2];
        uint32_t count = problem_line_members(problem, line, members);
        for (uint32_t t = 0; t < p->type_count; t++)
            for (uint32_t i = 0; i < count && problem_line_usable(problem, line, t);
                 i++)
                problem->top[members[i]] = fmax(problem->top[members[i]],
                                                problem_line_rate(problem, line, t, i));
    }
}

void problem_rates(const struct problem *problem, const double *x, double *ret_rates)
{
    const struct programme *p = problem->programme;
    for (uint32_t j = 0; j < p->job_count; j++)
        ret_rates[j] = 0;
    for (uint32_t line = 0; line < problem->line_count; line++) {
        uint32_t members[2];
        uint32_t count = problem_line_members(problem, line, members);
        for (uint32_t t = 0; t < p->type_count; t++)
            for (uint32_t i = 0; i < count; i++)
                ret_rates[members[i]] += problem_line_rate(problem, line, t, i) *
                                         x[(size_t)line * p->type_count + t];
    }
}

double problem_load(const struct problem *problem, const double *x)
{
    const struct programme *p = problem->programme;
    double used[SOLVE_TYPES_MAX] = { 0 };
    double load = 0;
    double *time =
        p->pair_count ? arena_array(problem->arena, double, p->job_count) : NULL;
    for (uint32_t line = 0; line < problem->line_count; line++) {
        uint32_t members[2];
        uint32_t count = problem_line_members(problem, line, members);
        double gang = problem_line_gang(problem, line);
        double sum = 0;
        for (uint32_t t = 0; t < p->type_count; t++) {
            sum += x[(size_t)line * p->type_count + t];
            used[t] += gang * x[(size_t)line * p->type_count + t];
        }
        load = fmax(load, sum);
        for (uint32_t i = 0; time && i < count; i++)
            time[members[i]] += sum;
    }
    for (uint32_t t = 0; t < p->type_count; t++)
        if (used[t] > 0)
            load = fmax(load, used[t] / p->capacity[t]);
    for (uint32_t j = 0; time && j < p->job_count; j++)
        load = fmax(load, time[j]);
    return load;
}

void problem_make_feasible(const struct problem *problem, double *x)
{
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    for (size_t i = 0; i < cells; i++)
        x[i] = x[i] > 0 ? x[i] : 0;
    double load = problem_load(problem, x);
    for (size_t i = 0; load > 1 && i < cells; i++)
        x[i] /= load;
}

void problem_isolated_shares(const struct problem *problem, double *ret_x)
{
    const struct programme *p = problem->programme;
    shares_isolated(p->job_count, p->type_count, p->capacity, p->gang, ret_x);
    for (size_t i = (size_t)p->job_count * p->type_count;
         i < (size_t)problem->line_count * p->type_count; i++)
        ret_x[i] = 0;
}

/* --- what the goal asks of each job ------------------------------------------- */

static double weight_of(const struct programme *p, uint32_t job)
{
    return p->weight ? p->weight[job] : 1;
}

static double unit_of(const struct problem *problem, uint32_t job)
{
    const struct programme *p = problem->programme;
    double weight = weight_of(p, job);
    switch (p->goal) {
    case GOAL_MAX_MIN:
    case GOAL_WATER_FILLING:
        return problem->even[job] > 0 && weight > 0
                   ? p->gang[job] / (weight * problem->even[job])
                   : 0;
    case GOAL_HIERARCHICAL:
        return problem->even[job] > 0 && weight > 0 &&
                       p->groups[p->group[job]].weight > 0
                   ? 1 / problem->even[job]
                   : 0;
    case GOAL_MAKESPAN:
        return problem->top[job] > 0 && p->steps[job] > 0 ? 1 / p->steps[job] : 0;
    default:
        return 0;
    }
}

double *problem_units(const struct problem *problem)
{
    uint32_t count = problem->programme->job_count;
    double *units = arena_array(problem->arena, double, count);
    for (uint32_t j = 0; j < count; j++)
        units[j] = unit_of(problem, j);
    return units;
}

struct finish_terms problem_finish_terms(const struct problem *problem)
{
    const struct programme *p = problem->programme;
    struct finish_terms terms = {
        .need = arena_array(problem->arena, double, p->job_count),
        .ahead = arena_array(problem->arena, double, p->job_count),
    };
    double *x = arena_array(problem->arena, double,
                            (size_t)problem->line_count * p->type_count);
    double *isolated = arena_array(problem->arena, double, p->job_count);
    problem_isolated_shares(problem, x);
    problem_rates(problem, x, isolated);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (isolated[j] > 0 && p->steps[j] > 0) {
            double fair = p->alone_s[j] + p->steps[j] / isolated[j];
            terms.need[j] = p->steps[j] / fair;
            terms.ahead[j] = p->age_s[j] / fair;
        }
    return terms;
}

void problem_group_speeds(const struct problem *problem, const bool *done,
                          double *ret_speed)
{
    const struct programme *p = problem->programme;
    double *sum = arena_array(problem->arena, double, p->group_count);
    bool *taken = arena_array(problem->arena, bool, p->group_count);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (!done[j])
            sum[p->group[j]] += weight_of(p, j);
    for (uint32_t j = 0; j < p->job_count; j++) {
        uint32_t g = p->group[j];
        double part = done[j] ? 0 : weight_of(p, j) / sum[g];
        if (p->groups[g].fifo)
            part = done[j] || taken[g] ? 0 : 1;
        if (part > 0)
            taken[g] = true;
        ret_speed[j] = part * p->groups[g].weight / p->gang[j];
    }
}

/* [line][type] sums of unit[member] * rate, on usable types. */
static double *weigh_rates(const struct problem *problem, const double *unit,
                           const double *price)
{
    const struct programme *p = problem->programme;
    double *values = arena_array(problem->arena, double,
                                 (size_t)problem->line_count * p->type_count);
    for (uint32_t line = 0; line < problem->line_count; line++) {
        uint32_t members[2];
        uint32_t count = problem_line_members(problem, line, members);
        for (uint32_t t = 0; t < p->type_count; t++) {
            double value = 0;
            for (uint32_t i = 0; i < count && problem_line_usable(problem, line, t);
                 i++)
                value += problem_line_rate(problem, line, t, i) *
                         (unit ? unit[members[i]] : 1);
            values[(size_t)line * p->type_count + t] = price ? value / price[t] : value;
        }
    }
    return values;
}

double *problem_values(const struct problem *problem)
{
    const struct programme *p = problem->programme;
    return weigh_rates(problem, NULL, p->goal == GOAL_SUM ? p->price : NULL);
}

double *problem_normalised_values(const struct problem *problem)
{
    uint32_t count = problem->programme->job_count;
    double *unit = arena_array(problem->arena, double, count);
    for (uint32_t j = 0; j < count; j++)
        unit[j] = problem->even[j] > 0 ? 1 / problem->even[j] : 0;
    return weigh_rates(problem, unit, NULL);
}

static double least_level(const struct problem *problem, const double *rates)
{
    const double *units = problem_units(problem);
    double least = INFINITY;
    for (uint32_t j = 0; j < problem->programme->job_count; j++)
        if (units[j] > 0)
            least = fmin(least, units[j] * rates[j]);
    return least < INFINITY ? least : 0;
}

static double least_finish(const struct problem *problem, const double *rates)
{
    struct finish_terms terms = problem_finish_terms(problem);
    double least = INFINITY;
    for (uint32_t j = 0; j < problem->programme->job_count; j++)
        if (terms.need[j] > 0)
            least = fmin(least, finish_level(terms.need[j], terms.ahead[j], rates[j]));
    return least < INFINITY ? least : 0;
}

/* What the worst-off group has, per weight. */
static double least_group(const struct problem *problem, const double *rates)
{
    const struct programme *p = problem->programme;
    const double *units = problem_units(problem);
    double *sums = arena_array(problem->arena, double, p->group_count);
    bool *alive = arena_array(problem->arena, bool, p->group_count);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (units[j] > 0) {
            alive[p->group[j]] = true;
            sums[p->group[j]] += p->gang[j] * units[j] * rates[j];
        }
    double least = INFINITY;
    for (uint32_t g = 0; g < p->group_count; g++)
        if (alive[g])
            least = fmin(least, sums[g] / p->groups[g].weight);
    return least < INFINITY ? least : 0;
}

static double sum_values(const struct problem *problem, const double *x,
                         const double *values)
{
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    double sum = 0;
    for (size_t i = 0; i < cells; i++)
        sum += values[i] * x[i];
    return sum;
}

static double cost_ratio(const struct problem *problem, const double *x)
{
    const struct programme *p = problem->programme;
    double paid = 0;
    for (uint32_t line = 0; line < problem->line_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++)
            paid += problem_line_gang(problem, line) * p->price[t] *
                    x[(size_t)line * p->type_count + t];
    return paid > 0 ? sum_values(problem, x, problem_values(problem)) / paid : 0;
}

double problem_objective(const struct problem *problem, const double *x)
{
    double *rates = arena_array(problem->arena, double, problem->programme->job_count);
    problem_rates(problem, x, rates);
    double least;
    switch (problem->programme->goal) {
    case GOAL_MAX_MIN:
    case GOAL_WATER_FILLING:
        return least_level(problem, rates);
    case GOAL_HIERARCHICAL:
        return least_group(problem, rates);
    case GOAL_MAKESPAN:
        least = least_level(problem, rates);
        return least > 0 ? 1 / least : 0;
    case GOAL_FINISH_TIME:
        least = least_finish(problem, rates);
        return least > 0 ? 1 / least : 0;
    case GOAL_SUM:
        return sum_values(problem, x, problem_values(problem));
    case GOAL_COST_RATIO:
        return cost_ratio(problem, x);
    }
    return 0;
}

/* --- demands, floors and levels ------------------------------------------------ */

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

double *problem_demand_rates(const struct problem *problem,
                             const struct problem_demands *demands, double objective)
{
    uint32_t count = problem->programme->job_count;
    double *rates = arena_array(problem->arena, double, count);
    double level = problem_level(problem, objective);
    for (uint32_t j = 0; j < count; j++)
        if (demands->unit[j] > 0)
            rates[j] = demands->need
                           ? finish_rate(demands->need[j], demands->ahead[j], level)
                           : level / demands->unit[j];
    return rates;
}

double problem_level(const struct problem *problem, double objective)
{
    bool inverse = problem->programme->goal == GOAL_MAKESPAN ||
                   problem->programme->goal == GOAL_FINISH_TIME;
    return !inverse ? objective : objective > 0 ? 1 / objective : 0;
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

/* Do a few rows, taken from everywhere, hardly repeat each other? */
bool problem_rows_differ(const struct problem *problem,
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

/* --- sums and ratios --- */

bool problem_reachable_floors(const struct problem *problem, const double **ret_floors)
{
    const struct programme *p = problem->programme;
    double *floor = arena_array(problem->arena, double, p->job_count);
    bool any = false, reachable = true;
    for (uint32_t j = 0; p->floor && j < p->job_count; j++) {
        floor[j] = p->floor[j] * (1 - PROBLEM_FLOOR_SLACK);
        any = any || floor[j] > 0;
        reachable = reachable && floor[j] <= problem->top[j];
    }
    *ret_floors = any ? floor : NULL;
    return reachable;
}

/* The best rate of a job that has the cluster to itself. */
static double rate_alone(const struct problem *problem, uint32_t job)
{
    const struct programme *p = problem->programme;
    bool taken[SOLVE_TYPES_MAX] = { false };
    double time = 1, rate = 0;
    for (;;) {
        uint32_t best = SOLVE_TYPES_MAX;
        for (uint32_t t = 0; t < p->type_count; t++)
            if (!taken[t] && problem_line_usable(problem, job, t) &&
                (best == SOLVE_TYPES_MAX ||
                 problem_line_rate(problem, job, t, 0) >
                     problem_line_rate(problem, job, best, 0)))
                best = t;
        if (best == SOLVE_TYPES_MAX || time <= 0)
            return rate;
        double share = fmin(time, p->capacity[best] / p->gang[job]);
        rate += share * problem_line_rate(problem, job, best, 0);
        time -= share;
        taken[best] = true;
    }
}

/* --- sums and ratios --- */

void problem_drop_floors(const struct problem *problem, struct shares *shares)
{
    const struct programme *p = problem->programme;
    bool found = false;
    shares->status = SHARES_FLOORS_DROPPED;
    shares->unserved = arena_array(problem->arena, bool, p->job_count);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (p->floor[j] > rate_alone(problem, j) * (1 + PROBLEM_FLOOR_SLACK))
            shares->unserved[j] = found = true;
    for (uint32_t j = 0; j < p->job_count && !found; j++)
        shares->unserved[j] = p->floor[j] > 0;
}
