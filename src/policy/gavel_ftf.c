/*
 * gavel_ftf.c - finish times in proportion to those under an equal share.
 *
 * A job's ratio is the time it will have taken over the time it would have taken on an
 * equal share of the cluster (Themis); the largest ratio is made as small as can be.
 */
#include <math.h>

#include "policy/gavel/gavel_lp.h"

/*
 * compat=released: the latest job sets the largest ratio and the optimum says nothing of the rest.
 * The middle of all optimal shares is nearest to those that the original's solver was seen to
 * end in; equal shares give the completion times that were published.
 */
static const char *const ftf_spares[] = { "centre", "even", NULL };

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

static struct programme ftf_programme(void *self, const struct gavel_call *call)
{
    return gavel_lp_programme(call, GOAL_FINISH_TIME);
}

static const struct gavel_rule ftf_rule = { .shares = gavel_lp_shares,
                                            .programme = ftf_programme,
                                            .demand = ftf_demand,
                                            .blind = BLIND_FIRST,
                                            .alone = true };

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
    { "spare", FIELD_CHOICE, offsetof(struct gavel_policy, spare), "centre", NULL,
      "aware=false,compat=released: who gets what the latest job leaves", 0, 0,
      ftf_spares },
    { 0 }
};

const struct policy policy_gavel_ftf = {
    .name = "gavel-ftf",
    .brief = "finish times in proportion to those under an equal share",
    .source = "Narayanan et al., Gavel, OSDI 2020: finish-time fairness (Themis)",
    .params = ftf_params,
    .self_size = sizeof(struct gavel_lp),
    .instance = &ftf_instance,
    .init = ftf_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_lp_fini,
};
