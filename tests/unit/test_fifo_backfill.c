/* EASY backfilling: who may go ahead of the head of the queue. */
#include "support/world.h"

extern const struct policy policy_fifo_backfill;

/* Two nodes of four: node 0 is taken for 100s, three of node 1 for 500s. */
static job_id head_that_waits(struct world *w)
{
    world_running_on(w, 0, (struct job){ .gpus = 4, .steps_total = 100 });
    world_running_on(w, 1, (struct job){ .gpus = 3, .steps_total = 500 });
    return world_queued(w, (struct job){ .gpus = 4, .steps_total = 10 });
}

static void one_that_is_not_in_the_way_may_go_ahead(void **state)
{
    struct world *w = *state;
    job_id head = head_that_waits(w);
    job_id longer = world_queued(w, (struct job){ .gpus = 1, .steps_total = 9999 });
    world_decide(w, &policy_fifo_backfill);
    assert_false(plan_holds(w->plan, head));
    assert_true(
        plan_holds(w->plan, longer)); /* on node 1; the head will be on node 0 */
}

static void one_that_would_be_in_the_way_waits(void **state)
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

static void its_loading_counts(void **state)
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

static void one_that_does_not_say_may_only_go_elsewhere(void **state)
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

static void those_behind_go_in_order_of_submission(void **state)
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

static void the_reservation_moves_when_somebody_ends_early(void **state)
{
    struct world *w = *state;
    job_id early =
        world_running_on(w, 0, (struct job){ .gpus = 3, .steps_total = 100 });
    world_running_on(w, 1, (struct job){ .gpus = 4, .steps_total = 50 });
    job_id head = world_queued(w, (struct job){ .gpus = 4, .steps_total = 10 });
    job_id job = world_queued(w, (struct job){ .gpus = 1, .steps_total = 70 });
    world_decide(w, &policy_fifo_backfill);
    assert_true(plan_holds(w->plan, job)); /* the head is to be on node 1, at 50s */

    world_apply(w,
                (struct event){ .kind = EVENT_FINISHED, .job = early, .steps = 100 });
    world_decide_again(w);
    assert_true(plan_holds(w->plan, head)); /* node 0 is free after all */
    assert_false(plan_holds(w->plan, job));
}

static void nobody_is_displaced(void **state)
{
    struct world *w = *state;
    job_id head = head_that_waits(w);
    world_decide(w, &policy_fifo_backfill);
    assert_false(plan_holds(w->plan, head));
    assert_int_equal(plan_change_count(w->plan), 0);
}

WORLD_FIXTURE(/* nodes= */ 2, /* gpus_per_node= */ 4);

RUN_CASES(CASE(one_that_is_not_in_the_way_may_go_ahead),
          CASE(one_that_would_be_in_the_way_waits), CASE(its_loading_counts),
          CASE(one_that_does_not_say_may_only_go_elsewhere),
          CASE(those_behind_go_in_order_of_submission),
          CASE(the_reservation_moves_when_somebody_ends_early),
          CASE(nobody_is_displaced));
