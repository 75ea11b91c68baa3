/* What each event does to the books, and which events are too late to do anything. */
#include "support/world.h"
#include "support/state_check.h"

#include <math.h>
#include <string.h>

static struct event lost(job_id job, double steps)
{
    return (struct event){
        .kind = EVENT_LOST, .job = job, .steps = steps, .steps_reached = steps
    };
}

static struct event stopped(job_id job, double steps)
{
    return (struct event){ .kind = EVENT_STOPPED,
                           .job = job,
                           .steps = steps,
                           .steps_reached = steps,
                           .clean = true };
}

/* Recall 'victim' and promise its seats to 'successor'. */
static void swap(struct world *w, job_id victim, job_id successor)
{
    struct plan *plan = world_plan(w);
    plan_revoke(plan, victim, RULE_ORDER, successor);
    assert_true(plan_grant(plan, successor, NULL));
    world_carry_out(w);
}

/* --- coming and going ------------------------------------------------------------- */

static void a_submitted_job_waits_in_a_slot_of_its_own(void **state)
{
    struct world *w = *state;
    job_id a = world_queued(w, (struct job){ .id = 7, .gpus = 1 });
    job_id b = world_queued(w, (struct job){ .id = 9, .gpus = 2 });

    assert_int_not_equal(a, b);
    assert_int_equal(state_find(&w->state, 7), a);
    assert_int_equal(state_find(&w->state, 9), b);
    assert_int_equal(state_find(&w->state, 8), JOB_NONE);
    assert_int_equal(world_job(w, a)->state, JOB_WAITING);
    assert_int_equal(w->state.live_count, 2);
    assert_int_equal(w->state.waiting_count, 2);
    assert_int_equal(w->state.id_next, 10);
}

static void a_placed_job_has_seats_and_starts_in_them(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .gpus = 3 });
    world_pass(w, SECONDS(5));
    plan_grant(world_plan(w), job, NULL);
    world_carry_out(w);
    assert_int_equal(world_job(w, job)->state, JOB_PLACED);
    assert_int_equal(world_job(w, job)->attempt, 0);
    assert_int_equal(world_job(w, job)->gpus_now, 3);
    assert_int_equal(w->state.free.gpu_count, 1);
    assert_int_equal(w->state.waiting_count, 0);

    world_pass(w, SECONDS(2));
    assert_true(world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = job }));

    assert_int_equal(world_job(w, job)->state, JOB_LOADING);
    assert_int_equal(world_job(w, job)->first_start_ns, SECONDS(7));
    assert_int_equal(world_job(w, job)->waited_ns, SECONDS(7)); /* placed is waiting */
    assert_int_equal(w->state.seated_count, 1);
}

static void steps_begin_when_a_job_has_resumed(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .gpus = 1 });
    plan_grant(world_plan(w), job, NULL);
    world_carry_out(w);
    world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = job });
    world_pass(w, SECONDS(10));
    assert_near(job_steps(world_job(w, job), w->state.view.now_ns), 0, 1e-9);

    world_apply(w, (struct event){ .kind = EVENT_LOADED, .job = job, .rate_per_s = 2 });
    world_pass(w, SECONDS(10));

    assert_near(job_steps(world_job(w, job), w->state.view.now_ns), 20, 1e-9);
    assert_int_equal(job_served_ns(world_job(w, job), w->state.view.now_ns),
                     SECONDS(20));
}

static void progress_moves_the_anchor_and_keeps_the_loss(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 1 });
    world_pass(w, SECONDS(10));
    world_apply(w, (struct event){ .kind = EVENT_PROGRESS,
                                   .job = job,
                                   .steps = 7,
                                   .rate_per_s = 0.5,
                                   .loss = 1.25 });
    world_pass(w, SECONDS(4));

    assert_near(job_steps(world_job(w, job), w->state.view.now_ns), 9, 1e-9);
    assert_true(world_job(w, job)->loss == 1.25);
    const struct loss_ring *ring = &w->state.losses[world_job(w, job)->loss_ring];
    assert_int_equal(ring->count, 1);
    assert_true(ring->steps[0] == 7);
    assert_true(ring->losses[0] == 1.25);
}

static void impossible_figures_are_ignored(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 1, .steps_total = 100 });
    world_pass(w, SECONDS(10));
    double rate_per_s = world_job(w, job)->rate_per_s;
    static const double odd[] = { 1e300, -1, 1.1e15 };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct event event = { .kind = EVENT_PROGRESS,
                               .job = job,
                               .at_ns = w->state.view.now_ns,
                               .measured = true,
                               .steps = odd[i],
                               .rate_per_s = odd[i],
                               .steps_total = odd[i],
                               .loss = NAN };
        event.generation = world_job(w, job)->generation;
        assert_true(state_apply(&w->state, &event));
        assert_near(event.steps, 10 * rate_per_s, 1e-9); /* as all who listen see it */
        assert_near(world_job(w, job)->steps, 10 * rate_per_s, 1e-9);
        assert_near(world_job(w, job)->rate_per_s, rate_per_s, 0);
        assert_near(world_job(w, job)->steps_total, 100, 0);
    }
    struct event end = lost(job, 1e300);
    assert_true(world_apply(w, end));
    assert_near(world_job(w, job)->steps, 10 * rate_per_s, 1e-9);
}

/* It said that it could save in time, and had to be killed. */
static void a_killed_job_needs_more_than_its_grace_period(void **state)
{
    struct world *w = *state;
    job_id job = world_running(
        w, (struct job){ .gpus = 1, .grace_ns = SECONDS(20), .pause_ns = SECONDS(5) });
    world_plan(w);
    plan_revoke(w->plan, job, RULE_ROUND, JOB_NONE);
    world_carry_out(w);
    world_pass(w, SECONDS(20));
    struct event killed = stopped(job, 0);
    killed.clean = false;
    assert_true(world_apply(w, killed));
    assert_true(world_job(w, job)->pause_ns > world_job(w, job)->grace_ns);
}

static void a_report_without_a_loss_leaves_the_last_one(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 1 });
    world_apply(
        w, (struct event){ .kind = EVENT_PROGRESS, .job = job, .steps = 1, .loss = 3 });
    world_apply(w, (struct event){
                       .kind = EVENT_PROGRESS, .job = job, .steps = 2, .loss = NAN });

    assert_true(world_job(w, job)->loss == 3);
    assert_int_equal(w->state.losses[world_job(w, job)->loss_ring].count, 1);
}

static void the_ring_keeps_the_newest_losses(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 1 });
    for (int i = 0; i < LOSS_POINTS + 3; i++)
        world_apply(w, (struct event){
                           .kind = EVENT_PROGRESS, .job = job, .steps = i, .loss = i });

    const struct loss_ring *ring = &w->state.losses[world_job(w, job)->loss_ring];
    assert_int_equal(ring->count, LOSS_POINTS + 3);
    assert_true(ring->losses[2] == LOSS_POINTS + 2); /* the newest */
    assert_true(ring->losses[3] == 3);               /* the oldest */
}

static void rings_are_used_again(void **state)
{
    struct world *w = *state;
    job_id a = world_running(w, (struct job){ .gpus = 1 });
    world_apply(
        w, (struct event){ .kind = EVENT_PROGRESS, .job = a, .steps = 1, .loss = 3 });
    uint32_t ring = world_job(w, a)->loss_ring;
    world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = a, .steps = 2 });

    job_id b = world_running(w, (struct job){ .gpus = 1 });
    assert_int_equal(world_job(w, b)->loss_ring, UINT32_MAX);
    assert_true(isnan(world_job(w, b)->loss));
    world_apply(
        w, (struct event){ .kind = EVENT_PROGRESS, .job = b, .steps = 1, .loss = 5 });

    assert_int_equal(world_job(w, b)->loss_ring, ring);
    assert_int_equal(w->state.losses[ring].count, 1);
}

static void a_stopping_job_keeps_its_seats_until_it_has_stopped(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 4 });
    world_pass(w, SECONDS(30));
    plan_revoke(world_plan(w), job, RULE_ORDER, JOB_NONE);
    world_carry_out(w);
    assert_int_equal(world_job(w, job)->state, JOB_STOPPING);
    assert_int_equal(world_job(w, job)->preemptions, 1);
    assert_int_equal(w->state.free.gpu_count, 0);
    world_pass(w, SECONDS(5));
    assert_near(job_steps(world_job(w, job), w->state.view.now_ns), 30, 1e-9);

    world_apply(w, stopped(job, 30));

    assert_int_equal(world_job(w, job)->state, JOB_WAITING);
    assert_int_equal(w->state.free.gpu_count, 4);
    assert_int_equal(world_job(w, job)->served_ns, SECONDS(4 * 35));
    world_pass(w, SECONDS(8));
    assert_int_equal(job_served_ns(world_job(w, job), w->state.view.now_ns),
                     SECONDS(4 * 35));
}

static void time_without_seats_adds_up_over_attempts(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .gpus = 1 });
    for (int i = 0; i < 3; i++) {
        world_pass(w, SECONDS(10)); /* waits */
        plan_grant(world_plan(w), job, NULL);
        world_carry_out(w);
        world_apply(
            w, (struct event){ .kind = EVENT_STARTED, .job = job, .loaded = true });
        world_pass(w, SECONDS(100)); /* runs */
        world_apply(w, lost(job, 0));
    }
    assert_int_equal(world_job(w, job)->waited_ns, SECONDS(30));
    assert_int_equal(world_job(w, job)->served_ns, SECONDS(300));
    assert_int_equal(world_job(w, job)->attempt, 2);
    assert_int_equal(world_job(w, job)->failures, 3);
    assert_int_equal(world_job(w, job)->preemptions, 0);
    assert_int_equal(world_job(w, job)->first_start_ns, SECONDS(10));
}

static void service_is_kept_by_type(void **state)
{
    struct world mixed;
    world_init_as(&mixed, "1xv100:2,1xp100:2");
    job_id a = world_running_on(&mixed, 0, (struct job){ .gpus = 2 });
    job_id b = world_running_on(&mixed, 1, (struct job){ .gpus = 1 });
    world_pass(&mixed, SECONDS(10));
    world_apply(&mixed, lost(a, 0));
    world_apply(&mixed, lost(b, 0));

    const int64_t *served_ns = mixed.state.served_ns;
    assert_int_equal(served_ns[a * 2 + 0], SECONDS(20));
    assert_int_equal(served_ns[a * 2 + 1], 0);
    assert_int_equal(served_ns[b * 2 + 0], 0);
    assert_int_equal(served_ns[b * 2 + 1], SECONDS(10));
    world_release(&mixed);
}

static void a_finished_job_leaves_its_record_until_the_next_comes(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .id = 5, .gpus = 2 });
    uint32_t generation = world_job(w, job)->generation;
    world_pass(w, SECONDS(3));
    world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = job, .steps = 3 });
    assert_int_equal(world_job(w, job)->state, JOB_FREE);
    assert_int_equal(world_job(w, job)->id, 5);
    assert_int_equal(world_job(w, job)->served_ns, SECONDS(6));
    assert_int_equal(state_find(&w->state, 5), JOB_NONE);
    assert_int_equal(w->state.live_count, 0);
    assert_int_equal(w->state.free.gpu_count, 4);

    job_id next = world_queued(w, (struct job){ .gpus = 1 });

    assert_int_equal(next, job); /* the same slot, another generation */
    assert_int_equal(world_job(w, next)->generation, generation + 1);
    assert_int_equal(world_job(w, next)->served_ns, 0);
    assert_int_equal(world_job(w, next)->attempt, UINT32_MAX);
}

static void a_held_job_does_not_wait_until_it_is_released(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .gpus = 1 });
    assert_true(world_apply(w, (struct event){ .kind = EVENT_HELD, .job = job }));
    assert_int_equal(w->state.waiting_count, 0);
    assert_false(plan_grant(world_plan(w), job, NULL));

    assert_true(world_apply(w, (struct event){ .kind = EVENT_RELEASED, .job = job }));
    assert_int_equal(w->state.waiting_count, 1);
    assert_true(plan_grant(world_plan(w), job, NULL));
}

static void a_cancelled_waiting_job_ends(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .id = 3, .gpus = 1 });
    world_apply(w, (struct event){ .kind = EVENT_CANCELLED, .job = job });

    assert_int_equal(state_find(&w->state, 3), JOB_NONE);
    assert_int_equal(w->state.live_count, 0);
    assert_int_equal(w->state.waiting_count, 0);
}

static void a_cancelled_running_job_ends_once_it_has_stopped(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .id = 3, .gpus = 1 });
    world_apply(w, (struct event){ .kind = EVENT_CANCELLED, .job = job });
    assert_int_equal(state_find(&w->state, 3), job);

    world_apply(w, stopped(job, 0));
    assert_int_equal(state_find(&w->state, 3), JOB_NONE);
    assert_int_equal(w->state.free.gpu_count, 4);
}

/* --- leases ------------------------------------------------------------------------- */

static void a_job_idles_at_the_end_of_its_lease_until_it_is_renewed(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 4 });
    world_pass(w, SECONDS(10));
    world_apply(w, (struct event){ .kind = EVENT_LEASE_DONE, .job = job, .steps = 10 });
    assert_int_equal(world_job(w, job)->state, JOB_IDLE);
    assert_int_equal(w->state.free.gpu_count, 0);
    world_pass(w, SECONDS(5));
    assert_near(job_steps(world_job(w, job), w->state.view.now_ns), 10, 1e-9);

    struct ask ask = ASK_DEFAULT;
    ask.steps_max = 7;
    assert_true(plan_grant(world_plan(w), job, &ask));
    world_carry_out(w);
    world_pass(w, SECONDS(2));

    assert_int_equal(world_job(w, job)->state, JOB_RUNNING);
    assert_int_equal(world_job(w, job)->steps_max, 7);
    assert_near(job_steps(world_job(w, job), w->state.view.now_ns), 12, 1e-9);
    assert_int_equal(world_job(w, job)->attempt, 0); /* it never left */
}

/* --- promises ------------------------------------------------------------------------- */

static void a_pending_allocation_is_taken_for_other_jobs(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, (struct job){ .gpus = 4 });
    job_id new = world_queued(w, (struct job){ .gpus = 3 });
    job_id other = world_queued(w, (struct job){ .gpus = 2 });
    swap(w, old, new);
    assert_int_equal(world_job(w, new)->state, JOB_PLACED);
    world_apply(w, stopped(old, 0));

    /* One of old's four is free now; the three promised are not. */
    assert_int_equal(w->state.free.gpu_count, 1);
    assert_false(plan_grant(world_plan(w), other, NULL));
    assert_true(world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = new }));
}

static void a_pending_share_holds_when_the_victim_finishes_first(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, (struct job){ .gpus = 4 });
    job_id new = world_queued(w, (struct job){ .gpus = 4 });
    swap(w, old, new);
    world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = old, .steps = 1 });

    assert_int_equal(w->state.free.gpu_count, 0);
    assert_int_equal(world_job(w, new)->pending_from, UINT32_MAX);
    assert_true(world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = new }));
}

static void a_dropped_successor_leaves_the_seats_to_the_victim(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, (struct job){ .gpus = 3 });
    job_id new = world_queued(w, (struct job){ .gpus = 4 });
    swap(w, old, new);
    assert_int_equal(w->state.free.gpu_count, 0); /* the fourth is reserved */

    world_apply(w, lost(new, 0));

    assert_int_equal(world_job(w, new)->state, JOB_WAITING);
    assert_int_equal(w->state.free.gpu_count, 1);
    assert_int_equal(world_job(w, old)->pending_to, UINT32_MAX);
    world_apply(w, stopped(old, 0));
    assert_int_equal(w->state.free.gpu_count, 4);
}

static void a_moving_job_waits_for_its_pending_allocation(void **state)
{
    struct world two;
    world_init(&two, 2, 4);
    job_id job = world_running_on(&two, 0, (struct job){ .gpus = 4 });
    struct bits avoid;
    bits_init(&avoid, &two.arena, 2);
    bits_set(&avoid, 0);
    struct ask ask = ASK_DEFAULT;
    ask.avoid = &avoid;
    struct plan *plan = world_plan(&two);
    plan_revoke(plan, job, RULE_RESIZE, job);
    assert_true(plan_grant(plan, job, &ask));
    world_carry_out(&two);
    assert_int_equal(world_job(&two, job)->state, JOB_STOPPING);
    assert_int_equal(world_job(&two, job)->preemptions, 0);
    assert_int_equal(two.state.free.gpu_count, 0);

    world_apply(&two, stopped(job, 0));
    assert_int_equal(world_job(&two, job)->state, JOB_PLACED);
    assert_int_equal(world_job(&two, job)->attempt, 1);
    assert_int_equal(two.state.free.gpu_count, 4);
    world_apply(&two, (struct event){ .kind = EVENT_STARTED, .job = job });
    assert_int_equal(view_seats(&two.state.view, job)->node, 1);
    world_release(&two);
}

/* Its executor may have started it there already, and said so by a message on its way. */
static void a_cancelled_job_keeps_where_it_was_to_move_until_it_ends(void **state)
{
    struct world two;
    world_init(&two, 2, 4);
    job_id job = world_running_on(&two, 0, (struct job){ .id = 3, .gpus = 4 });
    struct bits avoid;
    bits_init(&avoid, &two.arena, 2);
    bits_set(&avoid, 0);
    struct ask ask = ASK_DEFAULT;
    ask.avoid = &avoid;
    plan_revoke(world_plan(&two), job, RULE_RESIZE, job);
    assert_true(plan_grant(two.plan, job, &ask));
    world_carry_out(&two);

    world_apply(&two, (struct event){ .kind = EVENT_CANCELLED, .job = job });
    assert_int_equal(two.state.free.gpu_count, 0);

    world_apply(&two, stopped(job, 0));
    assert_int_equal(state_find(&two.state, 3), JOB_NONE);
    assert_int_equal(two.state.free.gpu_count, 8);
    state_check(&two.state);
    world_release(&two);
}

static void a_moving_job_whose_target_fails_still_stops(void **state)
{
    struct world two;
    world_init(&two, 2, 4);
    job_id job = world_running_on(&two, 0, (struct job){ .gpus = 4 });
    struct plan *plan = world_plan(&two);
    struct bits avoid;
    bits_init(&avoid, &two.arena, 2);
    bits_set(&avoid, 0);
    struct ask ask = ASK_DEFAULT;
    ask.avoid = &avoid;
    plan_revoke(plan, job, RULE_RESIZE, job);
    plan_grant(plan, job, &ask);
    world_carry_out(&two);

    struct event gone = lost(job, 0);
    gone.attempt = world_job(&two, job)->attempt + 1;
    assert_true(world_apply(&two, gone));

    assert_int_equal(world_job(&two, job)->state, JOB_STOPPING);
    assert_int_equal(two.state.free.gpu_count, 4);
    world_apply(&two, stopped(job, 0));
    assert_int_equal(world_job(&two, job)->state, JOB_WAITING);
    world_release(&two);
}

/* --- resizing --------------------------------------------------------------------------- */

static void a_resized_job_continues_in_its_next_seats(void **state)
{
    struct world *w = *state;
    job_id job =
        world_running(w, (struct job){ .gpus = 4, .gpus_min = 1, .gpus_max = 4 });
    world_pass(w, SECONDS(10));
    struct ask ask = ASK_DEFAULT;
    ask.gpus = 1;
    struct plan *plan = world_plan(w);
    assert_true(plan_grant(plan, job, &ask));
    const struct change *grant = world_grant(w, job);
    struct event order = { .kind = EVENT_RESIZING,
                           .job = job,
                           .seats = plan_seats(plan, grant),
                           .seat_count = grant->seat_count,
                           .pending_shares = plan_pending(plan, grant),
                           .pending_count = grant->pending_count,
                           .beside = JOB_NONE };
    world_apply(w, order);
    assert_int_equal(w->state.free.gpu_count, 0);
    world_pass(w, SECONDS(5));
    assert_near(job_steps(world_job(w, job), w->state.view.now_ns), 10, 1e-9);

    world_apply(w, (struct event){ .kind = EVENT_RESIZED, .job = job, .steps = 10 });

    assert_int_equal(world_job(w, job)->gpus_now, 1);
    assert_int_equal(world_job(w, job)->state, JOB_RUNNING);
    assert_int_equal(w->state.free.gpu_count, 3);
    assert_int_equal(world_job(w, job)->served_ns, SECONDS(4 * 15));
    world_pass(w, SECONDS(8)); /* a quarter of the size, a quarter of the speed */
    assert_near(job_steps(world_job(w, job), w->state.view.now_ns), 12, 1e-9);
}

/* --- nodes ---------------------------------------------------------------------------------- */

static void a_failed_node_has_nothing_free(void **state)
{
    struct world two;
    world_init(&two, 2, 4);
    job_id job = world_running_on(&two, 0, (struct job){ .gpus = 2 });
    world_apply(&two, (struct event){ .kind = EVENT_NODE_DOWN, .node = 0 });
    assert_int_equal(two.state.free.gpu_count, 4);
    world_apply(&two, lost(job, 0));
    assert_int_equal(two.state.free.gpu_count, 4); /* it becomes free where no job is */

    world_apply(&two, (struct event){ .kind = EVENT_NODE_DOWN, .node = 0 });
    world_apply(&two, (struct event){ .kind = EVENT_NODE_UP, .node = 0 });
    assert_int_equal(two.state.free.gpu_count, 8);
    world_release(&two);
}

static void a_job_may_run_on_while_its_node_counts_as_down(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 2 });
    world_apply(w, (struct event){ .kind = EVENT_NODE_DOWN, .node = 0 });
    world_apply(w, (struct event){ .kind = EVENT_NODE_UP, .node = 0 });

    assert_int_equal(world_job(w, job)->state, JOB_RUNNING);
    assert_int_equal(w->state.free.gpu_count, 2);
}

/* --- late events -------------------------------------------------------------------------------- */

/* Everything but the time, which an event brings along. */
static uint64_t hash_of(const struct world *w, job_id id)
{
    const struct job *job = &w->state.jobs[id];
    const uint64_t words[] = { job->state,
                               job->attempt,
                               job->generation,
                               job->leaving,
                               job->seats.count,
                               job->next.count,
                               job->gpus_now,
                               (uint64_t)(job->steps * 1e6),
                               (uint64_t)(job->rate_per_s * 1e6),
                               (uint64_t)job->anchor_ns,
                               (uint64_t)job->since_ns,
                               (uint64_t)job->served_ns,
                               (uint64_t)job->waited_ns,
                               job->failures,
                               job->preemptions,
                               job->loss_ring,
                               w->state.live_count,
                               w->state.waiting_count,
                               w->state.seated_count };
    uint64_t hash = world_free_hash(w);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = (hash ^ words[i]) * 0x100000001b3u;
    return hash;
}

static void assert_late(struct world *w, struct event event)
{
    uint64_t before = hash_of(w, event.job);
    event.at_ns = w->state.view.now_ns;
    assert_false(state_apply(&w->state, &event));
    assert_true(hash_of(w, event.job) == before);
    state_check(&w->state);
}

static void events_of_another_attempt_change_nothing(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 2 });
    uint32_t generation = world_job(w, job)->generation;
    world_apply(w, lost(job, 0));
    plan_grant(world_plan(w), job, NULL);
    world_carry_out(w);
    world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = job, .loaded = true });
    assert_int_equal(world_job(w, job)->attempt, 1);

    for (int kind = EVENT_STARTED; kind <= EVENT_LOST; kind++)
        for (uint32_t attempt = 0; attempt <= 2; attempt += 2)
            assert_late(w, (struct event){ .kind = (enum event_kind)kind,
                                           .job = job,
                                           .generation = generation,
                                           .attempt = attempt,
                                           .steps = 99,
                                           .rate_per_s = 99 });
}

static void events_of_another_generation_change_nothing(void **state)
{
    struct world *w = *state;
    job_id first = world_running(w, (struct job){ .gpus = 2 });
    uint32_t generation = world_job(w, first)->generation;
    world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = first, .steps = 1 });
    assert_late(w, (struct event){ .kind = EVENT_FINISHED,
                                   .job = first,
                                   .generation = generation }); /* the slot is empty */

    job_id second = world_running(w, (struct job){ .gpus = 2 });
    assert_int_equal(first, second);
    for (int kind = EVENT_CANCELLED; kind <= EVENT_LOST; kind++)
        assert_late(w, (struct event){ .kind = (enum event_kind)kind,
                                       .job = second,
                                       .generation = generation,
                                       .attempt = 0,
                                       .steps = 99 });
}

static void a_dropped_job_ends(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .gpus = 2 });
    assert_true(world_apply(w, (struct event){ .kind = EVENT_DROPPED, .job = job }));
    assert_int_equal(world_job(w, job)->state, JOB_FREE);
    assert_int_equal(w->state.live_count, 0);
    assert_int_equal(w->state.waiting_count, 0);
}

static void the_workload_is_closed_until_a_job_is_submitted(void **state)
{
    struct world *w = *state;
    assert_false(w->state.view.closed);
    world_apply(w, (struct event){ .kind = EVENT_CLOSED, .job = JOB_NONE });
    assert_true(w->state.view.closed);
    world_queued(w, (struct job){ .gpus = 2 });
    assert_false(w->state.view.closed);
}

static void events_that_do_not_apply_change_nothing(void **state)
{
    struct world *w = *state;
    job_id waiting = world_queued(w, (struct job){ .gpus = 2 });
    job_id running = world_running(w, (struct job){ .gpus = 2 });
    static const enum event_kind not_waiting[] = {
        EVENT_STARTED, EVENT_LOADED,   EVENT_PROGRESS, EVENT_LEASE_DONE, EVENT_RESIZED,
        EVENT_STOPPED, EVENT_FINISHED, EVENT_FAILED,   EVENT_LOST,       EVENT_RELEASED
    };
    for (size_t i = 0; i < sizeof not_waiting / sizeof *not_waiting; i++)
        assert_late(w, (struct event){ .kind = not_waiting[i],
                                       .job = waiting,
                                       .generation = world_job(w, waiting)->generation,
                                       .attempt = world_job(w, waiting)->attempt });
    static const enum event_kind not_running[] = { EVENT_STARTED, EVENT_LOADED,
                                                   EVENT_RESIZED, EVENT_HELD,
                                                   EVENT_RELEASED };
    for (size_t i = 0; i < sizeof not_running / sizeof *not_running; i++)
        assert_late(w, (struct event){ .kind = not_running[i],
                                       .job = running,
                                       .generation = world_job(w, running)->generation,
                                       .attempt = 0 });
}

/* --- what its owner says anew --------------------------------------------------------- */

static void a_job_may_be_submitted_as_held(void **state)
{
    struct world *w = *state;
    job_id held = world_queued(w, (struct job){ .gpus = 1, .state = JOB_HELD });
    assert_int_equal(world_job(w, held)->state, JOB_HELD);
    assert_int_equal(w->state.waiting_count, 0);
    assert_false(plan_grant(world_plan(w), held, NULL));

    assert_true(world_apply(w, (struct event){ .kind = EVENT_RELEASED, .job = held }));
    assert_int_equal(w->state.waiting_count, 1);
    assert_true(plan_grant(world_plan(w), held, NULL));
}

static void changed_settings_of_a_held_job_hold(void **state)
{
    struct world *w = *state;
    job_id id = world_queued(w, (struct job){ .gpus = 1, .steps_total = 10 });
    struct job spec = *world_job(w, id);
    spec.class = CLASS_TE;
    spec.weight = 3;
    spec.deadline_ns = MINUTES(9);
    spec.grace_ns = SECONDS(7);
    spec.steps_total = 500;
    spec.gpus = 4; /* not for its owner to say any more */
    struct event change = { .kind = EVENT_CHANGED, .job = id, .spec = &spec };

    assert_false(world_apply(w, change)); /* it waits: only held jobs can be changed */
    world_apply(w, (struct event){ .kind = EVENT_HELD, .job = id });
    assert_true(world_apply(w, change));

    const struct job *job = world_job(w, id);
    assert_int_equal(job->class, CLASS_TE);
    assert_near(job->weight, 3, 0);
    assert_int_equal(job->deadline_ns, MINUTES(9));
    assert_int_equal(job->grace_ns, SECONDS(7));
    assert_near(job->steps_total, 500, 0);
    assert_int_equal(job->gpus, 1);
    assert_int_equal(job->state, JOB_HELD);
}

static void a_cancelled_placed_job_ends_when_its_start_fails(void **state)
{
    struct world *w = *state;
    job_id id = world_queued(w, (struct job){ .gpus = 2 });
    plan_grant(world_plan(w), id, NULL);
    world_carry_out(w);
    world_apply(w, (struct event){ .kind = EVENT_CANCELLED, .job = id });
    assert_int_equal(world_job(w, id)->state, JOB_PLACED);
    assert_true(world_apply(w, (struct event){ .kind = EVENT_LOST, .job = id }));

    assert_int_equal(world_job(w, id)->state, JOB_FREE);
    assert_int_equal(w->state.live_count, 0);
    assert_int_equal(w->state.free.gpu_count, 4);
    state_check(&w->state);
}

static void a_cancelled_job_is_granted_nothing(void **state)
{
    struct world *w = *state;
    job_id id = world_running(w, (struct job){ .gpus = 2 });
    world_apply(w, (struct event){ .kind = EVENT_CANCELLED, .job = id });
    world_apply(w, (struct event){ .kind = EVENT_RECALLED,
                                   .job = id,
                                   .rule = RULE_CANCEL,
                                   .beneficiary = JOB_NONE });
    assert_false(plan_grant(world_plan(w), id, NULL));
    assert_int_equal(world_job(w, id)->preemptions, 0);
}

static void a_second_cancellation_changes_nothing(void **state)
{
    struct world *w = *state;
    job_id id = world_running(w, (struct job){ .gpus = 2 });
    struct event cancel = { .kind = EVENT_CANCELLED, .job = id };
    assert_true(world_apply(w, cancel));
    assert_false(world_apply(w, cancel));
}

/* --- accelerators of others -------------------------------------------------------------- */

static void accelerators_that_others_use_are_not_free(void **state)
{
    struct world *w = *state;
    struct event foreign = { .kind = EVENT_FOREIGN, .job = JOB_NONE, .gpus = 7 };
    assert_true(world_apply(w, foreign));
    assert_int_equal(w->state.free.gpu_count, 1);
    foreign.gpus = 4; /* replaces what was so */
    assert_true(world_apply(w, foreign));
    assert_int_equal(w->state.free.gpu_count, 3);
    assert_int_equal(w->state.free.rooms[0].gpus, 0xb);
    state_check(&w->state);
}

static void a_job_keeps_an_accelerator_that_others_use_too(void **state)
{
    struct world *w = *state;
    job_id id = world_running(w, (struct job){ .gpus = 4 });
    struct event foreign = { .kind = EVENT_FOREIGN, .job = JOB_NONE, .gpus = 1 };
    world_apply(w, foreign);
    assert_int_equal(world_job(w, id)->gpus_now, 4);
    state_check(&w->state);

    world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = id });
    assert_int_equal(w->state.free.gpu_count, 3); /* it is theirs from now on */
    foreign.gpus = 0;
    world_apply(w, foreign);
    assert_int_equal(w->state.free.gpu_count, 4);
    state_check(&w->state);
}

/* --- after a restart -------------------------------------------------------------------- */

static void what_no_other_event_restores_is_restored(void **state)
{
    struct world *w = *state;
    job_id id = world_running(w, (struct job){ .gpus = 2 });
    struct job kept = *world_job(w, id);
    kept.attempt = 3;
    kept.steps = 40;
    kept.waited_ns = SECONDS(5);
    kept.served_ns = SECONDS(70);
    kept.preemptions = 2;
    kept.failures = 1;
    kept.load_ns = SECONDS(4);
    kept.loss = 0.25;
    const int64_t served_ns[1] = { SECONDS(70) };
    const double steps[2] = { 10, 20 };
    const double losses[2] = { 0.5, 0.25 };
    struct restored history = { served_ns, steps, losses, 2 };
    assert_true(world_apply(w, (struct event){ .kind = EVENT_RESTORED,
                                               .job = id,
                                               .spec = &kept,
                                               .history = &history }));

    const struct job *job = world_job(w, id);
    assert_int_equal(job->attempt, 3);
    assert_near(job->steps, 40, 0);
    assert_int_equal(job->waited_ns, SECONDS(5));
    assert_int_equal(job->served_ns, SECONDS(70));
    assert_int_equal(job->preemptions, 2);
    assert_int_equal(job->failures, 1);
    assert_int_equal(job->load_ns, SECONDS(4));
    assert_int_equal(w->state.served_ns[id], SECONDS(70));
    assert_int_equal(w->state.losses[job->loss_ring].count, 2);
    assert_int_equal(job->state, JOB_RUNNING);
    state_check(&w->state);
}

static void other_jobs_changed_by_an_event_are_listed(void **state)
{
    struct world *w = *state;
    job_id victim = world_running(w, (struct job){ .gpus = 4 });
    job_id heir = world_queued(w, (struct job){ .gpus = 4 });
    plan_revoke(world_plan(w), victim, RULE_ORDER, heir);
    assert_true(plan_grant(w->plan, heir, NULL));
    world_carry_out(w);
    world_apply(w, (struct event){ .kind = EVENT_STOPPED, .job = victim });
    assert_true(w->state.is_touched[heir]); /* nothing is pending for it any more */

    world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = heir });
    assert_int_equal(w->state.touched_count, 0);
}

/* --- ceilings -------------------------------------------------------------------------------------- */

/* A seat on every node for every job: many more seats than jobs. */
static void there_are_seats_for_gangs_over_every_node(void **state)
{
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct state wide;
    struct plan *plan;
    arena_init(&arena, 0);
    assert_int_equal(cluster_load(&cluster, &arena, "32xv100:16", NULL), 0);
    throughput_init(&rates, &cluster);
    state_init(&wide, &arena, &cluster, &rates, 16);
    plan = plan_new(&wide, &arena);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 1; i <= 16; i++) {
            struct job job = { .id = i,
                               .gpus = 32,
                               .gpus_min = 32,
                               .gpus_max = 32,
                               .nodes = 32,
                               .types = 1,
                               .kind = KIND_NONE,
                               .rate_best_per_s = 1 };
            struct event event = { .kind = EVENT_SUBMITTED, .spec = &job };
            assert_true(state_apply(&wide, &event));
        }
        plan_begin(plan);
        for (job_id job = 0; job < 16; job++)
            assert_true(plan_grant(plan, job, NULL));
        plan_end(plan);
        for (size_t i = 0; i < plan_change_count(plan); i++) {
            const struct change *change = plan_change(plan, i);
            struct event event = { .kind = EVENT_PLACED,
                                   .job = change->job,
                                   .seats = plan_seats(plan, change),
                                   .seat_count = change->seat_count,
                                   .beside = JOB_NONE };
            assert_true(state_apply(&wide, &event));
        }
        state_check(&wide);
        assert_int_equal(wide.free.gpu_count, 0);
        for (job_id job = 0; job < 16; job++) {
            struct event event = { .kind = EVENT_LOST,
                                   .job = job,
                                   .attempt = wide.jobs[job].attempt };
            assert_true(state_apply(&wide, &event));
            event = (struct event){ .kind = EVENT_CANCELLED, .job = job };
            assert_true(state_apply(&wide, &event));
        }
    }
    state_release(&wide);
    arena_release(&arena);
}

static void an_ended_job_gives_back_its_set_of_nodes(void **state)
{
    struct world *w = *state;
    struct node_set *set = world_set(w, "n0", NULL, true);
    job_id runs = world_running(w, (struct job){ .gpus = 1, .set = set });
    job_id waits = world_queued(
        w, (struct job){ .gpus = 1, .set = world_set(w, "n0", NULL, true) });
    assert_int_equal(set->job_count, 2);
    world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = runs, .steps = 1 });
    assert_int_equal(set->job_count, 1);
    world_apply(w, (struct event){ .kind = EVENT_CANCELLED, .job = waits });
    assert_int_equal(set->job_count, 0);
    assert_null(world_job(w, waits)->set);
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(an_ended_job_gives_back_its_set_of_nodes),
          CASE(a_submitted_job_waits_in_a_slot_of_its_own),
          CASE(a_placed_job_has_seats_and_starts_in_them),
          CASE(steps_begin_when_a_job_has_resumed),
          CASE(progress_moves_the_anchor_and_keeps_the_loss),
          CASE(impossible_figures_are_ignored),
          CASE(a_killed_job_needs_more_than_its_grace_period),
          CASE(a_report_without_a_loss_leaves_the_last_one),
          CASE(the_ring_keeps_the_newest_losses), CASE(rings_are_used_again),
          CASE(a_stopping_job_keeps_its_seats_until_it_has_stopped),
          CASE(time_without_seats_adds_up_over_attempts), CASE(service_is_kept_by_type),
          CASE(a_finished_job_leaves_its_record_until_the_next_comes),
          CASE(a_held_job_does_not_wait_until_it_is_released),
          CASE(a_cancelled_waiting_job_ends),
          CASE(a_cancelled_running_job_ends_once_it_has_stopped),
          CASE(a_job_idles_at_the_end_of_its_lease_until_it_is_renewed),
          CASE(a_pending_allocation_is_taken_for_other_jobs),
          CASE(a_pending_share_holds_when_the_victim_finishes_first),
          CASE(a_dropped_successor_leaves_the_seats_to_the_victim),
          CASE(a_moving_job_waits_for_its_pending_allocation),
          CASE(a_cancelled_job_keeps_where_it_was_to_move_until_it_ends),
          CASE(a_moving_job_whose_target_fails_still_stops),
          CASE(a_resized_job_continues_in_its_next_seats),
          CASE(a_failed_node_has_nothing_free),
          CASE(a_job_may_run_on_while_its_node_counts_as_down),
          CASE(events_of_another_attempt_change_nothing),
          CASE(events_of_another_generation_change_nothing), CASE(a_dropped_job_ends),
          CASE(the_workload_is_closed_until_a_job_is_submitted),
          CASE(events_that_do_not_apply_change_nothing),
          CASE(a_job_may_be_submitted_as_held),
          CASE(changed_settings_of_a_held_job_hold),
          CASE(a_cancelled_placed_job_ends_when_its_start_fails),
          CASE(a_cancelled_job_is_granted_nothing),
          CASE(a_second_cancellation_changes_nothing),
          CASE(accelerators_that_others_use_are_not_free),
          CASE(a_job_keeps_an_accelerator_that_others_use_too),
          CASE(what_no_other_event_restores_is_restored),
          CASE(other_jobs_changed_by_an_event_are_listed),
          CASE(there_are_seats_for_gangs_over_every_node));
