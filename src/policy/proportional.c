/*
 * proportional.c - everybody's time split over the types as the accelerators are.
 *
 *     x[j][t] = accelerators[t] / accelerators
 *
 * It ignores how many there are, so together these shares are more than there is: rounds
 * give each type to who has had least of it.  Gavel divides by the rate that follows
 * (section 4.1); as a policy it is a plain round robin over unlike accelerators.
 */
#include "policy/gavel/gavel.h"

#include "solve/solve.h"

struct proportional {
    struct gavel gavel;
};

static int proportional_shares(void *self, struct gavel_call *call, struct error *err)
{
    shares_proportional(call->job_count, call->type_count, call->capacity, call->x);
    return 0;
}

static const struct gavel_rule proportional_rule = { .shares = proportional_shares,
                                                     .blind = BLIND_TRUE };

static int proportional_init(void *self, const struct view *view, uint64_t seed,
                             struct arena *run, struct error *err)
{
    return gavel_init(self, &proportional_rule, view, seed, run, err);
}

static const struct field proportional_params[] = {
    GAVEL_PARAMS(struct proportional, gavel),
    { NULL },
};

const struct policy policy_proportional = {
    .name = "proportional",
    .brief = "everybody's time split as the accelerators are, in rounds",
    .source = "Narayanan et al., Gavel, OSDI 2020, section 4.1",
    .params = proportional_params,
    .self_size = sizeof(struct proportional),
    .init = proportional_init,
    .observe = gavel_observe,
    .decide = gavel_decide,
    .explain = gavel_explain,
    .fini = gavel_fini,
};
