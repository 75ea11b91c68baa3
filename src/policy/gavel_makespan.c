/*
 * gavel_makespan.c - the last job finishes as early as can be.
 *
 * Every job's rate is at least its steps left over the makespan, and the makespan is
 * made as small as can be.
 */
#include "policy/gavel/gavel_lp.h"

static struct programme makespan_programme(void *self, const struct gavel_call *call)
{
    return gavel_lp_programme(call, GOAL_MAKESPAN);
}

static void makespan_demand(void *self, const struct gavel_call *call, uint32_t at,
                            struct gavel_demand *ret_demand)
{
    ret_demand->aim = AIM_LEVEL;
    ret_demand->need = call->steps[at];
}

static const struct gavel_rule makespan_rule = { .shares = gavel_lp_shares,
                                                 .programme = makespan_programme,
                                                 .demand = makespan_demand,
                                                 .blind = BLIND_FIRST };

static int makespan_init(void *self, const struct view *view, uint64_t seed,
                         struct arena *run, struct error *err)
{
    return gavel_lp_init(self, &makespan_rule, view, seed, run, err);
}

static const struct instance_rule makespan_instance = {
    .goal = GOAL_MAKESPAN,
    .blind = BLIND_FIRST,
    .published =
        (const struct instance_name[]){
            { "min_total_duration", "aware=false" },
            { "min_total_duration_perf", "" },
            { "min_total_duration_packed", "sharing=true" },
            { 0 },
        },
};

const struct policy policy_gavel_makespan = {
    .name = "gavel-makespan",
    .brief = "the last job finishes as early as can be",
    .source = "Narayanan et al., Gavel, OSDI 2020: minimum makespan",
    .params = gavel_sharing_params,
    .self_size = sizeof(struct gavel_lp),
    .instance = &makespan_instance,
    .init = makespan_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_lp_fini,
};
