/*
 * The simulated cluster, to the nanosecond: resuming, stopping, losing, sharing,
 * failing.
 */
#include "support/world.h"

#include "executor/sim/sim.h"
#include "model/outbox.h"
#include "support/state_check.h"

/* A world by hand, with the simulated cluster to carry out its orders. */
struct bench {
    struct world w;
    struct sim_cluster sim;
    struct outbox outbox;
};

static void bench_init(struct bench *b, const char *cluster, struct sim_faults faults,
                       uint64_t seed)
{
    world_init_as(&b->w, cluster);
    b->outbox = (struct outbox){ 0 };
    sim_cluster_init(&b->sim, &b->w.arena, &b->w.state.view, &b->outbox, &faults, seed);
}

static void bench_release(struct bench *b)
{
    sim_cluster_release(&b->sim);
    outbox_release(&b->outbox);
    world_release(&b->w);
}

static job_id arrive(struct bench *b, struct job job, struct sim_truth truth)
{
    job_id id = world_queued(&b->w, job);
    sim_cluster_admit(&b->sim, id, &truth);
    return id;
}

/* Apply the new events, as the engine would. */
static void hear(struct bench *b)
{
    for (uint32_t i = 0; i < b->outbox.count; i++)
        assert_true(state_apply(&b->w.state, &b->outbox.events[i]));
    state_check(&b->w.state);
}

static void advance(struct bench *b, int64_t to_ns)
{
    b->outbox.count = 0;
    sim_cluster_advance(&b->sim, to_ns);
    hear(b);
    b->w.state.view.now_ns = to_ns;
}

/* Give the executor the order that the last plan made for 'job'. */
static void tell(struct bench *b, job_id job, bool resize)
{
    const struct change *grant = world_grant(&b->w, job);
    const struct seat *seats = plan_seats(b->w.plan, grant);
    const struct pending_part *pending_shares = plan_pending(b->w.plan, grant);
    job_id after[8];
    struct lease lease = { .job = job,
                           .generation = world_job(&b->w, job)->generation,
                           .attempt = world_job(&b->w, job)->attempt,
                           .type = b->w.cluster.nodes[seats[0].node].type,
                           .spread = grant->spread,
                           .beside = grant->beside,
                           .seats = seats,
                           .seat_count = grant->seat_count,
                           .after = after,
                           .after_count = grant->pending_count,
                           .steps_max = grant->steps_max,
                           .together = grant->together };
    for (uint32_t i = 0; i < grant->seat_count; i++)
        lease.gpus += seat_gpu_count(&seats[i]);
    for (uint32_t i = 0; i < grant->pending_count; i++)
        after[i] = pending_shares[i].victim;
    b->outbox.count = 0;
    assert_int_equal(
        (resize ? executor_sim.resize : executor_sim.start)(&b->sim, &lease, NULL), 0);
    hear(b);
}

static void start_asking(struct bench *b, job_id job, struct ask ask)
{
    assert_true(plan_grant(world_plan(&b->w), job, &ask));
    world_carry_out(&b->w);
    tell(b, job, false);
}

static void start(struct bench *b, job_id job)
{
    start_asking(b, job, ASK_DEFAULT);
}

static void stop(struct bench *b, job_id job, int64_t grace_ns)
{
    if (world_job(&b->w, job)->state != JOB_STOPPING) {
        plan_revoke(world_plan(&b->w), job, RULE_ORDER, JOB_NONE);
        world_carry_out(&b->w);
    }
    b->outbox.count = 0;
    executor_sim.stop(&b->sim, job, grace_ns, NULL);
    hear(b);
}

/* The next event is this one, at this time. */
static const struct event *expect(struct bench *b, enum event_kind kind, job_id job,
                                  int64_t at_ns)
{
    assert_int_equal(sim_cluster_next_ns(&b->sim), at_ns);
    advance(b, at_ns);
    for (uint32_t i = 0; i < b->outbox.count; i++)
        if (b->outbox.events[i].kind == kind && b->outbox.events[i].job == job)
            return &b->outbox.events[i];
    fail_msg("no '%s' of job %u", event_name(kind), job);
    return NULL;
}

static const struct sim_faults none = { 0 };

/* --- running ------------------------------------------------------------------------- */

static void a_job_loads_and_then_makes_its_steps(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:4", none, 1);
    job_id job = arrive(&b, (struct job){ .gpus = 2 },
                        (struct sim_truth){ .steps = 10, .load_ns = SECONDS(3) });
    start(&b, job);
    assert_int_equal(b.outbox.events[0].kind, EVENT_STARTED);
    assert_false(b.outbox.events[0].loaded);
    expect(&b, EVENT_LOADED, job, SECONDS(3));
    const struct event *event = expect(&b, EVENT_FINISHED, job, SECONDS(13));
    assert_true(event->steps == 10);
    assert_true(sim_cluster_next_ns(&b.sim) == INT64_MAX);
    assert_true(sim_cluster_is_quiet(&b.sim));
    bench_release(&b);
}

static void without_loading_it_makes_steps_at_once(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:4", none, 1);
    job_id job =
        arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 2.5 });
    start(&b, job);
    assert_true(b.outbox.events[0].loaded);
    expect(&b, EVENT_FINISHED, job, INT64_C(2500000000));
    bench_release(&b);
}

static void a_job_can_end_in_failure(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:4", none, 1);
    job_id job = arrive(&b, (struct job){ .gpus = 1 },
                        (struct sim_truth){ .steps = 2, .fails = true });
    start(&b, job);
    expect(&b, EVENT_FAILED, job, SECONDS(2));
    bench_release(&b);
}

static void a_slower_type_takes_longer(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    b.w.cluster.types[0].speed = 0.25;
    job_id job =
        arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 2 });
    start(&b, job);
    expect(&b, EVENT_FINISHED, job, SECONDS(8));
    bench_release(&b);
}

static void a_lease_ends_after_so_many_steps(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    struct ask ask = ASK_DEFAULT;
    ask.steps_max = 4;
    job_id job =
        arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 10 });
    start_asking(&b, job, ask);
    const struct event *event =
        expect(&b, EVENT_LEASE_DONE, job, SECONDS(4) - 1); /* a little earlier */
    assert_true(event->steps == 4);
    assert_true(sim_cluster_next_ns(&b.sim) == INT64_MAX); /* it idles */

    advance(&b, SECONDS(9));
    assert_true(plan_grant(world_plan(&b.w), job, NULL));
    world_carry_out(&b.w);
    b.outbox.count = 0;
    executor_sim.renew(&b.sim, job, 0, false, NULL);
    expect(&b, EVENT_FINISHED, job, SECONDS(9 + 6));
    bench_release(&b);
}

/* --- stopping --------------------------------------------------------------------- */

static void a_checkpoint_within_the_grace_period_keeps_everything(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id job = arrive(&b, (struct job){ .gpus = 1 },
                        (struct sim_truth){ .steps = 100, .pause_ns = SECONDS(5) });
    start(&b, job);
    advance(&b, SECONDS(30));
    stop(&b, job, SECONDS(5)); /* just enough */
    const struct event *event = expect(&b, EVENT_STOPPED, job, SECONDS(35));
    assert_true(event->clean);
    assert_near(event->steps, 30, 1e-9);
    start(&b, job);
    expect(&b, EVENT_FINISHED, job, SECONDS(35 + 70));
    bench_release(&b);
}

static void a_checkpoint_longer_than_the_grace_period_is_a_kill(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id job =
        arrive(&b, (struct job){ .gpus = 1 },
               (struct sim_truth){
                   .steps = 100, .pause_ns = SECONDS(6), .ckpt_ns = SECONDS(20) });
    start(&b, job);
    advance(&b, SECONDS(50));
    stop(&b, job, SECONDS(5));
    const struct event *event = expect(&b, EVENT_STOPPED, job, SECONDS(55));
    assert_false(event->clean);
    assert_near(event->steps, 40, 1e-9); /* saved at 20s and 40s */
    assert_near(event->steps_reached, 50, 1e-9);
    start(&b, job);
    expect(&b, EVENT_FINISHED, job, SECONDS(55 + 60));
    bench_release(&b);
}

static void a_job_that_keeps_nothing_leaves_early_and_begins_anew(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id job = arrive(&b, (struct job){ .gpus = 1 },
                        (struct sim_truth){ .steps = 100,
                                            .pause_ns = SECONDS(1),
                                            .load_ns = SECONDS(2),
                                            .keeps_nothing = true,
                                            .unseen = true });
    start(&b, job);
    assert_false(expect(&b, EVENT_LOADED, job, SECONDS(2))->measured);
    advance(&b, SECONDS(30));
    stop(&b, job, SECONDS(60));
    const struct event *event = expect(&b, EVENT_STOPPED, job, SECONDS(31));
    assert_false(event->clean);
    assert_near(event->steps, 0, 0);
    assert_near(event->steps_reached, 28, 1e-9);
    start(&b, job);
    expect(&b, EVENT_LOADED, job, SECONDS(33));
    expect(&b, EVENT_FINISHED, job, SECONDS(133));
    bench_release(&b);
}

static void checkpoints_are_counted_from_each_start(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id job =
        arrive(&b, (struct job){ .gpus = 1 },
               (struct sim_truth){
                   .steps = 100, .pause_ns = SECONDS(1), .ckpt_ns = SECONDS(20) });
    start(&b, job);
    advance(&b, SECONDS(15));
    stop(&b, job, SECONDS(1));
    expect(&b, EVENT_STOPPED, job, SECONDS(16)); /* clean: 15 kept */
    start(&b, job);
    advance(&b, SECONDS(16 + 19)); /* 34 steps, 19 of them since its start */
    stop(&b, job, 0);
    const struct event *event = expect(&b, EVENT_STOPPED, job, SECONDS(35));
    assert_near(event->steps, 15, 1e-9);
    assert_near(event->steps_reached, 34, 1e-9);
    bench_release(&b);
}

/*
 * Alone 25s, with another 50s at 0.6: 55 steps, the last checkpoint at 60s of running.
 */
static void checkpoints_go_by_time_whatever_the_rate(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id job =
        arrive(&b, (struct job){ .gpus = 1 },
               (struct sim_truth){
                   .steps = 1000, .pause_ns = SECONDS(1), .ckpt_ns = SECONDS(20) });
    job_id other =
        arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 99 });
    struct ask ask = ASK_DEFAULT;
    ask.beside = job;
    start(&b, job);
    advance(&b, SECONDS(25));
    start_asking(&b, other, ask);
    advance(&b, SECONDS(75));
    stop(&b, job, 0);
    const struct event *event = expect(&b, EVENT_STOPPED, job, SECONDS(75));
    assert_near(event->steps_reached, 25 + 0.6 * 50, 1e-9);
    assert_near(event->steps, 25 + 0.6 * 35, 1e-9);
    bench_release(&b);
}

static void without_grace_only_what_was_saved_is_kept(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id job = arrive(&b, (struct job){ .gpus = 1 },
                        (struct sim_truth){ .steps = 100, .pause_ns = 1 });
    start(&b, job);
    advance(&b, SECONDS(50));
    stop(&b, job, 0);
    const struct event *event = expect(&b, EVENT_STOPPED, job, SECONDS(50));
    assert_true(event->steps == 0); /* it never saves by itself */
    bench_release(&b);
}

static void a_job_without_checkpoint_time_stops_cleanly_at_once(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id job =
        arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 100 });
    start(&b, job);
    advance(&b, SECONDS(50));
    stop(&b, job, 0);
    const struct event *event = expect(&b, EVENT_STOPPED, job, SECONDS(50));
    assert_true(event->clean);
    assert_near(event->steps, 50, 1e-9);
    bench_release(&b);
}

static void a_loading_job_has_nothing_to_save(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id job =
        arrive(&b, (struct job){ .gpus = 1 },
               (struct sim_truth){
                   .steps = 100, .load_ns = SECONDS(10), .pause_ns = SECONDS(10) });
    start(&b, job);
    advance(&b, SECONDS(4));
    stop(&b, job, SECONDS(1));
    const struct event *event = expect(&b, EVENT_STOPPED, job, SECONDS(4));
    assert_true(event->steps == 0);
    start(&b, job);
    expect(&b, EVENT_LOADED, job, SECONDS(14)); /* from the beginning */
    bench_release(&b);
}

static void a_successor_starts_when_the_last_predecessor_has_left(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:2", none, 1);
    job_id slow = arrive(&b, (struct job){ .gpus = 1 },
                         (struct sim_truth){ .steps = 100, .pause_ns = SECONDS(9) });
    job_id quick = arrive(&b, (struct job){ .gpus = 1 },
                          (struct sim_truth){ .steps = 100, .pause_ns = SECONDS(2) });
    job_id next =
        arrive(&b, (struct job){ .gpus = 2 }, (struct sim_truth){ .steps = 5 });
    start(&b, slow);
    start(&b, quick);
    struct plan *plan = world_plan(&b.w);
    plan_revoke(plan, slow, RULE_ORDER, next);
    plan_revoke(plan, quick, RULE_ORDER, next);
    assert_true(plan_grant(plan, next, NULL));
    world_carry_out(&b.w);
    tell(&b, next, false);
    assert_int_equal(b.outbox.count, 0); /* not yet */
    stop(&b, slow, SECONDS(10));
    stop(&b, quick, SECONDS(10));
    expect(&b, EVENT_STOPPED, quick, SECONDS(2));
    assert_int_equal(b.outbox.count, 1);
    expect(&b, EVENT_STARTED, next, SECONDS(9));
    expect(&b, EVENT_FINISHED, next, SECONDS(14));
    bench_release(&b);
}

static void cancelling_ends_a_job_now(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id job =
        arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 100 });
    start(&b, job);
    advance(&b, SECONDS(10));
    world_apply(&b.w, (struct event){ .kind = EVENT_CANCELLED, .job = job });
    b.outbox.count = 0;
    executor_sim.cancel(&b.sim, job, NULL);
    hear(&b);
    assert_int_equal(b.outbox.events[0].kind, EVENT_STOPPED);
    assert_int_equal(world_job(&b.w, job)->state, JOB_FREE);
    assert_true(sim_cluster_is_quiet(&b.sim));
    bench_release(&b);
}

/* --- resizing ---------------------------------------------------------------------------- */

static void a_resize_costs_a_checkpoint_and_a_resume(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:4", none, 1);
    job_id job =
        arrive(&b, (struct job){ .gpus = 2, .gpus_min = 1, .gpus_max = 4 },
               (struct sim_truth){
                   .steps = 100, .pause_ns = SECONDS(2), .load_ns = SECONDS(3) });
    start(&b, job);
    expect(&b, EVENT_LOADED, job, SECONDS(3));
    advance(&b, SECONDS(13)); /* ten steps */
    struct ask ask = ASK_DEFAULT;
    ask.gpus = 4;
    struct plan *plan = world_plan(&b.w);
    assert_true(plan_grant(plan, job, &ask));
    const struct change *grant = world_grant(&b.w, job);
    plan_end(plan);
    b.w.planning = false;
    struct event order = { .at_ns = SECONDS(13),
                           .kind = EVENT_RESIZING,
                           .job = job,
                           .seats = plan_seats(plan, grant),
                           .seat_count = grant->seat_count,
                           .pending_shares = plan_pending(plan, grant),
                           .pending_count = grant->pending_count,
                           .beside = JOB_NONE };
    assert_true(state_apply(&b.w.state, &order));
    tell(&b, job, true);
    const struct event *event = expect(&b, EVENT_RESIZED, job, SECONDS(18));
    assert_near(event->steps, 10, 1e-9);
    assert_int_equal(world_job(&b.w, job)->gpus_now, 4);
    expect(&b, EVENT_FINISHED, job, SECONDS(18 + 45)); /* 90 steps at twice the speed */
    bench_release(&b);
}

/* --- sharing ------------------------------------------------------------------------------ */

static void two_on_one_gpu_are_slower_while_they_share(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id a =
        arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 100 });
    job_id c = arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 30 });
    start(&b, a);
    advance(&b, SECONDS(10));
    struct ask ask = ASK_DEFAULT;
    ask.beside = a;
    start_asking(&b, c, ask);
    assert_near(world_job(&b.w, a)->rate_per_s, 0.6, 1e-12);
    assert_near(world_job(&b.w, c)->rate_per_s, 0.6, 1e-12);
    expect(&b, EVENT_FINISHED, c, SECONDS(10 + 50)); /* 30 steps at 0.6 */
    assert_near(world_job(&b.w, a)->rate_per_s, 1, 1e-12);
    expect(&b, EVENT_FINISHED, a, SECONDS(60 + 60)); /* 100 - 10 - 30 left */
    bench_release(&b);
}

static void two_jobs_that_start_together_share_from_the_start(void **state)
{
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    job_id old = arrive(&b, (struct job){ .gpus = 1 },
                        (struct sim_truth){ .steps = 100, .pause_ns = SECONDS(5) });
    job_id a = arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 60 });
    job_id c = arrive(&b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 30 });
    start(&b, old);
    struct ask ask = ASK_DEFAULT;
    ask.beside = a;
    struct plan *plan = world_plan(&b.w);
    plan_revoke(plan, old, RULE_ORDER, a);
    assert_true(plan_grant(plan, a, NULL));
    assert_true(plan_grant(plan, c, &ask));
    world_carry_out(&b.w);
    tell(&b, a, false);
    tell(&b, c, false);
    stop(&b, old, SECONDS(5));
    expect(&b, EVENT_STARTED, a, SECONDS(5));
    expect(&b, EVENT_FINISHED, c, SECONDS(5 + 50));
    expect(&b, EVENT_FINISHED, a, SECONDS(55 + 30));
    bench_release(&b);
}

/* A job of 100 steps and one of 'steps' on one GPU, each with a lease that says so. */
static void two_together(struct bench *b, double steps, job_id pair[2])
{
    static const uint64_t lease[2] = { 60, 30 };
    bench_init(b, "1xv100:1", none, 1);
    pair[0] = arrive(b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = 100 });
    pair[1] =
        arrive(b, (struct job){ .gpus = 1 }, (struct sim_truth){ .steps = steps });
    for (int i = 0; i < 2; i++) {
        struct ask ask = ASK_DEFAULT;
        ask.beside = i ? pair[0] : JOB_NONE;
        ask.steps_max = lease[i];
        ask.together = true;
        start_asking(b, pair[i], ask);
    }
}

static bool heard(const struct bench *b, enum event_kind kind, job_id job)
{
    for (uint32_t i = 0; i < b->outbox.count; i++)
        if (b->outbox.events[i].kind == kind && b->outbox.events[i].job == job)
            return true;
    return false;
}

/* 60 and 30 steps at 0.6: after 50 s one is done, and waits for the other. */
static void leases_that_end_together_end_with_the_later(void **state)
{
    struct bench b;
    job_id pair[2];
    two_together(&b, 100, pair);
    advance(&b, SECONDS(50));
    assert_int_equal(b.outbox.count, 0);
    expect(&b, EVENT_LEASE_DONE, pair[0], SECONDS(100) - 1); /* as slow as with it */
    assert_true(heard(&b, EVENT_LEASE_DONE, pair[1]));
    assert_near(world_job(&b.w, pair[0])->steps, 60, 1e-9);
    assert_near(world_job(&b.w, pair[1])->steps, 30, 1e-9);
    bench_release(&b);
}

static void a_job_that_is_done_waits_for_its_partner_too(void **state)
{
    struct bench b;
    job_id pair[2];
    two_together(&b, 12, pair);
    advance(&b, SECONDS(20));
    assert_int_equal(b.outbox.count, 0);
    expect(&b, EVENT_LEASE_DONE, pair[0], SECONDS(100) - 1);
    assert_true(heard(&b, EVENT_FINISHED, pair[1]));
    bench_release(&b);
}

static void a_stopped_partner_is_not_waited_for(void **state)
{
    struct bench b;
    job_id pair[2];
    two_together(&b, 12, pair);
    advance(&b, SECONDS(30));
    assert_int_equal(world_job(&b.w, pair[1])->state, JOB_RUNNING);
    stop(&b, pair[0], 0);
    advance(&b, SECONDS(30));
    assert_true(heard(&b, EVENT_FINISHED, pair[1]));
    bench_release(&b);
}

static void leases_of_two_waiting_partners_can_be_renewed(void **state)
{
    struct bench b;
    job_id pair[2];
    two_together(&b, 100, pair);
    advance(&b, SECONDS(70));
    b.outbox.count = 0;
    executor_sim.renew(&b.sim, pair[1], 6, true, NULL); /* it was done after 50 s */
    executor_sim.renew(&b.sim, pair[0], 12, true, NULL);
    hear(&b);
    advance(&b, SECONDS(70 + 10));
    assert_int_equal(b.outbox.count, 0);
    expect(&b, EVENT_LEASE_DONE, pair[1], SECONDS(70 + 20) - 1);
    assert_true(heard(&b, EVENT_LEASE_DONE, pair[0]));
    bench_release(&b);
}

/* Measured rates of the two, each as it is; alone again when the other has gone. */
static void rates_of_a_pair_are_those_of_the_table(void **state)
{
    static const char table[] = "kind,type,gpus,rate,beside,rate_beside\n"
                                "A,v100,1,4,,\nB,v100,1,2,,\nA,v100,1,3,B,0.5\n";
    struct bench b;
    bench_init(&b, "1xv100:1", none, 1);
    assert_int_equal(
        throughput_parse(&b.w.rates, &b.w.arena, "t", table, sizeof table - 1, NULL),
        0);
    job_id pair[2];
    for (int i = 0; i < 2; i++) {
        struct ask ask = ASK_DEFAULT;
        pair[i] = arrive(&b, (struct job){ .gpus = 1 },
                         (struct sim_truth){ .steps = i ? 100 : 30 });
        world_job(&b.w, pair[i])->kind = (uint32_t)i;
        ask.beside = i ? pair[0] : JOB_NONE;
        start_asking(&b, pair[i], ask);
    }
    assert_near(world_job(&b.w, pair[0])->rate_per_s, 3, 1e-12);
    assert_near(world_job(&b.w, pair[1])->rate_per_s, 0.5, 1e-12);
    expect(&b, EVENT_FINISHED, pair[0], SECONDS(10));
    assert_near(world_job(&b.w, pair[1])->rate_per_s, 2, 1e-12);
    expect(&b, EVENT_FINISHED, pair[1], SECONDS(10) + INT64_C(47500000000));
    bench_release(&b);
}

/* --- faults ------------------------------------------------------------------------------- */

static void a_failed_node_loses_its_jobs_and_comes_back(void **state)
{
    struct bench b;
    bench_init(&b, "2xv100:1", (struct sim_faults){ SECONDS(100), SECONDS(10) }, 7);
    job_id job = arrive(&b, (struct job){ .gpus = 1 },
                        (struct sim_truth){ .steps = 1e6, .ckpt_ns = SECONDS(1) });
    start(&b, job);
    node_id seat = view_seats(&b.w.state.view, job)->node;
    bool lost = false, up = false;
    for (int i = 0; i < 200 && !up; i++) {
        advance(&b, sim_cluster_next_ns(&b.sim));
        for (uint32_t k = 0; k < b.outbox.count; k++) {
            const struct event *event = &b.outbox.events[k];
            if (event->kind == EVENT_LOST) {
                double ran_s = (double)event->at_ns * 1e-9;
                assert_int_equal(b.outbox.events[0].kind, EVENT_NODE_DOWN);
                assert_int_equal(b.outbox.events[0].node, seat);
                assert_near(event->steps_reached, ran_s, 1e-6);
                assert_near(event->steps, (double)(int64_t)ran_s, 1e-6);
                assert_false(sim_cluster_is_quiet(&b.sim)); /* a node will come back */
                lost = true;
            }
            up = up || (lost && event->kind == EVENT_NODE_UP && event->node == seat);
        }
    }
    assert_true(lost);
    assert_true(up);
    bench_release(&b);
}

/* The times of the first faults, as one number. */
static uint64_t faults_of(uint64_t seed)
{
    struct bench b;
    bench_init(&b, "8xv100:1", (struct sim_faults){ SECONDS(100), SECONDS(10) }, seed);
    uint64_t hash = 0;
    for (int i = 0; i < 50; i++) {
        advance(&b, sim_cluster_next_ns(&b.sim));
        hash = (hash ^ (uint64_t)b.sim.now_ns) * 0x100000001b3u;
    }
    bench_release(&b);
    return hash;
}

static void faults_are_those_of_the_seed(void **state)
{
    assert_true(faults_of(1) == faults_of(1));
    assert_true(faults_of(1) != faults_of(2));
}

RUN_CASES(TEST(a_job_loads_and_then_makes_its_steps),
          TEST(without_loading_it_makes_steps_at_once), TEST(a_job_can_end_in_failure),
          TEST(a_slower_type_takes_longer), TEST(a_lease_ends_after_so_many_steps),
          TEST(a_checkpoint_within_the_grace_period_keeps_everything),
          TEST(a_checkpoint_longer_than_the_grace_period_is_a_kill),
          TEST(a_job_that_keeps_nothing_leaves_early_and_begins_anew),
          TEST(checkpoints_are_counted_from_each_start),
          TEST(checkpoints_go_by_time_whatever_the_rate),
          TEST(without_grace_only_what_was_saved_is_kept),
          TEST(a_job_without_checkpoint_time_stops_cleanly_at_once),
          TEST(a_loading_job_has_nothing_to_save),
          TEST(a_successor_starts_when_the_last_predecessor_has_left),
          TEST(cancelling_ends_a_job_now),
          TEST(a_resize_costs_a_checkpoint_and_a_resume),
          TEST(two_on_one_gpu_are_slower_while_they_share),
          TEST(two_jobs_that_start_together_share_from_the_start),
          TEST(leases_that_end_together_end_with_the_later),
          TEST(a_job_that_is_done_waits_for_its_partner_too),
          TEST(a_stopped_partner_is_not_waited_for),
          TEST(leases_of_two_waiting_partners_can_be_renewed),
          TEST(rates_of_a_pair_are_those_of_the_table),
          TEST(a_failed_node_loses_its_jobs_and_comes_back),
          TEST(faults_are_those_of_the_seed));
