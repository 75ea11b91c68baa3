/*
 * victims.h - running best-effort jobs by what would be free if one of them left.
 *
 *     reach(j, n) = free on node n + what j holds there
 *     Score(j)    = Size(D_j) / Size_max + s * GP_j / GP_max
 *
 * A job could make room alone where its reach holds the newcomer, and of those the one
 * with the lowest score is wanted.  Reaches are kept in plain arrays, one entry per job
 * and node, brought up to date for the nodes that something happened on; so a choice is
 * one pass over them that compilers turn into vector code.
 *
 * Where the maxima are fixed, scores do not change while a job runs: then jobs also stand
 * in a tree by score, and a choice looks at the first few before it looks at all.
 *
 * Scores are compared in single precision; equal ones go to the lower public id.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/tree.h"
#include "model/cluster.h"
#include "model/plan.h"

struct arena;
struct sort_item;
struct victims_stay;

/* Entries of the nodes of one type, side by side. */
struct victims_pool {
    float *size, *grace_s;
    int32_t *gpus, *cpu_milli, *mem_mib; /* the reach; gpus -1: not to be had        */
    int32_t *age;                        /* public id, as far as it fits              */
    uint32_t *stay;                      /* whose entry it is                         */
    int32_t *block_best;                 /* least score in a block, as bits           */
    uint32_t count;
};

struct victims {
    /* set before victims_init() */
    double s;
    uint32_t preempt_max; /* whoever was preempted so often is safe; 0: nobody is    */
    bool fixed;           /* the maxima are a whole node and 'grace_max_ns'          */
    int64_t grace_max_ns;

    struct victims_pool pools[TYPES_MAX + 1]; /* by node type */
    struct victims_stay *stays;
    uint32_t stay_used, stay_free;
    uint32_t *on_node, *of_job; /* first stay; UINT32_MAX: none */

    node_id *stale; /* nodes whose entries are out of date     */
    node_id *moved; /* nodes that the plan in the making changed */
    uint32_t stale_count, moved_count;
    uint8_t *listed; /* by node: in which of the two            */
    size_t change_seen;

    /* all running best-effort jobs, the safe ones too: the maxima are over them */
    struct heap_pool size_pool, grace_pool;
    struct heap sizes, graces;
    bool *counted; /* by slot */

    struct tree_pool tree_pool;
    struct tree by_score; /* fixed maxima only: who may be revoked */
    bool *ordered;        /* by slot: inside the tree              */

    struct sort_item *items, *item_scratch; /* victims_sort() */
    uint32_t item_count, item_next;
};

void victims_init(struct victims *victims, struct arena *run, const struct view *view);

/* To be told of every event. */
void victims_observe(struct victims *victims, const struct view *view,
                     const struct event *event);

/* Before the first question of a decision. */
void victims_begin(struct victims *victims);

/*
 * The job with the lowest score that makes room on one node by leaving it, as the plan
 * stands; JOB_NONE: nobody does.
 */
job_id victims_best(struct victims *victims, const struct view *view,
                    const struct plan *plan, const struct job *newcomer);

/* The same by looking at all, whatever order there is: what a choice costs at worst. */
job_id victims_scan(struct victims *victims, const struct view *view,
                    const struct plan *plan, const struct job *newcomer);

/* All who may be revoked, lowest score first: prepare, then one by one. */
void victims_sort(struct victims *victims, const struct view *view,
                  const job_id *running, uint32_t count);
job_id victims_next(struct victims *victims, job_id last);
