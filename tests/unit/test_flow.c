/* Flow policies: which jobs send, in which order, and the level of each. */
#include "support/world.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "flow/flow.h"
#include "predict/loss_history.h"
#include "model/event.h"

/* A flow policy at work in a world. */
struct scene {
    struct world w;
    const struct flow_policy *flow;
    void *self;
    struct flow_plan plan;
};

static void begin_as(struct scene *s, const char *cluster, const char *text)
{
    struct error err = { "" };
    const char *settings;
    world_init_as(&s->w, cluster);
    if (flow_parse(text, &s->flow, &settings, &err) < 0)
        fail_msg("%s", err.text);
    s->self = arena_alloc(&s->w.arena, 1, s->flow->self_size + 1, 16);
    param_defaults(s->flow->params, s->self);
    assert_int_equal(param_parse(s->flow->params, s->self, text, settings, &err), 0);
    s->plan.changes = arena_array(&s->w.arena, struct flow_change, WORLD_JOBS_MAX);
}

/* Links of 1 GB/s of payload, all in one rack. */
static void begin(struct scene *s, const char *cluster, const char *text)
{
    begin_as(s, cluster, text);
    for (node_id n = 0; n < s->w.cluster.node_count; n++)
        s->w.cluster.nodes[n].link_bps = (uint64_t)(8e9 * 1514 / 1448);
    if (s->flow->init)
        s->flow->init(s->self, &s->w.state.view, &s->w.arena, NULL);
}

static void end(struct scene *s)
{
    if (s->flow->fini)
        s->flow->fini(s->self);
    world_release(&s->w);
}

static void hear(struct scene *s, struct event event)
{
    event.at_ns = s->w.state.view.now_ns;
    if (s->flow->observe)
        s->flow->observe(s->self, &s->w.state.view, &event);
}

/* A job on two nodes that computes for 'step_s' and sends 'mb' a step. */
static job_id send_on(struct scene *s, double step_s, double mb)
{
    job_id job =
        world_running(&s->w, (struct job){ .gpus = 2,
                                           .nodes = 2,
                                           .step_s = step_s,
                                           .rate_best_per_s = 1 / step_s,
                                           .steps_total = 1000,
                                           .bytes_per_step = (uint64_t)(mb * 1e6) });
    hear(s, (struct event){ .kind = EVENT_ADOPTED, .job = job });
    return job;
}

static void report(struct scene *s, job_id job, double steps, double loss)
{
    struct event event = { .kind = EVENT_PROGRESS,
                           .job = job,
                           .steps = steps,
                           .rate_per_s = 1,
                           .loss = loss };
    assert_true(world_apply(&s->w, event));
    hear(s, event);
}

/* Reports at steps 0 … count - 1 of a loss exp(-(double)k / tau). */
static void learn(struct scene *s, job_id job, uint32_t count, double tau)
{
    for (uint32_t k = 0; k < count; k++)
        report(s, job, k, exp(-(double)k / tau));
}

static void decide(struct scene *s)
{
    s->plan.change_count = 0;
    s->plan.wake_ns = INT64_MAX;
    if (s->flow->decide)
        assert_int_equal(s->flow->decide(s->self, &s->w.state.view, &s->plan, NULL), 0);
    for (uint32_t i = 0; i < s->plan.change_count; i++)
        world_job(&s->w, s->plan.changes[i].job)->level = s->plan.changes[i].level;
}

static void pass(struct scene *s, double seconds)
{
    world_pass(&s->w, SECONDS(seconds));
}

static uint32_t level(struct scene *s, job_id job)
{
    return world_job(&s->w, job)->level;
}

/*
 * --- senders and levels
 * ----------------------------------------------------------------
 */

static void under_fair_no_job_has_a_level(void **state)
{
    struct scene s;
    begin(&s, "2xv100:4", "fair");
    job_id a = send_on(&s, 1, 10);
    job_id b = send_on(&s, 1, 100);
    decide(&s);
    assert_int_equal(level(&s, a), level(&s, b));
    assert_int_equal(s.plan.change_count, 0);
    end(&s);
}

static void only_jobs_on_several_nodes_with_bytes_count(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "crux");
    job_id alone = world_running(
        &s.w, (struct job){ .gpus = 2, .nodes = 1, .bytes_per_step = 1000 });
    hear(&s, (struct event){ .kind = EVENT_ADOPTED, .job = alone });
    job_id silent = send_on(&s, 9, 0);
    job_id first = send_on(&s, 2, 10);
    job_id second = send_on(&s, 1, 10);
    decide(&s);
    assert_int_equal(level(&s, alone), 0);
    assert_int_equal(level(&s, silent), 0);
    assert_int_equal(level(&s, first), 0);
    assert_int_equal(level(&s, second), 1);
    end(&s);
}

static void jobs_that_do_not_meet_do_not_use_up_levels(void **state)
{
    struct scene s;
    begin(&s, "4xv100:4", "crux"); /* two jobs on nodes 0 and 1, two on 2 and 3 */
    job_id jobs[4];
    for (uint32_t i = 0; i < 4; i++)
        jobs[i] = send_on(&s, 4 - i, 10);
    decide(&s);
    assert_int_equal(level(&s, jobs[0]), 0);
    assert_int_equal(level(&s, jobs[1]), 0);
    assert_int_equal(level(&s, jobs[2]), 1);
    assert_int_equal(level(&s, jobs[3]), 1);
    end(&s);
}

static void jobs_that_meet_on_an_uplink_do(void **state)
{
    struct scene s;
    begin_as(&s, "4xv100:4", "crux");
    s.w.cluster.oversubscription = 2;
    s.w.cluster.rack_count = 2;
    for (node_id n = 0; n < 4; n++) {
        s.w.cluster.nodes[n].link_bps = 8000000000;
        s.w.cluster.nodes[n].rack = n % 2;
    }
    s.flow->init(s.self, &s.w.state.view, &s.w.arena, NULL);
    job_id a = send_on(&s, 2, 10);
    job_id b = send_on(&s, 1, 10);
    decide(&s);
    assert_int_equal(level(&s, a), 0);
    assert_int_equal(level(&s, b), 1);
    end(&s);
}

static void jobs_beyond_the_last_level_share_it(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "crux,levels=3");
    job_id jobs[6];
    for (uint32_t i = 0; i < 6; i++)
        jobs[i] = send_on(&s, 6 - i, 10);
    decide(&s);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(level(&s, jobs[i]), i < 2 ? i : 2);
    end(&s);
}

static void when_a_job_ends_the_others_move_up(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "crux");
    job_id a = send_on(&s, 3, 10);
    job_id b = send_on(&s, 2, 10);
    job_id c = send_on(&s, 1, 10);
    decide(&s);
    assert_int_equal(level(&s, c), 2);
    struct event done = { .kind = EVENT_FINISHED, .job = a };
    assert_true(world_apply(&s.w, done));
    hear(&s, done);
    decide(&s);
    assert_int_equal(level(&s, b), 0);
    assert_int_equal(level(&s, c), 1);
    decide(&s);
    assert_int_equal(s.plan.change_count, 0);
    end(&s);
}

/* --- orders ------------------------------------------------------------------------------ */

static void crux_prefers_jobs_that_compute_much_for_what_they_send(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "crux");
    job_id large = send_on(&s, 1, 500);
    job_id dense = send_on(&s, 1, 20);
    decide(&s);
    assert_int_equal(level(&s, dense), 0);
    assert_int_equal(level(&s, large), 1);
    end(&s);
}

static void smallest_first_looks_at_bytes_alone(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "smallest-first");
    job_id large = send_on(&s, 100, 500);
    job_id small = send_on(&s, 0.01, 20);
    decide(&s);
    assert_int_equal(level(&s, small), 0);
    assert_int_equal(level(&s, large), 1);
    end(&s);
}

static void las_flow_prefers_the_job_that_has_sent_least(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "las-flow,first=1,factor=2");
    job_id old = send_on(&s, 1, 100);
    report(&s, old, 50, NAN); /* 5 GB */
    job_id young = send_on(&s, 0.5, 100);
    decide(&s);
    assert_int_equal(level(&s, young), 0);
    assert_int_equal(level(&s, old), 1);
    report(&s, young, 500, NAN);
    pass(&s, 1);
    decide(&s);
    assert_int_equal(level(&s, young), 0); /* not before the period is over */
    assert_int_equal(s.plan.wake_ns, SECONDS(10));
    pass(&s, 9);
    decide(&s);
    assert_int_equal(level(&s, young), 1);
    end(&s);
}

/* --- jpas ----------------------------------------------------------------------------------- */

static void a_job_without_reports_goes_first(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "jpas");
    job_id old = send_on(&s, 1, 100);
    learn(&s, old, 5, 10);
    decide(&s);
    job_id young = send_on(&s, 1, 100);
    pass(&s, 1);
    decide(&s); /* at once, not only at the end of the period */
    assert_int_equal(level(&s, young), 0);
    assert_int_equal(level(&s, old), 1);
    assert_int_equal(s.plan.wake_ns, SECONDS(10));
    end(&s);
}

static void the_job_that_learns_most_in_the_next_period_goes_first(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "jpas");
    job_id slow = send_on(&s, 1, 100);
    job_id quick = send_on(&s, 1, 100);
    job_id nearly = send_on(&s, 1, 100);
    learn(&s, slow, 30, 300);
    learn(&s, quick, 30, 30);
    learn(&s, nearly, 30, 7.5); /* 98 % of its way */
    decide(&s);
    assert_int_equal(level(&s, quick), 0);
    assert_int_equal(level(&s, slow), 1);
    assert_int_equal(level(&s, nearly), 2);
    end(&s);
}

static void a_converged_job_goes_last(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "jpas");
    job_id done = send_on(&s, 1, 100);
    job_id slow = send_on(&s, 1, 100);
    learn(&s, done, 60, 5);
    learn(&s, slow, 60, 3000);
    decide(&s);
    assert_int_equal(level(&s, slow), 0);
    assert_int_equal(level(&s, done), 1);
    end(&s);
}

static void a_small_difference_does_not_change_the_order(void **state)
{
    const char *const settings[] = { "jpas,hysteresis=2", "jpas,hysteresis=1" };
    for (uint32_t i = 0; i < 2; i++) {
        struct scene s;
        begin(&s, "2xv100:8", settings[i]);
        job_id a = send_on(&s, 1, 100);
        job_id b = send_on(&s, 1, 100);
        learn(&s, a, 20, 40);
        learn(&s, b, 20, 46);
        decide(&s);
        assert_int_equal(level(&s, a), 0);
        for (uint32_t k = 20; k < 40; k++)
            report(&s, a, k, exp(-(double)k / 40)); /* b has more left to gain now */
        pass(&s, 10);
        decide(&s);
        assert_int_equal(level(&s, a), i);
        assert_int_equal(level(&s, b), 1 - i);
        end(&s);
    }
}

static void a_held_up_job_goes_first_once_and_a_silent_one_last(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "jpas,aging=2");
    job_id held = send_on(&s, 1, 100);
    job_id other = send_on(&s, 1, 100);
    learn(&s, held, 10, 5);
    learn(&s, other, 10, 30);
    decide(&s);
    assert_int_equal(level(&s, other), 0);
    assert_int_equal(level(&s, held), 1);
    uint32_t k = 10;
    for (uint32_t period = 1; period <= 2; period++) { /* one goes on, one does not */
        pass(&s, 10);
        report(&s, other, k, exp(-(double)k / 30));
        k++;
        decide(&s);
    }
    assert_int_equal(level(&s, held), 0);
    pass(&s, 10);
    report(&s, other, k, exp(-(double)k / 30));
    decide(&s);
    assert_int_equal(level(&s, held), 1);
    pass(&s, 100);
    report(&s, other, k + 1, exp(-(double)(k + 1) / 30));
    decide(&s);
    assert_int_equal(level(&s, held), 1); /* not lifted again */
    report(&s, held, 10, exp(-2));
    for (k = 11; k < 80;
         k++) /* the other has learnt nearly all, the first speaks again */
        report(&s, other, k + 3, exp(-(double)(k + 3) / 30));
    pass(&s, 10);
    decide(&s);
    assert_int_equal(level(&s, held), 0);
    end(&s);
}

static void past_the_goal_the_least_left_to_send_goes_first(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "jpas,late=shortest,goal=0.8");
    job_id long_late = send_on(&s, 1, 400);
    job_id short_late = send_on(&s, 1, 100);
    job_id early = send_on(&s, 1, 400);
    learn(&s, long_late, 30, 10);
    learn(&s, short_late, 30, 10);
    learn(&s, early, 30, 500);
    decide(&s);
    assert_int_equal(level(&s, early), 0);
    assert_int_equal(level(&s, short_late), 1);
    assert_int_equal(level(&s, long_late), 2);
    end(&s);
}

static void nearest_to_the_goal_goes_first_if_asked_for(void **state)
{
    struct scene s;
    begin(&s, "2xv100:8", "jpas,early=nearest,goal=0.9");
    job_id far = send_on(&s, 1, 100);
    job_id near_goal = send_on(&s, 1, 100);
    learn(&s, far, 30, 100);
    learn(&s, near_goal, 30, 20);
    decide(&s);
    assert_int_equal(level(&s, near_goal), 0);
    assert_int_equal(level(&s, far), 1);
    end(&s);
}

/* Past its goal by less than the noise of its reports, a job is not late yet. */
static void noise_does_not_make_a_job_late(void **state)
{
    for (int noisy = 0; noisy <= 1; noisy++) {
        struct scene s;
        begin(&s, "2xv100:8", "jpas,early=nearest,late=shortest");
        job_id at_goal = send_on(&s, 1, 100);
        job_id past_goal = send_on(&s, 1, 100);
        for (double k = 0; k <= 48; k++)
            report(&s, at_goal, k,
                   exp(-k / 20) + (noisy && k > 0 ? fmod(k, 2) * 0.1 - 0.05 : 0));
        for (double k = 0; k <= 90; k++)
            report(&s, past_goal, k, exp(-k / 20));
        pass(&s, 10);
        decide(&s);
        assert_int_equal(level(&s, noisy ? at_goal : past_goal), 0);
        assert_int_equal(level(&s, noisy ? past_goal : at_goal), 1);
        end(&s);
    }
}

/* --- jobs of which only their hosts know what they send ----------------------------------- */

/* On one node, of which nothing is said; it makes 'rate' steps a second. */
static job_id run_on(struct scene *s, double rate)
{
    job_id job = world_running(&s->w, (struct job){ .gpus = 1,
                                                    .nodes = 1,
                                                    .rate_best_per_s = rate,
                                                    .step_s = 1 / rate,
                                                    .steps_total = 1000,
                                                    .sends_per_s = NAN });
    hear(s, (struct event){ .kind = EVENT_ADOPTED, .job = job });
    return job;
}

static void sends(struct scene *s, job_id job, double mb_per_s, double mb)
{
    struct event event = { .kind = EVENT_SENT,
                           .job = job,
                           .sends_per_s = mb_per_s * 1e6,
                           .sent_bytes = mb * 1e6 };
    assert_true(world_apply(&s->w, event));
    hear(s, event);
}

static const char *why(struct scene *s, job_id job)
{
    static struct flow_reason reason;
    s->flow->explain(s->self, &s->w.state.view, job, &reason);
    return reason.text;
}

static void
who_nobody_has_counted_is_taken_to_send_and_who_is_quiet_is_not(void **state)
{
    struct scene s;
    begin(&s, "1xv100:8", "jpas");
    job_id quiet = run_on(&s, 1);
    job_id a = run_on(&s, 1);
    job_id b = run_on(&s, 1);
    decide(&s);
    assert_int_equal(level(&s, quiet), 0);
    assert_int_equal(level(&s, a), 1);
    assert_int_equal(level(&s, b), 2);
    sends(&s, quiet, 0, 0);
    sends(&s, a, 5, 10);
    decide(&s);
    assert_int_equal(level(&s, b), 0); /* still not counted: it may send */
    assert_int_equal(level(&s, a), 1);
    assert_string_equal(why(&s, quiet), "sends next to nothing");
    sends(&s, quiet, 5, 10); /* it has begun to */
    decide(&s);
    assert_int_equal(level(&s, quiet) + level(&s, a) + level(&s, b), 3);
    end(&s);
}

static void bytes_and_steps_per_second_give_the_intensity(void **state)
{
    struct scene s;
    begin(&s, "1xv100:8", "crux");
    job_id dense = run_on(&s, 1), large = run_on(&s, 1);
    sends(&s, large, 500, 1000);
    sends(&s, dense, 20, 40);
    decide(&s);
    assert_int_equal(level(&s, dense), 0);
    assert_int_equal(level(&s, large), 1);
    assert_non_null(strstr(why(&s, dense), "49 GPU-seconds")); /* 0.98 s for 0.02 s */
    sends(&s, large, 19.9, 1000);
    decide(&s);
    assert_int_equal(level(&s, dense), 0); /* not clearly less */
    sends(&s, large, 10, 1000);
    decide(&s);
    assert_int_equal(level(&s, dense), 1);
    assert_int_equal(level(&s, large), 0);
    end(&s);
}

static void las_flow_goes_by_bytes_that_were_counted(void **state)
{
    struct scene s;
    begin(&s, "1xv100:8", "las-flow,first=1,factor=2");
    job_id old = run_on(&s, 1), young = run_on(&s, 1);
    sends(&s, old, 100, 5000);
    sends(&s, young, 100, 500);
    decide(&s);
    assert_int_equal(level(&s, young), 0);
    assert_int_equal(level(&s, old), 1);
    end(&s);
}

static void a_step_alone_is_the_shortest_that_was_measured(void **state)
{
    struct scene s;
    begin(&s, "1xv100:8", "jpas");
    job_id held_up = run_on(&s, 1), other = run_on(&s, 1);
    learn(&s, held_up, 30, 30); /* at a step a second */
    learn(&s, other, 30, 40);
    decide(&s);
    assert_int_equal(level(&s, held_up), 0);
    struct event slow = { .kind = EVENT_PROGRESS,
                          .job = held_up,
                          .steps = 30,
                          .rate_per_s = 0.01,
                          .loss = exp(-1) };
    assert_true(world_apply(&s.w, slow)); /* others went first */
    hear(&s, slow);
    pass(&s, 10);
    decide(&s);
    assert_int_equal(level(&s, held_up), 0); /* it is not put off further for it */
    end(&s);
}

static void a_job_that_reports_no_loss_goes_last_after_a_while(void **state)
{
    struct scene s;
    begin(&s, "1xv100:8", "jpas,aging=2");
    job_id mute = run_on(&s, 1), other = run_on(&s, 1);
    learn(&s, other, 10, 100);
    decide(&s);
    assert_int_equal(level(&s, mute), 0); /* it may have just begun */
    for (uint32_t k = 1; k <= 2; k++) {
        pass(&s, 10);
        report(&s, mute, k * 10, NAN);
        report(&s, other, 9 + k, exp(-(9.0 + k) / 100));
        decide(&s);
    }
    assert_int_equal(level(&s, mute), 1);
    assert_int_equal(level(&s, other), 0);
    assert_non_null(strstr(why(&s, mute), "reports no loss"));
    report(&s, mute, 30, 2.5);
    pass(&s, 10);
    decide(&s);
    assert_int_equal(level(&s, mute), 0); /* that was the first of three */
    end(&s);
}

static void a_held_up_job_is_not_taken_for_silent(void **state)
{
    struct scene s;
    begin(&s, "1xv100:8", "jpas,aging=2");
    job_id held = run_on(&s, 1), other = run_on(&s, 1);
    sends(&s, held, 5, 0);
    for (uint32_t k = 0; k < 10; k++) { /* 10 MB a step */
        pass(&s, 1);
        sends(&s, held, 10, k * 10);
        report(&s, held, k, exp(-(double)k / 50));
        report(&s, other, k, exp(-(double)k / 20));
    }
    decide(&s);
    assert_int_equal(level(&s, held), 1);
    uint32_t first = 0;
    for (uint32_t period = 0; period < 9; period++) { /* a trickle: not even a step */
        pass(&s, 10);
        sends(&s, held, 0.01, 90 + period);
        report(&s, other, 10 + period, exp(-(10.0 + period) / 20));
        decide(&s);
        first += level(&s, held) == 0;
        assert_null(strstr(why(&s, held), "stopped"));
    }
    assert_in_range(first, 2, 4); /* again and again */
    sends(&s, held, 10, 90 + 50); /* now it makes steps, and does not say so */
    pass(&s, 10);
    decide(&s);
    pass(&s, 20);
    decide(&s);
    assert_non_null(strstr(why(&s, held), "stopped reporting"));
    end(&s);
}

static void a_job_that_sends_and_reports_nothing_is_not_put_first(void **state)
{
    for (int moves = 0; moves < 2; moves++) {
        struct scene s;
        begin(&s, "1xv100:8", "jpas,aging=2");
        job_id silent = run_on(&s, 1), other = run_on(&s, 1);
        sends(&s, silent, 5, 0);
        for (uint32_t k = 0; k < 10; k++) {
            sends(&s, silent, 5, 5 * k);
            report(&s, silent, k, exp(-(double)k / 20));
        }
        learn(&s, other, 10, 100);
        decide(&s);
        assert_int_equal(level(&s, silent), 0);
        for (uint32_t k = 1; k <= 2; k++) {
            pass(&s, 10);
            if (moves)
                sends(&s, silent, 5, 50 + 50 * k);
            report(&s, other, 9 + k, exp(-(9.0 + k) / 100));
            decide(&s);
        }
        assert_int_equal(level(&s, silent), moves);
        assert_non_null(strstr(why(&s, silent), moves ? "stopped reporting" : "first"));
        end(&s);
    }
}

static void what_was_reported_before_counts(void **state)
{
    struct scene s;
    begin(&s, "1xv100:8", "jpas");
    job_id slow = run_on(&s, 1), quick = run_on(&s, 1);
    learn(&s, slow, 30, 300);
    learn(&s, quick, 30, 30);
    s.flow->fini(s.self); /* another takes over */
    memset(s.self, 0, s.flow->self_size);
    param_defaults(s.flow->params, s.self);
    s.flow->init(s.self, &s.w.state.view, &s.w.arena, NULL);
    hear(&s, (struct event){ .kind = EVENT_ADOPTED, .job = slow });
    hear(&s, (struct event){ .kind = EVENT_ADOPTED, .job = quick });
    decide(&s);
    assert_int_equal(level(&s, quick), 0);
    assert_int_equal(level(&s, slow), 1);
    assert_non_null(strstr(why(&s, quick), "of its way behind it"));
    end(&s);
}

static void every_flow_policy_explains_its_levels(void **state)
{
    for (const struct flow_policy *const *f = flow_list; *f; f++) {
        struct scene s;
        begin(&s, "1xv100:8", (*f)->name);
        job_id a = run_on(&s, 1), b = run_on(&s, 1);
        sends(&s, a, 5, 10);
        decide(&s);
        assert_true(strlen(why(&s, a)) > 5);
        assert_true(strlen(why(&s, b)) > 5);
        end(&s);
    }
}

static void odd_losses_do_no_harm(void **state)
{
    static const double odd[][4] = { { 1, 1, 1, 1 },
                                     { 1, 2, 4, 8 },
                                     { -1, -2, -2.5, -2.75 },
                                     { 1e300, 1, 1e-300, 0 },
                                     { 1, 1e308, -1e308, 0 },
                                     { NAN, NAN, NAN, NAN }, /* none */
                                     { 1, NAN, INFINITY, -INFINITY },
                                     { -INFINITY, 1, NAN, 0.5 } };
    for (uint32_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct scene s;
        begin(&s, "2xv100:8", "jpas,early=nearest,late=shortest");
        job_id a = send_on(&s, 1, 100);
        job_id b = send_on(&s, 1, 100);
        for (uint32_t k = 0; k < 4; k++) {
            report(&s, a, k, odd[i][k]);
            report(&s, b, 3 - k, odd[i][k]); /* steps go back */
            report(&s, b, 3 - k, odd[i][k]); /* and come twice */
        }
        for (uint32_t n = 0; n < 5; n++) {
            pass(&s, 10);
            decide(&s);
            assert_true(level(&s, a) + level(&s, b) <= 1);
        }
        end(&s);
    }
}

static void without_bandwidth_there_is_still_an_order(void **state)
{
    for (const struct flow_policy *const *f = flow_list; *f; f++) {
        struct scene s;
        begin_as(&s, "2xv100:8", (*f)->name);
        for (node_id n = 0; n < s.w.cluster.node_count; n++)
            s.w.cluster.nodes[n].link_bps = 0;
        if (s.flow->init)
            s.flow->init(s.self, &s.w.state.view, &s.w.arena, NULL);
        job_id a = send_on(&s, 1, 100);
        job_id b = send_on(&s, 1, 300);
        learn(&s, a, 5, 10);
        for (uint32_t n = 0; n < 10; n++) {
            pass(&s, 10);
            decide(&s);
            assert_true(level(&s, a) + level(&s, b) <= 1);
        }
        end(&s);
    }
}

static void a_job_alone_goes_first_under_every_policy(void **state)
{
    for (const struct flow_policy *const *f = flow_list; *f; f++) {
        struct scene s;
        begin(&s, "2xv100:8", (*f)->name);
        job_id alone = send_on(&s, 1, 100);
        report(&s, alone, 1, 0.5); /* a single iteration, and nothing more */
        for (uint32_t n = 0; n < 20; n++) {
            pass(&s, 10);
            decide(&s);
            assert_int_equal(level(&s, alone), 0);
        }
        end(&s);
    }
}

static void a_million_reports_take_no_more_room(void **state)
{
    struct loss_history history;
    loss_history_init(&history);
    for (uint32_t k = 0; k < 1000000; k++)
        loss_history_add(&history, k, 0.2 + exp(-(double)k / 2e5));
    assert_true(history.count <= LOSS_HISTORY_POINTS);
    assert_near(history.steps[0], 0, 0); /* it remembers where it began */
    assert_near(history.steps[history.count - 1], 999999, 0);
    assert_true(history.steps[2] < 900000); /* and the way since */
    loss_history_fit(&history);
    assert_true(loss_history_has_limit(&history));
    assert_near(loss_history_share(&history, 999999), 1 - exp(-5), 0.01);
}

static void noise_hides_little_of_how_far_a_job_is(void **state)
{
    struct rng rng;
    rng_init(&rng, 1, "noise");
    double off = 0;
    for (uint32_t n = 0; n < 50; n++) {
        struct loss_history history;
        loss_history_init(&history);
        for (uint32_t k = 0; k <= 300; k++)
            loss_history_add(&history, k,
                             exp(-(double)k / 60) + 0.05 * rng_normal(&rng));
        loss_history_fit(&history);
        assert_true(loss_history_has_limit(&history));
        off += fabs(loss_history_share(&history, 300) - (1 - exp(-5))) / 50;
    }
    assert_true(off < 0.03);
}

/* --- the registry ------------------------------------------------------------------------- */

static void a_wrong_name_or_setting_is_reported(void **state)
{
    const struct flow_policy *flow;
    const char *settings;
    struct error err;
    assert_true(flow_parse("jpass", &flow, &settings, &err) < 0);
    assert_non_null(strstr(err.text, "jpas"));
    assert_true(flow_parse("jpas,levels=0", &flow, &settings, &err) < 0);
    assert_true(flow_parse("jpas,levels=65", &flow, &settings, &err) < 0);
    assert_true(flow_parse("fair,levels=8", &flow, &settings, &err) < 0);
    assert_int_equal(flow_parse("las-flow,period=3s", &flow, &settings, &err), 0);
    assert_string_equal(settings, "period=3s");
}

RUN_CASES(TEST(under_fair_no_job_has_a_level),
          TEST(only_jobs_on_several_nodes_with_bytes_count),
          TEST(jobs_that_do_not_meet_do_not_use_up_levels),
          TEST(jobs_that_meet_on_an_uplink_do),
          TEST(jobs_beyond_the_last_level_share_it),
          TEST(when_a_job_ends_the_others_move_up),
          TEST(crux_prefers_jobs_that_compute_much_for_what_they_send),
          TEST(smallest_first_looks_at_bytes_alone),
          TEST(las_flow_prefers_the_job_that_has_sent_least),
          TEST(a_job_without_reports_goes_first),
          TEST(the_job_that_learns_most_in_the_next_period_goes_first),
          TEST(a_converged_job_goes_last),
          TEST(a_small_difference_does_not_change_the_order),
          TEST(a_held_up_job_goes_first_once_and_a_silent_one_last),
          TEST(past_the_goal_the_least_left_to_send_goes_first),
          TEST(nearest_to_the_goal_goes_first_if_asked_for),
          TEST(noise_does_not_make_a_job_late),
          TEST(who_nobody_has_counted_is_taken_to_send_and_who_is_quiet_is_not),
          TEST(bytes_and_steps_per_second_give_the_intensity),
          TEST(las_flow_goes_by_bytes_that_were_counted),
          TEST(a_step_alone_is_the_shortest_that_was_measured),
          TEST(a_job_that_reports_no_loss_goes_last_after_a_while),
          TEST(a_held_up_job_is_not_taken_for_silent),
          TEST(a_job_that_sends_and_reports_nothing_is_not_put_first),
          TEST(what_was_reported_before_counts),
          TEST(every_flow_policy_explains_its_levels), TEST(odd_losses_do_no_harm),
          TEST(without_bandwidth_there_is_still_an_order),
          TEST(a_job_alone_goes_first_under_every_policy),
          TEST(a_million_reports_take_no_more_room),
          TEST(noise_hides_little_of_how_far_a_job_is),
          TEST(a_wrong_name_or_setting_is_reported));
