/* gavel_lp.c - from a call for shares to a programme, and its answer back. */
#include "policy/gavel_lp.h"

#include <string.h>

int gavel_lp_init(struct gavel_lp *lp, const struct gavel_rule *rule,
                  const struct view *view, uint64_t seed, struct arena *run,
                  struct error *err)
{
    lp->solver = solver_new();
    return gavel_init(&lp->gavel, rule, view, seed, run, err);
}

void gavel_lp_fini(void *self)
{
    struct gavel_lp *lp = self;
    solver_free(lp->solver);
    gavel_fini(self);
}

struct programme gavel_lp_programme(const struct gavel_call *call, enum goal goal)
{
    return (struct programme){ .goal = goal,
                               .job_count = call->job_count,
                               .type_count = call->type_count,
                               .pair_count = call->pair_count,
                               .capacity = call->capacity,
                               .gang = call->gang,
                               .rate = call->rate,
                               .weight = call->weight,
                               .steps = call->steps,
                               .age_s = call->age_s,
                               .alone_s = call->alone_s,
                               .pairs = call->pairs,
                               .pair_rate = call->pair_rate,
                               .tidy = true };
}

double gavel_lp_even_rate(const struct gavel_call *call, uint32_t at)
{
    double sum = 0;
    double all = 0;
    for (uint32_t t = 0; t < call->type_count; t++) {
        all += call->capacity[t];
        sum += call->capacity[t] * call->rate[(size_t)at * call->type_count + t];
    }
    return all > 0 ? sum / all : 0;
}

int gavel_lp_solve(struct gavel_lp *lp, struct gavel_call *call,
                   const struct programme *programme, struct error *err)
{
    struct shares shares;
    int r =
        programme_solve(programme, SOLVE_FAST, lp->solver, call->scratch, &shares, err);
    if (r < 0)
        return r;
    size_t rows = (size_t)call->job_count + call->pair_count;
    memcpy(call->x, shares.x, rows * call->type_count * sizeof *call->x);
    return 0;
}
