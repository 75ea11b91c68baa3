/* Revocations and their beneficiaries, refused plans, and that undoing leaves no trace. */
#include <errno.h>

#include "model/free_index.h"
#include "support/plan_fixture.h"

/* --- undoing ---------------------------------------------------------------------------------- */

static void undoing_restores_everything(void **state)
{
    struct world *w = *state;
    job_id a = world_running_on(w, 0, (struct job){ .gpus = 3 });
    job_id b =
        world_running_on(w, 1, (struct job){ .gpus = 2, .gpus_min = 1, .gpus_max = 4 });
    job_id x = world_queued(w, (struct job){ .gpus = 4 });
    job_id y = world_queued(w, (struct job){ .gpus = 2 });
    world_plan(w);
    uint64_t before = world_free_hash(w);
    size_t mark = plan_mark(w->plan);
    revoke_job(w, a);
    assert_true(grant_job(w, x));
    size_t middle = plan_mark(w->plan);
    uint64_t then = world_free_hash(w);
    assert_true(grant_job(w, y));
    assert_true(grant_gpus(w, b, 1));

    plan_undo(w->plan, middle);
    assert_true(world_free_hash(w) == then);
    assert_false(plan_changes(w->plan, y));
    assert_false(plan_changes(w->plan, b));
    assert_true(plan_holds(w->plan, x));

    plan_undo(w->plan, mark);
    assert_true(world_free_hash(w) == before);
    assert_false(plan_changes(w->plan, a));
    assert_false(plan_changes(w->plan, x));
    assert_int_equal(plan_change_count(w->plan), 0);
    assert_true(grant_job(w, y)); /* and it works as before */
    assert_int_equal(world_seat(w, y, 0)->node, 1);
}

static void undoing_a_grant_in_place_revokes_the_job_again(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, (struct job){ .gpus = 2 });
    world_plan(w);
    revoke_job(w, job);
    size_t mark = plan_mark(w->plan);
    assert_true(grant_job(w, job));
    plan_undo(w->plan, mark);
    assert_false(plan_holds(w->plan, job));
    world_carry_out(w);
    assert_int_equal(world_job(w, job)->state, JOB_STOPPING);
}

static void the_end_of_a_plan_gives_back_what_it_borrowed(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, (struct job){ .gpus = 4 });
    job_id new = world_queued(w, (struct job){ .gpus = 4 });
    uint64_t before = world_free_hash(w);
    struct plan *plan = world_plan(w);
    revoke_job(w, old);
    grant_job(w, new);
    plan_end(plan);
    w->planning = false;
    assert_true(world_free_hash(w) == before);
    assert_int_equal(plan_change_count(plan), 2); /* what it wanted can still be read */
}

/* --- what is wrong is refused ------------------------------------------------------------------------ */

static void half_a_gang_is_refused(void **state)
{
    struct world *w = *state;
    struct error err;
    job_id job = world_queued(w, (struct job){ .gpus = 4 });
    job_id elastic =
        world_queued(w, (struct job){ .gpus = 4, .gpus_min = 2, .gpus_max = 4 });
    world_plan(w);
    assert_true(grant_gpus(w, elastic, 2));
    assert_int_equal(plan_check(w->plan, &err), 0);
    assert_true(grant_gpus(w, job, 2));
    assert_int_equal(plan_check(w->plan, &err), -EPROTO);
    assert_string_equal(err.text, "job 1 is granted 2 accelerators, its gang is 4");
}

static void revoking_a_job_that_does_not_run_is_refused(void **state)
{
    struct world *w = *state;
    struct error err;
    job_id waiting = world_queued(w, (struct job){ .gpus = 4 });
    job_id running = world_running(w, (struct job){ .gpus = 4 });
    world_plan(w);
    revoke_job(w, waiting);
    assert_int_equal(plan_check(w->plan, &err), -EPROTO);
    world_plan(w);
    revoke_job(w, running);
    assert_int_equal(plan_check(w->plan, &err), 0);
    revoke_job(w, running);
    assert_int_equal(plan_check(w->plan, &err), -EPROTO);
}

static void a_waiting_job_can_be_dropped(void **state)
{
    struct world *w = *state;
    job_id hopeless = world_queued(w, (struct job){ .gpus = 1 });
    world_plan(w);
    size_t mark = plan_mark(w->plan);
    plan_drop(w->plan, hopeless);
    assert_int_equal(plan_check(w->plan, NULL), 0);
    assert_false(plan_holds(w->plan, hopeless));
    assert_false(plan_grant(w->plan, hopeless, NULL));
    plan_undo(w->plan, mark);
    assert_true(plan_grant(w->plan, hopeless, NULL));
}

static void dropping_a_running_job_is_refused(void **state)
{
    struct world *w = *state;
    struct error err;
    job_id busy = world_running(w, (struct job){ .gpus = 1 });
    world_plan(w);
    plan_drop(w->plan, busy);
    assert_int_equal(plan_check(w->plan, &err), -EPROTO);
    assert_string_equal(err.text,
                        "job 1 is dropped, but does not wait or is changed already");
}

static void sharing_with_a_revoked_job_is_refused(void **state)
{
    struct world *w = *state;
    job_id a = world_running(w, (struct job){ .gpus = 4 });
    job_id b = world_queued(w, (struct job){ .gpus = 4 });
    world_plan(w);
    assert_true(grant_beside(w, b, a));
    assert_int_equal(plan_check(w->plan, NULL), 0);
    revoke_job(w, a);
    assert_int_equal(plan_check(w->plan, NULL), -EPROTO);
}

static void the_earliest_wake_time_counts(void **state)
{
    struct world *w = *state;
    struct plan *plan = world_plan(w);
    assert_true(plan_next_wake(plan) == INT64_MAX);
    plan_wake(plan, 30);
    plan_wake(plan, 20);
    plan_wake(plan, 40);
    assert_int_equal(plan_next_wake(plan), 20);
    world_plan(w);
    assert_true(plan_next_wake(plan) == INT64_MAX);
}

static void full_means_neither_free_nor_vacated(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id job = world_running(&one, (struct job){ .gpus = 4 });
    world_plan(&one);
    assert_true(plan_is_full(one.plan));
    revoke_job(&one, job);
    assert_false(plan_is_full(one.plan));
    struct room room;
    plan_room(one.plan, 0, &room);
    assert_int_equal(room.gpus, 15);
    world_release(&one);
}

WORLD_FIXTURE(/* nodes= */ 2, /* gpus_per_node= */ 4);

RUN_CASES(CASE(undoing_restores_everything),
          CASE(undoing_a_grant_in_place_revokes_the_job_again),
          CASE(the_end_of_a_plan_gives_back_what_it_borrowed),
          CASE(half_a_gang_is_refused),
          CASE(revoking_a_job_that_does_not_run_is_refused),
          CASE(a_waiting_job_can_be_dropped), CASE(dropping_a_running_job_is_refused),
          CASE(sharing_with_a_revoked_job_is_refused),
          CASE(the_earliest_wake_time_counts),
          CASE(full_means_neither_free_nor_vacated));
