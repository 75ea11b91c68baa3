/*
 * victims.h - running best-effort jobs by what would be free if one of them was
 * preempted.
 *
 *     reach(j, n) = free on node n + what j holds there
 *     Score(j)    = Size(D_j) / Size_max + s * GP_j / GP_max
 *
 * Preempting job j alone makes room on n if reach(j, n) holds the beneficiary; of those
 * jobs the one with the lowest score is chosen.  Reaches are kept in plain arrays, one
 * entry per job and node, and refreshed for nodes on which something changed, so a
 * choice is one pass over them that compilers vectorize.
 *
 * Where the maxima are fixed, scores do not change while a job runs: then jobs are also
 * kept in a tree by score, and a choice tries the first few before it scans all.
 *
 * Scores are compared in single precision; ties go to the lower public id.
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
struct victims_share;

/* Entries of the nodes of one type, as parallel arrays. */
struct victims_pool {
    float *size, *grace_s;
    int32_t *gpus, *cpu_milli, *mem_mib; /* the reach; gpus -1: not preemptible */
    int32_t *age;                        /* public id, at most INT32_MAX */
    uint32_t *share;                     /* index into 'shares' */
    int32_t *block_best;                 /* lowest score in a block, as bits */
    uint32_t count;
};

struct victims {
    /* set before victims_init() */
    double s;
    uint32_t preempt_max; /* jobs preempted this often are protected; 0: none */
    bool fixed;           /* the maxima are a full node and 'grace_max_ns' */
    int64_t grace_max_ns;

    struct victims_pool pools[TYPES_MAX + 1]; /* by node type */
    struct victims_share *shares;
    uint32_t share_used, share_free;
    uint32_t *on_node, *of_job; /* first share; UINT32_MAX: none */

    node_id *stale; /* nodes with outdated entries */
    node_id *moved; /* nodes changed by the current plan */
    uint32_t stale_count, moved_count;
    uint8_t *listed; /* by node: which of these two lists it is in */
    size_t change_seen;

    /*
     * all running best-effort jobs, protected ones included: the maxima are over them
     */
    struct heap_pool size_pool, grace_pool;
    struct heap sizes, graces;
    bool *counted; /* by slot */

    struct tree_pool tree_pool;
    struct tree by_score; /* with fixed maxima: the preemptible jobs */
    bool *ordered;        /* by slot: is in the tree */

    struct sort_item *items, *item_scratch; /* for victims_sort() */
    uint32_t item_count, item_next;
};

void victims_init(struct victims *victims, struct arena *run, const struct view *view);

/* Must see every event. */
void victims_observe(struct victims *victims, const struct view *view,
                     const struct event *event);

/* Call at the beginning of a decision. */
void victims_begin(struct victims *victims);

/*
 * The job with the lowest score that, preempted alone, makes room on one node, given
 * the plan so far; JOB_NONE: there is none.
 */
job_id victims_best(struct victims *victims, const struct view *view,
                    const struct plan *plan, const struct job *beneficiary);

/* The same by scanning all entries: the worst case of a choice. */
job_id victims_scan(struct victims *victims, const struct view *view,
                    const struct plan *plan, const struct job *beneficiary);

/*
 * Visit all preemptible jobs, lowest score first: sort, then ask for one after the
 * other.
 */
void victims_sort(struct victims *victims, const struct view *view,
                  const job_id *running, uint32_t count);
job_id victims_next(struct victims *victims, job_id last);
