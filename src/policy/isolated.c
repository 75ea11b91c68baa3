/*
 * isolated.c - an equal part of every type for each job, as if the cluster were split.
 *
 *     x[j][t] = GPUs[t] / jobs / gang[j], and no more time than there is
 *
 * What a job would have on its own cluster of that size: the yardstick for other
 * policies (Gavel, section 4), and a baseline.  It ignores rates.
 */
#include "policy/gavel/gavel.h"

#include "base/arena.h"
#include "solve/solve.h"

static int isolated_shares(void *self, struct gavel_call *call, struct error *err)
{
    double *part = arena_array(call->scratch, double, call->type_count);
    for (uint32_t t = 0; t < call->type_count; t++) /* of all jobs, for these rows */
        part[t] = call->capacity[t] * call->job_count / call->total;
    shares_isolated(call->job_count, call->type_count, part, call->gang, call->x);
    return 0;
}

static const struct gavel_rule isolated_rule = { .shares = isolated_shares,
                                                 .by_class = true,
                                                 .blind = BLIND_TRUE };

static int isolated_init(void *self, const struct view *view, uint64_t seed,
                         struct arena *run, struct error *err)
{
    return gavel_init(self, &isolated_rule, view, seed, run, err);
}

static const struct instance_rule isolated_instance = {
    .method = INSTANCE_ISOLATED,
    .blind = BLIND_TRUE,
};

const struct policy policy_isolated = {
    .name = "isolated",
    .brief = "an equal part of every type for everybody, in rounds",
    .source = "Narayanan et al., Gavel, OSDI 2020, section 4",
    .params = gavel_params,
    .self_size = sizeof(struct gavel_policy),
    .instance = &isolated_instance,
    .init = isolated_init,
    GAVEL_FUNCTIONS,
    .fini = gavel_fini,
};
