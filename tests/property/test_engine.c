/*
 * The engine under a policy that does everything at random: grants of any size and type,
 * beside others, with leases; revocations, moves, resizes; in worlds with and without
 * faults.  The books are checked after every event, and everything comes to its end once
 * the policy turns reasonable.
 */
#include "support/worlds.h"

#include "base/rng.h"
#include "model/plan.h"

#ifndef SEEDS
#define SEEDS 150
#endif
#define JOBS 40
#define WILD_DECISIONS 300

struct wild {
    struct rng rng;
    uint32_t decisions;
};

static int wild_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct wild *wild = self;
    rng_init(&wild->rng, seed, "wild");
    return 0;
}

static job_id any_job(struct wild *wild, const struct view *view)
{
    for (int i = 0; i < 8; i++) {
        job_id job = rng_below(&wild->rng, view->job_max);
        if (view->jobs[job].state != JOB_FREE)
            return job;
    }
    return JOB_NONE;
}

static void grant_somehow(struct wild *wild, const struct view *view, struct plan *plan,
                          job_id job)
{
    struct rng *rng = &wild->rng;
    const struct job *j = &view->jobs[job];
    struct ask ask = ASK_DEFAULT;
    if (job_is_elastic(j) && rng_below(rng, 2))
        ask.gpus = j->gpus_min + rng_below(rng, j->gpus_max - j->gpus_min + 1);
    if (rng_below(rng, 4) == 0)
        ask.types = (uint32_t)1 << rng_below(rng, view->cluster->type_count);
    ask.spread = rng_below(rng, 3) == 0;
    if (rng_below(rng, 3) == 0)
        ask.beside = any_job(wild, view);
    if (rng_below(rng, 3) == 0)
        ask.steps_max = 1 + rng_below(rng, 50);
    plan_grant(plan, job, &ask);
}

/* In the end everybody is to get what he asks for, and nobody is to idle. */
static void be_reasonable(const struct view *view, struct plan *plan)
{
    for (job_id job = 0; job < view->job_max; job++)
        if (view->jobs[job].state == JOB_WAITING || view->jobs[job].state == JOB_IDLE)
            plan_grant(plan, job, NULL);
}

static int wild_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct wild *wild = self;
    if (wild->decisions++ >= WILD_DECISIONS) {
        be_reasonable(view, plan);
        return 0;
    }
    uint32_t tries = rng_below(&wild->rng, 6);
    for (uint32_t i = 0; i < tries; i++) {
        job_id job = any_job(wild, view);
        if (job == JOB_NONE)
            break;
        size_t mark = plan_mark(plan);
        if (rng_below(&wild->rng, 3) == 0 && job_may_leave(&view->jobs[job]) &&
            !plan_changes(plan, job))
            plan_revoke(plan, job, RULE_ORDER, JOB_NONE);
        else
            grant_somehow(wild, view, plan, job);
        if (rng_below(&wild->rng, 4) == 0)
            plan_undo(plan, mark);
    }
    plan_wake(plan, view->now_ns + 1 + rng_below(&wild->rng, 2000000000));
    return 0;
}

static const struct policy policy_wild = {
    .name = "wild",
    .self_size = sizeof(struct wild),
    .init = wild_init,
    .decide = wild_decide,
};

static const struct worlds_setup kinds[] = {
    { .jobs = JOBS, .plain = true },
    { .jobs = JOBS },
    { .jobs = JOBS, .faults = true },
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* What has been seen in all worlds, so that nobody can say it did not happen. */
struct seen {
    uint64_t kinds[EVENT_KIND_COUNT];
    uint64_t beside, refused, decided;
};

static void see(void *self, const struct view *view, const struct event *event)
{
    struct seen *seen = self;
    seen->kinds[event->kind]++;
    seen->beside +=
        event->kind == EVENT_STARTED && view->jobs[event->job].partner != JOB_NONE;
}

static void whatever_is_ordered_the_books_add_up(void **state)
{
    struct seen seen = { { 0 } };
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct worlds world;
        struct run run;
        worlds_make(&world, &kinds[seed.now % KINDS], seed.now);
        world.setup.policy = &policy_wild;
        world.setup.listener = (struct listener){ .event = see, .self = &seen };
        run_play(&run, &world.setup);
        seen.refused += run.engine.refused_count;
        seen.decided += run.engine.decision_count;

        if (!world.setup.faults.mtbf_ns) {
            assert_false(run.gave_up);
            assert_int_equal(run.ended, run.accepted);
            assert_int_equal(run.engine.state.free.gpu_count, world.cluster.gpu_count);
        }
        for (uint32_t id = 1; id <= JOBS; id++)
            assert_true(run.ends[id] <= 1);
        run_release(&run);
        worlds_release(&world);
    }
    if (getenv("BERTH_SEED"))
        return;
    static const enum event_kind kind[] = { EVENT_RESIZED, EVENT_LEASE_DONE,
                                            EVENT_RENEWED, EVENT_STOPPED, EVENT_LOST };
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        assert_true(seen.kinds[kind[i]] > SEEDS);
    assert_true(seen.beside > SEEDS);
    assert_true(seen.refused * 4 < seen.decided);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_ordered_the_books_add_up),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
