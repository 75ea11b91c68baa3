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
    struct bits avoid;
};

static int wild_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    struct wild *wild = self;
    rng_init(&wild->rng, seed, "wild");
    bits_init(&wild->avoid, run, view->cluster->node_count);
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
    ask.together = rng_below(rng, 2);
    plan_grant(plan, job, &ask);
}

/* Two who share move elsewhere together, if there is room. */
static void move_two(struct wild *wild, const struct view *view, struct plan *plan,
                     job_id job)
{
    job_id partner = view->jobs[job].partner;
    if (partner == JOB_NONE || !job_may_leave(&view->jobs[job]) ||
        !job_may_leave(&view->jobs[partner]))
        return;
    struct ask ask = ASK_DEFAULT;
    node_id here = view_seats(view, job)->node;
    bits_set(&wild->avoid, here);
    ask.avoid = &wild->avoid;
    size_t mark = plan_mark(plan);
    bool moved = plan_grant(plan, job, &ask);
    ask.beside = job;
    if (!moved || !plan_grant(plan, partner, &ask))
        plan_undo(plan, mark);
    bits_clear(&wild->avoid, here);
}

/*
 * As at the end of a round: everybody who runs is kept or told to leave, in any order;
 * then everybody is put somewhere, alone, beside whom he was, or beside another.
 */
static void reshuffle(struct wild *wild, const struct view *view, struct plan *plan)
{
    struct rng *rng = &wild->rng;
    for (job_id job = 0; job < view->job_max; job++)
        if (rng_below(rng, 2) && !plan_changes(plan, job))
            move_two(wild, view, plan, job);
    for (job_id job = 0; job < view->job_max; job++)
        if (!plan_changes(plan, job) && job_may_leave(&view->jobs[job]) &&
            rng_below(rng, 2))
            plan_revoke(plan, job, RULE_ROUND, JOB_NONE);
    job_id last = JOB_NONE; /* who was put somewhere just now */
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
                     : how == 2                           ? any_job(wild, view)
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
    if (rng_below(&wild->rng, 8) == 0) {
        reshuffle(wild, view, plan);
        plan_wake(plan, view->now_ns + 1 + rng_below(&wild->rng, 2000000000));
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
    uint64_t moved_beside;  /* one that ran elsewhere                       */
    uint64_t moved_both;    /* two who shared, and share again elsewhere     */
    uint64_t renewed_both;  /* where they are                               */
    uint64_t exchanged;     /* beside one whose partner leaves              */
    uint64_t ended_at_once; /* two whose leases end together                */
    int64_t done_ns;
    job_id done, renewed;
    const struct run *run;
};

/* Accelerators that somebody sits on, those of two who share counted once. */
static uint32_t gpus_held(const struct view *view)
{
    uint32_t held = 0;
    for (job_id id = 0; id < view->job_max; id++) {
        const struct job *job = &view->jobs[id];
        if (job->state == JOB_FREE || !job_seated(job))
            continue;
        const struct job *partner =
            job->partner != JOB_NONE ? &view->jobs[job->partner] : NULL;
        bool counted = partner && partner->partner == id && job_seated(partner) &&
                       job->partner < id;
        held += counted ? 0 : job->gpus_now;
    }
    return held;
}

static void see_orders(struct seen *seen, const struct view *view,
                       const struct event *event)
{
    const struct job *job = &view->jobs[event->job];
    if (event->kind == EVENT_RENEWED) {
        seen->renewed_both += job->partner != JOB_NONE && job->partner == seen->renewed;
        seen->renewed = event->job;
    }
    if (event->kind != EVENT_PLACED || event->beside == JOB_NONE)
        return;
    const struct job *other = &view->jobs[event->beside];
    seen->moved_beside += job->state == JOB_STOPPING;
    seen->moved_both += job->next_partner == event->beside &&
                        job->partner == event->beside &&
                        other->next_partner == event->job;
    seen->exchanged += other->coming == event->job;
}

static void see(void *self, const struct view *view, const struct event *event)
{
    struct seen *seen = self;
    seen->kinds[event->kind]++;
    seen->beside +=
        event->kind == EVENT_STARTED && view->jobs[event->job].partner != JOB_NONE;
    see_orders(seen, view, event);
    assert_int_equal(seen->run->metrics.gpus_held, gpus_held(view));
    if (event->kind == EVENT_LEASE_DONE) {
        seen->ended_at_once += event->at_ns == seen->done_ns &&
                               view->jobs[event->job].partner == seen->done;
        seen->done = event->job;
        seen->done_ns = event->at_ns;
    }
}

static void whatever_is_ordered_the_books_add_up(void **state)
{
    struct seen seen = { { 0 } };
    FOR_EACH_SEED(seed, SEEDS)
    {
        struct worlds world;
        struct run run;
        seen.run = &run;
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
        if (seen.kinds[kind[i]] <= SEEDS / 2)
            fail_msg("%s: %llu", event_name(kind[i]),
                     (unsigned long long)seen.kinds[kind[i]]);
    const uint64_t shared[] = { seen.beside, seen.moved_beside, seen.moved_both,
                                seen.renewed_both, seen.exchanged };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        assert_true(shared[i] > SEEDS / 4);
    assert_true(seen.ended_at_once > 0);
    assert_true(seen.refused * 4 < seen.decided);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_ordered_the_books_add_up),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
