/* random_world.h - random clusters and the jobs for them, from a seed. */
#pragma once

#include "support/engine_run.h"

/* What the world may have. */
struct random_world_setup {
    uint32_t jobs;  /* number of jobs                                       */
    bool plain;     /* one type, one shape of node, no CPU or memory limits */
    bool one_speed; /* all types are equally fast */
    bool one_node;  /* every gang fits on a node and stays on one */
    bool faults;    /* nodes fail                                           */
    bool wrong_estimates;
    bool unknown_work;   /* some jobs do not declare their work                  */
    bool distinct_times; /* odd nanoseconds: hardly two things at once           */
    bool impossible;     /* some jobs can never fit                              */
    bool stays;          /* some jobs may not be preempted                       */
    bool sets;           /* some jobs may run on some nodes only                 */
};

struct random_world {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct job_spec *specs;
    double *beliefs;
    struct engine_run_setup setup; /* but for the policy */
};

/* The same seed makes the same world. */
void random_world_make(struct random_world *world,
                       const struct random_world_setup *setup, uint64_t seed);

/*
 * Give all jobs kinds with known rates, alone and in pairs, so that they may share GPUs.  Three in
 * ten pairs do not fit, unless all do.
 */
void random_world_add_sharing(struct random_world *world, bool all_fit, uint64_t seed);
void random_world_release(struct random_world *world);
