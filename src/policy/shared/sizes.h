/*
 * sizes.h - waiting jobs in one order per distinct demand.
 *
 * Jobs that ask for the same fit or do not fit together, so a decision looks at the
 * first of each size only, however long the queue.
 *
 *     while ((job = sizes_best(&sizes)) != JOB_NONE)
 *         if (plan_grant(plan, job, NULL))
 *             sizes_take(&sizes, job);    it will be placed: on to the next of its size
 *         else
 *             sizes_skip(&sizes, job);    nobody of its size fits now
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
    struct tree_pool job_pool;  /* by slot                             */
    struct heap_pool size_pool; /* by size                             */
    struct heap heads;          /* sizes by the key of their first job */
    struct size *all;
    uint32_t size_used;
    uint32_t size_free;
    struct map found;  /* hash of a demand to its size                 */
    uint32_t *size_of; /* by slot; UINT32_MAX: not inside              */
    uint32_t *skipped; /* sizes set aside in this decision             */
    uint32_t skipped_count;
    struct sizes_taken {
        job_id job;
        uint32_t generation;
        int64_t key, value;
    } * taken; /* out of the order in this decision */
    uint32_t taken_count;
    uint32_t job_count;
    uint32_t cpu_only_count; /* of them, those that ask for no accelerator */
};

void sizes_init(struct sizes *sizes, struct arena *run, uint32_t job_max);
void sizes_release(struct sizes *sizes);

/*
 * Smallest key first, then the lower public id.  'value' is what sizes_narrow() goes
 * by.  Does not mind a job that is inside.
 */
void sizes_push(struct sizes *sizes, const struct view *view, job_id job, int64_t key,
                int64_t value);

/* Does not mind one that is not inside. */
void sizes_remove(struct sizes *sizes, const struct view *view, job_id job);

/*
 * Begin a decision: what the last one took and was not placed after all (its plan was
 * refused) is back.
 */
void sizes_begin(struct sizes *sizes, const struct view *view);

/* The first of all sizes that are not set aside; JOB_NONE: no more. */
job_id sizes_best(const struct sizes *sizes);
int64_t sizes_key(const struct sizes *sizes, job_id job);
int64_t sizes_value(const struct sizes *sizes, job_id job);
void sizes_take(struct sizes *sizes, const struct view *view, job_id job);
void sizes_skip(struct sizes *sizes, job_id job);

/* Of this job's size only those whose value is at most 'limit' are still looked at. */
void sizes_narrow(struct sizes *sizes, job_id job, int64_t limit);

/* End a decision: nothing is set aside any more. */
void sizes_unskip(struct sizes *sizes);

/* All whose key is smaller than that of 'job'; how many there are. */
uint32_t sizes_ahead(const struct sizes *sizes, const struct view *view, job_id job,
                     struct reasons *reasons);

/* The same in words, where keys are times: it comes after those who have less left. */
void sizes_explain_left(const struct sizes *sizes, const struct view *view, job_id job,
                        struct reasons *reasons);
