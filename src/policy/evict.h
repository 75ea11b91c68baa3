/*
 * evict.h - make room for one job by revoking others, in a given order of preference.
 *
 * Walks the candidates in the policy's order and adds up, node by node, what would be
 * free if they left, until some node (or enough nodes) could hold the newcomer.  Only
 * those who are really in the way are revoked: whoever turns out not to be needed
 * stays.  If all candidates together do not make room, nobody is touched.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/plan.h"

struct arena;
struct room;

struct evict {
    struct room *rooms; /* by node: free, and held by candidates seen so far */
    uint32_t *seen;     /* by node: the walk in which 'rooms' was set        */
    uint32_t walk;
    job_id *victims; /* candidates in order */
    uint32_t victim_count;
};

void evict_init(struct evict *evict, struct arena *run, const struct view *view);

/*
 * 'next' yields the candidate after 'last' (JOB_NONE: the first), best first, and
 * JOB_NONE when there are no more.  True if 'job' has been granted its seats.
 */
bool evict_for(struct evict *evict, const struct view *view, struct plan *plan,
               job_id job, enum rule rule, job_id (*next)(void *context, job_id last),
               void *context);
