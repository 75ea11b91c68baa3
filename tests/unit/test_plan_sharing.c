/* Two who share accelerators, in a plan. */
#include <string.h>

#include "model/free_index.h"
#include "support/plan_fixture.h"

static void two_share_equal_seats(void **state)
{
    struct world *w = *state;
    job_id a = world_running_on(w, 1, (struct job){ .gpus = 2 });
    job_id b = world_queued(w, (struct job){ .gpus = 2 });
    world_plan(w);
    assert_true(grant_beside(w, b, a));
    assert_int_equal(world_seat(w, b, 0)->node, 1);
    assert_int_equal(world_seat(w, b, 0)->gpus, view_seats(&w->state.view, a)->gpus);
    world_carry_out(w);
    start_job(w, b);
    assert_int_equal(world_job(w, a)->partner, b);
    assert_int_equal(world_job(w, b)->partner, a);
    assert_int_equal(w->state.free.gpu_count, 6); /* two are taken, once */
}

static void not_three_and_not_unequal(void **state)
{
    struct world *w = *state;
    job_id a = world_running(w, (struct job){ .gpus = 2 });
    job_id b = world_queued(w, (struct job){ .gpus = 2 });
    job_id c = world_queued(w, (struct job){ .gpus = 2 });
    job_id d = world_queued(w, (struct job){ .gpus = 1 });
    world_plan(w);
    assert_false(grant_beside(w, d, a));
    assert_false(grant_beside(w, b, b));
    assert_false(grant_beside(w, b, c)); /* holds nothing */
    assert_true(grant_beside(w, b, a));
    assert_false(grant_beside(w, c, a)); /* in the same plan */
    assert_false(grant_beside(w, c, b));
    world_carry_out(w);
    start_job(w, b);
    world_plan(w);
    assert_false(grant_beside(w, c, a)); /* and later */
    assert_false(grant_beside(w, c, b));
}

static void when_one_stops_its_partner_keeps_the_gpus(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct world one;
        world_init(&one, 1, 4);
        job_id pair[2];
        pair[0] = world_running(&one, (struct job){ .gpus = 4 });
        pair[1] = world_queued(&one, (struct job){ .gpus = 4 });
        world_plan(&one);
        assert_true(grant_beside(&one, pair[1], pair[0]));
        world_carry_out(&one);
        start_job(&one, pair[1]);

        world_apply(&one, (struct event){ .kind = EVENT_FINISHED, .job = pair[first] });
        assert_int_equal(one.state.free.gpu_count, 0);
        assert_int_equal(world_job(&one, pair[!first])->partner, JOB_NONE);
        world_apply(&one,
                    (struct event){ .kind = EVENT_FINISHED, .job = pair[!first] });
        assert_int_equal(one.state.free.gpu_count, 4);
        world_release(&one);
    }
}

static void revoking_one_of_two_vacates_nothing(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id a = world_running(&one, (struct job){ .gpus = 4 });
    job_id b = world_queued(&one, (struct job){ .gpus = 4 });
    job_id c = world_queued(&one, (struct job){ .gpus = 1 });
    world_plan(&one);
    grant_beside(&one, b, a);
    world_carry_out(&one);
    start_job(&one, b);
    world_plan(&one);
    revoke_job(&one, a);
    assert_false(grant_job(&one, c));
    assert_true(plan_is_full(one.plan));
    world_release(&one);
}

static void a_successor_of_a_pair_waits_for_both(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct world one;
        world_init(&one, 1, 4);
        job_id pair[2];
        pair[0] = world_running(&one, (struct job){ .gpus = 4 });
        pair[1] = world_queued(&one, (struct job){ .gpus = 4 });
        job_id next = world_queued(&one, (struct job){ .gpus = 4 });
        world_plan(&one);
        grant_beside(&one, pair[1], pair[0]);
        world_carry_out(&one);
        start_job(&one, pair[1]);
        world_plan(&one);
        revoke_job(&one, pair[0]);
        revoke_job(&one, pair[1]);
        assert_true(grant_job(&one, next));
        assert_true(world_waits_for(&one, next, pair[0]));
        assert_true(world_waits_for(&one, next, pair[1]));
        world_carry_out(&one);

        world_apply(&one, (struct event){ .kind = EVENT_STOPPED, .job = pair[first] });
        assert_int_not_equal(world_job(&one, next)->pending_from, UINT32_MAX);
        assert_int_equal(one.state.free.gpu_count, 0);
        world_apply(&one, (struct event){ .kind = EVENT_STOPPED, .job = pair[!first] });
        assert_int_equal(world_job(&one, next)->pending_from, UINT32_MAX);
        start_job(&one, next);
        world_release(&one);
    }
}

static void two_partners_can_be_granted_together(void **state)
{
    struct world one;
    world_init(&one, 1, 4);
    job_id old = world_running(&one, (struct job){ .gpus = 4 });
    job_id a = world_queued(&one, (struct job){ .gpus = 3 });
    job_id b = world_queued(&one, (struct job){ .gpus = 3 });
    world_plan(&one);
    revoke_job(&one, old);
    assert_true(grant_job(&one, a));
    assert_true(grant_beside(&one, b, a));
    assert_true(world_waits_for(&one, b, old));
    world_carry_out(&one);

    world_apply(&one, (struct event){ .kind = EVENT_LOST, .job = a }); /* gives up */
    world_apply(&one, (struct event){ .kind = EVENT_STOPPED, .job = old });
    assert_int_equal(one.state.free.gpu_count, 1);
    start_job(&one, b);
    assert_int_equal(world_job(&one, b)->gpus_now, 3);
    world_release(&one);
}

/* Two who share node 0 of a world of two nodes with two GPUs each. */
static void two_share(struct world *w, job_id pair[2])
{
    world_init(w, 2, 2);
    pair[0] = world_running_on(w, 0, (struct job){ .gpus = 2 });
    pair[1] = world_queued(w, (struct job){ .gpus = 2 });
    world_plan(w);
    assert_true(grant_beside(w, pair[1], pair[0]));
    world_carry_out(w);
    start_job(w, pair[1]);
}

static void leave(struct world *w, job_id job)
{
    world_apply(w, (struct event){ .kind = EVENT_STOPPED, .job = job });
}

static void a_job_that_runs_elsewhere_moves_beside_another(void **state)
{
    struct world *w = *state;
    job_id a = world_running_on(w, 0, (struct job){ .gpus = 2 });
    job_id b = world_running_on(w, 1, (struct job){ .gpus = 2 });
    world_plan(w);
    assert_true(grant_beside(w, b, a));
    assert_true(grant_beside(w, b, a)); /* as it is already */
    world_carry_out(w);
    assert_int_equal(world_job(w, b)->state, JOB_STOPPING);
    assert_int_equal(world_job(w, b)->next_partner, a);
    leave(w, b);
    start_job(w, b);
    assert_int_equal(world_job(w, a)->partner, b);
    assert_int_equal(world_job(w, b)->partner, a);
    assert_int_equal(w->state.free.gpu_count, 6);
}

static void two_partners_are_both_renewed_in_place(void **state)
{
    for (int revoked = 0; revoked < 4; revoked++) {
        struct world w;
        job_id pair[2];
        two_share(&w, pair);
        world_plan(&w);
        struct ask ask = ASK_DEFAULT;
        ask.steps_max = 10;
        for (int i = 0; i < 2; i++)
            if (revoked >> i & 1)
                revoke_job(&w, pair[i]);
        assert_true(plan_grant(w.plan, pair[0], &ask));
        if (revoked == 1) { /* alone: its partner stays, so it moves */
            assert_int_equal(world_seat(&w, pair[0], 0)->node, 1);
            world_release(&w);
            continue;
        }
        ask.beside = pair[0];
        assert_true(plan_grant(w.plan, pair[1], &ask));
        world_carry_out(&w);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(world_job(&w, pair[i])->state, JOB_RUNNING);
            assert_int_equal(world_job(&w, pair[i])->steps_max, 10);
            assert_int_equal(world_job(&w, pair[i])->partner, pair[!i]);
        }
        world_release(&w);
    }
}

static void two_partners_move_together(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct world w;
        job_id pair[2];
        two_share(&w, pair);
        job_id next = world_queued(&w, (struct job){ .gpus = 2 });
        world_plan(&w);
        revoke_job(&w, pair[0]);
        revoke_job(&w, pair[1]);
        assert_true(grant_job(&w, pair[0])); /* stays: all is as it was */
        assert_false(plan_changes(w.plan, pair[0]));
        assert_true(grant_beside(&w, pair[1], pair[0]));
        assert_false(plan_changes(w.plan, pair[1]));

        world_plan(&w);
        revoke_job(&w, pair[0]);
        revoke_job(&w, pair[1]);
        assert_true(grant_job(&w, next)); /* free room first: node 1 */
        world_carry_out(&w);
        leave(&w, pair[0]);
        leave(&w, pair[1]);
        start_job(&w, next);
        world_plan(&w);
        assert_true(grant_job(&w, pair[0]));
        assert_true(grant_beside(&w, pair[1], pair[0]));
        world_carry_out(&w);
        start_job(&w, pair[0]);
        start_job(&w, pair[1]);
        world_apply(&w, (struct event){ .kind = EVENT_FINISHED, .job = next });

        struct bits avoid;
        bits_init(&avoid, &w.arena, 2);
        bits_set(&avoid, 0);
        struct ask ask = { .beside = JOB_NONE, .avoid = &avoid };
        world_plan(&w);
        assert_true(plan_grant(w.plan, pair[0], &ask));
        ask.beside = pair[0];
        assert_true(plan_grant(w.plan, pair[1], &ask));
        world_carry_out(&w);
        leave(&w, pair[first]);
        assert_int_equal(world_job(&w, pair[first])->partner, pair[!first]);
        assert_int_equal(world_job(&w, pair[!first])->partner, JOB_NONE);
        assert_int_equal(w.state.free.gpu_count, 0);
        leave(&w, pair[!first]);
        assert_int_equal(w.state.free.gpu_count, 2);
        start_job(&w, pair[!first]);
        start_job(&w, pair[first]);
        assert_int_equal(world_job(&w, pair[0])->partner, pair[1]);
        world_release(&w);
    }
}

static void one_partner_is_replaced_by_another(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct world w;
        job_id pair[2];
        two_share(&w, pair);
        job_id new = world_queued(&w, (struct job){ .gpus = 2 });
        world_plan(&w);
        assert_false(grant_beside(&w, new, pair[0])); /* no job is revoked */
        revoke_job(&w, pair[1]);
        assert_true(grant_beside(&w, new, pair[0]));
        assert_true(world_waits_for(&w, new, pair[1]));
        world_carry_out(&w);
        assert_int_equal(world_job(&w, pair[0])->partner, pair[1]);
        assert_int_equal(world_job(&w, pair[0])->coming, new);
        if (first) {
            /* The one who was to stay ends before: the newcomer will be alone. */
            world_apply(&w, (struct event){ .kind = EVENT_FINISHED, .job = pair[0] });
            leave(&w, pair[1]);
            assert_int_equal(world_job(&w, new)->partner, JOB_NONE);
        } else {
            leave(&w, pair[1]);
            assert_int_equal(world_job(&w, pair[0])->partner, new);
        }
        assert_int_equal(w.state.free.gpu_count, 2);
        start_job(&w, new);
        world_release(&w);
    }
}

/* Two pairs exchange partners in one plan. */
static void pairs_exchange_partners(void **state)
{
    struct world *w = *state;
    job_id a[2];
    job_id b[2];
    for (node_id n = 0; n < 2; n++) {
        a[n] = world_running_on(w, n, (struct job){ .gpus = 4 });
        b[n] = world_queued(w, (struct job){ .gpus = 4 });
        world_plan(w);
        assert_true(grant_beside(w, b[n], a[n]));
        world_carry_out(w);
        start_job(w, b[n]);
    }
    world_plan(w);
    revoke_job(w, b[0]);
    revoke_job(w, b[1]);
    assert_true(grant_beside(w, b[0], a[1]));
    assert_true(grant_beside(w, b[1], a[0]));
    world_carry_out(w);
    leave(w, b[1]);
    leave(w, b[0]);
    start_job(w, b[0]);
    start_job(w, b[1]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_job(w, a[i])->partner, b[!i]);
        assert_int_equal(world_job(w, b[!i])->partner, a[i]);
    }
}

static void jobs_that_must_not_share_do_not(void **state)
{
    struct world *w = *state;
    char text[128];
    snprintf(text, sizeof text,
             "kind,type,gpus,rate,beside,rate_beside\n"
             "A,%s,4,4,,\nA,%s,4,0,A,0\n",
             w->cluster.types[0].name, w->cluster.types[0].name);
    assert_int_equal(
        throughput_parse(&w->rates, &w->arena, "t", text, strlen(text), NULL), 0);
    job_id a = world_running(w, (struct job){ .gpus = 4 });
    job_id b = world_queued(w, (struct job){ .gpus = 4 });
    world_plan(w);
    assert_true(grant_beside(w, b, a)); /* nothing is known of them */
    world_job(w, a)->kind = world_job(w, b)->kind = 0;
    world_plan(w);
    assert_false(grant_beside(w, b, a));
}

WORLD_FIXTURE(/* nodes= */ 2, /* gpus_per_node= */ 4);

RUN_CASES(CASE(two_share_equal_seats), CASE(not_three_and_not_unequal),
          CASE(when_one_stops_its_partner_keeps_the_gpus),
          CASE(revoking_one_of_two_vacates_nothing),
          CASE(a_successor_of_a_pair_waits_for_both),
          CASE(two_partners_can_be_granted_together),
          CASE(a_job_that_runs_elsewhere_moves_beside_another),
          CASE(two_partners_are_both_renewed_in_place),
          CASE(two_partners_move_together), CASE(one_partner_is_replaced_by_another),
          CASE(pairs_exchange_partners), CASE(jobs_that_must_not_share_do_not));
