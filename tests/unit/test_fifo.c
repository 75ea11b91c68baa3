/* First come, first served, strictly. */
#include "support/world.h"

extern const struct policy policy_fifo;

static void the_first_to_come_goes_first(void **state)
{
    struct world *w = *state;
    job_id first = world_queued(w, (struct job){ .id = 20, .gpus = 4 });
    world_pass(w, 1);
    job_id second = world_queued(w, (struct job){ .id = 10, .gpus = 4 });
    world_decide(w, &policy_fifo);
    assert_true(plan_holds(w->plan, first));
    assert_false(plan_holds(w->plan, second));
}

static void the_head_holds_up_the_rest(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 2 });
    world_queued(w, (struct job){ .gpus = 4 });
    job_id small = world_queued(w, (struct job){ .gpus = 1 });
    world_decide(w, &policy_fifo);
    assert_false(plan_holds(w->plan, small));
    assert_int_equal(plan_change_count(w->plan), 0);
}

static void as_many_as_fit_start_together(void **state)
{
    struct world *w = *state;
    job_id jobs[3];
    for (int i = 0; i < 3; i++)
        jobs[i] = world_queued(w, (struct job){ .gpus = 2 });
    world_decide(w, &policy_fifo);
    assert_true(plan_holds(w->plan, jobs[0]));
    assert_true(plan_holds(w->plan, jobs[1]));
    assert_false(plan_holds(w->plan, jobs[2]));
}

static void a_job_that_lost_its_node_keeps_its_place(void **state)
{
    struct world *w = *state;
    job_id early = world_running(w, (struct job){ .gpus = 4 });
    world_pass(w, SECONDS(1));
    job_id late = world_queued(w, (struct job){ .gpus = 4 });
    world_decide(w, &policy_fifo);
    world_apply(w, (struct event){ .kind = EVENT_LOST, .job = early });
    world_decide_again(w);
    assert_true(plan_holds(w->plan, early));
    assert_false(plan_holds(w->plan, late));
}

static void a_job_that_is_held_lets_others_pass(void **state)
{
    struct world *w = *state;
    job_id held = world_queued(w, (struct job){ .gpus = 4 });
    job_id next = world_queued(w, (struct job){ .gpus = 4 });
    world_decide(w, &policy_fifo);
    world_apply(w, (struct event){ .kind = EVENT_HELD, .job = held });
    world_decide_again(w);
    assert_true(plan_holds(w->plan, next));

    world_apply(w, (struct event){ .kind = EVENT_RELEASED, .job = held });
    world_decide_again(w);
    assert_true(plan_holds(w->plan, held)); /* back in its old place */
    assert_false(plan_holds(w->plan, next));
}

static void a_cancelled_head_is_no_head(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 1 });
    job_id big = world_queued(w, (struct job){ .gpus = 4 });
    job_id small = world_queued(w, (struct job){ .gpus = 1 });
    world_decide(w, &policy_fifo);
    assert_false(plan_holds(w->plan, small));
    world_apply(w, (struct event){ .kind = EVENT_CANCELLED, .job = big });
    world_decide_again(w);
    assert_true(plan_holds(w->plan, small));
}

/* A head that did not fit is tried again after whatever makes room, and only then. */
static void the_head_waits_for_room(void **state)
{
    struct world *w = *state;
    job_id head = world_queued(w, (struct job){ .gpus = 2 });
    world_apply(w, (struct event){ .kind = EVENT_FOREIGN, .gpus = 0xf });
    world_decide(w, &policy_fifo);
    world_queued(w, (struct job){ .gpus = 1 });
    world_decide_again(w);
    assert_int_equal(plan_change_count(w->plan), 0);
    world_apply(w, (struct event){ .kind = EVENT_FOREIGN, .gpus = 0x7 });
    world_decide_again(w);
    assert_int_equal(plan_change_count(w->plan), 0);
    world_apply(w, (struct event){ .kind = EVENT_FOREIGN, .gpus = 0x3 });
    world_decide_again(w);
    assert_true(plan_holds(w->plan, head));
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(the_first_to_come_goes_first), CASE(the_head_holds_up_the_rest),
          CASE(as_many_as_fit_start_together),
          CASE(a_job_that_lost_its_node_keeps_its_place),
          CASE(a_job_that_is_held_lets_others_pass), CASE(a_cancelled_head_is_no_head),
          CASE(the_head_waits_for_room));
