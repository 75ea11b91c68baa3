/* gavel_throughput.c - the most steps per second in all. */
#include "policy/gavel/gavel_lp.h"

static struct programme throughput_programme(void *self, const struct gavel_call *call)
{
    return gavel_lp_programme(call, GOAL_SUM);
}

static void throughput_demand(void *self, const struct gavel_call *call, uint32_t at,
                              struct gavel_demand *ret_demand)
{
    ret_demand->aim = AIM_SUM;
    for (uint32_t t = 0; t < call->type_count; t++)
        ret_demand->price[t] = 1;
}

static const struct gavel_rule throughput_rule = { .shares = gavel_lp_shares,
                                                   .programme = throughput_programme,
                                                   .demand = throughput_demand,
                                                   .by_class = true,
                                                   .blind = BLIND_FIRST };

static int throughput_start(void *self, const struct view *view, uint64_t seed,
                            struct arena *run, struct error *err)
{
    return gavel_lp_init(self, &throughput_rule, view, seed, run, err);
}

static const struct instance_rule throughput_instance = {
    .goal = GOAL_SUM,
    .blind = BLIND_FIRST,
    .published =
        (const struct instance_name[]){
            { "max_sum_throughput_perf", "" },
            { "max_sum_throughput_packed", "sharing=true" },
            { 0 },
        },
};

const struct policy policy_gavel_throughput = {
    .name = "gavel-throughput",
    .brief = "the most steps per second in all",
    .source = "Narayanan et al., Gavel, OSDI 2020: maximum total throughput",
    .params = gavel_sharing_params,
    .self_size = sizeof(struct gavel_lp),
    .instance = &throughput_instance,
    .init = throughput_start,
    GAVEL_FUNCTIONS,
    .fini = gavel_lp_fini,
};
