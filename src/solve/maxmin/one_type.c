/*
 * one_type.c - the share of each job at a level, and the level at which all is used.
 *
 *     share(z) = a z / (1 - b z), at most 1        a = need / rate, b = ahead
 *
 * so a job has all of its time from z = 1 / (a + b) on.  The sum over all jobs grows with z.
 */
#include "solve/maxmin/one_type.h"

#include <math.h>

#include "base/arena.h"

#define STEPS_MAX 200
#define CLOSE 1e-13 /* relative, of what is used to what there is */

struct one_type_jobs {
    uint32_t count;
    double *gang, *a, *b, *top; /* top: the level at which it has all of its time */
};

bool one_type_applies(const struct problem *problem,
                      const struct problem_demands *demands)
{
    const struct programme *p = problem->programme;
    for (uint32_t j = 0; j < p->job_count; j++) {
        const double *rate = &p->rate[(size_t)j * p->type_count];
        for (uint32_t t = 0; t < p->type_count; t++)
            if (p->capacity[t] > 0 &&
                (rate[t] != problem->top[j] || !(demands->unit[j] > 0)))
                return false;
    }
    return true;
}

static double add_shares(const struct one_type_jobs *jobs, double level,
                         double *ret_slope)
{
    double used = 0, slope = 0;
    for (uint32_t j = 0; j < jobs->count; j++) {
        bool capped = level >= jobs->top[j];
        double inverse = 1 / (capped ? 1 : 1 - jobs->b[j] * level);
        double share = jobs->a[j] * level * inverse;
        used += jobs->gang[j] * (capped ? 1 : share);
        slope += capped ? 0 : jobs->gang[j] * jobs->a[j] * inverse * inverse;
    }
    *ret_slope = slope;
    return used;
}

/* By Newton's steps where they stay in the bracket, otherwise by halves. */
static double find_level(const struct one_type_jobs *jobs, double capacity, double at,
                         double high)
{
    double low = 0;
    for (uint32_t i = 0; i < STEPS_MAX; i++) {
        double slope;
        double over = add_shares(jobs, at, &slope) - capacity;
        if (over > 0)
            high = at;
        else
            low = at;
        if ((over <= 0 && over >= -CLOSE * capacity) || high - low <= 1e-15 * high)
            break;
        double next = slope > 0 ? at - over / slope : 0;
        at = next > low && next < high ? next : 0.5 * (low + high);
    }
    return low;
}

double one_type_solve(const struct problem *problem,
                      const struct problem_demands *demands, double *ret_x)
{
    const struct programme *p = problem->programme;
    uint32_t n = p->job_count;
    struct one_type_jobs jobs = { .count = n,
                                  .gang = arena_array(problem->arena, double, n),
                                  .a = arena_array(problem->arena, double, n),
                                  .b = arena_array(problem->arena, double, n),
                                  .top = arena_array(problem->arena, double, n) };
    double capacity = 0, wanted = 0, each = 0, least = INFINITY, most = 0;
    for (uint32_t t = 0; t < p->type_count; t++)
        capacity += p->capacity[t];
    for (uint32_t j = 0; j < n; j++) {
        jobs.gang[j] = p->gang[j];
        jobs.a[j] = (demands->need ? demands->need[j] : 1) /
                    (demands->unit[j] * problem->top[j]);
        jobs.b[j] = demands->ahead ? demands->ahead[j] : 0;
        jobs.top[j] = 1 / (jobs.a[j] + jobs.b[j]);
        wanted += p->gang[j];
        each += p->gang[j] * jobs.a[j]; /* what a little level uses */
        least = fmin(least, jobs.top[j]);
        most = fmax(most, jobs.top[j]);
    }
    double level = wanted <= capacity
                       ? most
                       : find_level(&jobs, capacity, fmin(capacity / each, most), most);
    for (uint32_t j = 0; j < n; j++) {
        double share =
            level >= jobs.top[j] ? 1 : jobs.a[j] * level / (1 - jobs.b[j] * level);
        for (uint32_t t = 0; t < p->type_count; t++)
            ret_x[(size_t)j * p->type_count + t] = share * p->capacity[t] / capacity;
    }
    return fmin(least, level);
}
