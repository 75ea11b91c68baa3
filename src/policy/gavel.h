/*
 * gavel.h - shares of time, carried out in rounds: what the gavel policies have in common.
 *
 * Such a policy answers one question, how much of which type each job is due; its file
 * has that and nothing else.  Its private state begins with a struct gavel, and its
 * table names gavel_observe and gavel_decide, which see to the rest: when to ask again,
 * who runs in the next round, and where.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/param.h"
#include "policy/policy.h"
#include "solve/programme.h"

/* The question, and where the answer goes. */
struct gavel_call {
    const struct view *view;
    uint32_t job_count;
    const job_id *jobs; /* who waits or runs, in order of arrival                  */
    uint32_t type_count;
    const double *capacity; /* [type] accelerators there are                       */
    const double *gang;     /* [job]                                               */
    const double *rate;     /* [job][type] steps per second; 0: cannot run there   */
    const double *steps;    /* [job] left                                          */
    const double *age_s;    /* [job] since it came                                 */

    /* sharing: who may share with whom */
    uint32_t pair_count;
    const struct programme_pair *pairs; /* places in 'jobs'                        */
    const double *pair_rate;            /* [pair][type][2]                         */

    double *x; /* [job, then pair][type]: zeroed, to be filled */
    struct arena *scratch;
};

struct gavel_rule {
    /* Fill call->x.  On failure the shares stay as they were. */
    int (*shares)(void *self, struct gavel_call *call, struct error *err);
    bool strict; /* who has no share does not run, even where there is room */
};

struct gavel_round; /* the mechanism's own state */

/* What the private state of every such policy begins with. */
struct gavel {
    const struct gavel_rule *rule;
    struct gavel_round *round;

    /* settings */
    bool aware;      /* rates of the types are known and used   */
    bool sharing;    /* two jobs may share accelerators         */
    uint32_t compat; /* enum gavel_compat                       */
    int64_t round_ns;
};

enum gavel_compat { COMPAT_NONE, COMPAT_RELEASED };

int gavel_init(struct gavel *gavel, const struct gavel_rule *rule,
               const struct view *view, uint64_t seed, struct arena *run,
               struct error *err);
void gavel_observe(void *self, const struct view *view, const struct event *event);
int gavel_decide(void *self, const struct view *view, struct plan *plan,
                 struct arena *scratch, struct error *err);
void gavel_fini(void *self);
