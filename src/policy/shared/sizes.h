/*
 * sizes.h - waiting jobs in one order per distinct demand.
 *
 * Jobs with the same demand fit or do not fit alike, so a decision tries only the first
 * job of each size, however long the queue is.
 *
 *     while ((job = sizes_best(&sizes)) != JOB_NONE)
 *         if (plan_grant(plan, job, NULL))
 *             sizes_take(&sizes, view, job);        it starts: on to the next of its size
 *         else
 *             sizes_skip_larger(&sizes, view, job); nor does what needs as much or more
 *     sizes_unskip(&sizes);
 *
 * Sizes that differ in CPUs and memory only are a group, with a tree (demand_tree.h) that
 * passes over those that need no less than one that did not fit.  So where nearly every
 * job has a demand of its own, a decision still tries few of them.
 */
#pragma once

#include <stdint.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/tree.h"
#include "model/view.h"
#include "policy/shared/demand_tree.h"

struct arena;
struct reasons;
struct size;
struct size_group;

#define SIZES_IDLE_MAX 32

struct sizes {
    struct tree_pool job_pool;    /* by slot */
    struct demand_pool size_pool; /* by size */
    struct heap_pool group_pool;  /* by group */
    struct heap heads;            /* groups by the key of their best job */
    struct size *all;
    struct size_group *groups; /* sizes that differ in CPUs and memory only */
    uint32_t size_used, group_used;
    uint32_t size_free, group_free;
    struct map found, groups_found; /* hash of a demand to its size or group */
    uint32_t
        idle[SIZES_IDLE_MAX]; /* a ring of sizes that had no job; UINT32_MAX: none */
    uint32_t idle_count;      /* how many were put there */
    uint32_t *size_of; /* by slot: index of its size plus 1; 0: not waiting here */
    uint32_t decision; /* number of this one */
    uint32_t *narrowed, *touched; /* sizes and groups to be restored at its end */
    uint32_t narrowed_count, touched_count;
    struct sizes_taken {
        job_id job;
        uint32_t generation;
        int64_t key, value;
    } * taken; /* removed from the order in this decision */
    uint32_t taken_count;
    uint32_t job_count;
    uint32_t cpu_only_count; /* those of them that ask for no GPU */
};

void sizes_init(struct sizes *sizes, struct arena *run, uint32_t job_max);

/* This and sizes_explain_left() can be functions of a policy that begins with its sizes. */
void sizes_release(void *self);

/*
 * Smallest key first, then the lower public id.  'value' is compared by sizes_narrow().
 * Pushing a job that is already in changes nothing.
 */
void sizes_push(struct sizes *sizes, const struct view *view, job_id job, int64_t key,
                int64_t value);

/* Removing a job that is not in changes nothing. */
void sizes_remove(struct sizes *sizes, const struct view *view, job_id job);

/*
 * Begin a decision.  Jobs that the last decision took but that were not placed, because
 * its plan was refused, are put back.
 */
void sizes_put_back(struct sizes *sizes, const struct view *view);

static inline void sizes_begin(struct sizes *sizes, const struct view *view)
{
    if (sizes->taken_count > 0)
        sizes_put_back(sizes, view);
}

/* The first job of all sizes not skipped; JOB_NONE: no more. */
job_id sizes_best(const struct sizes *sizes);
int64_t sizes_key(const struct sizes *sizes, job_id job);
int64_t sizes_value(const struct sizes *sizes, job_id job);
void sizes_take(struct sizes *sizes, const struct view *view, job_id job);
void sizes_skip(struct sizes *sizes, job_id job);

/*
 * The same where the job did not fit, and no other job that asks for as much or more would
 * have: not at this job's place in the order or behind it, until resources are vacated.
 * Sizes that differ in CPUs and memory only are skipped with it.
 */
void sizes_skip_larger(struct sizes *sizes, const struct view *view, job_id job);

/* Resources were vacated for this job, which comes next: try what was skipped as larger. */
void sizes_vacated(struct sizes *sizes, job_id job);

/* Consider only jobs of this job's size with a value of at most 'limit'. */
void sizes_narrow(struct sizes *sizes, job_id job, int64_t limit);

/* End a decision: no size is skipped or narrowed any more. */
void sizes_restore(struct sizes *sizes);

static inline void sizes_unskip(struct sizes *sizes)
{
    if (sizes->narrowed_count + sizes->touched_count > 0)
        sizes_restore(sizes);
}

/* Add all jobs with a smaller key to 'reasons'; returns their number. */
uint32_t sizes_ahead(const struct sizes *sizes, const struct view *view, job_id job,
                     struct reasons *reasons);

/* The same with a sentence, where keys are remaining times. */
void sizes_explain_left(const void *self, const struct view *view, job_id job,
                        struct reasons *reasons);
