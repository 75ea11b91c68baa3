/*
 * gavel_cost.c - the most work per unit of money; the same with deadlines kept.
 *
 * The paper's form is a ratio, all steps per second over all money per second; the
 * published system maximises a sum instead, each rate divided by the price of its type.
 * With deadlines every job that has one gets at least its steps left over the time
 * left.  Where these cannot all be kept, the programme drops them, as the paper does.
 */
#include <errno.h>
#include <math.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"
#include "policy/gavel/gavel_lp.h"

enum form { FORM_PAPER, FORM_RELEASED };
static const char *const forms[] = { "paper", "released", NULL };

struct gavel_cost {
    struct gavel_lp lp;
    uint32_t form;
};

#define MARGIN_S 1800.0 /* kept from a deadline: shares come true over a few rounds */

/*
 * The least rate that keeps a job's deadline.  A deadline that has passed asks for
 * nothing: it cannot be kept any more.  A job that will be late in any case asks for no
 * more than it can use, so that its floor does not make all others infeasible.
 */
static double floor_of(const struct gavel_call *call, uint32_t j)
{
    double left_s = call->left_s[j];
    if (!isfinite(left_s) || left_s <= 0)
        return 0;
    double best = 0;
    for (uint32_t t = 0; t < call->type_count; t++)
        best = fmax(best, call->rate[(size_t)j * call->type_count + t]);
    return fmin(call->steps[j] / fmax(left_s - MARGIN_S, 1), best * (1 - 1e-6));
}

static const double *floors_of(const struct gavel_call *call)
{
    double *floors = arena_array(call->scratch, double, call->job_count);
    for (uint32_t j = 0; j < call->job_count; j++)
        floors[j] = floor_of(call, j);
    return floors;
}

static const double *prices_of(const struct gavel_call *call)
{
    double *prices = arena_array(call->scratch, double, call->type_count);
    const struct cluster *cluster = call->view->cluster;
    for (uint32_t t = 0; t < call->type_count; t++)
        prices[t] = cluster->types[call->types[t]].usd_per_hour;
    return prices;
}

static struct programme cost_programme(void *self, const struct gavel_call *call)
{
    struct gavel_cost *cost = self;
    struct programme programme =
        gavel_lp_programme(call, cost->form == FORM_PAPER ? GOAL_COST_RATIO : GOAL_SUM);
    programme.price = prices_of(call);
    return programme;
}

static struct programme cost_slo_programme(void *self, const struct gavel_call *call)
{
    struct programme programme = cost_programme(self, call);
    programme.floor = floors_of(call);
    return programme;
}

static void cost_demand(void *self, const struct gavel_call *call, uint32_t at,
                        struct gavel_demand *ret_demand)
{
    struct gavel_cost *cost = self;
    const struct cluster *cluster = call->view->cluster;
    ret_demand->aim = cost->form == FORM_PAPER ? AIM_RATIO : AIM_SUM;
    for (uint32_t t = 0; t < call->type_count; t++)
        ret_demand->price[t] = cluster->types[call->types[t]].usd_per_hour;
}

static void cost_slo_demand(void *self, const struct gavel_call *call, uint32_t at,
                            struct gavel_demand *ret_demand)
{
    cost_demand(self, call, at, ret_demand);
    ret_demand->floor = floor_of(call, at);
}

/* An idle GPU costs nothing, so only jobs with a share run. */
static const struct gavel_rule rules[2][2] = {
    { { .shares = gavel_lp_shares,
        .programme = cost_programme,
        .demand = cost_demand,
        .by_class = true,
        .blind = BLIND_FIRST },
      { .shares = gavel_lp_shares,
        .programme = cost_programme,
        .demand = cost_demand,
        .by_class = true,
        .blind = BLIND_FIRST,
        .strict = true } },
    { { .shares = gavel_lp_shares,
        .programme = cost_slo_programme,
        .demand = cost_slo_demand,
        .by_class = true,
        .deadlines_apart = true,
        .blind = BLIND_FIRST },
      { .shares = gavel_lp_shares,
        .programme = cost_slo_programme,
        .demand = cost_slo_demand,
        .by_class = true,
        .deadlines_apart = true,
        .blind = BLIND_FIRST,
        .strict = true } },
};

static int init_cost(struct gavel_cost *cost, bool deadlines, const struct view *view,
                     uint64_t seed, struct arena *run, struct error *err)
{
    /* The paper's ratio is best served by a single job: others may use what is left. */
    bool strict = cost->form == FORM_RELEASED;
    for (uint32_t t = 0; t < view->cluster->type_count; t++)
        if (!(view->cluster->types[t].usd_per_hour > 0))
            return error_set(err, -EINVAL,
                             "%s has no price: give usd_per_hour in the cluster file, "
                             "or prices in berthd.yaml",
                             view->cluster->types[t].name);
    return gavel_lp_init(&cost->lp, &rules[deadlines][strict], view, seed, run, err);
}

static int cost_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    return init_cost(self, false, view, seed, run, err);
}

static int cost_slo_init(void *self, const struct view *view, uint64_t seed,
                         struct arena *run, struct error *err)
{
    return init_cost(self, true, view, seed, run, err);
}

static const struct field cost_params[] = {
    GAVEL_PARAM_AWARE,
    GAVEL_PARAM_SHARING,
    { "form", FIELD_CHOICE, offsetof(struct gavel_cost, form), "released", NULL,
      "work over money, or a sum of rates over prices", 0, 0, forms },
    GAVEL_PARAMS,
    { NULL },
};

static const struct instance_rule cost_instance = {
    .goal = GOAL_COST_RATIO,
    .blind = BLIND_FIRST,
    .published =
        (const struct instance_name[]){
            { "max_sum_throughput_normalized_by_cost_perf", "form=released" },
            { "max_sum_throughput_normalized_by_cost_packed",
              "form=released,sharing=true" },
            { 0 },
        },
};

const struct policy policy_gavel_cost = {
    .name = "gavel-cost",
    .brief = "the most work per unit of money",
    .source = "Narayanan et al., Gavel, OSDI 2020: minimum cost",
    .params = cost_params,
    .self_size = sizeof(struct gavel_cost),
    .instance = &cost_instance,
    .init = cost_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_lp_fini,
};

static const struct instance_rule cost_slo_instance = {
    .goal = GOAL_COST_RATIO,
    .blind = BLIND_FIRST,
    .floors = true,
    .published =
        (const struct instance_name[]){
            { "max_sum_throughput_normalized_by_cost_perf_SLOs", "form=released" },
            { "max_sum_throughput_normalized_by_cost_packed_SLOs",
              "form=released,sharing=true" },
            { 0 },
        },
};

const struct policy policy_gavel_cost_slo = {
    .name = "gavel-cost-slo",
    .brief = "the most work per unit of money, deadlines kept",
    .source = "Narayanan et al., Gavel, OSDI 2020: minimum cost subject to SLOs",
    .params = cost_params,
    .self_size = sizeof(struct gavel_cost),
    .instance = &cost_slo_instance,
    .init = cost_slo_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_lp_fini,
};
