/*
 * plan.h - what a policy wants: changes to which job holds what from now on.
 *
 * An empty plan disturbs nothing.  A plan is a target, not a list of orders: the
 * engine works out the orders, in one place, for every policy.  It is also a change
 * set, never a copy of the cluster: what it costs is what it changes.
 *
 * Resources that other jobs are vacating for a job are its pending allocation: they stay its
 * own until it starts or the allocation is dropped, and to all other jobs they are taken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/event.h"
#include "model/view.h"

struct arena;
struct error;
struct plan;
struct state;

/* How a grant may differ from what the job asks for by default. */
struct ask {
    uint32_t gpus;            /* elastic jobs: how many; 0: as submitted             */
    uint32_t types;           /* set of accelerator types allowed; 0: any it runs on */
    bool spread;              /* may be spread over nodes                            */
    bool anywhere;            /* the same, and it counts as not spread               */
    job_id beside;            /* share the GPUs of this job, or JOB_NONE             */
    uint64_t steps_max;       /* lease ends after so many steps; 0: open             */
    bool together;            /* if both partners set it, their leases end           */
                              /* together: when both are done, at the rate of both   */
    const struct bits *avoid; /* nodes not to use, or NULL                           */
};

#define ASK_DEFAULT ((struct ask){ .beside = JOB_NONE })

/*
 * Give 'job' its whole gang, or leave the plan as it was and return false.  Prefers
 * the seats it holds now, then the tightest single node, then as few nodes as can be;
 * of the types allowed the one it runs fastest on.  Takes what is free now before what
 * this plan revokes.  ask may be NULL.
 *
 * Beside another job: that one stays where it is, or has been granted seats by this plan,
 * and has no other partner there.  The job may wait, or run elsewhere: then it moves.  Two
 * partners that both stay are each granted where they are, in any order.  A job that was
 * revoked while its partner stays is granted seats elsewhere unless it asks for that
 * partner.  Jobs that must not share (model/sharing.h) are never put together.
 */
bool plan_grant(struct plan *plan, job_id job, const struct ask *ask);

/* The same, but no other job has to stop for it: on free resources, or on its own. */
bool plan_grant_free(struct plan *plan, job_id job, const struct ask *ask);

/*
 * Preempt a running job; the rule and the beneficiary are for the ledger.  It must not be
 * about to change its size, nor be changed by this plan yet: otherwise the plan is refused.
 */
void plan_revoke(struct plan *plan, job_id job, enum rule rule, job_id beneficiary);

/*
 * Give up on a waiting job: it ends, and counts as failed.  A plan that drops another job, or
 * one that it changes, is refused.
 */
void plan_drop(struct plan *plan, job_id job);

/*
 * Set how much waiting time a revocation is expected to save its beneficiary, for the
 * ledger.  Otherwise that is taken to be what the revoked job had left to run.
 */
void plan_expect(struct plan *plan, job_id job, int64_t wait_saved_ns);

/* Try and take back: everything after the mark is undone, at the cost of what it did. */
size_t plan_mark(const struct plan *plan);
void plan_undo(struct plan *plan, size_t mark);

/* Holds seats once the plan is carried out. */
bool plan_holds(const struct plan *plan, job_id job);

/* Is granted, revoked or moved by this plan. */
bool plan_changes(const struct plan *plan, job_id job);

/* GPUs that are free, or revoked by this plan: no job that asks for more can start. */
uint32_t plan_gpus_left(const struct plan *plan);

static inline bool plan_is_full(const struct plan *plan)
{
    return plan_gpus_left(plan) == 0;
}

/* Something is revoked by this plan and granted to no job yet. */
bool plan_vacates(const struct plan *plan);

/* Ask to be called again at 'at_ns'; the earliest time counts. */
void plan_wake(struct plan *plan, int64_t at_ns);

/* -EPROTO unless every job holds its whole gang, on nodes it may use, or nothing, and only
 * running jobs were revoked, only waiting ones dropped.  Policies err. */
int plan_check(const struct plan *plan, struct error *err);

/* What is free on a node, with what this plan revokes; for choosing victims. */
struct room;
void plan_room(const struct plan *plan, node_id node, struct room *ret_room);

/* The nodes on which this plan revokes jobs, with free and vacated resources together. */
struct free_index;
const struct free_index *plan_vacated(const struct plan *plan);

/* --- for the engine --- */

enum change_kind { CHANGE_REVOKE, CHANGE_GRANT, CHANGE_RENEW, CHANGE_DROP };

struct change {
    enum change_kind kind;
    enum rule rule;
    job_id job;
    job_id beneficiary;
    job_id beside;
    bool spread;
    bool together;
    bool shared; /* a partner is granted these seats as well */
    bool undone; /* a revocation that a later grant took back */
    uint32_t seat_first, seat_count;
    uint32_t pending_first, pending_count;
    uint64_t steps_max;
    int64_t wait_saved_ns; /* expected of a revocation; -1: unknown */
};

/* One plan per engine, used again for every decision. */
struct plan *plan_new(struct state *state, struct arena *run);

/* Empty it for a new decision. */
void plan_begin(struct plan *plan);

/* Put the state's index back as it was; the changes can still be read. */
void plan_end(struct plan *plan);

const struct change *plan_change(const struct plan *plan, size_t index);
size_t plan_change_count(const struct plan *plan);
const struct seat *plan_seats(const struct plan *plan, const struct change *change);
const struct pending_part *plan_pending(const struct plan *plan,
                                        const struct change *change);
int64_t plan_next_wake(const struct plan *plan); /* INT64_MAX: none */
