/*
 * gavel_hierarchical.c - fair between groups, then within each.
 *
 * Entities share the cluster by weight; inside an entity its jobs share by theirs, or
 * the earliest one has it all.  What an entity cannot use goes to the others: shares
 * are filled like water.  Jobs that name no entity are one together.
 */
#include "base/arena.h"
#include "model/cluster.h"
#include "policy/gavel/gavel_lp.h"

enum inside { INSIDE_FAIRNESS, INSIDE_FIFO };
static const char *const insides[] = { "fairness", "fifo", NULL };

struct gavel_hierarchical {
    struct gavel_lp lp;
    uint32_t inside; /* of entities that the cluster does not name */
    double *weights; /* by entity: of its jobs, in the call at hand */
};

static struct programme_group group_of(const struct gavel_hierarchical *h,
                                       const struct cluster *cluster, uint32_t entity)
{
    if (entity > 0 && entity <= cluster->entity_count)
        return (struct programme_group){ cluster->entities[entity - 1].weight,
                                         cluster->entities[entity - 1].fifo };
    return (struct programme_group){ 1, h->inside == INSIDE_FIFO };
}

static struct programme hierarchical_programme(void *self,
                                               const struct gavel_call *call)
{
    struct gavel_hierarchical *h = self;
    const struct view *view = call->view;
    uint32_t *group = arena_array(call->scratch, uint32_t, call->job_count);
    uint32_t entity_top = 0;
    for (uint32_t j = 0; j < call->job_count; j++)
        if (view->jobs[call->jobs[j]].entity > entity_top)
            entity_top = view->jobs[call->jobs[j]].entity;
    /* Only entities with a job here are groups, numbered as they are met. */
    uint32_t *number = arena_array(call->scratch, uint32_t, entity_top + 1);
    struct programme_group *groups =
        arena_array(call->scratch, struct programme_group, entity_top + 1);
    uint32_t count = 0;
    for (uint32_t j = 0; j < call->job_count; j++) {
        uint32_t entity = view->jobs[call->jobs[j]].entity;
        if (number[entity] == 0) {
            groups[count] = group_of(h, view->cluster, entity);
            number[entity] = ++count;
        }
        group[j] = number[entity] - 1;
    }
    struct programme programme = gavel_lp_programme(call, GOAL_HIERARCHICAL);
    programme.group = group;
    programme.groups = groups;
    programme.group_count = count;
    return programme;
}

/*
 * By classes: a job's part of its entity's weight, filled up like water.  What some
 * jobs of an entity cannot use goes to all who can, not to the others of that entity
 * first.
 */
static void hierarchical_demand(void *self, const struct gavel_call *call, uint32_t at,
                                struct gavel_demand *ret_demand)
{
    struct gavel_hierarchical *h = self;
    const struct job *jobs = call->view->jobs;
    uint32_t entity_top = 0;
    for (uint32_t j = 0; at == 0 && j < call->job_count; j++)
        if (jobs[call->jobs[j]].entity > entity_top)
            entity_top = jobs[call->jobs[j]].entity;
    if (at == 0)
        h->weights = arena_array(call->scratch, double, entity_top + 1);
    for (uint32_t j = 0; at == 0 && j < call->job_count; j++)
        h->weights[jobs[call->jobs[j]].entity] += call->weight[j] * call->count[j];
    uint32_t entity = jobs[call->jobs[at]].entity;
    double part = group_of(h, call->view->cluster, entity).weight * call->weight[at] /
                  h->weights[entity];
    ret_demand->aim = AIM_FILL;
    ret_demand->need = part * gavel_lp_even_rate(call, at) / call->gang[at];
}

static const struct gavel_rule hierarchical_rule = { .shares = gavel_lp_shares,
                                                     .programme =
                                                         hierarchical_programme,
                                                     .demand = hierarchical_demand,
                                                     .by_class = true,
                                                     .by_entity = true,
                                                     .blind = BLIND_EQUAL };

/* Classes cannot tell which job of an entity is next where it is first come, first served. */
static const struct gavel_rule fifo_inside_rule = { .shares = gavel_lp_shares,
                                                    .programme = hierarchical_programme,
                                                    .blind = BLIND_EQUAL };

/* With all pairs of jobs the programme is large: it is not solved at every arrival. */
static const struct gavel_rule fifo_inside_sharing_rule = { .shares = gavel_lp_shares,
                                                            .programme =
                                                                hierarchical_programme,
                                                            .blind = BLIND_EQUAL,
                                                            .patience_s = 1800 };

static int hierarchical_init(void *self, const struct view *view, uint64_t seed,
                             struct arena *run, struct error *err)
{
    struct gavel_hierarchical *h = self;
    bool fifo = h->inside == INSIDE_FIFO;
    for (uint32_t e = 0; e < view->cluster->entity_count; e++)
        fifo = fifo || view->cluster->entities[e].fifo;
    const struct gavel_rule *rule = !fifo                 ? &hierarchical_rule
                                    : h->lp.gavel.sharing ? &fifo_inside_sharing_rule
                                                          : &fifo_inside_rule;
    return gavel_lp_init(self, rule, view, seed, run, err);
}

static const struct field hierarchical_params[] = {
    GAVEL_PARAM_AWARE,
    GAVEL_PARAM_SHARING,
    { "inside", FIELD_CHOICE, offsetof(struct gavel_hierarchical, inside), "fairness",
      NULL, "how jobs of an entity that the cluster does not name share", 0, 0,
      insides },
    GAVEL_PARAMS,
    { NULL },
};

static const struct instance_rule hierarchical_instance = {
    .goal = GOAL_HIERARCHICAL,
    .blind = BLIND_EQUAL,
    .published =
        (const struct instance_name[]){
            { "hierarchical_water_filling", "" },
            { "hierarchical_water_filling_perf", "" },
            { "hierarchical_water_filling_packed", "sharing=true" },
            { 0 },
        },
};

const struct policy policy_gavel_hierarchical = {
    .name = "gavel-hierarchical",
    .brief = "fair between groups by weight, then within each",
    .source = "Narayanan et al., Gavel, OSDI 2020: hierarchical policies",
    .params = hierarchical_params,
    .self_size = sizeof(struct gavel_hierarchical),
    .instance = &hierarchical_instance,
    .init = hierarchical_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_lp_fini,
};
