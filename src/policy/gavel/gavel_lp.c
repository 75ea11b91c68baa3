/* gavel_lp.c - from a call for shares to a programme, and its answer back. */
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
        .tidy = true
    };
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
    rest.near = true;
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
    if (programme->price || programme->floor || call->pair_count > 0)
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

/* What every job has at least, in what the policy's demand() is for. */
static double level_of(enum goal goal, double objective)
{
    if (goal == GOAL_MAX_MIN)
        return objective;
    bool least = goal == GOAL_MAKESPAN || goal == GOAL_FINISH_TIME;
    return least && objective > 0 ? 1 / objective : 0;
}

int gavel_lp_shares(void *self, struct gavel_call *call, struct error *err)
{
    struct gavel_lp *lp = self;
    struct programme programme = lp->gavel.rule->programme(self, call);
    if (serve_all(call, &programme))
        return 0;
    struct shares shares;
    bool classes = call->total > call->job_count && programme.goal == GOAL_MAX_MIN;
    programme.tidy = !classes;
    int r = programme_solve(&programme, SOLVE_FAST, lp->solver, call->scratch, &shares,
                            err);
    if (r < 0)
        return r;
    size_t rows = (size_t)call->job_count + call->pair_count;
    memcpy(call->x, shares.x, rows * call->type_count * sizeof *call->x);
    call->level = level_of(programme.goal, shares.objective);
    if (classes && shares.status == SHARES_OPTIMAL)
        spread_rest(lp, call, &programme, shares.objective);
    return 0;
}
