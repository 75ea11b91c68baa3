/* Elastic jobs: sizes by what jobs report or equally, and when they change. */
#include "support/world.h"

#include <math.h>

#include "base/rng.h"

extern const struct policy policy_slaq;
extern const struct policy policy_fair;

/* A job of one to eight GPUs that has 'gpus' of them. */
static job_id running(struct world *w, uint32_t gpus)
{
    return world_running(w, (struct job){ .gpus = gpus,
                                          .gpus_min = 1,
                                          .gpus_max = 8,
                                          .spread = true,
                                          .steps_total = 1000,
                                          .rate_best_per_s = 1 });
}

static job_id queued(struct world *w, uint32_t gpus, uint32_t min, uint32_t max)
{
    return world_queued(w, (struct job){ .gpus = gpus,
                                         .gpus_min = min,
                                         .gpus_max = max,
                                         .spread = true,
                                         .rate_best_per_s = 1 });
}

/* Reports of exp(-k / tau) at ten steps from 'from' on, at 'rate' steps per second. */
static void learn_at(struct world *w, job_id job, double from, double tau, double rate)
{
    for (double k = from; k < from + 10; k++)
        assert_true(world_apply(w, (struct event){ .kind = EVENT_PROGRESS,
                                                   .job = job,
                                                   .steps = k,
                                                   .rate_per_s = rate,
                                                   .loss = exp(-k / tau) }));
}

static void learn(struct world *w, job_id job, double from, double tau)
{
    learn_at(w, job, from, tau, 1);
}

/* The policy takes over, two jobs report, and the next epoch begins. */
static void two_learn(struct world *w, const struct policy *policy,
                      const char *settings, job_id young, job_id old)
{
    world_decide_with(w, policy, settings);
    learn(w, young, 0, 20);
    learn(w, old, 0, 2);
    learn(w, old, 10, 2);
    world_pass(w, SECONDS(3));
    world_decide_again(w);
}

static void fair_gives_all_the_same(void **state)
{
    struct world *w = *state;
    job_id large = running(w, 6);
    job_id small = running(w, 2);

    world_decide(w, &policy_fair);

    assert_int_equal(world_size(w, large), 4);
    assert_int_equal(world_size(w, small), 4);
}

static void a_job_that_can_use_no_more_leaves_it_to_others(void **state)
{
    struct world *w = *state;
    job_id one = queued(w, 1, 1, 1);
    job_id two = queued(w, 2, 1, 2);
    job_id rest = queued(w, 2, 1, 8);

    world_decide(w, &policy_fair);

    assert_int_equal(world_size(w, one), 1);
    assert_int_equal(world_size(w, two), 2);
    assert_int_equal(world_size(w, rest), 5);
}

static void a_new_job_makes_others_shrink(void **state)
{
    struct world *w = *state;
    job_id first = running(w, 8);
    job_id second = queued(w, 4, 1, 8);

    world_decide(w, &policy_fair);

    assert_int_equal(world_size(w, first), 4);
    assert_int_equal(world_size(w, second), 4);
}

static void a_rigid_job_keeps_its_gang(void **state)
{
    struct world *w = *state;
    job_id rigid = world_running(w, (struct job){ .gpus = 3 });
    job_id elastic = running(w, 1);

    world_decide(w, &policy_slaq);

    assert_false(plan_changes(w->plan, rigid));
    assert_int_equal(world_size(w, elastic), 5);
}

static void no_job_overtakes_the_first_in_the_queue(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 5 });
    job_id large = world_queued(w, (struct job){ .gpus = 6 });
    job_id small = world_queued(w, (struct job){ .gpus = 1 });

    world_decide(w, &policy_fair);

    assert_false(plan_holds(w->plan, large));
    assert_false(plan_holds(w->plan, small));
}

static void gpus_go_to_the_job_that_learns(void **state)
{
    struct world *w = *state;
    job_id young = running(w, 4);
    job_id old = running(w, 4);

    two_learn(w, &policy_slaq, "floor=0", young, old);

    assert_int_equal(world_size(w, old), 1); /* never none */
    assert_int_equal(world_size(w, young), 7);
}

static void no_job_falls_below_the_floor(void **state)
{
    struct world *w = *state;
    job_id young = running(w, 4);
    job_id old = running(w, 4);

    two_learn(w, &policy_slaq, "floor=0.5", young, old);

    assert_int_equal(world_size(w, old), 2);
    assert_int_equal(world_size(w, young), 6);
}

static void a_job_that_says_nothing_has_an_equal_share(void **state)
{
    struct world *w = *state;
    job_id silent = running(w, 2);
    job_id young = running(w, 6);

    world_decide_with(w, &policy_slaq, "floor=0");
    learn(w, young, 0, 20);
    world_pass(w, SECONDS(3));
    world_decide_again(w);

    assert_true(world_size(w, silent) >= 4);
}

static void losses_that_are_no_numbers_do_no_harm(void **state)
{
    struct world *w = *state;
    const double losses[] = { NAN, INFINITY, -INFINITY, 1e300, -5, 3, 3, 3 };
    job_id job = running(w, 4);
    job_id other = running(w, 4);
    world_decide_with(w, &policy_slaq, "floor=0");
    for (uint32_t i = 0; i < sizeof losses / sizeof *losses; i++)
        world_apply(w, (struct event){ .kind = EVENT_PROGRESS,
                                       .job = job,
                                       .steps = i,
                                       .rate_per_s = i % 2 ? 0 : INFINITY,
                                       .loss = losses[i] });
    world_pass(w, SECONDS(3));
    world_decide_again(w);
    assert_int_equal(world_size(w, job) + world_size(w, other), 8);
}

static void sizes_stay_within_an_epoch(void **state)
{
    struct world *w = *state;
    job_id young = running(w, 4);
    job_id old = running(w, 4);
    world_decide_with(w, &policy_slaq, "floor=0");
    learn(w, young, 0, 20);
    learn(w, old, 0, 2);
    world_pass(w, SECONDS(2));
    world_decide_again(w);

    assert_false(plan_changes(w->plan, young));
    assert_int_equal(world_next_wake(w), SECONDS(3));
}

static void an_epoch_is_ten_times_what_a_resize_takes(void **state)
{
    struct world *w = *state;
    job_id job = running(w, 4);
    job_id dear = running(w, 4);
    world_job(w, dear)->load_ns = SECONDS(2);
    world_decide(w, &policy_slaq);
    learn(w, job, 0, 20);
    world_decide_again(w);

    assert_int_equal(world_next_wake(w), SECONDS(20));
}

static void an_epoch_counts_jobs_that_wait_and_none_that_ended(void **state)
{
    struct world *w = *state;
    job_id job = running(w, 4);
    job_id dear = queued(w, 8, 8, 16); /* more GPUs than there are */
    world_job(w, dear)->load_ns = SECONDS(2);
    world_decide(w, &policy_slaq);
    learn(w, job, 0, 20);
    world_decide_again(w);
    assert_int_equal(world_next_wake(w), SECONDS(20));

    world_apply(w, (struct event){ .kind = EVENT_CANCELLED, .job = dear });
    world_pass(w, SECONDS(20));
    world_decide_again(w);
    learn(w, job, 10, 20);
    world_decide_again(w);

    assert_int_equal(world_next_wake(w), SECONDS(23));
}

static void a_small_change_does_not_cause_a_resize(void **state)
{
    struct world *w = *state;
    job_id large = running(w, 5);
    job_id small = running(w, 3);

    world_decide_with(w, &policy_fair, "hysteresis=0.3");

    assert_false(plan_changes(w->plan, large));
    assert_false(plan_changes(w->plan, small));
}

static void a_new_job_does_not_wait_for_the_epoch(void **state)
{
    struct world *w = *state;
    job_id small = running(w, 2);
    job_id large = running(w, 6);
    world_job(w, small)->gpus_max = 2; /* so that there is nothing to do at first */
    world_decide(w, &policy_fair);
    assert_int_equal(plan_change_count(w->plan), 0);

    world_pass(w, SECONDS(1));
    job_id newcomer = queued(w, 4, 1, 8);
    world_decide_again(w);

    assert_int_equal(world_size(w, large), 3); /* one gives half of what it has */
    assert_int_equal(world_size(w, newcomer), 3);
    assert_false(plan_changes(w->plan, small));
}

static void of_two_the_one_that_learns_less_makes_room(void **state)
{
    struct world *w = *state;
    job_id young = running(w, 4);
    job_id old = running(w, 4);
    world_job(w, young)->gpus_max = world_job(w, old)->gpus_max = 4;
    world_decide_with(w, &policy_slaq, "floor=1");
    learn(w, young, 0, 20);
    learn(w, old, 0, 2);
    world_pass(w, SECONDS(1));
    job_id newcomer = queued(w, 4, 1, 8);
    world_decide_again(w);

    assert_false(plan_changes(w->plan, young));
    assert_int_equal(world_size(w, old), 2);
    assert_int_equal(world_size(w, newcomer), 2);
}

/*
 * One job that will have learnt all it can in seconds, and one that goes on for
 * minutes.
 */
static uint32_t size_of_the_slow(const char *settings)
{
    struct world w;
    world_init(&w, 2, 4);
    job_id quick = running(&w, 4);
    job_id slow = running(&w, 4);
    for (job_id id = quick; id <= slow; id++) {
        world_job(&w, id)->curve =
            (struct learning){ .family = LEARNING_EXP, .mu = id == quick ? 0.9 : 0.99 };
        world_job(&w, id)->step_s = 1;
    }
    world_decide_with(&w, &policy_slaq, settings);
    uint32_t size = world_size(&w, slow);
    world_release(&w);
    return size;
}

static void a_longer_horizon_gives_more_to_jobs_that_learn_long(void **state)
{
    assert_int_equal(size_of_the_slow("floor=0,forecast=declared,horizon=0"), 1);
    assert_true(size_of_the_slow("floor=0,forecast=declared,gain=loss,horizon=30s") >
                3);
}

/*
 * A job past its goal beside one before it, both with noise in their reports or none; returns
 * the GPUs of the one past it.
 */
static uint32_t size_past_goal(const char *settings, double noise)
{
    struct world w;
    world_init(&w, 8, 8);
    struct rng rng;
    rng_init(&rng, 1, "noise");
    job_id jobs[2];
    for (int i = 0; i < 2; i++)
        jobs[i] = world_running(&w, (struct job){ .gpus = 32,
                                                  .gpus_min = 1,
                                                  .gpus_max = 64,
                                                  .spread = true,
                                                  .steps_total = 100,
                                                  .rate_best_per_s = 1 });
    world_decide_with(&w, &policy_slaq, settings);
    for (int i = 0; i < 2; i++)
        for (double k = 0; k <= 20; k++)
            world_apply(&w, (struct event){ .kind = EVENT_PROGRESS,
                                            .job = jobs[i],
                                            .steps = k,
                                            .rate_per_s = 1,
                                            .loss = exp(-k / (i == 0 ? 40 : 6)) +
                                                    noise * rng_normal(&rng) });
    world_pass(&w, SECONDS(3));
    world_decide_again(&w);
    uint32_t gpus = world_size(&w, jobs[1]);
    world_release(&w);
    return gpus;
}

static void a_job_past_its_goal_makes_room(void **state)
{
    uint32_t gpus = size_past_goal("floor=0", 0);
    assert_true(gpus < 16);
    assert_true(gpus > size_past_goal("floor=0,finish=0.001", 0));
    assert_true(gpus < size_past_goal("floor=0,finish=1", 0));
    assert_true(size_past_goal("floor=0,goal=0.99", 0) > gpus); /* it is before that */
}

static void an_uncertain_forecast_takes_fewer_gpus_away(void **state)
{
    assert_true(size_past_goal("floor=0", 0.05) > size_past_goal("floor=0", 0) + 4);
}

static void without_a_horizon_it_is_the_rule_of_the_paper(void **state)
{
    assert_int_equal(size_past_goal("floor=0,horizon=0", 0),
                     size_past_goal("floor=0,horizon=0,gain=loss,finish=5", 0));
    assert_int_equal(size_past_goal("floor=0,horizon=0", 0), 1);
}

/* Make the resize of two jobs take a second: epochs last ten. */
static void make_dear(struct world *w, job_id one, job_id other)
{
    world_job(w, one)->load_ns = world_job(w, other)->load_ns = SECONDS(1);
}

static void a_growing_job_runs_on_until_others_have_shrunk(void **state)
{
    struct world *w = *state;
    job_id young = running(w, 4);
    job_id old = running(w, 4);
    make_dear(w, young, old);
    world_decide_with(w, &policy_slaq, "floor=0");
    learn(w, young, 0, 20);
    learn(w, old, 0, 2);
    world_pass(w, SECONDS(10));
    world_decide_again(w);
    assert_int_equal(world_size(w, old), 1);
    assert_false(plan_changes(w->plan, young));
    assert_int_equal(world_next_wake(w), SECONDS(11));

    world_carry_out(w);
    world_pass(w, SECONDS(1));
    world_apply(w, (struct event){ .kind = EVENT_STOPPED, .job = old, .steps = 10 });
    world_apply(w,
                (struct event){
                    .kind = EVENT_STARTED, .job = old, .attempt = 1, .loaded = true });
    world_decide_again(w);

    assert_int_equal(world_size(w, young), 7);
}

static void a_resize_that_costs_more_than_it_brings_is_not_made(void **state)
{
    for (int dear = 0; dear <= 1; dear++) {
        struct world w;
        world_init(&w, 2, 4);
        job_id large = running(&w, 5);
        job_id small = running(&w, 3); /* both learn alike: four each would be best */
        if (dear)
            make_dear(&w, large, small);
        world_decide_with(&w, &policy_slaq, "floor=0");
        world_pass(&w, SECONDS(10));
        learn_at(&w, large, 0, 20, 5); /* a step a second and GPU */
        learn_at(&w, small, 0, 20, 3);
        world_decide_again(&w);
        assert_int_equal(world_size(&w, large), dear ? 5 : 4);
        assert_int_equal(world_size(&w, small), dear ? 3 : 4);
        world_release(&w);
    }
}

static void a_declared_curve_is_trusted_on_request(void **state)
{
    for (int believed = 0; believed <= 1; believed++) {
        struct world w;
        world_init(&w, 2, 4);
        job_id quick = running(&w, 4);
        job_id slow = running(&w, 4);
        for (job_id id = quick; id <= slow; id++)
            world_job(&w, id)->curve =
                (struct learning){ .family = LEARNING_EXP,
                                   .mu = id == quick ? 0.9 : 0.9999 };
        world_job(&w, quick)->step_s = world_job(&w, slow)->step_s = 1;
        world_decide_with(&w, &policy_slaq,
                          believed ? "floor=0,horizon=0,forecast=declared" : "floor=0");
        assert_int_equal(world_size(&w, quick), believed ? 7 : 4);
        assert_int_equal(world_size(&w, slow), believed ? 1 : 4);
        world_release(&w);
    }
}

static int setup(void **state)
{
    static struct world world;
    world_init(&world, 2, 4);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    world_release(*state);
    return 0;
}

RUN_CASES(CASE(fair_gives_all_the_same),
          CASE(a_job_that_can_use_no_more_leaves_it_to_others),
          CASE(a_new_job_makes_others_shrink), CASE(a_rigid_job_keeps_its_gang),
          CASE(no_job_overtakes_the_first_in_the_queue),
          CASE(gpus_go_to_the_job_that_learns), CASE(no_job_falls_below_the_floor),
          CASE(a_job_that_says_nothing_has_an_equal_share),
          CASE(losses_that_are_no_numbers_do_no_harm), CASE(sizes_stay_within_an_epoch),
          CASE(an_epoch_is_ten_times_what_a_resize_takes),
          CASE(an_epoch_counts_jobs_that_wait_and_none_that_ended),
          CASE(a_small_change_does_not_cause_a_resize),
          CASE(a_new_job_does_not_wait_for_the_epoch),
          CASE(of_two_the_one_that_learns_less_makes_room),
          TEST(a_job_past_its_goal_makes_room),
          TEST(an_uncertain_forecast_takes_fewer_gpus_away),
          TEST(without_a_horizon_it_is_the_rule_of_the_paper),
          TEST(a_longer_horizon_gives_more_to_jobs_that_learn_long),
          CASE(a_growing_job_runs_on_until_others_have_shrunk),
          TEST(a_declared_curve_is_trusted_on_request),
          TEST(a_resize_that_costs_more_than_it_brings_is_not_made));
