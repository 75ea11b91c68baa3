/*
 * gavel_ftf.c - finish times in proportion to those under an equal share.
 *
 * A job's ratio is the time it will have taken over the time it would have taken on an
 * equal share of the cluster (Themis); the largest ratio is made as small as can be.
 */
#include <math.h>

#include "base/arena.h"
#include "policy/gavel/gavel_lp.h"

/*
 * compat=released: the latest job sets the largest ratio and the optimum says nothing of the rest.
 * The middle of all optimal shares is nearest to those that the original's solver was seen to
 * end in; equal shares give the completion times that were published.
 */
enum ftf_spare { SPARE_CENTRE, SPARE_EVEN };
static const char *const ftf_spares[] = { "centre", "even", NULL };

struct gavel_ftf {
    struct gavel_lp lp;
    uint32_t spare; /* enum ftf_spare */
};

/* From ratio >= (age + steps / rate) / alone: rate >= (steps / alone) z / (1 - (age / alone) z). */
static void ftf_demand(void *self, const struct gavel_call *call, uint32_t at,
                       struct gavel_demand *ret_demand)
{
    double part = 1.0 / call->total / call->gang[at];
    double all = 0;
    for (uint32_t t = 0; t < call->type_count; t++)
        all += call->capacity[t];
    double pace = gavel_lp_even_rate(call, at) * fmin(all * part, 1);
    double alone_s = call->alone_s[at] + (pace > 0 ? call->steps[at] / pace : 0);
    ret_demand->aim = AIM_LEVEL;
    if (!(pace > 0 && alone_s > 0))
        return; /* it can run nowhere */
    ret_demand->need = call->steps[at] / alone_s;
    ret_demand->ahead = call->age_s[at] / alone_s;
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
static int spread_evenly(struct gavel_ftf *ftf, struct gavel_call *call,
                         const struct programme *programme, struct error *err)
{
    struct shares shares;
    int r = programme_solve(programme, SOLVE_FAST, ftf->lp.solver, call->scratch,
                            &shares, err);
    if (r < 0 || shares.status != SHARES_OPTIMAL)
        return r;
    uint32_t k = call->type_count;
    double *need = arena_array(call->scratch, double, call->job_count);
    double all = 0, low = 0, high = 1;
    for (uint32_t t = 0; t < k; t++)
        all += call->capacity[t];
    for (uint32_t at = 0; at < call->job_count; at++) {
        struct gavel_demand demand = { 0 };
        ftf_demand(ftf, call, at, &demand);
        double left = shares.objective - demand.ahead; /* of the ratio */
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
    return 0;
}

static int ftf_shares(void *self, struct gavel_call *call, struct error *err)
{
    struct gavel_ftf *ftf = self;
    struct programme programme = gavel_lp_programme(call, GOAL_FINISH_TIME);
    if (call->released && ftf->spare == SPARE_EVEN && call->pair_count == 0 &&
        is_type_blind(call))
        return spread_evenly(ftf, call, &programme, err);
    return gavel_lp_solve(self, call, &programme, err);
}

static const struct gavel_rule ftf_rule = {
    .shares = ftf_shares, .demand = ftf_demand, .blind = BLIND_FIRST, .alone = true
};

static int ftf_init(void *self, const struct view *view, uint64_t seed,
                    struct arena *run, struct error *err)
{
    return gavel_lp_init(self, &ftf_rule, view, seed, run, err);
}

static const struct instance_rule ftf_instance = {
    .goal = GOAL_FINISH_TIME,
    .blind = BLIND_FIRST,
    .published =
        (const struct instance_name[]){
            { "finish_time_fairness", "aware=false" },
            { "finish_time_fairness_perf", "" },
            { "finish_time_fairness_packed", "sharing=true" },
            { 0 },
        },
};

static const struct field ftf_params[] = {
    GAVEL_PARAM_AWARE,
    GAVEL_PARAM_SHARING,
    GAVEL_PARAMS,
    { "spare", FIELD_CHOICE, offsetof(struct gavel_ftf, spare), "centre", NULL,
      "aware=false,compat=released: who gets what the latest job leaves", 0, 0,
      ftf_spares },
    { 0 }
};

const struct policy policy_gavel_ftf = {
    .name = "gavel-ftf",
    .brief = "finish times in proportion to those under an equal share",
    .source = "Narayanan et al., Gavel, OSDI 2020: finish-time fairness (Themis)",
    .params = ftf_params,
    .self_size = sizeof(struct gavel_ftf),
    .instance = &ftf_instance,
    .init = ftf_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_lp_fini,
};
