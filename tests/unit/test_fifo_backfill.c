/* EASY backfilling: which jobs may start before the head of the queue. */
#include "support/world.h"

extern const struct policy policy_fifo_backfill;

/* Two nodes of four: node 0 is taken for 100s, three of node 1 for 500s. */
static job_id head_that_waits(struct world *w)
{
    world_running_on(w, 0, (struct job){ .gpus = 4, .steps_total = 100 });
    world_running_on(w, 1, (struct job){ .gpus = 3, .steps_total = 500 });
    return world_queued(w, (struct job){ .gpus = 4, .steps_total = 10 });
}

static void a_job_on_other_nodes_may_go_ahead(void **state)
{
    struct world *w = *state;
    job_id head = head_that_waits(w);
    job_id longer = world_queued(w, (struct job){ .gpus = 1, .steps_total = 9999 });
    world_decide(w, &policy_fifo_backfill);
    assert_false(plan_holds(w->plan, head));
    assert_true(
        plan_holds(w->plan, longer)); /* on node 1; the head will be on node 0 */
}

static void a_job_that_would_delay_the_head_waits(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    world_running(&one, (struct job){ .gpus = 3, .steps_total = 100 });
    world_queued(&one, (struct job){ .gpus = 4, .steps_total = 10 });
    job_id late = world_queued(&one, (struct job){ .gpus = 1, .steps_total = 101 });
    job_id in_time = world_queued(&one, (struct job){ .gpus = 1, .steps_total = 100 });
    world_decide(&one, &policy_fifo_backfill);
    assert_false(plan_holds(one.plan, late));
    assert_true(plan_holds(one.plan, in_time)); /* shorter, behind it, same size */
    world_release(&one);
}

static void its_time_to_resume_counts(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    world_running(&one, (struct job){ .gpus = 3, .steps_total = 100 });
    world_queued(&one, (struct job){ .gpus = 4, .steps_total = 10 });
    job_id job = world_queued(
        &one, (struct job){ .gpus = 1, .steps_total = 95, .load_ns = SECONDS(6) });
    world_decide(&one, &policy_fifo_backfill);
    assert_false(plan_holds(one.plan, job));
    world_release(&one);
}

static void a_job_of_unknown_length_may_only_use_other_nodes(void **state)
{
    struct world *w = *state;
    head_that_waits(w);
    job_id unknown = world_queued(w, (struct job){ .gpus = 1 });
    world_decide(w, &policy_fifo_backfill);
    assert_true(plan_holds(w->plan, unknown));
    assert_int_equal(world_seat(w, unknown, 0)->node, 1);

    struct world one;
    world_init(&one, 1, 4);
    world_running(&one, (struct job){ .gpus = 3, .steps_total = 100 });
    world_queued(&one, (struct job){ .gpus = 4, .steps_total = 10 });
    job_id there = world_queued(&one, (struct job){ .gpus = 1 });
    world_decide(&one, &policy_fifo_backfill);
    assert_false(plan_holds(one.plan, there));
    world_release(&one);
}

static void later_jobs_start_in_order_of_submission(void **state)
{
    struct world *w = *state;
    head_that_waits(w);
    world_pass(w, 1);
    job_id first = world_queued(w, (struct job){ .gpus = 1, .steps_total = 80 });
    world_pass(w, 1);
    job_id second = world_queued(w, (struct job){ .gpus = 1, .steps_total = 1 });
    world_decide(w, &policy_fifo_backfill);
    assert_true(plan_holds(w->plan, first));
    assert_false(plan_holds(w->plan, second));
}

static void the_reservation_moves_when_a_job_ends_early(void **state)
{
    struct world *w = *state;
    job_id early =
        world_running_on(w, 0, (struct job){ .gpus = 3, .steps_total = 100 });
    world_running_on(w, 1, (struct job){ .gpus = 4, .steps_total = 50 });
    job_id head = world_queued(w, (struct job){ .gpus = 4, .steps_total = 10 });
    job_id job = world_queued(w, (struct job){ .gpus = 1, .steps_total = 70 });
    world_decide(w, &policy_fifo_backfill);
    assert_true(plan_holds(w->plan, job)); /* the head will start on node 1, at 50s */

    world_apply(w,
                (struct event){ .kind = EVENT_FINISHED, .job = early, .steps = 100 });
    world_decide_again(w);
    assert_true(plan_holds(w->plan, head)); /* node 0 is free after all */
    assert_false(plan_holds(w->plan, job));
}

static void no_job_is_preempted(void **state)
{
    struct world *w = *state;
    job_id head = head_that_waits(w);
    world_decide(w, &policy_fifo_backfill);
    assert_false(plan_holds(w->plan, head));
    assert_int_equal(plan_change_count(w->plan), 0);
}

WORLD_FIXTURE(/* nodes= */ 2, /* gpus_per_node= */ 4);

RUN_CASES(CASE(a_job_on_other_nodes_may_go_ahead),
          CASE(a_job_that_would_delay_the_head_waits), CASE(its_time_to_resume_counts),
          CASE(a_job_of_unknown_length_may_only_use_other_nodes),
          CASE(later_jobs_start_in_order_of_submission),
          CASE(the_reservation_moves_when_a_job_ends_early), CASE(no_job_is_preempted));
