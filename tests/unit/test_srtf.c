/* Shortest remaining time first: which job preempts which. */
#include "support/world.h"

extern const struct policy policy_srtf;

static void a_shorter_new_job_preempts(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, (struct job){ .gpus = 4, .steps_total = 100 });
    world_pass(w, SECONDS(10));
    job_id new = world_queued(w, (struct job){ .gpus = 4, .steps_total = 89 });

    world_decide(w, &policy_srtf);

    assert_true(plan_holds(w->plan, new));
    assert_false(plan_holds(w->plan, old));
    assert_true(world_waits_for(w, new, old));
    assert_int_equal(plan_change(w->plan, 0)->rule, RULE_ORDER);
    assert_int_equal(plan_change(w->plan, 0)->beneficiary, new);
}

static void equals_do_not_trade_places(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, (struct job){ .gpus = 4, .steps_total = 100 });
    world_pass(w, SECONDS(10));
    world_queued(w, (struct job){ .gpus = 4, .steps_total = 90 });

    world_decide(w, &policy_srtf);
    assert_true(plan_holds(w->plan, old));
}

static void the_longest_are_preempted_and_only_as_many_as_needed(void **state)
{
    struct world *w = *state;
    job_id short_one = world_running(w, (struct job){ .gpus = 1, .steps_total = 50 });
    job_id longest = world_running(w, (struct job){ .gpus = 2, .steps_total = 900 });
    job_id longer = world_running(w, (struct job){ .gpus = 1, .steps_total = 500 });
    job_id new = world_queued(w, (struct job){ .gpus = 2, .steps_total = 10 });

    world_decide(w, &policy_srtf);

    assert_true(plan_holds(w->plan, new));
    assert_false(plan_holds(w->plan, longest));
    assert_false(plan_changes(w->plan, longer));
    assert_false(plan_changes(w->plan, short_one));
}

static void bystanders_are_spared(void **state)
{
    struct world *w = *state;
    job_id longest = world_running(w, (struct job){ .gpus = 1, .steps_total = 900 });
    job_id longer = world_running(w, (struct job){ .gpus = 3, .steps_total = 500 });
    job_id new = world_queued(w, (struct job){ .gpus = 3, .steps_total = 10 });

    world_decide(w, &policy_srtf);

    assert_true(plan_holds(w->plan, new));
    assert_false(plan_holds(w->plan, longer)); /* needed */
    assert_true(plan_holds(w->plan, longest)); /* its one GPU would not help */
}

static void free_gpus_are_taken_before_any_job_is_preempted(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, (struct job){ .gpus = 2, .steps_total = 900 });
    job_id new = world_queued(w, (struct job){ .gpus = 2, .steps_total = 10 });

    world_decide(w, &policy_srtf);
    assert_true(plan_holds(w->plan, new));
    assert_true(plan_holds(w->plan, old));
}

static void a_job_of_unknown_work_is_preempted_for_all(void **state)
{
    struct world *w = *state;
    job_id unknown = world_running(w, (struct job){ .gpus = 4 });
    job_id known = world_queued(w, (struct job){ .gpus = 4, .steps_total = 1e6 });

    world_decide(w, &policy_srtf);
    assert_true(plan_holds(w->plan, known));
    assert_false(plan_holds(w->plan, unknown));
}

static void jobs_that_do_not_fit_are_passed_over(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 2, .steps_total = 5 });
    job_id big = world_queued(w, (struct job){ .gpus = 4, .steps_total = 10 });
    job_id small = world_queued(w, (struct job){ .gpus = 2, .steps_total = 20 });

    world_decide(w, &policy_srtf);
    assert_false(plan_holds(w->plan, big));
    assert_true(plan_holds(w->plan, small));
}

static void the_time_to_resume_counts_for_neither(void **state)
{
    struct world *w = *state;
    job_id loading = world_queued(
        w, (struct job){ .gpus = 4, .steps_total = 10, .load_ns = SECONDS(90) });
    plan_grant(world_plan(w), loading, NULL);
    world_carry_out(w);
    world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = loading });
    world_queued(w,
                 (struct job){ .gpus = 4, .steps_total = 10, .load_ns = SECONDS(90) });

    world_decide(w, &policy_srtf);
    assert_true(plan_holds(w->plan, loading));
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(a_shorter_new_job_preempts), CASE(equals_do_not_trade_places),
          CASE(the_longest_are_preempted_and_only_as_many_as_needed),
          CASE(bystanders_are_spared),
          CASE(free_gpus_are_taken_before_any_job_is_preempted),
          CASE(a_job_of_unknown_work_is_preempted_for_all),
          CASE(jobs_that_do_not_fit_are_passed_over),
          CASE(the_time_to_resume_counts_for_neither));
