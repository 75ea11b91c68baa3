/*
 * sizes.h - waiting jobs in one order per distinct demand.
 *
 * Jobs with the same demand fit or do not fit alike, so a decision tries only the first
 * job of each size, however long the queue is.
 *
 *     while ((job = sizes_best(&sizes)) != JOB_NONE)
 *         if (plan_grant(plan, job, NULL))
 *             sizes_take(&sizes, view, job);  it will start: on to the next of its size
 *         else
 *             sizes_skip(&sizes, job);        no job of its size fits now
 *     sizes_unskip(&sizes);
 */
#pragma once

#include <stdint.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/tree.h"
#include "model/view.h"

struct arena;
struct reasons;
struct size;

struct sizes {
    struct tree_pool job_pool;  /* by slot */
    struct heap_pool size_pool; /* by size */
    struct heap heads;          /* sizes by the key of their first job */
    struct size *all;
    uint32_t size_used;
    uint32_t size_free;
    struct map found;  /* hash of a demand to its size */
    uint32_t *size_of; /* by slot: index of its size plus 1; 0: not waiting here */
    uint32_t *skipped; /* sizes skipped or narrowed in this decision */
    uint32_t skipped_count;
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

/* Consider only jobs of this job's size with a value of at most 'limit'. */
void sizes_narrow(struct sizes *sizes, job_id job, int64_t limit);

/* End a decision: no size is skipped or narrowed any more. */
void sizes_restore(struct sizes *sizes);

static inline void sizes_unskip(struct sizes *sizes)
{
    if (sizes->skipped_count > 0)
        sizes_restore(sizes);
}

/* Add all jobs with a smaller key to 'reasons'; returns their number. */
uint32_t sizes_ahead(const struct sizes *sizes, const struct view *view, job_id job,
                     struct reasons *reasons);

/* The same with a sentence, where keys are remaining times. */
void sizes_explain_left(const void *self, const struct view *view, job_id job,
                        struct reasons *reasons);
