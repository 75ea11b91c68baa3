/* fuzz_policy.c - a policy that makes random plans. */
#include "support/fuzz_policy.h"

#include "base/arena.h"
#include "base/bits.h"
#include "base/rng.h"
#include "model/cluster.h"

#define FUZZ_DECISIONS 300

struct fuzz_policy {
    struct rng rng;
    uint32_t decisions;
    struct bits avoid;
};

static int fuzz_policy_init(void *self, const struct view *view, uint64_t seed,
                            struct arena *run, struct error *err)
{
    struct fuzz_policy *fuzz = self;
    rng_init(&fuzz->rng, seed, "wild");
    bits_init(&fuzz->avoid, run, view->cluster->node_count);
    return 0;
}

static job_id draw_job(struct fuzz_policy *fuzz, const struct view *view)
{
    for (int i = 0; i < 8; i++) {
        job_id job = rng_below(&fuzz->rng, view->job_max);
        if (view->jobs[job].state != JOB_FREE)
            return job;
    }
    return JOB_NONE;
}

static void grant_at_random(struct fuzz_policy *fuzz, const struct view *view,
                            struct plan *plan, job_id job)
{
    struct rng *rng = &fuzz->rng;
    const struct job *j = &view->jobs[job];
    struct ask ask = ASK_DEFAULT;
    if (job_is_elastic(j) && rng_below(rng, 2))
        ask.gpus = j->gpus_min + rng_below(rng, j->gpus_max - j->gpus_min + 1);
    if (rng_below(rng, 4) == 0)
        ask.types = (uint32_t)1 << rng_below(rng, view->cluster->type_count);
    ask.spread = rng_below(rng, 3) == 0;
    if (rng_below(rng, 3) == 0)
        ask.beside = draw_job(fuzz, view);
    if (rng_below(rng, 3) == 0)
        ask.steps_max = 1 + rng_below(rng, 50);
    ask.together = rng_below(rng, 2);
    plan_grant(plan, job, &ask);
}

/* Move a pair of jobs to other GPUs together, if possible. */
static void move_pair(struct fuzz_policy *fuzz, const struct view *view,
                      struct plan *plan, job_id job)
{
    job_id partner = view->jobs[job].partner;
    if (partner == JOB_NONE || !job_is_preemptible(&view->jobs[job]) ||
        !job_is_preemptible(&view->jobs[partner]))
        return;
    struct ask ask = ASK_DEFAULT;
    node_id here = view_seats(view, job)->node;
    bits_set(&fuzz->avoid, here);
    ask.avoid = &fuzz->avoid;
    size_t mark = plan_mark(plan);
    bool moved = plan_grant(plan, job, &ask);
    ask.beside = job;
    if (!moved || !plan_grant(plan, partner, &ask))
        plan_undo(plan, mark);
    bits_clear(&fuzz->avoid, here);
}

/*
 * As at the end of a round: keep or revoke each running job, in any order; then place jobs
 * alone, beside their partner, or beside another job.
 */
static void reshuffle(struct fuzz_policy *fuzz, const struct view *view,
                      struct plan *plan)
{
    struct rng *rng = &fuzz->rng;
    for (job_id job = 0; job < view->job_max; job++)
        if (rng_below(rng, 2) && !plan_changes(plan, job))
            move_pair(fuzz, view, plan, job);
    for (job_id job = 0; job < view->job_max; job++)
        if (!plan_changes(plan, job) && job_is_preemptible(&view->jobs[job]) &&
            rng_below(rng, 2))
            plan_revoke(plan, job, RULE_ROUND, JOB_NONE);
    job_id last = JOB_NONE; /* placed last */
    uint32_t first = rng_below(rng, view->job_max);
    for (uint32_t i = 0; i < view->job_max; i++) {
        job_id job = (first + i) % view->job_max;
        const struct job *j = &view->jobs[job];
        if (j->state == JOB_FREE || rng_below(rng, 4) == 0)
            continue;
        struct ask ask = ASK_DEFAULT;
        uint32_t how = rng_below(rng, 4);
        ask.beside = how == 0                             ? last
                     : how == 1 && j->partner != JOB_NONE ? j->partner
                     : how == 2                           ? draw_job(fuzz, view)
                                                          : JOB_NONE;
        ask.together = rng_below(rng, 2);
        ask.steps_max = 1 + rng_below(rng, 50);
        size_t mark = plan_mark(plan);
        if (plan_grant(plan, job, &ask))
            last = job;
        if (rng_below(rng, 10) == 0)
            plan_undo(plan, mark);
    }
}

/* After the random decisions: grant each job what it requests, so that all can end. */
static void grant_all(const struct view *view, struct plan *plan)
{
    for (job_id job = 0; job < view->job_max; job++)
        if (view->jobs[job].state == JOB_WAITING || view->jobs[job].state == JOB_IDLE)
            plan_grant(plan, job, NULL);
}

static int fuzz_policy_decide(void *self, const struct view *view, struct plan *plan,
                              struct arena *scratch, struct error *err)
{
    struct fuzz_policy *fuzz = self;
    if (fuzz->decisions++ >= FUZZ_DECISIONS) {
        grant_all(view, plan);
        return 0;
    }
    if (rng_below(&fuzz->rng, 8) == 0) {
        reshuffle(fuzz, view, plan);
        plan_wake(plan, view->now_ns + 1 + rng_below(&fuzz->rng, 2000000000));
        return 0;
    }
    uint32_t tries = rng_below(&fuzz->rng, 6);
    for (uint32_t i = 0; i < tries; i++) {
        job_id job = draw_job(fuzz, view);
        if (job == JOB_NONE)
            break;
        size_t mark = plan_mark(plan);
        if (rng_below(&fuzz->rng, 3) == 0 && job_is_preemptible(&view->jobs[job]) &&
            !plan_changes(plan, job))
            plan_revoke(plan, job, RULE_ORDER, JOB_NONE);
        else
            grant_at_random(fuzz, view, plan, job);
        if (rng_below(&fuzz->rng, 4) == 0)
            plan_undo(plan, mark);
    }
    plan_wake(plan, view->now_ns + 1 + rng_below(&fuzz->rng, 2000000000));
    return 0;
}

const struct policy policy_fuzz = {
    .name = "wild",
    .self_size = sizeof(struct fuzz_policy),
    .init = fuzz_policy_init,
    .decide = fuzz_policy_decide,
};
