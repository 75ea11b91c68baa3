/*
 * gavel_released_shares.c - the published rounds: the shares that the published system makes.
 *
 * Policies name a programme; of all its optimal shares the published system's solver ends in
 * the middle, and so does this.  For the makespan it is the middle of all shares that are
 * as good as its bisection wants.  First come, first served has no programme.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "policy/gavel/gavel_lp.h"
#include "policy/gavel/gavel_released.h"

/* --- programmes ------------------------------------------------------------------------- */

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

/* What each job needs for the objective that was found; 0: it can run nowhere. */
static double need_of(const struct gavel_call *call, uint32_t j, enum goal goal,
                      const struct shares *shares)
{
    double even = gavel_lp_even_rate(call, j);
    double fair = call->weight[j] * even / call->gang[j];
    double gpus = 0;
    for (uint32_t t = 0; t < call->type_count; t++)
        gpus += call->capacity[t];
    if (!(even > 0))
        return 0;
    if (goal == GOAL_MAX_MIN)
        return fair;
    if (goal == GOAL_WATER_FILLING)
        return fair * shares->level[j];
    if (goal == GOAL_MAKESPAN)
        return call->steps[j];
    double rate_alone = even * fmin(1, gpus / call->job_count / call->gang[j]);
    double alone_s = call->alone_s[j] + call->steps[j] / rate_alone;
    return call->steps[j] / (shares->objective * alone_s - call->age_s[j]);
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
    uint32_t types = call->type_count;
    size_t cells = (size_t)call->job_count * types;
    struct interior_point centre = { .job_count = call->job_count,
                                     .type_count = types,
                                     .capacity = call->capacity,
                                     .gang = call->gang,
                                     .rate = call->rate };
    if (programme->goal == GOAL_SUM) {
        double *value = arena_array(call->scratch, double, cells);
        for (size_t i = 0; i < cells; i++)
            value[i] =
                call->rate[i] / (programme->price ? programme->price[i % types] : 1);
        centre.value = value;
    } else {
        double *need = arena_array(call->scratch, double, call->job_count);
        for (uint32_t j = 0; j < call->job_count; j++)
            need[j] = fmax(need_of(call, j, programme->goal, shares), 0);
        centre.need = need;
        centre.inverse = programme->goal == GOAL_FINISH_TIME;
        if (programme->goal == GOAL_MAKESPAN)
            centre.enough = 1 / bisect_objective(shares->objective);
    }
    return interior_point_solve(&centre, call->scratch, call->x, err);
}

static bool is_type_blind(const struct gavel_call *call)
{
    for (size_t i = 0; i < (size_t)call->job_count * call->type_count; i++)
        if (!(call->rate[i] > 0) ||
            call->rate[i] != call->rate[i - i % call->type_count])
            return false;
    return true;
}

/* GPUs in use when every job has the part of its time that it needs, and 'least' at least. */
static double count_used(const struct gavel_call *call, const double *need,
                         double least)
{
    double used = 0;
    for (uint32_t at = 0; at < call->job_count; at++)
        used += call->gang[at] * fmin(1, fmax(need[at], least));
    return used;
}

/* Every job what it needs for the ratio that was found, then equal parts of their time. */
static void spread_evenly(struct gavel_common *common, struct gavel_call *call,
                          double ratio)
{
    uint32_t k = call->type_count;
    double *need = arena_array(call->scratch, double, call->job_count);
    double all = 0, low = 0, high = 1;
    for (uint32_t t = 0; t < k; t++)
        all += call->capacity[t];
    for (uint32_t at = 0; at < call->job_count; at++) {
        struct gavel_demand demand = { 0 };
        common->gavel->rule->demand(common->self, call, at, &demand);
        double left = ratio - demand.ahead;
        need[at] =
            left > 0 ? demand.need / left / call->rate[(size_t)at * k] : INFINITY;
    }
    for (uint32_t i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (count_used(call, need, middle) > all)
            high = middle;
        else
            low = middle;
    }
    for (uint32_t at = 0; at < call->job_count; at++)
        for (uint32_t t = 0; t < k; t++)
            call->x[(size_t)at * k + t] =
                fmin(1, fmax(need[at], low)) * call->capacity[t] / all;
}

/* Deadlines are kept without a margin. */
static const double *deadline_rates(const struct gavel_call *call)
{
    double *floor = arena_array(call->scratch, double, call->job_count);
    for (uint32_t j = 0; j < call->job_count; j++)
        if (isfinite(call->left_s[j]) && call->left_s[j] > 0)
            floor[j] = call->steps[j] / call->left_s[j];
    return floor;
}

/* The needs, or values, are known without the optimum. */
static bool is_centre_known(const struct gavel_call *call,
                            const struct programme *programme)
{
    bool runs = false;
    for (uint32_t t = 0; t < call->type_count; t++)
        if (!(call->capacity[t] > 0))
            return false;
    for (uint32_t j = 0; !runs && j < call->job_count; j++)
        runs = gavel_lp_even_rate(call, j) > 0;
    return runs && has_middle(programme) &&
           (programme->goal == GOAL_MAX_MIN || programme->goal == GOAL_SUM);
}

static int solve_programme(struct gavel_common *common, struct gavel_call *call,
                           struct error *err)
{
    const struct gavel_policy *gavel = common->gavel;
    struct programme programme = gavel->rule->programme(common->self, call);
    struct shares shares = { 0 };
    programme.tidy = false;
    if (programme.floor)
        programme.floor = deadline_rates(call);
    bool known = is_centre_known(call, &programme);
    if (known && find_centre(&programme, &shares, call, err) == 0)
        return 0;
    int r = programme_solve(&programme, SOLVE_FAST, common->released->solver,
                            call->scratch, &shares, err);
    if (r < 0)
        return r;
    if (!known && shares.status == SHARES_OPTIMAL && has_middle(&programme)) {
        if (gavel->spare == SPARE_EVEN && is_type_blind(call)) {
            spread_evenly(common, call, shares.objective);
            return 0;
        }
        if (find_centre(&programme, &shares, call, err) == 0)
            return 0;
    }
    size_t rows = (size_t)call->job_count + call->pair_count;
    memcpy(call->x, shares.x, rows * call->type_count * sizeof *call->x);
    return 0;
}

/* --- first come, first served ------------------------------------------------------------- */

static uint64_t id_of(const struct gavel_call *call, uint32_t at)
{
    return call->view->jobs[call->jobs[at]].id;
}

/* The place of a holder in the call, from 'at' on, or that of the next job. */
static bool find_holder(const struct gavel_call *call, const struct fifo_holder *holder,
                        uint32_t *at)
{
    while (*at < call->job_count && id_of(call, *at) < holder->id)
        *at += 1;
    return *at < call->job_count && id_of(call, *at) == holder->id;
}

/*
 * Without rates jobs keep their type.  Go through those that had one, in order: the first job
 * that waits takes the place of one that ended, if that is enough for it.
 */
static const uint32_t *keep_types(const struct gavel_released *r,
                                  const struct gavel_call *call)
{
    uint32_t *held = arena_array(call->scratch, uint32_t, call->job_count);
    uint32_t at = 0;
    uint32_t first = 0; /* that waits */
    double room[TYPES_MAX];
    memcpy(room, call->capacity, call->type_count * sizeof *room);
    memset(held, 0xff, call->job_count * sizeof *held); /* SHARES_NO_TYPE */
    for (uint32_t i = 0; i < r->holder_count; i++)
        if (find_holder(call, &r->holders[i], &at))
            held[at] = r->holders[i].column;
    at = 0;
    for (uint32_t i = 0; i < r->holder_count; i++) {
        uint32_t column = r->holders[i].column;
        while (first < call->job_count && held[first] != SHARES_NO_TYPE)
            first++;
        if (find_holder(call, &r->holders[i], &at)) {
            room[column] -= call->gang[at];
        } else if (first < call->job_count && call->gang[first] <= room[column] &&
                   call->rate[(size_t)first * call->type_count + column] > 0) {
            held[first] = column;
            room[column] -= call->gang[first];
        }
    }
    return held;
}

static uint32_t draw_number(void *context, uint32_t count)
{
    return mt_below(context, count);
}

int gavel_published_fifo(void *self, struct gavel_call *call, struct error *err)
{
    const struct gavel_policy *gavel = self;
    struct gavel_released *r = gavel->common->released;
    struct fifo_shares queue = { .job_count = call->job_count,
                                 .type_count = call->type_count,
                                 .pair_count = gavel->aware ? call->pair_count : 0,
                                 .capacity = call->capacity,
                                 .gang = call->gang,
                                 .rate = call->rate,
                                 .pairs = call->pairs,
                                 .pair_rate = call->pair_rate,
                                 .held = gavel->aware ? NULL : keep_types(r, call),
                                 .aware = gavel->aware,
                                 .released = true,
                                 .draw = draw_number,
                                 .draw_context = &r->draws };
    shares_fifo(&queue, call->scratch, call->x);
    r->holder_count = 0;
    for (uint32_t i = 0; i < call->job_count * call->type_count; i++)
        if (!gavel->aware && call->x[i] > 0)
            r->holders[r->holder_count++] =
                (struct fifo_holder){ id_of(call, i / call->type_count),
                                      i % call->type_count };
    return 0;
}

/* --- all of them -------------------------------------------------------------------------- */

int released_shares(struct gavel_common *common, struct gavel_call *call,
                    struct error *err)
{
    const struct gavel_rule *rule = common->gavel->rule;
    if (rule->programme)
        return solve_programme(common, call, err);
    return (rule->published ? rule->published : rule->shares)(common->self, call, err);
}
