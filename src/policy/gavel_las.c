/*
 * gavel_las.c - the least served job gets as much as can be.
 *
 * Weighted max-min fairness over effective rates: each job's rate under its shares,
 * relative to its rate under an equal share of every type, times its gang, over its
 * weight.  The least of these is made as large as can be; with water_filling the next
 * least after it, and so on.
 */
#include "policy/gavel/gavel_lp.h"

struct gavel_las {
    struct gavel_lp lp;
    bool water_filling;
};

static struct programme las_programme(void *self, const struct gavel_call *call)
{
    struct gavel_las *las = self;
    return gavel_lp_programme(call,
                              las->water_filling ? GOAL_WATER_FILLING : GOAL_MAX_MIN);
}

static void las_demand(void *self, const struct gavel_call *call, uint32_t at,
                       struct gavel_demand *ret_demand)
{
    struct gavel_las *las = self;
    ret_demand->aim = las->water_filling ? AIM_FILL : AIM_LEVEL;
    ret_demand->need = call->weight[at] * gavel_lp_even_rate(call, at) / call->gang[at];
}

static const struct gavel_rule las_rule = { .shares = gavel_lp_shares,
                                            .programme = las_programme,
                                            .demand = las_demand,
                                            .by_class = true,
                                            .blind = BLIND_EQUAL };

static int las_init(void *self, const struct view *view, uint64_t seed,
                    struct arena *run, struct error *err)
{
    return gavel_lp_init(self, &las_rule, view, seed, run, err);
}

static const struct field las_params[] = {
    GAVEL_PARAM_AWARE,
    GAVEL_PARAM_SHARING,
    { "water_filling", FIELD_FLAG, offsetof(struct gavel_las, water_filling), "false",
      NULL, "after the least, the next least, and so on" },
    GAVEL_PARAMS,
    { NULL },
};

static const struct instance_rule las_instance = {
    .goal = GOAL_MAX_MIN,
    .blind = BLIND_EQUAL,
    .published =
        (const struct instance_name[]){
            { "max_min_fairness", "aware=false" },
            { "max_min_fairness_perf", "" },
            { "max_min_fairness_packed", "sharing=true" },
            { "max_min_fairness_water_filling", "water_filling=true,aware=false" },
            { "max_min_fairness_water_filling_perf", "water_filling=true" },
            { "max_min_fairness_water_filling_packed",
              "water_filling=true,sharing=true" },
            { 0 },
        },
};

const struct policy policy_gavel_las = {
    .name = "gavel-las",
    .brief = "the least served job gets as much as can be, type by type",
    .source = "Narayanan et al., Gavel, OSDI 2020: least attained service",
    .params = las_params,
    .self_size = sizeof(struct gavel_las),
    .instance = &las_instance,
    .init = las_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_lp_fini,
};
