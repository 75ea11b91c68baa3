/* Shortest job first: the order, and no preemption. */
#include "support/world.h"

extern const struct policy policy_sjf;

static void the_shortest_goes_first(void **state)
{
    struct world *w = *state;
    job_id longer = world_queued(w, (struct job){ .gpus = 4, .steps_total = 20 });
    job_id shorter = world_queued(w, (struct job){ .gpus = 4, .steps_total = 10 });
    world_decide(w, &policy_sjf);
    assert_true(plan_holds(w->plan, shorter));
    assert_false(plan_holds(w->plan, longer));
}

static void no_running_job_is_preempted(void **state)
{
    struct world *w = *state;
    job_id longer = world_running(w, (struct job){ .gpus = 4, .steps_total = 1e6 });
    world_queued(w, (struct job){ .gpus = 1, .steps_total = 1 });
    world_decide(w, &policy_sjf);
    assert_int_equal(plan_change_count(w->plan), 0);
    assert_true(plan_holds(w->plan, longer));
}

static void equals_go_by_number(void **state)
{
    struct world *w = *state;
    job_id b = world_queued(w, (struct job){ .id = 9, .gpus = 4, .steps_total = 10 });
    job_id a = world_queued(w, (struct job){ .id = 8, .gpus = 4, .steps_total = 10 });
    world_decide(w, &policy_sjf);
    assert_true(plan_holds(w->plan, a));
    assert_false(plan_holds(w->plan, b));
}

static void jobs_of_unknown_work_come_last(void **state)
{
    struct world *w = *state;
    job_id unknown = world_queued(w, (struct job){ .gpus = 4 });
    job_id known = world_queued(w, (struct job){ .gpus = 4, .steps_total = 1e9 });
    world_decide(w, &policy_sjf);
    assert_true(plan_holds(w->plan, known));
    assert_false(plan_holds(w->plan, unknown));
}

static void jobs_that_do_not_fit_are_passed_over(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 2 });
    job_id big = world_queued(w, (struct job){ .gpus = 3, .steps_total = 1 });
    job_id small = world_queued(w, (struct job){ .gpus = 2, .steps_total = 2 });
    world_decide(w, &policy_sjf);
    assert_false(plan_holds(w->plan, big));
    assert_true(plan_holds(w->plan, small));
}

static void a_full_cluster_still_has_room_for_jobs_without_gpus(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 4 });
    world_queued(w, (struct job){ .gpus = 1, .steps_total = 1 });
    job_id job = world_queued(w, (struct job){ .gpus = 0, .steps_total = 2 });
    world_decide(w, &policy_sjf);
    assert_true(plan_holds(w->plan, job));
}

static void a_job_that_was_lost_is_as_long_as_what_is_left(void **state)
{
    struct world *w = *state;
    job_id other = world_queued(w, (struct job){ .gpus = 4, .steps_total = 50 });
    job_id lost =
        world_queued(w, (struct job){ .gpus = 4, .steps_total = 100, .steps = 60 });
    world_decide(w, &policy_sjf);
    assert_true(plan_holds(w->plan, lost));
    assert_false(plan_holds(w->plan, other));
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(the_shortest_goes_first), CASE(no_running_job_is_preempted),
          CASE(equals_go_by_number), CASE(jobs_of_unknown_work_come_last),
          CASE(jobs_that_do_not_fit_are_passed_over),
          CASE(a_full_cluster_still_has_room_for_jobs_without_gpus),
          CASE(a_job_that_was_lost_is_as_long_as_what_is_left));
