/*
 * world.h - a small cluster and its jobs, for tests of policies and plans.
 *
 *     world_init(&w, nodes, gpus_per_node);
 *     job_id old = world_running(&w, (struct job){ .gpus = 4 });
 *     job_id new = world_queued(&w, (struct job){ .gpus = 1 });
 *     world_decide(&w, &policy_las);
 *     assert_true(plan_holds(w.plan, new));
 *
 * There is no engine and no executor: the test applies events with world_apply().  Fields
 * of a job that a test leaves out are those of a plain one: any type, rigid, one step
 * per second, work unknown.
 */
#pragma once

#include "support/cases.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "model/cluster.h"
#include "model/node_set.h"
#include "model/plan.h"
#include "model/state.h"
#include "model/throughput.h"
#include "policy/policy.h"

#define SECONDS(n) ((int64_t)((n)*INT64_C(1000000000)))
#define MINUTES(n) SECONDS((n)*60)
#define WORLD_JOBS_MAX 64

struct world {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    const char *kind; /* in 'rates', of the jobs that are added next; NULL: none */
    struct state state;
    struct plan *plan;
    bool planning; /* between plan_begin() and plan_end() */
    uint64_t id_next;
    struct node_sets sets;
    const struct policy *policy; /* of the last decision */
    void *policy_self;
};

void world_init(struct world *w, uint32_t nodes, uint32_t gpus_per_node);

/* The cluster as on the command line: "4xv100:8,2xp100:4". */
void world_init_as(struct world *w, const char *cluster);

/* The same with CPU and memory on every node. */
void world_init_roomy(struct world *w, const char *cluster, uint32_t cpu_milli,
                      uint32_t mem_mib);
void world_release(struct world *w);

/* setup() and teardown() that make a world, in *state, and release it. */
#define WORLD_FIXTURE(nodes, gpus_per_node) \
    static int setup(void **state) \
    { \
        static struct world w; \
        world_init(&w, nodes, gpus_per_node); \
        *state = &w; \
        return 0; \
    } \
    static int teardown(void **state) \
    { \
        world_release(*state); \
        return 0; \
    } \
    static int teardown(void **state)

/* Let time pass without an event. */
void world_pass(struct world *w, int64_t ns);

/* Apply an event now; 'generation' and 'attempt' are filled in where they are 0. */
bool world_apply(struct world *w, struct event event);

/* Add a job that waits, one that runs, or one that runs on this node. */
job_id world_queued(struct world *w, struct job job);
job_id world_running(struct world *w, struct job job);
job_id world_running_on(struct world *w, node_id node, struct job job);

/* Add a job that shares the GPUs of one that runs; both have their rates of the pair. */
job_id world_beside(struct world *w, job_id host, struct job job);

/*
 * For a job that may use some nodes only: "n1,n2", or NULL.  'exact': those of the nodelist
 * and no others.
 */
struct node_set *world_set(struct world *w, const char *nodelist, const char *exclude,
                           bool exact);

/* Begin a plan, or drop it and begin another. */
struct plan *world_plan(struct world *w);

/* End the plan; its orders become events as in the engine. */
void world_carry_out(struct world *w);

/* Install a policy, with its default settings or these, and let it decide. */
void world_decide(struct world *w, const struct policy *policy);
void world_decide_with(struct world *w, const struct policy *policy,
                       const char *settings);

/* Let the same policy decide again. */
void world_decide_again(struct world *w);

/* When the policy of the last decision wants to be asked next; INT64_MAX: at no certain time. */
int64_t world_next_wake(const struct world *w);

struct job *world_job(struct world *w, job_id job);

/* GPUs it will have: those the plan grants, or those it has. */
uint32_t world_size(const struct world *w, job_id job);

/* The grant of a job in the plan, or NULL; its n-th node share; whether it waits for a victim. */
const struct change *world_grant(const struct world *w, job_id job);
const struct seat *world_seat(const struct world *w, job_id job, uint32_t n);
bool world_waits_for(const struct world *w, job_id job, job_id victim);

/* A hash of all free resources, to compare before and after. */
uint64_t world_free_hash(const struct world *w);
