/* The policy berth: what each of its layers decides. */
#include "model/reasons.h"
#include "support/world.h"

extern const struct policy policy_berth;

static struct job a_job(uint32_t gpus, double work_s, int64_t pause_s, int64_t load_s)
{
    return (struct job){ .gpus = gpus,
                         .steps_total = work_s,
                         .pause_ns = SECONDS(pause_s),
                         .grace_ns = SECONDS(pause_s),
                         .load_ns = SECONDS(load_s) };
}

static struct job a_trial(uint32_t gpus, double work_s)
{
    struct job job = a_job(gpus, work_s, 0, 0);
    job.class = CLASS_TE;
    return job;
}

static void a_short_job_passes_one_that_does_not_fit(void **state)
{
    struct world *w = *state;
    world_running(w, a_job(3, 100, 10, 10));
    job_id large = world_queued(w, a_job(4, 900, 10, 10));
    job_id small = world_queued(w, a_job(1, 5000, 10, 10));

    world_decide(w, &policy_berth);
    assert_true(plan_holds(w->plan, small));
    assert_false(plan_holds(w->plan, large));
}

static void a_swap_is_made_if_it_pays(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 10000, 10, 20));
    job_id new = world_queued(w, a_job(4, 100, 10, 20));
    world_decide(w, &policy_berth);
    assert_true(plan_holds(w->plan, new));
    assert_false(plan_holds(w->plan, old));

    world_job(w, old)->pause_ns = world_job(w, old)->grace_ns = SECONDS(5000);
    world_decide(w, &policy_berth);
    assert_false(plan_changes(w->plan, old));
}

/* The second job cannot save: it would lose what it has done. */
static void a_trial_spares_the_job_that_cannot_save(void **state)
{
    struct world *w = *state;
    struct job cannot = a_job(2, 10000, 60, 10);
    cannot.grace_ns = SECONDS(1);
    job_id lossy = world_running(w, cannot);
    job_id safe = world_running(w, a_job(2, 10000, 60, 10));
    world_pass(w, SECONDS(3000));
    job_id trial = world_queued(w, a_trial(2, 100));

    world_decide(w, &policy_berth);
    assert_true(plan_holds(w->plan, trial));
    assert_false(plan_holds(w->plan, safe));
    assert_false(plan_changes(w->plan, lossy));
}

static void a_job_preempted_often_is_dear_but_not_untouchable(void **state)
{
    struct world *w = *state;
    job_id often = world_running(w, a_job(2, 10000, 10, 10));
    job_id never = world_running(w, a_job(2, 10000, 10, 10));
    world_job(w, often)->preemptions = 5;
    job_id trial = world_queued(w, a_trial(2, 100));
    world_decide(w, &policy_berth);
    assert_false(plan_holds(w->plan, never));
    assert_true(plan_holds(w->plan, trial));

    world_job(w, never)->preemptions = 50;
    world_decide(w, &policy_berth);
    assert_false(plan_holds(w->plan, often));
    assert_true(plan_holds(w->plan, trial));
}

static void a_trial_waits_for_an_end_that_is_near(void **state)
{
    struct world *w = *state;
    world_running(w, a_job(2, 10000, 60, 60));
    job_id ending = world_running(w, a_job(2, 5, 60, 60));
    job_id trial = world_queued(w, a_trial(2, 100));

    world_decide(w, &policy_berth);
    assert_int_equal(plan_change_count(w->plan), 0);
    assert_false(plan_holds(w->plan, trial));
    assert_true(plan_holds(w->plan, ending));
}

/* Half of the four GPUs are theirs: the second trial job counts as best effort. */
static void a_trial_beyond_their_share_preempts_no_shorter_job(void **state)
{
    struct world *w = *state;
    job_id brief = world_running(w, a_job(2, 50, 10, 10));
    job_id other = world_running(w, a_job(2, 50, 10, 10));
    job_id first = world_queued(w, a_trial(2, 1000));
    job_id second = world_queued(w, a_trial(2, 2000));
    world_decide_with(w, &policy_berth, "trial_weight=1000");
    assert_true(plan_holds(w->plan, first));
    assert_false(plan_holds(w->plan, second));
    assert_true(plan_holds(w->plan, brief) != plan_holds(w->plan, other));
}

static void an_undeclared_job_comes_between_short_and_long_ones(void **state)
{
    struct world *w = *state;
    world_running(w, (struct job){ .gpus = 4, .stays = true });
    job_id brief = world_queued(w, a_job(4, 10, 0, 0));
    job_id vague = world_queued(w, a_job(4, 0, 0, 0));
    job_id lengthy = world_queued(w, a_job(4, 1e6, 0, 0));
    world_decide(w, &policy_berth);

    struct reasons reasons;
    reasons_reset(&reasons);
    w->policy->explain(w->policy_self, &w->state.view, vague, &reasons);
    assert_int_equal(reasons_ahead_total(&reasons), 1);
    assert_int_equal(reasons.ahead[0].id, world_job(w, brief)->id);
    (void)lengthy;
}

static void a_job_moves_to_faster_gpus_that_are_free(void **state)
{
    struct world *w = *state;
    world_release(w);
    world_init_as(w, "1xv100:2,1xk80:2");
    w->cluster.types[0].speed = 4;
    struct job job = a_job(2, 100000, 10, 10);
    job_id slow = world_running_on(w, 1, job);
    world_decide(w, &policy_berth);
    assert_true(plan_changes(w->plan, slow));
    assert_true(plan_holds(w->plan, slow));

    world_job(w, slow)->steps_total = world_job(w, slow)->steps + 20;
    world_decide(w, &policy_berth);
    assert_false(plan_changes(w->plan, slow)); /* it is nearly done */
}

/* Two nodes are kept for it: the free one, and the one whose job ends first. */
static void nodes_are_kept_for_a_gang_that_waited_too_long(void **state)
{
    struct world *w = *state;
    world_release(w);
    world_init_as(w, "3xv100:4");
    struct job stays = a_job(4, 5000 + 86400 * 20, 10, 10);
    stays.stays = true;
    world_running_on(w, 0, stays);
    stays.steps_total = 1000 + 86400 * 20;
    world_running_on(w, 1, stays);
    job_id gang = world_queued(w, a_job(8, 100000, 10, 10));
    world_pass(w, SECONDS(86400) * 20);
    job_id lengthy = world_queued(w, a_job(4, 2000, 10, 10));
    job_id brief = world_queued(w, a_job(2, 500, 10, 10));

    world_decide(w, &policy_berth);
    assert_false(plan_holds(w->plan, gang));
    assert_false(plan_holds(w->plan, lengthy));
    assert_true(plan_holds(w->plan, brief)); /* it ends before the gang can start */
}

/* It waits for one node only: the others are for all. */
static void a_job_that_waited_too_long_leaves_what_it_does_not_need(void **state)
{
    struct world *w = *state;
    world_release(w);
    world_init_as(w, "3xv100:4");
    struct job stays = a_job(2, 5000 + 86400 * 20, 10, 10);
    stays.stays = true;
    for (node_id node = 0; node < 3; node++)
        world_running_on(w, node, stays);
    job_id old = world_queued(w, a_job(4, 100000, 10, 10));
    world_pass(w, SECONDS(86400) * 20);
    job_id first = world_queued(w, a_job(2, 1e6, 10, 10));
    job_id second = world_queued(w, a_job(2, 1e6, 10, 10));
    job_id third = world_queued(w, a_job(2, 1e6, 10, 10));
    stays.gpus = 1;
    job_id staying = world_queued(w, stays); /* and could not be taken back */

    world_decide(w, &policy_berth);
    assert_false(plan_holds(w->plan, old));
    assert_int_equal(plan_holds(w->plan, first) + plan_holds(w->plan, second) +
                         plan_holds(w->plan, third),
                     2);
    assert_false(plan_holds(w->plan, staying));
}

static void a_job_that_waited_too_long_goes_first(void **state)
{
    struct world *w = *state;
    job_id other = world_running(w, a_job(4, 1e6, 10, 10));
    job_id old = world_queued(w, a_job(4, 100000, 10, 10));
    world_pass(w, SECONDS(86400) * 20);
    job_id brief = world_queued(w, a_job(4, 100, 10, 10));
    world_decide(w, &policy_berth);
    assert_true(plan_holds(w->plan, old));
    assert_false(plan_holds(w->plan, brief));
    assert_false(plan_holds(w->plan, other));
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(a_short_job_passes_one_that_does_not_fit),
          CASE(a_swap_is_made_if_it_pays),
          CASE(a_trial_spares_the_job_that_cannot_save),
          CASE(a_job_preempted_often_is_dear_but_not_untouchable),
          CASE(a_trial_waits_for_an_end_that_is_near),
          CASE(a_trial_beyond_their_share_preempts_no_shorter_job),
          CASE(an_undeclared_job_comes_between_short_and_long_ones),
          CASE(a_job_moves_to_faster_gpus_that_are_free),
          CASE(nodes_are_kept_for_a_gang_that_waited_too_long),
          CASE(a_job_that_waited_too_long_leaves_what_it_does_not_need),
          CASE(a_job_that_waited_too_long_goes_first));
