/* Least attained service: which jobs run, which are preempted, and which stay. */
#include "support/world.h"

extern const struct policy policy_las;

static void a_new_job_preempts_one_that_has_had_its_share(void **state)
{
    struct world *w = *state;
    job_id giant =
        world_running(w, (struct job){ .gpus = 4, .served_ns = MINUTES(60) });
    job_id small = world_queued(w, (struct job){ .gpus = 1 });

    world_decide(w, &policy_las);

    assert_true(plan_holds(w->plan, small));
    assert_false(plan_holds(w->plan, giant));
}

static void equals_do_not_trade_places(void **state)
{
    struct world *w = *state;
    job_id running =
        world_running(w, (struct job){ .gpus = 4, .served_ns = MINUTES(4) });
    job_id waiting =
        world_queued(w, (struct job){ .gpus = 4, .served_ns = MINUTES(3) });

    world_decide(w, &policy_las); /* both are in the first queue, of 5 minutes */

    assert_true(plan_holds(w->plan, running));
    assert_false(plan_holds(w->plan, waiting));
}

static void a_job_that_keeps_running_keeps_its_gpus(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 2, .served_ns = MINUTES(90) });
    job_id kept = world_running(w, (struct job){ .gpus = 2 });
    world_queued(w, (struct job){ .gpus = 2, .served_ns = MINUTES(5) });

    world_decide(w, &policy_las);

    assert_false(plan_changes(w->plan, kept)); /* not moved, not even changed */
}

static void the_last_queue_and_the_latest_start_are_preempted_first(void **state)
{
    struct world *w = *state;
    job_id early = world_running(w, (struct job){ .gpus = 1, .served_ns = MINUTES(7) });
    world_pass(w, SECONDS(1));
    job_id late = world_running(w, (struct job){ .gpus = 1, .served_ns = MINUTES(7) });
    job_id much = world_running(w, (struct job){ .gpus = 2, .served_ns = MINUTES(90) });
    world_queued(w, (struct job){ .gpus = 3 });

    world_decide(w, &policy_las);

    assert_false(plan_holds(w->plan, much));
    assert_false(plan_holds(w->plan, late));
    assert_true(plan_holds(w->plan, early));
}

static void within_a_queue_the_first_to_come_goes_first(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 3 });
    job_id first = world_queued(w, (struct job){ .gpus = 1, .served_ns = MINUTES(4) });
    world_pass(w, SECONDS(1));
    job_id second = world_queued(w, (struct job){ .gpus = 1 });

    world_decide(w, &policy_las);

    assert_true(plan_holds(w->plan, first)); /* though it has had more */
    assert_false(plan_holds(w->plan, second));
}

static void it_wakes_when_a_running_job_leaves_its_queue(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 4, .served_ns = SECONDS(100) });
    world_queued(w, (struct job){ .gpus = 4 });

    world_decide_with(w, &policy_las, "quantum=300s");

    assert_int_equal(world_next_wake(w), SECONDS(50)); /* 200 GPU-seconds by 4 */
}

static void without_waiting_jobs_there_is_no_wake_up(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 4 });
    world_decide(w, &policy_las);
    assert_true(world_next_wake(w) == INT64_MAX);
}

static void in_the_last_queue_there_is_nowhere_to_go(void **state)
{
    struct world *w = *state;
    job_id much =
        world_running(w, (struct job){ .gpus = 4, .served_ns = MINUTES(999) });
    job_id less = world_queued(w, (struct job){ .gpus = 4, .served_ns = MINUTES(10) });

    world_decide_with(w, &policy_las, "quantum=300s,queues=2");

    assert_true(plan_holds(w->plan, much));
    assert_false(plan_holds(w->plan, less));
}

static void a_starving_job_is_promoted(void **state)
{
    struct world *w = *state;
    job_id newer = world_running(w, (struct job){ .gpus = 4, .served_ns = MINUTES(6) });
    job_id starved =
        world_queued(w, (struct job){ .gpus = 4, .served_ns = MINUTES(40) });

    world_decide_with(w, &policy_las, "quantum=300s,queues=2,promote=2");
    assert_false(plan_holds(w->plan, starved));
    world_pass(w, MINUTES(20)); /* it ran for 10 minutes on 4 GPUs */
    world_decide_again(w);

    assert_true(plan_holds(w->plan, starved));
    assert_false(plan_holds(w->plan, newer));
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(a_new_job_preempts_one_that_has_had_its_share),
          CASE(equals_do_not_trade_places),
          CASE(a_job_that_keeps_running_keeps_its_gpus),
          CASE(the_last_queue_and_the_latest_start_are_preempted_first),
          CASE(within_a_queue_the_first_to_come_goes_first),
          CASE(it_wakes_when_a_running_job_leaves_its_queue),
          CASE(without_waiting_jobs_there_is_no_wake_up),
          CASE(in_the_last_queue_there_is_nowhere_to_go),
          CASE(a_starving_job_is_promoted));
