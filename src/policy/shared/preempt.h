/*
 * preempt.h - make room for one job by preempting others, in the policy's order.
 *
 * The candidates are visited in the policy's order, and what would be free without them
 * is added up node by node, until one node (or enough nodes) could hold the
 * beneficiary.  Only candidates with GPUs that it needs are revoked.  If preempting all
 * candidates would not make room, none is.
 *
 * A failed search is remembered.  It is not repeated for a job of the same size and an
 * equal or weaker claim until a job that was not a candidate has vacated a node, and
 * then only vacated nodes are examined.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/plan.h"

struct arena;
struct bits;
struct preempt_memo;
struct preempt_share;
struct room;

/* Which jobs a policy lets be preempted. */
struct preempt_rule {
    enum rule rule;

    /* The candidate after 'last' (JOB_NONE: the first), best first; JOB_NONE: no more. */
    job_id (*next)(const void *self, job_id last, int64_t claim);

    /*
     * Whether a running job may be preempted for this claim.  If so, it may be for
     * every smaller claim as well.
     */
    bool (*may_preempt)(const void *self, job_id job, int64_t claim);
};

struct preempt {
    const struct preempt_rule *rule;
    const void *self;         /* the policy's state */
    const struct bits *avoid; /* nodes not to vacate or use, or NULL */
    struct room *rooms; /* by node: free, or held by the candidates visited so far */
    uint32_t *seen;     /* by node: the search in which 'rooms' was set */
    uint32_t walk;
    bool lacks_room; /* why the last search failed: see preempt_for() */
    job_id *victims; /* the candidates visited, in order */
    uint32_t victim_count;
    uint32_t *walked; /* by slot: the search in which it was visited last */

    struct preempt_share *shares; /* which job holds what on which node */
    uint32_t share_used, share_free;
    uint32_t *on_node; /* first share, by node; UINT32_MAX: none */
    uint32_t *of_job;  /* first share, by slot; UINT32_MAX: none */

    bool *was_pending;  /* by slot: it was placed on GPUs still to be vacated */
    int64_t *placed_ns; /* by slot: when it was */

    node_id *vacated; /* ring of the nodes vacated, newest last */
    uint64_t vacated_count;
    struct preempt_memo *memos; /* failed searches, by a hash of the size */
    uint32_t era;               /* memos of another era are invalid */
};

void preempt_init(struct preempt *preempt, struct arena *run, const struct view *view,
                  const struct preempt_rule *rule, const void *self);

/* Must see every event, after the policy has updated its own order. */
void preempt_observe(struct preempt *preempt, const struct view *view,
                     const struct event *event);

/* A running job may now be preempted for claims for which it could not be before. */
void preempt_touch(struct preempt *preempt, job_id job);

/*
 * True if the plan now grants the job; 'claim' is passed to 'next' and 'may_preempt'.  If
 * not, 'lacks_room' says whether all candidates together hold too little.  Then a search
 * fails as well for a job that asks for as much of everything or more, with an equal or
 * weaker claim, until the plan vacates more.
 */
bool preempt_for(struct preempt *preempt, const struct view *view, struct plan *plan,
                 job_id job, int64_t claim);

/*
 * Walk the jobs that hold resources on a node: 'cursor' starts with UINT32_MAX.  JOB_NONE: no
 * more.
 */
job_id preempt_next_on_node(const struct preempt *preempt, node_id node,
                            uint32_t *cursor, struct room_part *ret_part);
