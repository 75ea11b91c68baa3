/* plan_fixture.h - short functions for tests of plans. */
#pragma once

#include "support/world.h"

static inline struct bits nodes_but(struct world *w, node_id node)
{
    struct bits avoid;
    bits_init(&avoid, &w->arena, w->cluster.node_count);
    for (node_id n = 0; n < w->cluster.node_count; n++)
        if (n != node)
            bits_set(&avoid, n);
    return avoid;
}

static inline bool grant_job(struct world *w, job_id job)
{
    return plan_grant(w->plan, job, NULL);
}

static inline bool grant_gpus(struct world *w, job_id job, uint32_t gpus)
{
    struct ask ask = ASK_DEFAULT;
    ask.gpus = gpus;
    return plan_grant(w->plan, job, &ask);
}

static inline bool grant_beside(struct world *w, job_id job, job_id other)
{
    struct ask ask = ASK_DEFAULT;
    ask.beside = other;
    return plan_grant(w->plan, job, &ask);
}

static inline void revoke_job(struct world *w, job_id job)
{
    plan_revoke(w->plan, job, RULE_ORDER, JOB_NONE);
}

static inline node_id node_of(struct world *w, job_id job)
{
    return view_seats(&w->state.view, job)->node;
}

static inline uint32_t gpus_on(const struct world *w, job_id job, uint32_t seat)
{
    return seat_gpu_count(world_seat(w, job, seat));
}

/* Start a job that the plan has granted and that waits for no other job. */
static inline void start_job(struct world *w, job_id job)
{
    assert_true(world_apply(
        w, (struct event){ .kind = EVENT_STARTED, .job = job, .loaded = true }));
}
