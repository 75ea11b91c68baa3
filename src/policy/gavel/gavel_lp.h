/* gavel_lp.h - from a call for shares to a programme, and its answer back. */
#pragma once

#include "policy/gavel/gavel.h"
#include "solve/solve.h"

struct error;

/* A policy with shares from a programme; its private state begins with this. */
struct gavel_lp {
    struct gavel_policy gavel;
    struct solver *solver; /* warm between calls */
};

/* For the tables: init needs the policy's rule. */
int gavel_lp_init(struct gavel_lp *lp, const struct gavel_rule *rule,
                  const struct view *view, uint64_t seed, struct arena *run,
                  struct error *err);
void gavel_lp_fini(void *self);

/* The programme with everything that the call says; the policy adds the rest. */
struct programme gavel_lp_programme(const struct gavel_call *call, enum goal goal);

/* A job's rate on an equal part of every type: what shares are fair by. */
double gavel_lp_even_rate(const struct gavel_call *call, uint32_t at);

/* For the rule: solve the policy's programme and write the shares into the call. */
int gavel_lp_shares(void *self, struct gavel_call *call, struct error *err);
