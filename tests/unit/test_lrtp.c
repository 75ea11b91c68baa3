/* Longest remaining time: which jobs are preempted for a trial job. */
#include "support/world.h"

extern const struct policy policy_lrtp;

static struct job be(uint32_t gpus, double steps_total, double steps)
{
    return (struct job){ .gpus = gpus, .steps_total = steps_total, .steps = steps };
}

static struct job te(uint32_t gpus)
{
    return (struct job){ .class = CLASS_TE, .gpus = gpus };
}

static void the_job_with_most_left_is_preempted(void **state)
{
    struct world *w = *state;
    job_id nearly_done = world_running_on(w, 0, be(8, 1000, 950));
    job_id just_begun = world_running_on(w, 1, be(8, 500, 0));
    job_id trial = world_queued(w, te(1));

    world_decide(w, &policy_lrtp);

    assert_true(world_waits_for(w, trial, just_begun));
    assert_true(plan_holds(w->plan, nearly_done));
}

static void unknown_work_counts_as_the_longest(void **state)
{
    struct world *w = *state;
    job_id known = world_running_on(w, 0, be(8, 1e6, 0));
    job_id unknown = world_running_on(w, 1, be(8, 0, 0));
    job_id trial = world_queued(w, te(1));

    world_decide(w, &policy_lrtp);

    assert_true(world_waits_for(w, trial, unknown));
    assert_true(plan_holds(w->plan, known));
}

static void of_equals_the_lowest_id_is_preempted(void **state)
{
    struct world *w = *state;
    job_id first = world_running_on(w, 0, be(8, 100, 0));
    job_id second = world_running_on(w, 1, be(8, 100, 0));
    job_id trial = world_queued(w, te(1));

    world_decide(w, &policy_lrtp);

    assert_true(world_waits_for(w, trial, first));
    assert_true(plan_holds(w->plan, second));
}

/* The longest is too small to help, and is preempted all the same: that is the rule. */
static void jobs_asked_are_preempted_whether_it_helped_or_not(void **state)
{
    struct world *w = *state;
    job_id small = world_running_on(w, 0, be(2, 900, 0));
    world_running_on(w, 0, te(6));
    job_id large = world_running_on(w, 1, be(8, 800, 0));
    job_id trial = world_queued(w, te(4));

    world_decide(w, &policy_lrtp);
    assert_true(world_waits_for(w, trial, large));
    assert_false(plan_holds(w->plan, small));

    world_decide_with(w, &policy_lrtp, "spare=true");
    assert_true(world_waits_for(w, trial, large));
    assert_true(plan_holds(w->plan, small));
}

static void no_job_is_preempted_where_it_would_not_help(void **state)
{
    struct world *w = *state;
    world_running_on(w, 0, be(2, 900, 0));
    world_running_on(w, 0, te(6));
    world_running_on(w, 1, te(8));
    job_id trial = world_queued(w, te(4));

    world_decide(w, &policy_lrtp);

    assert_int_equal(plan_change_count(w->plan), 0);
    assert_false(plan_holds(w->plan, trial));
}

static void a_progress_report_changes_the_order(void **state)
{
    struct world *w = *state;
    job_id a = world_running_on(w, 0, be(8, 1000, 0));
    job_id b = world_running_on(w, 1, be(8, 900, 0));
    job_id trial = world_queued(w, te(1));
    world_decide(w, &policy_lrtp);
    assert_true(world_waits_for(w, trial, a));

    world_apply(w, (struct event){ .kind = EVENT_PROGRESS, .job = a, .steps = 500 });
    world_decide_again(w);

    assert_true(world_waits_for(w, trial, b));
}

WORLD_FIXTURE(/* nodes= */ 2, /* gpus_per_node= */ 8);

RUN_CASES(CASE(the_job_with_most_left_is_preempted),
          CASE(unknown_work_counts_as_the_longest),
          CASE(of_equals_the_lowest_id_is_preempted),
          CASE(jobs_asked_are_preempted_whether_it_helped_or_not),
          CASE(no_job_is_preempted_where_it_would_not_help),
          CASE(a_progress_report_changes_the_order));
