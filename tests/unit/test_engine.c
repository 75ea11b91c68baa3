/* The engine's step: who gets which calls, in which order, and when there is no decision. */
#include "support/world.h"

#include <errno.h>
#include <string.h>

#include "engine/engine.h"
#include "executor/executor.h"
#include "flow/flow.h"
#include "support/engine_run.h"
#include "support/state_check.h"

/* An executor that writes down what it is told, and a policy that does as it is told. */
struct bench {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct engine engine;
    char said[512]; /* by the engine, to listeners and the executor */
    uint32_t asked; /* times the policy was                         */
    void (*wish)(const struct view *view, struct plan *plan);
    int policy_says; /* what its decide() returns */
    int commit_says;
};

static struct bench *bench; /* of the test that runs */

static void say(const char *what, job_id job)
{
    size_t at = strlen(bench->said);
    snprintf(bench->said + at, sizeof bench->said - at, "%s%s %u", at ? ", " : "", what,
             job);
}

static int start(void *self, const struct lease *lease, struct error *err)
{
    say("start", lease->job);
    for (uint32_t i = 0; i < lease->after_count; i++)
        say("after", lease->after[i]);
    return 0;
}

static int stop(void *self, job_id job, int64_t grace_ns, struct error *err)
{
    say("stop", job);
    return 0;
}

static int renew(void *self, job_id job, uint64_t steps_max, bool together,
                 struct error *err)
{
    say("renew", job);
    return 0;
}

static const struct executor executor_note = {
    .name = "note", .start = start, .stop = stop, .renew = renew
};

static int decide(void *self, const struct view *view, struct plan *plan,
                  struct arena *scratch, struct error *err)
{
    bench->asked++;
    if (bench->wish)
        bench->wish(view, plan);
    return bench->policy_says;
}

static const struct policy policy_told = { .name = "told",
                                           .self_size = 1,
                                           .decide = decide };

static void hear(void *self, const struct view *view, const struct event *event)
{
    say(event_name(event->kind), event->job);
}

static int commit(void *self, struct error *err)
{
    size_t at = strlen(bench->said);
    snprintf(bench->said + at, sizeof bench->said - at, "%scommit", at ? ", " : "");
    return bench->commit_says;
}

static int setup(void **state)
{
    bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    arena_init(&bench->arena, 0);
    assert_int_equal(cluster_load(&bench->cluster, &bench->arena, "1xv100:4", NULL), 0);
    throughput_init(&bench->rates, &bench->cluster);
    assert_int_equal(engine_init(&bench->engine, &bench->arena,
                                 &(struct engine_setup){ .cluster = &bench->cluster,
                                                         .rates = &bench->rates,
                                                         .policy = &policy_told,
                                                         .executor = &executor_note,
                                                         .job_max = 8 },
                                 NULL),
                     0);
    engine_add_observer(&bench->engine,
                        (struct engine_observer){ .event = hear, .commit = commit });
    return 0;
}

static int teardown(void **state)
{
    engine_release(&bench->engine);
    arena_release(&bench->arena);
    free(bench);
    return 0;
}

static int step(int64_t now_ns, struct event event)
{
    event.at_ns = now_ns;
    bench->said[0] = 0;
    int r = engine_step(&bench->engine, now_ns, &event, 1, NULL);
    state_check(&bench->engine.state);
    return r;
}

static const struct job four = { .gpus = 4,
                                 .gpus_min = 4,
                                 .gpus_max = 4,
                                 .types = 1,
                                 .kind = KIND_NONE,
                                 .rate_best_per_s = 1 };

static int submit(uint64_t id)
{
    struct job job = four;
    job.id = id;
    return step(0, (struct event){ .kind = EVENT_SUBMITTED, .spec = &job });
}

static int started(job_id job)
{
    return step(1, (struct event){ .kind = EVENT_STARTED, .job = job, .loaded = true });
}

static void grant_0(const struct view *view, struct plan *plan)
{
    plan_grant(plan, 0, NULL);
}

static void swap_0_for_1(const struct view *view, struct plan *plan)
{
    if (!job_is_preemptible(&view->jobs[0]))
        return;
    plan_revoke(plan, 0, RULE_ORDER, 1);
    plan_grant(plan, 1, NULL);
}

static void wake_at_5(const struct view *view, struct plan *plan)
{
    plan_wake(plan, 5);
}

static void orders_are_durable_events_before_they_are_carried_out(void **state)
{
    bench->wish = grant_0;
    assert_int_equal(submit(1), 0);
    assert_string_equal(bench->said, "submitted 0, placed 0, commit, start 0");
    assert_int_equal(bench->engine.event_count, 2);
}

static void stops_are_recorded_first_and_starts_carried_out_first(void **state)
{
    bench->wish = grant_0;
    submit(1);
    started(0);
    bench->wish = swap_0_for_1;
    submit(2);
    assert_string_equal(bench->said, "submitted 1, recalled 0, placed 1, commit, "
                                     "start 1, after 0, stop 0");
}

static void nothing_is_launched_that_is_not_durable(void **state)
{
    bench->wish = grant_0;
    bench->commit_says = -EIO;
    assert_int_equal(submit(1), -EIO);
    assert_string_equal(bench->said, "submitted 0, placed 0, commit");
}

static void a_started_job_needs_no_decision(void **state)
{
    bench->wish = grant_0;
    submit(1);
    assert_int_equal(bench->asked, 1);
    step(0, (struct event){ .kind = EVENT_STARTED, .job = 0, .loaded = true });
    assert_int_equal(bench->asked, 1);
    assert_string_equal(bench->said, "started 0, commit");
}

static void a_job_submitted_during_a_start_is_decided_on(void **state)
{
    bench->wish = grant_0;
    submit(1);
    bench->wish = swap_0_for_1;
    submit(2);
    assert_string_equal(bench->said, "submitted 1, commit");
    started(0);
    assert_string_equal(bench->said, "started 0, recalled 0, placed 1, commit, "
                                     "start 1, after 0, stop 0");
}

static void unless_the_policy_asked_to_be_called(void **state)
{
    bench->wish = wake_at_5;
    submit(1);
    assert_int_equal(bench->engine.wake_ns, 5);
    assert_int_equal(bench->asked, 1);
    step(4, (struct event){ .kind = EVENT_LOADED, .job = 0 });
    assert_int_equal(bench->asked, 1);
    step(5, (struct event){ .kind = EVENT_LOADED, .job = 0 });
    assert_int_equal(bench->asked, 2);
}

static void late_events_reach_no_observer(void **state)
{
    submit(1);
    step(1, (struct event){ .kind = EVENT_FINISHED, .job = 0 });
    assert_string_equal(bench->said, "commit");
    assert_int_equal(bench->engine.event_count, 1);
}

static void a_failed_decision_changes_nothing(void **state)
{
    bench->wish = grant_0;
    bench->policy_says = -EINVAL;
    assert_int_equal(submit(1), 0);
    assert_string_equal(bench->said, "submitted 0, commit");
    assert_int_equal(bench->engine.refused_count, 1);
    assert_int_equal(bench->engine.state.free.gpu_count, 4);

    bench->policy_says = 0;
    submit(2);
    assert_int_equal(bench->engine.refused_count, 1);
    assert_int_equal(bench->engine.state.jobs[0].state, JOB_PLACED);
}

static void an_unknown_setting_is_an_error(void **state)
{
    struct engine engine;
    struct error err = { "" };
    int r = engine_init(&engine, &bench->arena,
                        &(struct engine_setup){ .cluster = &bench->cluster,
                                                .rates = &bench->rates,
                                                .policy = policy_find("las"),
                                                .settings = "quanta=3s",
                                                .executor = &executor_note,
                                                .job_max = 8 },
                        &err);
    assert_int_equal(r, -EINVAL);
    assert_non_null(strstr(err.text, "quanta"));
}

/* Two elastic jobs, each in the other's place from the tenth second on. */
static int trade_decide(void *self, const struct view *view, struct plan *plan,
                        struct arena *scratch, struct error *err)
{
    bool later = view->now_ns >= SECONDS(10);
    for (job_id job = 0; job < 2; job++)
        if (later && job_is_preemptible(&view->jobs[job]) &&
            view->jobs[job].type_now == job)
            plan_revoke(plan, job, RULE_RESIZE, job);
    for (job_id job = 0; job < 2; job++) {
        struct ask ask = ASK_DEFAULT;
        ask.types = (uint32_t)1 << (later ? !job : job);
        plan_grant(plan, job, &ask);
    }
    if (!later)
        plan_wake(plan, SECONDS(10));
    return 0;
}

static void jobs_that_swap_do_not_wait_for_each_other(void **state)
{
    const struct policy trade = { .name = "trade",
                                  .self_size = 1,
                                  .decide = trade_decide };
    const struct job_spec specs[] = {
        { .gpus = 2, .gpus_min = 1, .gpus_max = 2, .steps = 30 },
        { .gpus = 2, .gpus_min = 1, .gpus_max = 2, .steps = 30 },
    };
    struct cluster cluster;
    struct engine_run run;
    assert_int_equal(cluster_load(&cluster, &bench->arena, "1xv100:2,1xp100:2", NULL),
                     0);
    engine_run_play(&run, &(struct engine_run_setup){ .cluster = &cluster,
                                                      .policy = &trade,
                                                      .specs = specs,
                                                      .spec_count = 2 });
    assert_false(run.gave_up);
    assert_int_equal(run.ended, 2);
    assert_int_equal(run.metrics.resizes, 2);
    assert_int_equal(run.engine.state.view.now_ns, SECONDS(30));
    engine_run_release(&run);
}

static int odd_level(void *self, const struct view *view, struct flow_plan *plan,
                     struct error *err)
{
    for (job_id id = 0; id < 2; id++)
        if (view->jobs[id].state != JOB_FREE)
            flow_set(plan, view, id, 3 + id);
    return 0;
}

static const struct flow_policy flow_odd = { .name = "odd", .decide = odd_level };

static void another_flow_policy_sets_levels_and_fair_resets_them(void **state)
{
    assert_int_equal(submit(1), 0);
    bench->wish = grant_0;
    assert_int_equal(submit(2), 0);
    assert_int_equal(started(0), 0);
    uint32_t asked = bench->asked;
    bench->said[0] = 0;
    assert_int_equal(engine_set_flow(&bench->engine, &flow_odd, "", NULL), 0);
    assert_int_equal(engine_wake_ns(&bench->engine), 1);
    assert_int_equal(engine_step(&bench->engine, 1, NULL, 0, NULL), 0);
    assert_string_equal(bench->said, "commit, levelled 0, levelled 1, commit");
    assert_int_equal(bench->asked, asked); /* the policy has nothing to do with it */
    assert_int_equal(bench->engine.state.jobs[1].level, 4);

    struct error err = { "" };
    assert_int_equal(
        engine_set_flow(&bench->engine, flow_find("jpas"), "period=never", &err),
        -EINVAL);
    assert_string_equal(bench->engine.flow->name, "odd"); /* the present one stays */

    bench->said[0] = 0;
    assert_int_equal(engine_set_flow(&bench->engine, flow_find("fair"), NULL, &err), 0);
    assert_int_equal(engine_step(&bench->engine, 2, NULL, 0, NULL), 0);
    assert_string_equal(bench->said, "commit, levelled 0, levelled 1, commit");
    assert_int_equal(bench->engine.state.jobs[1].level, 0);
    bench->said[0] = 0;
    assert_int_equal(engine_wake_ns(&bench->engine), INT64_MAX);
}

static void after_a_restart_fair_asks_for_no_call(void **state)
{
    assert_int_equal(engine_set_flow(&bench->engine, flow_find("fair"), NULL, NULL), 0);
    assert_int_equal(engine_step(&bench->engine, 1, NULL, 0, NULL), 0);
    engine_adopt(&bench->engine);
    assert_int_equal(engine_step(&bench->engine, 2, NULL, 0, NULL), 0);
    assert_int_equal(engine_wake_ns(&bench->engine), INT64_MAX);
}

static void bytes_sent_need_no_decision(void **state)
{
    assert_int_equal(submit(1), 0);
    bench->wish = grant_0;
    assert_int_equal(submit(2), 0);
    assert_int_equal(started(0), 0);
    uint32_t asked = bench->asked;
    assert_int_equal(step(2, (struct event){ .kind = EVENT_SENT,
                                             .job = 0,
                                             .sends_per_s = 5e6,
                                             .sent_bytes = 1e9 }),
                     0);
    assert_int_equal(bench->asked, asked);
    assert_near(bench->engine.state.jobs[0].sends_per_s, 5e6, 0);
    step(2, (struct event){ .kind = EVENT_SENT, .job = 1, .sends_per_s = 5e6 });
    assert_near(bench->engine.state.jobs[1].sends_per_s, 0, 0); /* it has no seats */
}

/* --- the calendar ----------------------------------------------------------------------- */

#define SECOND INT64_C(1000000000)

static char told[512]; /* to the policy */

static void observe(void *self, const struct view *view, const struct event *event)
{
    size_t at = strlen(told);
    snprintf(told + at, sizeof told - at, "%s%s %s", at ? ", " : "",
             event_name(event->kind),
             event->job == JOB_NONE                        ? "-"
             : view->jobs[event->job].state == JOB_WAITING ? "waits"
                                                           : "does not wait");
}

static const struct policy policy_hearing = {
    .name = "hearing", .self_size = 1, .observe = observe, .decide = decide
};

/* The only node is unavailable from 100 s to 200 s. */
static void bar_the_node(int64_t now_ns)
{
    static const struct calendar_entry entry = {
        .id = 1, .gpus = 0xf, .from_ns = 100 * SECOND, .to_ns = 200 * SECOND
    };
    assert_int_equal(engine_set_policy(&bench->engine, &policy_hearing, NULL, NULL), 0);
    step(now_ns,
         (struct event){ .kind = EVENT_RESERVED, .job = JOB_NONE, .entry = &entry });
    told[0] = 0;
}

static void submit_work(double steps)
{
    struct job job = four;
    job.id = 1;
    job.step_s = 1;
    job.steps_total = steps;
    step(0, (struct event){ .kind = EVENT_SUBMITTED, .spec = &job });
}

/* No event but that time has passed. */
static void pass_until(int64_t now_ns)
{
    told[0] = bench->said[0] = 0;
    assert_int_equal(engine_step(&bench->engine, now_ns, NULL, 0, NULL), 0);
    state_check(&bench->engine.state);
}

static void a_barred_job_is_held_to_the_policy_alone(void **state)
{
    bar_the_node(0);
    submit_work(1000);
    assert_string_equal(told, "submitted waits, held does not wait");
    assert_string_equal(bench->said, "submitted 0, commit");
    assert_int_equal(bench->engine.state.jobs[0].state, JOB_WAITING);
    assert_non_null(eligibility_entry(&bench->engine, 0));
    assert_int_equal(engine_wake_ns(&bench->engine), 100 * SECOND);
    pass_until(100 * SECOND);
    assert_string_equal(told, "boundary -");
    uint32_t asked = bench->asked;
    pass_until(200 * SECOND);
    assert_string_equal(told, "boundary -, released waits");
    assert_int_equal(bench->asked, asked + 1);
    assert_null(eligibility_entry(&bench->engine, 0));
}

static void time_alone_bars_a_job(void **state)
{
    bar_the_node(0);
    submit_work(40);
    assert_string_equal(told, "submitted waits");
    assert_int_equal(engine_wake_ns(&bench->engine), 60 * SECOND);
    uint32_t asked = bench->asked;
    pass_until(60 * SECOND - 1);
    assert_string_equal(told, ""); /* started now it would be gone at 100 s */
    pass_until(60 * SECOND);
    assert_string_equal(told, "held does not wait");
    assert_true(bench->asked > asked); /* others may start now */
}

static void a_job_that_waits_when_an_entry_comes(void **state)
{
    submit_work(1000);
    bar_the_node(0);
    assert_non_null(eligibility_entry(&bench->engine, 0));
    struct calendar_entry later = {
        .id = 1, .gpus = 0xf, .from_ns = 2000 * SECOND, .to_ns = 3000 * SECOND
    };
    step(0, (struct event){ .kind = EVENT_RESERVED, .job = JOB_NONE, .entry = &later });
    assert_string_equal(told, "reserved -, released waits");
    later.gpus = 1; /* it needs all four */
    later.from_ns = 500 * SECOND;
    told[0] = 0;
    step(0, (struct event){ .kind = EVENT_RESERVED, .job = JOB_NONE, .entry = &later });
    assert_string_equal(told, "reserved -, held does not wait");
}

static void owners_hold_withheld_jobs_too(void **state)
{
    bar_the_node(0);
    submit_work(1000);
    told[0] = 0;
    step(1, (struct event){ .kind = EVENT_HELD, .job = 0 });
    assert_string_equal(told, ""); /* it is so to the policy already */
    pass_until(200 * SECOND);
    assert_string_equal(told, "boundary -");
    step(201 * SECOND, (struct event){ .kind = EVENT_RELEASED, .job = 0 });
    assert_string_equal(told, "boundary -, released waits");
}

static void a_policy_that_takes_over_is_told(void **state)
{
    bar_the_node(0);
    submit_work(1000);
    told[0] = 0;
    assert_int_equal(engine_set_policy(&bench->engine, &policy_hearing, NULL, NULL), 0);
    assert_string_equal(told, "adopted waits, held does not wait");
    told[0] = 0;
    step(1, (struct event){ .kind = EVENT_CANCELLED, .job = 0 });
    assert_string_equal(told, "cancelled does not wait");
    assert_null(eligibility_entry(&bench->engine, 0));
}

RUN_CASES(CASE(orders_are_durable_events_before_they_are_carried_out),
          CASE(stops_are_recorded_first_and_starts_carried_out_first),
          CASE(nothing_is_launched_that_is_not_durable),
          CASE(a_started_job_needs_no_decision),
          CASE(a_job_submitted_during_a_start_is_decided_on),
          CASE(unless_the_policy_asked_to_be_called),
          CASE(late_events_reach_no_observer), CASE(a_failed_decision_changes_nothing),
          CASE(an_unknown_setting_is_an_error),
          CASE(another_flow_policy_sets_levels_and_fair_resets_them),
          CASE(after_a_restart_fair_asks_for_no_call),
          CASE(bytes_sent_need_no_decision),
          CASE(a_barred_job_is_held_to_the_policy_alone), CASE(time_alone_bars_a_job),
          CASE(a_job_that_waits_when_an_entry_comes),
          CASE(owners_hold_withheld_jobs_too), CASE(a_policy_that_takes_over_is_told),
          CASE(jobs_that_swap_do_not_wait_for_each_other));
