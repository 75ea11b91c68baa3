/* goal.c - what each goal of a programme wants of a job's rate, and what shares reach. */
#include "solve/goal.h"

#include <math.h>
#include <stddef.h>

#include "base/arena.h"

static double weight_of(const struct programme *p, uint32_t job)
{
    return p->weight ? p->weight[job] : 1;
}

static double unit_of(const struct frame *frame, uint32_t job)
{
    const struct programme *p = frame->programme;
    double weight = weight_of(p, job);
    switch (p->goal) {
    case GOAL_MAX_MIN:
    case GOAL_WATER_FILLING:
        return frame->even[job] > 0 && weight > 0
                   ? p->gang[job] / (weight * frame->even[job])
                   : 0;
    case GOAL_HIERARCHICAL:
        return frame->even[job] > 0 && weight > 0 && p->groups[p->group[job]].weight > 0
                   ? 1 / frame->even[job]
                   : 0;
    case GOAL_MAKESPAN:
        return frame->top[job] > 0 && p->steps[job] > 0 ? 1 / p->steps[job] : 0;
    default:
        return 0;
    }
}

double *goal_units(const struct frame *frame)
{
    uint32_t count = frame->programme->job_count;
    double *units = arena_array(frame->arena, double, count);
    for (uint32_t j = 0; j < count; j++)
        units[j] = unit_of(frame, j);
    return units;
}

struct finish_terms goal_finish_terms(const struct frame *frame)
{
    const struct programme *p = frame->programme;
    struct finish_terms terms = {
        .need = arena_array(frame->arena, double, p->job_count),
        .ahead = arena_array(frame->arena, double, p->job_count),
    };
    double *x =
        arena_array(frame->arena, double, (size_t)frame->line_count * p->type_count);
    double *isolated = arena_array(frame->arena, double, p->job_count);
    frame_isolated(frame, x);
    frame_rates(frame, x, isolated);
    for (uint32_t j = 0; j < p->job_count; j++)
        if (isolated[j] > 0 && p->steps[j] > 0) {
            double fair = p->alone_s[j] + p->steps[j] / isolated[j];
            terms.need[j] = p->steps[j] / fair;
            terms.ahead[j] = p->age_s[j] / fair;
        }
    return terms;
}

void goal_group_speeds(const struct frame *frame, const bool *done, double *ret_speed)
{
    const struct programme *p = frame->programme;
    double *sum = arena_array(frame->arena, double, p->group_count);
    bool *taken = arena_array(frame->arena, bool, p->group_count);
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
static double *weighed(const struct frame *frame, const double *unit,
                       const double *price)
{
    const struct programme *p = frame->programme;
    double *values =
        arena_array(frame->arena, double, (size_t)frame->line_count * p->type_count);
    for (uint32_t line = 0; line < frame->line_count; line++) {
        uint32_t members[2];
        uint32_t count = line_members(frame, line, members);
        for (uint32_t t = 0; t < p->type_count; t++) {
            double value = 0;
            for (uint32_t i = 0; i < count && line_usable(frame, line, t); i++)
                value += line_rate(frame, line, t, i) * (unit ? unit[members[i]] : 1);
            values[(size_t)line * p->type_count + t] = price ? value / price[t] : value;
        }
    }
    return values;
}

double *goal_values(const struct frame *frame)
{
    const struct programme *p = frame->programme;
    return weighed(frame, NULL, p->goal == GOAL_SUM ? p->price : NULL);
}

double *goal_normalised(const struct frame *frame)
{
    uint32_t count = frame->programme->job_count;
    double *unit = arena_array(frame->arena, double, count);
    for (uint32_t j = 0; j < count; j++)
        unit[j] = frame->even[j] > 0 ? 1 / frame->even[j] : 0;
    return weighed(frame, unit, NULL);
}

static double least_level(const struct frame *frame, const double *rates)
{
    const double *units = goal_units(frame);
    double least = INFINITY;
    for (uint32_t j = 0; j < frame->programme->job_count; j++)
        if (units[j] > 0)
            least = fmin(least, units[j] * rates[j]);
    return least < INFINITY ? least : 0;
}

static double least_finish(const struct frame *frame, const double *rates)
{
    struct finish_terms terms = goal_finish_terms(frame);
    double least = INFINITY;
    for (uint32_t j = 0; j < frame->programme->job_count; j++)
        if (terms.need[j] > 0)
            least = fmin(least, finish_level(terms.need[j], terms.ahead[j], rates[j]));
    return least < INFINITY ? least : 0;
}

/* What the worst-off group has, per weight. */
static double least_group(const struct frame *frame, const double *rates)
{
    const struct programme *p = frame->programme;
    const double *units = goal_units(frame);
    double *sums = arena_array(frame->arena, double, p->group_count);
    bool *alive = arena_array(frame->arena, bool, p->group_count);
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

static double total(const struct frame *frame, const double *x, const double *values)
{
    size_t cells = (size_t)frame->line_count * frame->programme->type_count;
    double sum = 0;
    for (size_t i = 0; i < cells; i++)
        sum += values[i] * x[i];
    return sum;
}

static double ratio(const struct frame *frame, const double *x)
{
    const struct programme *p = frame->programme;
    double paid = 0;
    for (uint32_t line = 0; line < frame->line_count; line++)
        for (uint32_t t = 0; t < p->type_count; t++)
            paid += line_gang(frame, line) * p->price[t] *
                    x[(size_t)line * p->type_count + t];
    return paid > 0 ? total(frame, x, goal_values(frame)) / paid : 0;
}

double goal_reached(const struct frame *frame, const double *x)
{
    double *rates = arena_array(frame->arena, double, frame->programme->job_count);
    frame_rates(frame, x, rates);
    double least;
    switch (frame->programme->goal) {
    case GOAL_MAX_MIN:
    case GOAL_WATER_FILLING:
        return least_level(frame, rates);
    case GOAL_HIERARCHICAL:
        return least_group(frame, rates);
    case GOAL_MAKESPAN:
        least = least_level(frame, rates);
        return least > 0 ? 1 / least : 0;
    case GOAL_FINISH_TIME:
        least = least_finish(frame, rates);
        return least > 0 ? 1 / least : 0;
    case GOAL_SUM:
        return total(frame, x, goal_values(frame));
    case GOAL_COST_RATIO:
        return ratio(frame, x);
    }
    return 0;
}
