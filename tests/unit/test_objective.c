/* The policy berth with other objectives: shares by Gavel's programmes, the other layers around. */
#include <string.h>

#include "model/reasons.h"
#include "support/world.h"

extern const struct policy policy_berth;

static const char *const objectives[] = { "objective=makespan", "objective=fairness",
                                          "objective=cost" };
#define OBJECTIVES (sizeof objectives / sizeof *objectives)

static struct job a_job(uint32_t gpus, double work_s, int64_t cost_s)
{
    return (struct job){ .gpus = gpus,
                         .steps_total = work_s,
                         .pause_ns = SECONDS(cost_s),
                         .grace_ns = SECONDS(cost_s),
                         .load_ns = SECONDS(cost_s) };
}

static struct job a_trial(uint32_t gpus, double work_s)
{
    struct job job = a_job(gpus, work_s, 0);
    job.class = CLASS_TE;
    return job;
}

static struct job an_elastic(uint32_t gpus, uint32_t gpus_max, double work_s)
{
    struct job job = a_job(gpus, work_s, 1);
    job.gpus_min = 1;
    job.gpus_max = gpus_max;
    job.step_s = 1;
    job.fixed_s = 0.1;
    return job;
}

static void begin(struct world *w, const char *cluster)
{
    world_release(w);
    world_init_as(w, cluster);
    for (uint32_t type = 0; type < w->cluster.type_count; type++)
        w->cluster.types[type].usd_per_hour = 1;
}

static void a_trial_job_starts_at_once(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < OBJECTIVES; i++) {
        begin(w, "1xv100:4");
        job_id dear = world_running(w, a_job(2, 1e5, 200));
        job_id cheap = world_running(w, a_job(2, 1e5, 20));
        job_id trial = world_queued(w, a_trial(2, 100));
        world_decide_with(w, &policy_berth, objectives[i]);
        assert_true(plan_holds(w->plan, trial));
        assert_false(plan_holds(w->plan, cheap));
        assert_true(plan_holds(w->plan, dear));
    }
}

/* Half of the GPUs are theirs: the second is due a share of time as others are. */
static void a_trial_job_beyond_their_share_takes_its_turn(void **state)
{
    struct world *w = *state;
    begin(w, "1xv100:4");
    world_running(w, a_job(2, 1e5, 0));
    world_running(w, a_job(2, 1e5, 0));
    job_id first = world_queued(w, a_trial(2, 1e5));
    job_id second = world_queued(w, a_trial(2, 1e5));
    world_decide_with(w, &policy_berth, "objective=fairness");
    assert_true(plan_holds(w->plan, first));
    assert_false(plan_holds(w->plan, second));
    world_carry_out(w);
    world_decide_with(w, &policy_berth, "objective=fairness");
    assert_false(plan_holds(w->plan, second));
    world_pass(w, SECONDS(3600));
    world_decide_again(w);
    assert_true(plan_holds(w->plan, second));
    assert_true(plan_holds(w->plan, first)); /* rounds take nothing from a trial job */
}

/* The time after which a job of this cost has made way for another like it. */
static int64_t time_to_swap_s(struct world *w, int64_t cost_s)
{
    begin(w, "1xv100:4");
    job_id old = world_running(w, a_job(4, 1e5, cost_s));
    job_id new = world_queued(w, a_job(4, 1e5, cost_s));
    world_decide_with(w, &policy_berth, "objective=fairness");
    for (int64_t s = 60; s < 20000; s += 60) {
        assert_true(plan_holds(w->plan, old));
        world_pass(w, SECONDS(60));
        world_decide_again(w);
        if (plan_holds(w->plan, new))
            return s;
    }
    return INT64_MAX;
}

/* A round is 360 s; two equal jobs are each due half of the time. */
static void a_job_keeps_its_gpus_for_what_its_stop_costs(void **state)
{
    struct world *w = *state;
    int64_t free_s = time_to_swap_s(w, 0);
    int64_t cheap_s = time_to_swap_s(w, 30);
    int64_t dear_s = time_to_swap_s(w, 60);
    assert_in_range(free_s, 360, 2 * 360);
    assert_true(cheap_s >= free_s + 300);
    assert_true(dear_s >= cheap_s + 300);
    assert_true(time_to_swap_s(w, 600) < 20000); /* it is a price, not a bar */
}

static void an_elastic_job_gives_back_what_it_was_lent(void **state)
{
    struct world *w = *state;
    begin(w, "1xv100:8");
    job_id old = world_running(w, an_elastic(4, 8, 1e5));
    world_decide_with(w, &policy_berth, "objective=makespan");
    assert_int_equal(world_size(w, old), 8);

    begin(w, "1xv100:8");
    old = world_running(w, an_elastic(8, 8, 1e5));
    world_job(w, old)->gpus = 4;
    job_id new = world_queued(w, a_job(4, 1e5, 1));
    world_decide_with(w, &policy_berth, "objective=makespan");
    assert_int_equal(world_size(w, old), 4);
    assert_int_equal(world_size(w, new), 4);
}

/* Unlike under 'completion', nobody is made smaller than what it asked for. */
static void no_job_gives_up_what_it_asked_for(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < OBJECTIVES; i++) {
        begin(w, "1xv100:4");
        job_id old = world_running(w, an_elastic(4, 4, 1e5));
        job_id new = world_queued(w, a_job(1, 1e5, 1));
        world_decide_with(w, &policy_berth, objectives[i]);
        assert_int_equal(world_size(w, old), 4);
        assert_false(plan_holds(w->plan, new));
    }
}

static void for_the_least_cost_no_job_grows(void **state)
{
    struct world *w = *state;
    begin(w, "1xv100:8");
    job_id old = world_running(w, an_elastic(4, 8, 1e5));
    world_decide_with(w, &policy_berth, "objective=cost");
    assert_int_equal(world_size(w, old), 4);
}

static struct reasons reasons;

static bool has_reason(const char *token)
{
    for (uint32_t i = 0; i < reasons.count; i++)
        if (strcmp(reasons.list[i].token, token) == 0)
            return true;
    return false;
}

static void why_names_share_and_price(void **state)
{
    struct world *w = *state;
    begin(w, "1xv100:4");
    job_id old = world_running(w, a_job(4, 1e5, 30));
    job_id new = world_queued(w, a_job(4, 1e5, 30));
    world_decide_with(w, &policy_berth, "objective=fairness");
    world_pass(w, SECONDS(400));
    reasons_reset(&reasons);
    w->policy->explain(w->policy_self, &w->state.view, new, &reasons);
    assert_true(has_reason("objective"));
    assert_true(has_reason("share"));
    assert_true(has_reason("worth"));
    assert_int_equal(reasons.considered_count, 1);
    assert_int_equal(reasons.considered[0].id, world_job(w, old)->id);
    assert_near(reasons.considered[0].price_gpu_s, 4 * 60, 1);
    assert_string_equal(reasons.considered[0].verdict,
                        "has run too short a time for what its stop costs");

    job_id trial = world_queued(w, a_trial(4, 100));
    reasons_reset(&reasons);
    w->policy->explain(w->policy_self, &w->state.view, trial, &reasons);
    assert_true(has_reason("objective"));
    assert_false(has_reason("share"));
}

/* Shares by weight where the cluster names entities, else in proportion to finish times. */
static void named_entities_share_by_weight(void **state)
{
    struct world *w = *state;
    static struct entity entities[] = { { "large", 3, false }, { "small", 1, false } };
    begin(w, "1xv100:1");
    w->cluster.entities = entities;
    w->cluster.entity_count = 2;
    struct job job = a_job(1, 1e6, 0);
    job_id due[2];
    for (uint32_t i = 0; i < 2; i++) {
        job.entity = i + 1;
        due[i] = world_queued(w, job);
    }
    world_decide_with(w, &policy_berth, "objective=fairness");
    for (uint32_t i = 0; i < 2; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "it is due %d %% of the time on v100",
                 i == 0 ? 75 : 25);
        reasons_reset(&reasons);
        w->policy->explain(w->policy_self, &w->state.view, due[i], &reasons);
        bool found = false;
        for (uint32_t r = 0; r < reasons.count; r++)
            found = found || strcmp(reasons.list[r].text, expected) == 0;
        assert_true(found);
    }
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(a_trial_job_starts_at_once),
          CASE(a_trial_job_beyond_their_share_takes_its_turn),
          CASE(a_job_keeps_its_gpus_for_what_its_stop_costs),
          CASE(an_elastic_job_gives_back_what_it_was_lent),
          CASE(no_job_gives_up_what_it_asked_for),
          CASE(for_the_least_cost_no_job_grows), CASE(why_names_share_and_price),
          CASE(named_entities_share_by_weight));
