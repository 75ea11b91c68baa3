/* Shortest remaining time first with the cost test: which jobs run, which stay. */
#include "support/world.h"

extern const struct policy policy_xion, policy_srtf;

static struct job a_job(uint32_t gpus, double work_s, int64_t pause_s, int64_t load_s)
{
    return (struct job){ .gpus = gpus,
                         .steps_total = work_s,
                         .pause_ns = SECONDS(pause_s),
                         .grace_ns = SECONDS(pause_s),
                         .load_ns = SECONDS(load_s) };
}

static void a_swap_that_pays_is_made_and_announced(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 1000, 10, 20));
    job_id new = world_queued(w, a_job(4, 100, 5, 30));

    world_decide(w, &policy_xion);

    assert_true(plan_holds(w->plan, new));
    assert_true(world_waits_for(w, new, old));
    const struct change *revoke = plan_change(w->plan, 0);
    assert_int_equal(revoke->kind, CHANGE_REVOKE);
    assert_int_equal(revoke->rule, RULE_ORDER);
    assert_int_equal(revoke->beneficiary, new);
    assert_int_equal(revoke->wait_saved_ns, SECONDS(990));
}

/* R_v - R_w > 2 p + l_w + l_v + theta g (p + l_v) = 20 + 30 + 20 + 120. */
static void one_that_does_not_pay_by_a_second_is_not(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 291, 10, 20));
    job_id new = world_queued(w, a_job(4, 100, 5, 30));

    world_decide_with(w, &policy_xion, "stretch=0");
    assert_false(plan_holds(w->plan, old));

    world_pass(w, SECONDS(1));
    world_decide_with(w, &policy_xion, "stretch=0");
    assert_false(plan_changes(w->plan, old));
    assert_false(plan_holds(w->plan, new));
    assert_int_equal(plan_change_count(w->plan), 0);
}

static void free_gpus_are_used_before_any_job_is_preempted(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(3, 1000, 0, 0));
    job_id small = world_queued(w, a_job(1, 500, 0, 0));

    world_decide(w, &policy_xion);
    assert_true(plan_holds(w->plan, small));
    assert_false(plan_changes(w->plan, old));
}

static void the_longest_is_preempted_and_only_as_many_as_needed(void **state)
{
    struct world *w = *state;
    job_id brief = world_running(w, a_job(1, 50, 0, 0));
    job_id longest = world_running(w, a_job(2, 900, 0, 0));
    job_id longer = world_running(w, a_job(1, 500, 0, 0));
    job_id new = world_queued(w, a_job(2, 10, 0, 0));

    world_decide(w, &policy_xion);
    assert_true(plan_holds(w->plan, new));
    assert_false(plan_holds(w->plan, longest));
    assert_false(plan_changes(w->plan, longer));
    assert_false(plan_changes(w->plan, brief));
}

static void a_gang_starts_only_if_its_victims_lose_less(void **state)
{
    struct world *w = *state;
    job_id old[4];
    for (int i = 0; i < 4; i++)
        old[i] = world_running(w, a_job(1, 1000, 0, 0));
    job_id gang = world_queued(w, a_job(4, 240, 0, 0)); /* 1000 - 4 x 240 */

    world_decide_with(w, &policy_xion, "stretch=0");
    assert_true(plan_holds(w->plan, gang));

    world_job(w, gang)->steps_total = 260; /* srtf would */
    world_decide(w, &policy_srtf);
    assert_true(plan_holds(w->plan, gang));
    world_decide_with(w, &policy_xion, "stretch=0");
    assert_false(plan_holds(w->plan, gang));
    assert_false(plan_changes(w->plan, old[0]));
}

static void a_gang_over_nodes_can_be_victim_and_beneficiary(void **state)
{
    world_release(*state);
    struct world *w = *state;
    world_init(w, 2, 4);
    job_id old = world_running(w, a_job(8, 1000, 10, 10));
    job_id new = world_queued(w, a_job(8, 100, 10, 10));
    world_decide(w, &policy_xion);
    assert_true(plan_holds(w->plan, new));
    assert_false(plan_holds(w->plan, old));

    world_job(w, new)->steps_total = 5000;
    job_id small = world_queued(w, a_job(4, 50, 10, 10));
    world_decide(w, &policy_xion);
    assert_true(plan_holds(w->plan, small));
    assert_false(plan_holds(w->plan, old)); /* a gang is preempted whole */
}

static void equals_do_not_trade_places(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 100, 0, 0));
    world_pass(w, SECONDS(10));
    world_queued(w, a_job(4, 90, 0, 0));

    world_decide(w, &policy_xion);
    assert_false(plan_changes(w->plan, old));
}

static void jobs_of_unknown_work_wait_and_are_preempted(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 0, 0, 0));
    job_id vague = world_queued(w, a_job(4, 0, 0, 0));
    world_pass(w, SECONDS(600));
    world_decide(w, &policy_xion);
    assert_int_equal(plan_change_count(w->plan), 0);

    job_id new = world_queued(w, a_job(4, 100, 0, 0));
    world_decide(w, &policy_xion);
    assert_true(plan_holds(w->plan, new));
    assert_false(plan_holds(w->plan, old));
    assert_false(plan_holds(w->plan, vague));
}

/* Free preemptions, one GPU each: the same jobs run as under srtf. */
static void with_free_swaps_it_chooses_as_srtf(void **state)
{
    struct world *w = *state;
    job_id jobs[8];
    for (int i = 0; i < 4; i++)
        jobs[i] = world_running(w, a_job(1, 100 + 90 * i, 0, 0));
    for (int i = 0; i < 4; i++)
        jobs[4 + i] = world_queued(w, a_job(1, 50 + 100 * i, 0, 0));

    bool runs[8];
    world_decide(w, &policy_srtf);
    for (int i = 0; i < 8; i++)
        runs[i] = plan_holds(w->plan, jobs[i]);
    world_decide(w, &policy_xion);
    for (int i = 0; i < 8; i++)
        assert_int_equal(plan_holds(w->plan, jobs[i]), runs[i]);
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(a_swap_that_pays_is_made_and_announced),
          CASE(one_that_does_not_pay_by_a_second_is_not),
          CASE(free_gpus_are_used_before_any_job_is_preempted),
          CASE(the_longest_is_preempted_and_only_as_many_as_needed),
          CASE(a_gang_starts_only_if_its_victims_lose_less),
          CASE(a_gang_over_nodes_can_be_victim_and_beneficiary),
          CASE(equals_do_not_trade_places),
          CASE(jobs_of_unknown_work_wait_and_are_preempted),
          CASE(with_free_swaps_it_chooses_as_srtf));
