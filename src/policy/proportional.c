/*
 * proportional.c - each job's time is split over the types in proportion to their GPUs.
 *
 *     x[j][t] = GPUs[t] / GPUs
 *
 * It ignores the number of jobs, so these shares add up to more than the cluster has:
 * rounds give each type to the job that has had least of it.  Gavel divides by the
 * resulting rate (section 4.1); as a policy it is a plain round robin over unlike GPUs.
 */
#include "policy/gavel/gavel.h"

#include "solve/solve.h"

static int proportional_shares(void *self, struct gavel_call *call, struct error *err)
{
    shares_proportional(call->job_count, call->type_count, call->capacity, call->x);
    return 0;
}

static const struct gavel_rule proportional_rule = { .shares = proportional_shares,
                                                     .by_class = true,
                                                     .blind = BLIND_TRUE };

static int proportional_init(void *self, const struct view *view, uint64_t seed,
                             struct arena *run, struct error *err)
{
    return gavel_init(self, &proportional_rule, view, seed, run, err);
}

static const struct instance_rule proportional_instance = {
    .method = INSTANCE_PROPORTIONAL,
    .blind = BLIND_TRUE,
};

const struct policy policy_proportional = {
    .name = "proportional",
    .brief = "everybody's time split as the accelerators are, in rounds",
    .source = "Narayanan et al., Gavel, OSDI 2020, section 4.1",
    .params = gavel_params,
    .self_size = sizeof(struct gavel_policy),
    .instance = &proportional_instance,
    .init = proportional_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_fini,
};
