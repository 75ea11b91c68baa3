/* What a preemption is expected to cost and to bring, worked out by hand. */
#include "support/world.h"

#include <math.h>

#include "policy/shared/cost_model.h"

static struct cost_model model;
static struct preemption_price price;

/* Only the simulated jobs count. */
static const struct cost_model_settings exact = {
    .theta = 1, .hysteresis = 1, .quantile = 0.7, .depth = 32
};

#define NEAR(a, b) (fabs((a) - (b)) < 1e-6)

/* Set up a cost model that knows all waiting and running jobs. */
static void begin(struct world *w, struct cost_model_settings settings)
{
    model = (struct cost_model){ .settings = settings };
    cost_model_init(&model, &w->state.view, &w->arena);
    for (job_id job = 0; job < w->state.job_count; job++)
        cost_model_observe(&model, &w->state.view,
                           &(struct event){ .kind = EVENT_ADOPTED, .job = job });
}

static bool ask(struct world *w, job_id newcomer, const job_id *victims, uint32_t count)
{
    return cost_model_pays(&model, &w->state.view, world_plan(w), newcomer, victims,
                           count, &price);
}

static struct job a_job(uint32_t gpus, double work_s, int64_t pause_s, int64_t load_s)
{
    return (struct job){ .gpus = gpus,
                         .steps_total = work_s,
                         .pause_ns = SECONDS(pause_s),
                         .grace_ns = SECONDS(pause_s),
                         .load_ns = SECONDS(load_s) };
}

/*
 * Alone on four GPUs, with four each:
 *     keep: victim ends at 1000, beneficiary at 1000 + 30 + 100          2130
 *     swap: beneficiary at 10 + 30 + 100, victim at 140 + 20 + 1000      1300
 */
static void a_swap_of_two_is_the_difference_of_their_ends(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 1000, 10, 20));
    job_id new = world_queued(w, a_job(4, 100, 5, 30));
    begin(w, exact);

    assert_true(ask(w, new, &old, 1));
    assert_true(NEAR(price.gain_s, 830));
    assert_true(NEAR(price.cost_gpu_s, 4 * (10 + 20)));
    assert_true(NEAR(price.wait_saved_s, 1000 - 10));
}

/*
 * Two nodes; the other one becomes free in 50 s, but the beneficiary may not use it
 * and has to wait for the victim's: keep 1000 + 100, swap 100 + (50 + 1000), where the
 * victim resumes elsewhere.
 */
static void gpus_on_nodes_it_may_not_use_do_not_count(void **state)
{
    struct world w;
    world_init_as(&w, "2xv100:4");
    job_id old = world_running_on(&w, 0, a_job(4, 1000, 0, 0));
    world_running_on(&w, 1, a_job(4, 50, 0, 0));
    struct job job = a_job(4, 100, 0, 0);
    job_id any = world_queued(&w, job);
    begin(&w, exact);
    ask(&w, any, &old, 1);
    assert_true(NEAR(price.wait_saved_s, 50));

    world_apply(&w, (struct event){ .kind = EVENT_CANCELLED, .job = any });
    job.set = world_set(&w, "n0", NULL, true);
    job_id here = world_queued(&w, job);
    begin(&w, exact);
    assert_true(ask(&w, here, &old, 1));
    assert_true(NEAR(price.wait_saved_s, 1000));
    assert_true(NEAR(price.gain_s, (1000 + 1100) - (100 + 1050)));
    world_release(&w);
}

/* With theta 0: R_v - R_w > 2 p + l_w + l_v = 70. */
static void a_second_decides(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 171, 10, 20));
    job_id new = world_queued(w, a_job(4, 100, 5, 30));
    struct cost_model_settings settings = exact;
    settings.theta = 0;
    begin(w, settings);

    assert_true(ask(w, new, &old, 1));
    assert_true(NEAR(price.gain_s, 1));
    world_pass(w, SECONDS(1));
    assert_false(ask(w, new, &old, 1));
    assert_true(NEAR(price.gain_s, 0));
}

static void the_gain_must_exceed_theta_times_the_waste(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 171 + 120, 10, 20)); /* gain 121, cost 120 */
    job_id new = world_queued(w, a_job(4, 100, 5, 30));
    begin(w, exact);

    assert_true(ask(w, new, &old, 1));
    world_pass(w, SECONDS(1));
    assert_false(ask(w, new, &old, 1));
}

/*
 * keep: four end at 1000, the gang at 1130                            5130
 * swap: the gang at 140, four at 140 + 1020                           4780
 */
static void several_victims_each_lose(void **state)
{
    struct world *w = *state;
    job_id old[4];
    for (int i = 0; i < 4; i++)
        old[i] = world_running(w, a_job(1, 1000, 10, 20));
    job_id new = world_queued(w, a_job(4, 100, 5, 30));
    begin(w, exact);

    assert_true(ask(w, new, old, 4));
    assert_true(NEAR(price.gain_s, 350));
    assert_true(NEAR(price.cost_gpu_s, 120));
}

static void a_longer_gang_does_not_pay_for_four_victims(void **state)
{
    struct world *w = *state;
    job_id old[4];
    for (int i = 0; i < 4; i++)
        old[i] = world_running(w, a_job(1, 1000, 10, 20));
    job_id new = world_queued(w, a_job(4, 200, 5, 30));
    begin(w, exact);

    assert_false(ask(w, new, old, 4));
    assert_true(NEAR(price.gain_s, 50 - 100));
}

/* Preempting a gang makes room for the beneficiary and for three other waiting jobs. */
static void others_in_the_queue_count(void **state)
{
    struct world *w = *state;
    job_id gang = world_running(w, a_job(4, 300, 60, 0));
    job_id new = world_queued(w, a_job(1, 200, 0, 0));
    begin(w, exact);
    assert_false(ask(w, new, &gang, 1)); /* 300 + 500 against 260 + 560 */
    assert_true(NEAR(price.gain_s, -20));

    for (int i = 0; i < 3; i++)
        world_queued(w, a_job(1, 200, 0, 0));
    begin(w, exact);
    assert_true(ask(w, new, &gang, 1)); /* 300 + 4 x 500 against 4 x 260 + 560 */
    assert_true(NEAR(price.gain_s, 700));
}

/* A shorter waiting job takes the first GPUs that become free. */
static void the_wait_includes_the_queue_ahead(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(2, 1000, 0, 0));
    world_running(w, a_job(2, 50, 0, 0));
    job_id new = world_queued(w, a_job(2, 100, 0, 0));
    begin(w, exact);
    ask(w, new, &old, 1);
    assert_true(NEAR(price.wait_saved_s, 50));

    world_queued(w, a_job(2, 70, 0, 0));
    begin(w, exact);
    ask(w, new, &old, 1);
    assert_true(NEAR(price.wait_saved_s, 120));
}

static void a_loading_job_has_nothing_to_save(void **state)
{
    struct world *w = *state;
    job_id old = world_queued(w, a_job(4, 1000, 500, 20));
    assert_true(plan_grant(world_plan(w), old, NULL));
    world_carry_out(w);
    world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = old });
    job_id new = world_queued(w, a_job(4, 100, 5, 0));
    begin(w, exact);

    assert_true(ask(w, new, &old, 1));
    assert_true(NEAR(price.gain_s, 1020 - 100));
    world_apply(w, (struct event){ .kind = EVENT_LOADED, .job = old });
    begin(w, exact);
    assert_false(ask(w, new, &old, 1));
    assert_true(NEAR(price.gain_s, 1000 - 2 * 500 - 100 - 20));
}

static void a_job_about_to_end_is_not_preempted(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 50, 60, 0));
    job_id new = world_queued(w, a_job(4, 1, 0, 0));
    begin(w, exact);
    assert_false(ask(w, new, &old, 1));
    assert_true(price.wait_saved_s < 0);
}

static void uncertain_estimates_count_against_a_swap(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 150, 0, 0));
    job_id new = world_queued(w, a_job(4, 100, 0, 0));
    struct cost_model_settings settings = exact;
    begin(w, settings);
    assert_true(ask(w, new, &old, 1));
    settings.spread = 0.5; /* 100 x 1.3 against 150 / 1.3 */
    begin(w, settings);
    assert_false(ask(w, new, &old, 1));
}

/* A job with a visible wait of 1000 - 10 will wait longer. */
static void a_wait_is_stretched_by_those_yet_to_come(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 1000, 10, 20));
    job_id new = world_queued(w, a_job(4, 100, 5, 30));
    struct cost_model_settings settings = exact;
    settings.stretch = 0.5;
    begin(w, settings);

    assert_true(ask(w, new, &old, 1));
    assert_true(NEAR(price.gain_s, 830 + 495));
}

static void a_victim_that_has_just_begun_needs_a_larger_gain(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 300, 10, 20)); /* gain 130, cost 120 */
    job_id new = world_queued(w, a_job(4, 100, 5, 30));
    struct cost_model_settings settings = exact;
    settings.hysteresis = 2;
    begin(w, settings);
    assert_false(ask(w, new, &old, 1));
    world_job(w, old)->since_ns -= SECONDS(20);
    assert_true(ask(w, new, &old, 1));
}

static void unknown_work_preempts_no_job_and_is_guessed(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 0, 0, 0));
    job_id new = world_queued(w, a_job(4, 100, 0, 0));
    job_id vague = world_queued(w, a_job(4, 0, 0, 0));
    begin(w, exact);
    assert_false(ask(w, vague, &old, 1));
    assert_false(ask(w, new, &old, 1)); /* it may end at any moment */
    world_pass(w, SECONDS(500));
    assert_true(ask(w, new, &old, 1)); /* expected to run as long again */
}

static void what_is_not_declared_is_modelled_or_measured(void **state)
{
    struct world *w = *state;
    job_id plain = world_running(w, a_job(1, 1000, 0, 0));
    job_id large = world_running(
        w, (struct job){ .gpus = 1, .bytes_per_step = 2000000000, .steps_total = 10 });
    begin(w, exact);
    const struct view *view = &w->state.view;
    assert_true(NEAR(cost_model_pause_s(&model, view, plain), 0));
    assert_true(NEAR(cost_model_pause_s(&model, view, large), 5 + 8));
    assert_true(NEAR(cost_model_load_s(&model, view, large), 20 + 8));

    world_job(w, plain)->recalled_ns = view->now_ns;
    world_pass(w, SECONDS(40));
    struct event stopped = { .kind = EVENT_STOPPED, .job = plain, .clean = true };
    cost_model_observe(&model, view, &stopped);
    assert_true(NEAR(cost_model_pause_s(&model, view, plain), 40));
    world_pass(w, SECONDS(40));
    cost_model_observe(&model, view, &stopped);
    assert_true(NEAR(cost_model_pause_s(&model, view, plain), 60)); /* of 40 and 80 */
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

/*
 * Two share four GPUs at 0.6 of their rates alone.  The first ends after 600 s, the second after
 * 1000 s: only then do the GPUs become free.
 *     keep: 600 + 1000, beneficiary at 1100                                2700
 *     swap: beneficiary at 100, then alone: 100 + 360, 460 + 600           1620
 */
static void gpus_that_two_share_become_free_with_the_last(void **state)
{
    struct world *w = *state;
    job_id pair[2];
    pair[0] = world_running(w, a_job(4, 360, 0, 0));
    pair[1] = world_beside(w, pair[0], a_job(4, 600, 0, 0));
    job_id new = world_queued(w, a_job(4, 100, 0, 0));
    begin(w, exact);

    assert_true(ask(w, new, pair, 2));
    assert_true(NEAR(price.wait_saved_s, 1000));
    assert_true(NEAR(price.gain_s, 2700 - 1620));
    assert_false(ask(w, new, &pair[1], 1)); /* the other one keeps the GPUs */
}

RUN_CASES(CASE(a_swap_of_two_is_the_difference_of_their_ends),
          CASE(gpus_on_nodes_it_may_not_use_do_not_count), CASE(a_second_decides),
          CASE(the_gain_must_exceed_theta_times_the_waste),
          CASE(several_victims_each_lose),
          CASE(a_longer_gang_does_not_pay_for_four_victims),
          CASE(others_in_the_queue_count), CASE(the_wait_includes_the_queue_ahead),
          CASE(a_loading_job_has_nothing_to_save),
          CASE(a_job_about_to_end_is_not_preempted),
          CASE(uncertain_estimates_count_against_a_swap),
          CASE(a_wait_is_stretched_by_those_yet_to_come),
          CASE(a_victim_that_has_just_begun_needs_a_larger_gain),
          CASE(unknown_work_preempts_no_job_and_is_guessed),
          CASE(what_is_not_declared_is_modelled_or_measured),
          CASE(gpus_that_two_share_become_free_with_the_last));
