/*
 * evict.h - make room for one job by revoking others, in a given order of preference.
 *
 * Walks the candidates in the policy's order and adds up, node by node, what would be
 * free if they left, until some node (or enough nodes) could hold the newcomer.  Only
 * those who are really in the way are revoked: whoever turns out not to be needed
 * stays.  If all candidates together do not make room, nobody is touched.
 *
 * A walk in vain is remembered.  It need not be done again for a newcomer of the same
 * size and no stronger claim until somebody has left who was not a candidate, and then
 * only the nodes that were left have to be looked at.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/plan.h"

struct arena;
struct evict_memo;
struct evict_stay;
struct room;

/* Who may be revoked, as the policy sees it. */
struct evict_rule {
    enum rule rule;

    /* The candidate after 'last' (JOB_NONE: the first), best first; JOB_NONE: no more. */
    job_id (*next)(const void *self, job_id last, int64_t claim);

    /* Whether a running job is a candidate for a newcomer with this claim.  What is
     * one for a claim is one for every smaller number as well. */
    bool (*yields)(const void *self, job_id job, int64_t claim);
};

struct evict {
    const struct evict_rule *rule;
    const void *self;   /* the policy's */
    struct room *rooms; /* by node: free, and held by candidates seen so far */
    uint32_t *seen;     /* by node: the walk in which 'rooms' was set        */
    uint32_t walk;
    job_id *victims; /* candidates in order */
    uint32_t victim_count;

    struct evict_stay *stays; /* who is on which node                       */
    uint32_t stay_used, stay_free;
    uint32_t *on_node; /* first stay, by node; UINT32_MAX: none      */
    uint32_t *of_job;  /* first stay, by slot; UINT32_MAX: none      */

    bool *promised; /* by slot: waited for others to leave        */

    node_id *left; /* nodes that somebody has left, newest last: a ring */
    uint64_t left_count;
    struct evict_memo *memos; /* walks in vain, by a hash of the size */
    uint32_t era;             /* memos of another era are void        */
};

void evict_init(struct evict *evict, struct arena *run, const struct view *view,
                const struct evict_rule *rule, const void *self);

/* To be told of every event, after the policy has brought its own order up to date. */
void evict_observe(struct evict *evict, const struct view *view,
                   const struct event *event);

/* A running job has become a candidate for claims for which it was none. */
void evict_touch(struct evict *evict, job_id job);

/* True if 'job' has been granted its seats; 'claim' is what 'next' and 'yields' get. */
bool evict_for(struct evict *evict, const struct view *view, struct plan *plan,
               job_id job, int64_t claim);
