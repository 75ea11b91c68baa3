/*
 * instance_shares.h - ask a policy for the shares of an instance.
 *
 * A policy is given by its name with settings ("gavel-las,aware=false") or by one of those
 * that the published system has for it ("max_min_fairness").
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "solve/solve.h"

struct arena;
struct error;
struct instance;
struct instance_file;
struct policy;

struct instance_policy {
    const struct policy *policy;
    enum goal goal;     /* of its programme, settings considered            */
    bool aware;         /* knows how fast a job is on each type             */
    bool sharing;       /* pairs of jobs may share accelerators             */
    bool water_filling; /* after the least level, all the others            */
    bool tidy;          /* of several optima, the one with the largest sum  */
    uint32_t form;      /* of cost: 0 the paper's, 1 the released one       */
    uint32_t compat;    /* 1: as released                                   */
    uint32_t seed;      /* of random draws                                  */
};

/* -EINVAL with the nearest names if there is none, or if a setting is wrong. */
int instance_policy_parse(struct instance_policy *asked, const char *text,
                          struct error *err);

/* -EINVAL with the place if something is missing in the file that the policy needs. */
int instance_policy_check(const struct instance_policy *asked,
                          const struct instance_file *file, struct error *err);

/* 'shares.x' has a row per job, then one per pair. */
struct instance_answer {
    struct shares shares;
    bool has_objective, has_gap;
};

int instance_policy_solve(const struct instance_policy *asked,
                          const struct instance *instance, enum solve_engine engine,
                          struct solver *solver, struct arena *arena,
                          struct instance_answer *ret_answer, struct error *err);
