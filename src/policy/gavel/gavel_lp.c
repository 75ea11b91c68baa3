/*
 * gavel_lp.c - from a call for shares to a programme, and its answer back.
 *
 * Under compat=released the answer is the middle of all the optimal ones, as the
 * published system's solver finds it; for the makespan it is the middle of all shares
 * that are as good as its bisection wants.
 */
#include "policy/gavel/gavel_lp.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "solve/solve.h"

int gavel_lp_init(struct gavel_lp *lp, const struct gavel_rule *rule,
                  const struct view *view, uint64_t seed, struct arena *run,
                  struct error *err)
{
    int r = gavel_init(&lp->gavel, rule, view, seed, run, err);
    if (r == 0)
        lp->solver = solver_new();
    return r;
}

void gavel_lp_fini(void *self)
{
    struct gavel_lp *lp = self;
    solver_free(lp->solver);
    gavel_fini(self);
}

struct programme gavel_lp_programme(const struct gavel_call *call, enum goal goal)
{
    return (struct programme){ .goal = goal,
                               .job_count = call->job_count,
                               .type_count = call->type_count,
                               .pair_count = call->pair_count,
                               .capacity = call->capacity,
                               .gang = call->gang,
                               .rate = call->rate,
                               .weight = call->weight,
                               .steps = call->steps,
                               .age_s = call->age_s,
                               .alone_s = call->alone_s,
                               .pairs = call->pairs,
                               .pair_rate = call->pair_rate,
                               .tidy = !call->released };
}

/* --- as the published system answers --------------------------------------------------- */

/* Its rate with an equal share of every type, without and with the others there. */
static double rate_even(const struct programme *programme, uint32_t j)
{
    double sum = 0;
    double all = 0;
    for (uint32_t t = 0; t < programme->type_count; t++) {
        sum += programme->rate[(size_t)j * programme->type_count + t] *
               programme->capacity[t];
        all += programme->capacity[t];
    }
    return sum / all;
}

static double rate_isolated(const struct programme *programme, uint32_t j)
{
    double all = 0;
    for (uint32_t t = 0; t < programme->type_count; t++)
        all += programme->capacity[t];
    double time = all / programme->job_count / programme->gang[j];
    return rate_even(programme, j) * fmin(1, time);
}

/* Where the bisection of the published system ends, given the true optimum. */
static double bisect_objective(double optimum)
{
    double low = 100;
    double high = 1e6;
    while (high < optimum) {
        low = high;
        high *= 10;
    }
    while (1.05 * low < high) {
        double middle = (low + high) / 2;
        if (middle >= optimum)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* What each job needs for the objective that was found. */
static double need_of(const struct programme *programme, uint32_t j,
                      const struct shares *shares)
{
    double fair = programme->weight[j] * rate_even(programme, j) / programme->gang[j];
    switch (programme->goal) {
    case GOAL_MAX_MIN:
        return fair;
    case GOAL_WATER_FILLING:
        return fair * shares->level[j];
    case GOAL_MAKESPAN:
        return programme->steps[j];
    default: {
        double alone_s =
            programme->alone_s[j] + programme->steps[j] / rate_isolated(programme, j);
        return programme->steps[j] /
               (shares->objective * alone_s - programme->age_s[j]);
    }
    }
}

static bool has_middle(const struct programme *programme)
{
    return programme->pair_count == 0 && !programme->floor &&
           (programme->goal == GOAL_MAX_MIN || programme->goal == GOAL_WATER_FILLING ||
            programme->goal == GOAL_MAKESPAN || programme->goal == GOAL_FINISH_TIME ||
            programme->goal == GOAL_SUM);
}

static int find_centre(const struct programme *programme, const struct shares *shares,
                       struct gavel_call *call, struct error *err)
{
    uint32_t types = programme->type_count;
    struct interior_point centre = { .job_count = programme->job_count,
                                     .type_count = types,
                                     .capacity = programme->capacity,
                                     .gang = programme->gang,
                                     .rate = programme->rate };
    if (programme->goal == GOAL_SUM) {
        double *value =
            arena_array(call->scratch, double, (size_t)programme->job_count *types);
        for (size_t i = 0; i < (size_t)programme->job_count * types; i++)
            value[i] = programme->rate[i] /
                       (programme->price ? programme->price[i % types] : 1);
        centre.value = value;
    } else {
        double *need = arena_array(call->scratch, double, programme->job_count);
        for (uint32_t j = 0; j < programme->job_count; j++) {
            need[j] = rate_even(programme, j) > 0 ? need_of(programme, j, shares) : 0;
            if (!(need[j] > 0))
                need[j] = 0;
        }
        centre.need = need;
        centre.inverse = programme->goal == GOAL_FINISH_TIME;
        if (programme->goal == GOAL_MAKESPAN)
            centre.enough = 1 / bisect_objective(shares->objective);
    }
    return interior_point_solve(&centre, call->scratch, call->x, err);
}

double gavel_lp_even_rate(const struct gavel_call *call, uint32_t at)
{
    double sum = 0;
    double all = 0;
    for (uint32_t t = 0; t < call->type_count; t++) {
        all += call->capacity[t];
        sum += call->capacity[t] * call->rate[(size_t)at * call->type_count + t];
    }
    return all > 0 ? sum / all : 0;
}

int gavel_lp_solve(struct gavel_lp *lp, struct gavel_call *call,
                   const struct programme *programme, struct error *err)
{
    struct shares shares;
    int r =
        programme_solve(programme, SOLVE_FAST, lp->solver, call->scratch, &shares, err);
    if (r < 0)
        return r;
    if (call->released && has_middle(programme) && shares.status == SHARES_OPTIMAL &&
        find_centre(programme, &shares, call, err) == 0)
        return 0;
    size_t rows = (size_t)call->job_count + call->pair_count;
    memcpy(call->x, shares.x, rows * call->type_count * sizeof *call->x);
    return 0;
}
