/* goal.c - what each goal of a programme wants of a job's rate, and what shares reach. */
#include "solve/goal.h"

#include <math.h>
#include <stddef.h>

#include "base/arena.h"

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
static double *weighed(const struct problem *problem, const double *unit,
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
    return weighed(problem, NULL, p->goal == GOAL_SUM ? p->price : NULL);
}

double *problem_normalised_values(const struct problem *problem)
{
    uint32_t count = problem->programme->job_count;
    double *unit = arena_array(problem->arena, double, count);
    for (uint32_t j = 0; j < count; j++)
        unit[j] = problem->even[j] > 0 ? 1 / problem->even[j] : 0;
    return weighed(problem, unit, NULL);
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

static double total(const struct problem *problem, const double *x,
                    const double *values)
{
    size_t cells = (size_t)problem->line_count * problem->programme->type_count;
    double sum = 0;
    for (size_t i = 0; i < cells; i++)
        sum += values[i] * x[i];
    return sum;
}

static double ratio(const struct problem *problem, const double *x)
{
    const struct programme *p = problem->programme;
    double paid = 0;
    for (uint32_t line = 0; line < problem->line_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++)
            paid += problem_line_gang(problem, line) * p->price[t] *
                    x[(size_t)line * p->type_count + t];
    return paid > 0 ? total(problem, x, problem_values(problem)) / paid : 0;
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
        return total(problem, x, problem_values(problem));
    case GOAL_COST_RATIO:
        return ratio(problem, x);
    }
    return 0;
}
