/*
 * From shares to rounds: which jobs run, take turns and stay; what a policy is told;
 * and what happens when it has no answer.
 */
#include "support/world.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "policy/gavel/gavel.h"

#define ROUND SECONDS(360)

/* A policy with shares given by the test, by slot. */
struct told {
    struct gavel_policy gavel;
};

static double told_x[WORLD_JOBS_MAX][TYPES_MAX];
static double told_rate[WORLD_JOBS_MAX][TYPES_MAX];
static double told_steps[WORLD_JOBS_MAX];
static bool told_fails;
static uint32_t told_count, told_jobs;

static int told_shares(void *self, struct gavel_call *call, struct error *err)
{
    told_count++;
    told_jobs = call->job_count;
    if (told_fails)
        return error_set(err, -EDOM, "no answer");
    for (uint32_t i = 0; i < call->job_count; i++) {
        size_t row = (size_t)i * call->type_count;
        memcpy(&call->x[row], told_x[call->jobs[i]],
               call->type_count * sizeof *call->x);
        memcpy(told_rate[call->jobs[i]], &call->rate[row],
               call->type_count * sizeof *call->rate);
        told_steps[call->jobs[i]] = call->steps[i];
    }
    return 0;
}

static struct gavel_rule told_rule = { .shares = told_shares };

static int told_init(void *self, const struct view *view, uint64_t seed,
                     struct arena *run, struct error *err)
{
    return gavel_init(self, &told_rule, view, seed, run, err);
}

static const struct field told_params[] = {
    GAVEL_PARAM_AWARE,
    GAVEL_PARAMS,
    { NULL },
};

static const struct policy told = { .name = "told",
                                    .params = told_params,
                                    .self_size = sizeof(struct told),
                                    .init = told_init,
                                    .observe = gavel_observe,
                                    .decide = gavel_decide,
                                    .fini = gavel_fini };

/* Carry the plan out, as if victims stopped at once. */
static void carry_out(struct world *w)
{
    world_carry_out(w);
    for (job_id job = 0; job < w->state.job_count; job++)
        if (world_job(w, job)->state == JOB_STOPPING)
            world_apply(
                w, (struct event){ .kind = EVENT_STOPPED, .job = job, .clean = true });
    for (job_id job = 0; job < w->state.job_count; job++)
        if (world_job(w, job)->state == JOB_PLACED)
            world_apply(
                w, (struct event){ .kind = EVENT_STARTED, .job = job, .loaded = true });
}

static void next_round(struct world *w)
{
    carry_out(w);
    world_pass(w, ROUND);
    world_decide_again(w);
}

/* --- our own rounds --------------------------------------------------------------- */

static void a_job_due_all_of_the_time_stays(void **state)
{
    struct world *w = *state;
    job_id whole = world_queued(w, (struct job){ .gpus = 1 });
    job_id half = world_queued(w, (struct job){ .gpus = 1 });
    job_id other = world_queued(w, (struct job){ .gpus = 1 });
    told_x[whole][0] = 1;
    told_x[half][0] = told_x[other][0] = 0.5;
    world_decide(w, &told);
    uint32_t turns = 0;
    for (uint32_t round = 0; round < 20; round++) {
        assert_true(plan_holds(w->plan, whole));
        assert_true(plan_holds(w->plan, half) != plan_holds(w->plan, other));
        turns += plan_holds(w->plan, half);
        next_round(w);
        assert_false(plan_changes(w->plan, whole));
    }
    assert_in_range(turns, 9, 11);
}

static void shares_are_kept_to_in_the_long_run(void **state)
{
    struct world *w = *state;
    static const double shares[] = { 0.9, 0.6, 0.3, 0.2 };
    job_id jobs[4];
    double had[4] = { 0 };
    for (uint32_t i = 0; i < 4; i++) {
        jobs[i] = world_queued(w, (struct job){ .gpus = 1 });
        told_x[jobs[i]][0] = shares[i];
    }
    world_decide(w, &told);
    for (uint32_t round = 0; round < 400; round++) {
        for (uint32_t i = 0; i < 4; i++)
            had[i] += plan_holds(w->plan, jobs[i]);
        next_round(w);
    }
    for (uint32_t i = 0; i < 4; i++)
        assert_near(had[i] / 400, shares[i], 0.02);
}

static void time_not_due_goes_to_jobs_that_can_use_it(void **state)
{
    struct world *w = *state;
    job_id due = world_queued(w, (struct job){ .gpus = 1 });
    job_id not_due = world_queued(w, (struct job){ .gpus = 1 });
    told_x[due][0] = 1;
    world_decide(w, &told);
    assert_true(plan_holds(w->plan, due));
    assert_true(plan_holds(w->plan, not_due));
}

static void under_a_strict_rule_it_goes_to_no_job(void **state)
{
    struct world *w = *state;
    job_id due = world_queued(w, (struct job){ .gpus = 1 });
    job_id not_due = world_queued(w, (struct job){ .gpus = 1 });
    told_x[due][0] = 1;
    told_rule.strict = true;
    world_decide(w, &told);
    assert_true(plan_holds(w->plan, due));
    assert_false(plan_holds(w->plan, not_due));
}

static void a_job_arriving_in_a_round_gets_what_is_free_at_once(void **state)
{
    struct world *w = *state;
    job_id first = world_queued(w, (struct job){ .gpus = 1 });
    told_x[first][0] = 1;
    world_decide(w, &told);
    carry_out(w);
    world_pass(w, SECONDS(10));
    job_id late = world_queued(w, (struct job){ .gpus = 1 });
    world_apply(w, (struct event){
                       .kind = EVENT_PROGRESS, .job = first, .steps = 1, .loss = NAN });
    told_x[late][0] = 1;
    world_decide_again(w);
    assert_true(plan_holds(w->plan, late));
    assert_false(plan_changes(w->plan, first));
    assert_int_equal(told_jobs, 2);
}

static void no_job_is_preempted_within_a_round(void **state)
{
    struct world *w = *state;
    job_id a = world_running(w, (struct job){ .gpus = 1 });
    job_id b = world_running(w, (struct job){ .gpus = 1 });
    told_x[a][0] = told_x[b][0] = 0.5;
    world_decide(w, &told); /* which is the end of a round */
    carry_out(w);
    world_pass(w, SECONDS(100));
    job_id due = world_queued(w, (struct job){ .gpus = 1 });
    told_x[due][0] = 1;
    world_decide_again(w);
    assert_int_equal(plan_change_count(w->plan), 0);
    assert_int_equal(plan_next_wake(w->plan), ROUND);
}

static void a_job_that_would_lose_its_work_stays(void **state)
{
    struct world *w = *state;
    struct job cannot_save = { .gpus = 2,
                               .grace_ns = SECONDS(1),
                               .pause_ns = SECONDS(9) };
    job_id old = world_running(w, cannot_save);
    job_id due = world_queued(w, (struct job){ .gpus = 2 });
    told_x[due][0] = 1;
    world_decide(w, &told);
    next_round(w);
    assert_false(plan_holds(w->plan, due));
    assert_true(plan_holds(w->plan, old));
}

static void a_large_gang_gets_the_gpus_of_several_victims(void **state)
{
    struct world *w = *state;
    job_id a = world_running(w, (struct job){ .gpus = 1 });
    job_id b = world_running(w, (struct job){ .gpus = 1 });
    job_id gang = world_queued(w, (struct job){ .gpus = 2 });
    told_x[gang][0] = 1;
    told_x[a][0] = told_x[b][0] = 0.01;
    world_decide(w, &told);
    for (uint32_t round = 0; round < 4 && !plan_holds(w->plan, gang); round++)
        next_round(w);
    assert_true(plan_holds(w->plan, gang));
    assert_false(plan_holds(w->plan, a));
    assert_false(plan_holds(w->plan, b));
}

static void a_policy_without_an_answer_keeps_the_shares_it_had(void **state)
{
    struct world *w = *state;
    job_id first = world_queued(w, (struct job){ .gpus = 1 });
    told_x[first][0] = 1;
    world_decide(w, &told);
    carry_out(w);

    told_fails = true;
    job_id late = world_queued(w, (struct job){ .gpus = 1 });
    struct error err = { "" };
    struct arena scratch;
    arena_init(&scratch, 0);
    world_plan(w);
    assert_int_equal(
        told.decide(w->policy_self, &w->state.view, w->plan, &scratch, &err), -EDOM);
    arena_release(&scratch);
    assert_string_equal(err.text, "no answer");
    assert_int_equal(plan_next_wake(w->plan), w->state.view.now_ns + 1);

    world_pass(w, 1); /* it runs on what it has: late has no share, but GPUs are free */
    world_decide_again(w);
    assert_false(plan_changes(w->plan, first));
    assert_true(plan_holds(w->plan, late));
}

/* --- what a policy is told ------------------------------------------------------------- */

static void rates_are_those_of_the_types(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .gpus = 1 });
    world_decide(w, &told);
    assert_true(told_rate[job][0] == 1);
    assert_true(told_steps[job] == 360); /* unknown: a round's worth */
}

static void a_gang_has_no_rate_where_there_is_not_enough(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .gpus = 2 });
    world_decide(w, &told);
    assert_true(told_rate[job][0] == 1);
    world_apply(w, (struct event){ .kind = EVENT_NODE_DOWN, .node = 1 });
    world_decide_again(w);
    assert_true(told_rate[job][0] == 0);
    world_apply(w, (struct event){ .kind = EVENT_NODE_UP, .node = 1 });
    world_apply(w, (struct event){ .kind = EVENT_NODE_UP, .node = 1 });
    world_decide_again(w);
    assert_true(told_rate[job][0] == 1);
}

/* --- rounds of the published system ----------------------------------------------- */

static void a_round_is_a_lease_of_whole_steps(void **state)
{
    struct world *w = *state;
    job_id job = world_queued(w, (struct job){ .gpus = 1, .steps_total = 1000 });
    told_x[job][0] = 1;
    world_decide_with(w, &told, "compat=released,round=100s");
    assert_int_equal(world_grant(w, job)->steps_max, 100);
}

static void half_the_share_brings_half_the_rounds(void **state)
{
    struct world *w = *state;
    job_id jobs[3];
    double had[3] = { 0 };
    for (uint32_t i = 0; i < 3; i++)
        jobs[i] = world_queued(w, (struct job){ .gpus = 2, .steps_total = 1e9 });
    told_x[jobs[0]][0] = 0.5;
    told_x[jobs[1]][0] = told_x[jobs[2]][0] = 0.25;
    world_decide_with(w, &told, "compat=released");
    for (uint32_t round = 0; round < 40; round++) {
        for (uint32_t i = 0; i < 3; i++)
            had[i] += plan_holds(w->plan, jobs[i]);
        carry_out(w);
        world_pass(w, ROUND);
        for (uint32_t i = 0; i < 3; i++)
            if (world_job(w, jobs[i])->state == JOB_RUNNING)
                world_apply(
                    w, (struct event){ .kind = EVENT_LEASE_DONE,
                                       .job = jobs[i],
                                       .steps = world_job(w, jobs[i])->steps + 360 });
        world_decide_again(w);
    }
    assert_int_equal(had[0], 20);
    assert_int_equal(had[1], 10);
    assert_int_equal(had[2], 10);
}

static void the_cost_test_and_published_rounds_exclude_each_other(void **state)
{
    struct world *w = *state;
    struct error err;
    struct told *self = arena_new(&w->arena, struct told);
    param_defaults(told_params, self);
    assert_int_equal(
        param_parse(told_params, self, "told", "compat=released,worth=xion", &err), 0);
    assert_int_equal(told_init(self, &w->state.view, 1, &w->arena, &err), -EINVAL);
    assert_string_equal(err.text,
                        "worth asks before a swap, which compat=released never does");
}

static int setup(void **state)
{
    static struct world w;
    world_init(&w, /* nodes= */ 2, /* gpus_per_node= */ 1);
    memset(told_x, 0, sizeof told_x);
    told_fails = told_rule.strict = false;
    told_count = 0;
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    world_release(*state);
    return 0;
}

RUN_CASES(CASE(a_job_due_all_of_the_time_stays),
          CASE(shares_are_kept_to_in_the_long_run),
          CASE(time_not_due_goes_to_jobs_that_can_use_it),
          CASE(under_a_strict_rule_it_goes_to_no_job),
          CASE(a_job_arriving_in_a_round_gets_what_is_free_at_once),
          CASE(no_job_is_preempted_within_a_round),
          CASE(a_job_that_would_lose_its_work_stays),
          CASE(a_large_gang_gets_the_gpus_of_several_victims),
          CASE(a_policy_without_an_answer_keeps_the_shares_it_had),
          CASE(rates_are_those_of_the_types),
          CASE(a_gang_has_no_rate_where_there_is_not_enough),
          CASE(a_round_is_a_lease_of_whole_steps),
          CASE(half_the_share_brings_half_the_rounds),
          CASE(the_cost_test_and_published_rounds_exclude_each_other));
