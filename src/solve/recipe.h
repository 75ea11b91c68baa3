/*
 * recipe.h - a policy by its name: how it turns an instance into shares.
 *
 * Names are ours with settings ("gavel-las,aware=false") or those of the published
 * system ("max_min_fairness").
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "solve/solve.h"

struct arena;
struct error;
struct instance;
struct instance_file;

enum recipe_kind {
    RECIPE_PROGRAMME,
    RECIPE_ISOLATED,
    RECIPE_PROPORTIONAL,
    RECIPE_FIRST_COME,
    RECIPE_ALLOX,
};

struct recipe {
    const char *name; /* ours */
    enum recipe_kind kind;
    enum goal goal;
    bool aware;         /* of how fast a job is on each type          */
    bool sharing;       /* pairs may share accelerators               */
    bool water_filling; /* not the least level alone, but all of them */
    bool tidy;          /* of equal optima, the largest sum           */
    bool floors;        /* deadlines are kept                         */
    uint32_t form;      /* of cost: 0 the paper's, 1 the released one */
    uint32_t compat;    /* 1: as released                             */
    uint32_t seed;      /* of what is drawn                           */
};

int recipe_parse(struct recipe *recipe, const char *text, struct error *err);

/* Names of ours, ended by NULL, and what is said of each. */
struct recipe_row {
    const char *name;
    const char *brief;
};
extern const struct recipe_row recipe_list[];

/* Is everything in the file that the policy needs?  -EINVAL with the place if not. */
int recipe_check(const struct recipe *recipe, const struct instance_file *file,
                 struct error *err);

/* What came out; 'shares.x' has a row per job, then one per pair. */
struct recipe_answer {
    struct shares shares;
    bool valued; /* there is an objective */
    bool proven; /* and a gap             */
};

int recipe_solve(const struct recipe *recipe, const struct instance *instance,
                 enum solve_engine engine, struct solver *solver, struct arena *arena,
                 struct recipe_answer *ret_answer, struct error *err);
