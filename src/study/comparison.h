/*
 * comparison.h - several policies on the same workloads, over several seeds.
 *
 * Means over seeds come with the half width of a 95 % confidence interval (Student's
 * t); with one seed there is none.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "sim/sweep.h"

struct json;

#define COMPARISON_POLICIES_MAX 13
#define COMPARISON_SEEDS_MAX 1000

struct comparison {
    const char *cluster_text;
    const char *workload_text;
    const char *command; /* that repeats it */
    const struct cluster *cluster;
    const char *policies[COMPARISON_POLICIES_MAX];
    const char *flows[COMPARISON_POLICIES_MAX]; /* the flow policy of each, or NULL */
    const char *names[COMPARISON_POLICIES_MAX]; /* shown; NULL: the policy */
    uint32_t policy_count;
    uint64_t first_seed;
    uint32_t seed_count;
    struct sweep_run *runs; /* [policy][seed] */
};

/* A figure over the seeds of one policy. */
struct comparison_interval {
    double mean;
    double half;    /* of the interval; NAN with one seed */
    uint32_t count; /* of seeds for which it applies      */
};

/* Run all; 'like' is the setup but for policy, flow and seed. */
int comparison_run(struct comparison *comparison, const struct sim_setup *like,
                   void (*progress)(void *context, double share), void *context,
                   struct error *err);
void comparison_release(struct comparison *comparison);

/* "fifo", or "fifo + jpas" where flow policies are compared. */
const char *comparison_name(const struct comparison *comparison, uint32_t policy);

struct comparison_interval comparison_estimate(const struct comparison *comparison,
                                               uint32_t policy, uint32_t figure);

/* For programs: figures of every run and over the seeds.  json_free() it. */
struct json *comparison_json(const struct comparison *comparison);

/* For the report page.  json_free() it. */
struct json *comparison_page(const struct comparison *comparison);
