/* problem.c - a programme made ready for a solver, and what came of it. */
#include "solve/problem.h"

#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "solve/baselines.h"

#define NUMBER_MAX 1e15 /* beyond it rounding eats what is added up */

/* A number from 'least' to NUMBER_MAX; 'inside' says whether 'least' itself will do. */
static bool sensible(double number, double least, bool inside)
{
    return number <= NUMBER_MAX && (inside ? number >= least : number > least);
}

struct checked_array {
    const char *name;
    const double *values;
    bool needed;
    bool positive; /* 0 will not do */
};

static int check_fields(const struct checked_array *fields, uint32_t count,
                        uint32_t rows, const char *row_name, struct error *err)
{
    for (uint32_t f = 0; f < count; f++) {
        if (!fields[f].values && fields[f].needed && rows > 0)
            return error_set(err, -EINVAL, "%s is missing", fields[f].name);
        for (uint32_t i = 0; fields[f].values && i < rows; i++)
            if (!sensible(fields[f].values[i], 0, !fields[f].positive))
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
            if (!sensible(p->rate[(size_t)j * p->type_count + t], 0, true))
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
        if (!sensible(p->groups[g].weight, 0, true))
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
            if (!sensible(rate, 0, true))
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

int programme_check(const struct programme *p, struct error *err)
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
