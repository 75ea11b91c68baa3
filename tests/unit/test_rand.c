/* Random victims: each job is equally likely, and none is drawn twice in a round. */
#include "support/world.h"

#include "policy/shared/trial.h"

extern const struct policy policy_rand;

#define NODES 8

static struct job te(uint32_t gpus)
{
    return (struct job){ .class = CLASS_TE, .gpus = gpus };
}

static void a_random_job_is_preempted(void **state)
{
    struct world *w = *state;
    uint32_t left = 0;
    for (uint32_t i = 0; i < NODES; i++)
        world_running_on(w, i, (struct job){ .gpus = 8 });
    job_id trial = world_queued(w, te(3));

    world_decide(w, &policy_rand);

    assert_true(plan_holds(w->plan, trial));
    for (job_id job = 0; job < NODES; job++)
        left += !plan_holds(w->plan, job);
    assert_int_equal(left, 1); /* one victim is enough */
}

static void jobs_drawn_in_vain_are_spared_on_request(void **state)
{
    struct world *w = *state;
    uint32_t left = 0;
    for (uint32_t i = 0; i < 2 * NODES; i++)
        world_running_on(w, i / 2, (struct job){ .gpus = 4 });
    job_id trial = world_queued(w, te(8));

    world_decide_with(w, &policy_rand, "spare=true");

    assert_true(plan_holds(w->plan, trial));
    for (job_id job = 0; job < 2 * NODES; job++)
        left += !plan_holds(w->plan, job);
    assert_int_equal(left, 2);
}

static void trial_jobs_and_protected_ones_are_not_drawn(void **state)
{
    struct world *w = *state;
    for (uint32_t i = 0; i < NODES; i++) {
        job_id job = world_running_on(w, i, (struct job){ .gpus = 8 });
        world_job(w, job)->preemptions = 3;
    }
    job_id trial = world_queued(w, te(1));

    world_decide_with(w, &policy_rand, "max_preemptions=3");
    assert_false(plan_holds(w->plan, trial));
    assert_int_equal(plan_change_count(w->plan), 0);

    world_decide(w, &policy_rand);
    assert_true(plan_holds(w->plan, trial));
}

/* A round draws each job once; over many rounds each comes first equally often. */
static void draws_are_even_and_without_repetition(void **state)
{
    struct world *w = *state;
    struct trial_queues trial = { 0 };
    uint32_t firsts[NODES] = { 0 };
    trial_init(&trial, trial_draw, trial_preempt_until_fits, &w->arena, &w->state.view,
               7);
    for (job_id job = 0; job < NODES; job++) {
        trial.running[job] = job;
        trial.place[job] = job;
    }
    trial.running_count = NODES;
    for (uint32_t round = 0; round < 8000; round++) {
        uint32_t seen = 0;
        job_id job = trial_draw(&trial, JOB_NONE);
        firsts[job]++;
        for (; job != JOB_NONE; job = trial_draw(&trial, job)) {
            assert_false(seen >> job & 1);
            seen |= 1u << job;
        }
        assert_int_equal(seen, (1u << NODES) - 1);
    }
    for (uint32_t i = 0; i < NODES; i++)
        assert_in_range(firsts[i], 880, 1120); /* four deviations around 1000 */
    trial_fini(&trial);
}

static int setup(void **state)
{
    static struct world w;
    world_init(&w, NODES, /* gpus_per_node= */ 8);
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    world_release(*state);
    return 0;
}

RUN_CASES(CASE(a_random_job_is_preempted),
          CASE(jobs_drawn_in_vain_are_spared_on_request),
          CASE(trial_jobs_and_protected_ones_are_not_drawn),
          CASE(draws_are_even_and_without_repetition));
