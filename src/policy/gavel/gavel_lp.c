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

#define LEVEL_SLACK 1e-8 /* of a level that is kept while the rest is given away */

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

/*
 * A class of n equal jobs is one job with n times the gang, weight and rates: its share is
 * that of each of them.
 */
static const double *times_count(const struct gavel_call *call, const double *numbers,
                                 uint32_t width)
{
    size_t cells = (size_t)call->job_count * width;
    double *all = arena_array(call->scratch, double, cells);
    for (uint32_t j = 0; j < call->job_count; j++)
        for (size_t i = (size_t)j * width; i < ((size_t)j + 1) * width; i++)
            all[i] = numbers[i] * call->count[j];
    return all;
}

struct programme gavel_lp_programme(const struct gavel_call *call, enum goal goal)
{
    bool classes = call->total > call->job_count;
    return (struct programme){
        .goal = goal,
        .job_count = call->job_count,
        .type_count = call->type_count,
        .pair_count = call->pair_count,
        .capacity = call->capacity,
        .gang = classes ? times_count(call, call->gang, 1) : call->gang,
        .rate = classes ? times_count(call, call->rate, call->type_count) : call->rate,
        .weight = classes ? times_count(call, call->weight, 1) : call->weight,
        .steps = call->steps,
        .age_s = call->age_s,
        .alone_s = call->alone_s,
        .pairs = call->pairs,
        .pair_rate = call->pair_rate,
        .tidy = !call->released
    };
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

/*
 * Of all shares with the largest level, those with the largest sum of normalised rates, where
 * a class counts as often as it has members.  (The solver's own choice counts rows.)
 */
static void spread_rest(struct gavel_lp *lp, struct gavel_call *call,
                        const struct programme *programme, double level)
{
    uint32_t k = call->type_count;
    double *rate = arena_array(call->scratch, double, (size_t)call->job_count *k);
    double *floor = arena_array(call->scratch, double, call->job_count);
    for (uint32_t j = 0; j < call->job_count; j++) {
        double even = gavel_lp_even_rate(call, j);
        if (!(even > 0))
            continue;
        for (uint32_t t = 0; t < k; t++)
            rate[(size_t)j * k + t] =
                call->rate[(size_t)j * k + t] / even * call->count[j];
        floor[j] = level * call->weight[j] / call->gang[j] * call->count[j] *
                   (1 - LEVEL_SLACK);
    }
    struct programme rest = *programme;
    rest.goal = GOAL_SUM;
    rest.rate = rate;
    rest.floor = floor;
    struct shares shares;
    if (programme_solve(&rest, SOLVE_FAST, lp->solver, call->scratch, &shares, NULL) ==
            0 &&
        shares.status == SHARES_OPTIMAL)
        memcpy(call->x, shares.x, (size_t)call->job_count * k * sizeof *call->x);
}

/*
 * While there is enough for all, every job has all of its time on the type where it is
 * fastest: no shares are better for any job, whatever the goal.
 */
static bool serve_all(struct gavel_call *call, const struct programme *programme)
{
    double room[TYPES_MAX];
    uint32_t k = call->type_count;
    if (programme->price || programme->floor || call->released || call->pair_count > 0)
        return false;
    memcpy(room, call->capacity, k * sizeof *room);
    for (uint32_t j = 0; j < call->job_count; j++) {
        const double *rate = &call->rate[(size_t)j * k];
        double gpus = call->gang[j] * call->count[j];
        uint32_t best = 0;
        for (uint32_t t = 1; t < k; t++)
            if (rate[t] > rate[best] || (rate[t] == rate[best] && room[best] < gpus))
                best = t;
        if (!(rate[best] > 0))
            continue;
        room[best] -= gpus;
        if (room[best] < 0) {
            memset(call->x, 0, (size_t)call->job_count * k * sizeof *call->x);
            return false;
        }
        call->x[(size_t)j * k + best] = 1;
    }
    return true;
}

int gavel_lp_solve(struct gavel_lp *lp, struct gavel_call *call,
                   const struct programme *programme, struct error *err)
{
    if (serve_all(call, programme))
        return 0;
    struct shares shares;
    struct programme first = *programme;
    bool classes = call->total > call->job_count && programme->goal == GOAL_MAX_MIN;
    first.tidy = programme->tidy && !classes;
    int r =
        programme_solve(&first, SOLVE_FAST, lp->solver, call->scratch, &shares, err);
    if (r < 0)
        return r;
    if (call->released && has_middle(programme) && shares.status == SHARES_OPTIMAL &&
        find_centre(programme, &shares, call, err) == 0)
        return 0;
    size_t rows = (size_t)call->job_count + call->pair_count;
    memcpy(call->x, shares.x, rows * call->type_count * sizeof *call->x);
    call->level = programme->goal == GOAL_MAX_MIN ? shares.objective : 0;
    if (classes && shares.status == SHARES_OPTIMAL)
        spread_rest(lp, call, programme, shares.objective);
    return 0;
}
