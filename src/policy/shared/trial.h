/*
 * trial.h - two queues, trial jobs before the others: what fitgpp, lrtp and rand share.
 *
 * A decision first looks at the trial jobs in order of submission.  One that does not fit
 * asks the policy to make room for it.  Only when no trial job is left looking for room do
 * best-effort jobs start, strictly in order, in room that is free now.
 *
 * Best-effort jobs start in order of submission, so whoever is preempted was submitted
 * before all who still wait for their first start: kept in order of submission, the queue
 * has victims at its front, and among victims the older one first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "policy/shared/evict.h"
#include "policy/shared/gate.h"
#include "policy/shared/queue.h"
#include "policy/shared/sizes.h"

struct arena;
struct reasons;

/*
 * The running best-effort job to revoke after 'last' (JOB_NONE: the first of a new round);
 * JOB_NONE: no more.  Called with the policy's self.
 */
typedef job_id trial_order(void *self, job_id last);

/* Revoke others so that 'job' is granted its seats, or change nothing: the policy's rule. */
typedef bool trial_make_room(void *self, const struct view *view, struct plan *plan,
                             job_id job);

struct trial {
    void *self;           /* the policy's                                         */
    trial_order *order;   /* whom trial_clear() revokes; may be set before a call */
    uint32_t preempt_max; /* whoever was preempted so often is safe; 0: nobody is */
    bool spare; /* trial_clear() spares whose room turned out not to be needed */

    struct gate gate; /* its choice is set before; asked about every preemption */

    struct sizes trials; /* waiting, by submission */
    struct queue others;

    job_id *running; /* best effort, may be revoked: in no order that means anything */
    uint32_t *place; /* in 'running', by slot; UINT32_MAX: not inside                */
    uint32_t running_count;
    uint32_t drawn_count; /* at the front of 'running': drawn in this round          */
    struct rng rng;
    struct evict evict;
};

/* 'self', 'order', 'preempt_max', 'spare' and the gate's choice are set before. */
void trial_init(struct trial *trial, struct arena *run, const struct view *view,
                uint64_t seed);
void trial_release(struct trial *trial);

/* To be told of every event, after the policy has brought its own order up to date. */
void trial_observe(struct trial *trial, const struct view *view,
                   const struct event *event);

/* The whole decision. */
void trial_decide(struct trial *trial, const struct view *view, struct plan *plan,
                  trial_make_room *make_room);

/* Revoke one after another, as 'order' says, until 'job' fits; nobody if it never does. */
bool trial_clear(struct trial *trial, const struct view *view, struct plan *plan,
                 job_id job);

/* A running best-effort job that may be revoked. */
static inline bool trial_yields(const struct trial *trial, job_id job)
{
    return trial->place[job] != UINT32_MAX;
}

static inline bool trial_is_safe(const struct trial *trial, const struct job *job)
{
    return trial->preempt_max && job->preemptions >= trial->preempt_max;
}

/* The next of 'running', drawn at random, without repetition within a round. */
job_id trial_draw(struct trial *trial, job_id last);

/* For 'explain' of a policy that begins to wait in here. */
void trial_explain(const struct trial *trial, const struct view *view, job_id job,
                   struct reasons *reasons);
