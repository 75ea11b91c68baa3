/*
 * trial.h - two queues, trial jobs before the others: what fitgpp, lrtp and rand share.
 *
 * A decision first visits the trial jobs in order of submission.  For one that does not
 * fit, the policy is asked to make room.  Only when no trial job still needs room do
 * best-effort jobs start, strictly in order, on GPUs that are free now.
 *
 * Best-effort jobs start in order of submission, so a preempted job was submitted
 * before all that still wait for their first start: in a queue ordered by submission,
 * victims are at the front, the older ones first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "policy/shared/preempt.h"
#include "policy/shared/cost_test.h"
#include "policy/shared/fifo_queue.h"
#include "policy/shared/sizes.h"

struct arena;
struct error;
struct reasons;

/*
 * Functions of a policy are called with its state, which begins with its trial_queues.
 *
 * The running best-effort job to preempt after 'last' (JOB_NONE: the first of a new
 * round); JOB_NONE: no more.
 */
typedef job_id trial_order(void *self, job_id last);

/* The policy's rule: preempt jobs so that 'job' is granted, or change nothing. */
typedef bool trial_make_room(void *self, const struct view *view, struct plan *plan,
                             job_id job);

struct trial_queues {
    trial_order
        *order; /* of trial_preempt_until_fits(); may be changed before a call */
    trial_make_room *make_room;
    uint32_t preempt_max; /* jobs preempted this often are protected; 0: none */
    bool spare;           /* trial_preempt_until_fits() spares jobs not in the way */

    struct cost_test cost_test; /* tests every preemption; its choice is set before */

    struct sizes trials; /* waiting, by submission */
    struct fifo_queue others;

    job_id *running; /* preemptible best-effort jobs, in arbitrary order */
    uint32_t *place; /* by slot: index in 'running'; UINT32_MAX: not in it */
    uint32_t running_count;
    uint32_t drawn_count; /* at the front of 'running': those drawn in this round */
    struct rng rng;
    struct preempt preempt;
};

/* The settings of policies that preempt until the job fits. */
extern const struct field trial_params[];

/*
 * 'preempt_max', 'spare' and the cost test's choice are set before.  'make_room' is often
 * trial_preempt_until_fits().
 */
void trial_init(struct trial_queues *trial, trial_order *order,
                trial_make_room *make_room, struct arena *run, const struct view *view,
                uint64_t seed);

/*
 * The functions of a policy.  If it has its own, they call these: trial_observe() for
 * every event, after the policy has updated its own order.
 */
void trial_observe(void *self, const struct view *view, const struct event *event);
int trial_decide(void *self, const struct view *view, struct plan *plan,
                 struct arena *scratch, struct error *err);
void trial_explain(const void *self, const struct view *view, job_id job,
                   struct reasons *reasons);
void trial_fini(void *self);

/* Preempt jobs in the given order until 'job' fits; none if it never does. */
bool trial_preempt_until_fits(void *self, const struct view *view, struct plan *plan,
                              job_id job);

/* Whether the job is a running best-effort job that may be preempted. */
static inline bool trial_may_preempt(const struct trial_queues *trial, job_id job)
{
    return trial->place[job] != UINT32_MAX;
}

static inline bool trial_is_safe(const struct trial_queues *trial,
                                 const struct job *job)
{
    return trial->preempt_max && job->preemptions >= trial->preempt_max;
}

/* The next of 'running', drawn at random without repetition within a round. */
job_id trial_draw(void *self, job_id last);
