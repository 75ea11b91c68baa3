/*
 * FitGpp: which GPUs a trial job takes, what is pending for it, and which jobs are
 * protected.
 */
#include "support/world.h"

extern const struct policy policy_fitgpp;

static struct job te(uint32_t gpus)
{
    return (struct job){ .class = CLASS_TE, .gpus = gpus };
}

static struct job be(uint32_t gpus, int64_t grace_ns)
{
    return (struct job){ .gpus = gpus, .grace_ns = grace_ns };
}

static uint32_t revoked_count(const struct world *w)
{
    uint32_t count = 0;
    for (size_t i = 0; i < plan_change_count(w->plan); i++)
        count += plan_change(w->plan, i)->kind == CHANGE_REVOKE;
    return count;
}

static void a_trial_job_that_fits_preempts_no_job(void **state)
{
    struct world *w = *state;
    job_id running = world_running(w, be(6, 0));
    job_id trial = world_queued(w, te(2));

    world_decide(w, &policy_fitgpp);

    assert_true(plan_holds(w->plan, trial));
    assert_false(plan_changes(w->plan, running));
}

static void where_nodes_are_filled_first_fit_the_first_that_fits_is_taken(void **state)
{
    struct world *w = *state;
    world_running_on(w, 1, be(6, 0));
    job_id trial = world_queued(w, te(2));

    world_decide(w, &policy_fitgpp);
    assert_int_equal(world_seat(w, trial, 0)->node, 1); /* the tightest */

    w->cluster.first_fit = true;
    world_decide(w, &policy_fitgpp);
    assert_int_equal(world_seat(w, trial, 0)->node, 0);
}

/* Scores: 1 + 4 * 60/600 = 1.4 and 2/6 + 4 = 4.33. */
static void a_short_grace_period_outweighs_the_size(void **state)
{
    struct world *w = *state;
    job_id quick = world_running_on(w, 0, be(6, SECONDS(60)));
    job_id slow = world_running_on(w, 0, be(2, SECONDS(600)));
    world_running_on(w, 1, te(8));
    job_id trial = world_queued(w, te(2));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, trial, quick));
    assert_true(plan_holds(w->plan, slow));
}

/* Without the grace period in the score, the smaller one is preempted. */
static void with_s_zero_only_the_size_counts(void **state)
{
    struct world *w = *state;
    job_id quick = world_running_on(w, 0, be(6, SECONDS(60)));
    job_id slow = world_running_on(w, 0, be(2, SECONDS(600)));
    world_running_on(w, 1, te(8));
    job_id trial = world_queued(w, te(2));

    world_decide_with(w, &policy_fitgpp, "s=0");

    assert_true(world_waits_for(w, trial, slow));
    assert_true(plan_holds(w->plan, quick));
}

static void without_grace_periods_the_smallest_victim_is_chosen(void **state)
{
    struct world *w = *state;
    job_id tiny = world_running_on(w, 0, be(1, 0));
    job_id small = world_running_on(w, 0, be(3, 0));
    job_id large = world_running_on(w, 0, be(4, 0));
    world_running_on(w, 1, te(8));
    job_id trial = world_queued(w, te(2));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, trial, small));
    assert_true(plan_holds(w->plan, tiny)); /* its one GPU would not be enough */
    assert_true(plan_holds(w->plan, large));
}

static void of_equals_the_lowest_id_is_preempted(void **state)
{
    struct world *w = *state;
    struct job job = be(4, SECONDS(30));
    job.id = 40;
    job_id younger = world_running_on(w, 0, job);
    job.id = 30;
    job_id older = world_running_on(w, 1, job);
    world_running_on(w, 0, te(4));
    world_running_on(w, 1, te(4));
    job_id trial = world_queued(w, te(4));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, trial, older));
    assert_true(plan_holds(w->plan, younger));
}

/*
 * Alone: 2/8 + 4 against 1 + 2. With a protected job of 100 times the grace: 0.29 and
 * 1.02.
 */
static void the_maxima_are_over_protected_jobs_too(void **state)
{
    struct world *w = *state;
    world_release(w);
    world_init_as(w, "3xv100:8");
    job_id small = world_running_on(w, 0, be(2, SECONDS(10)));
    world_running_on(w, 0, te(6));
    job_id large = world_running_on(w, 1, be(8, SECONDS(5)));
    job_id safe = world_running_on(w, 2, be(8, SECONDS(1000)));
    world_job(w, safe)->preemptions = 1;
    job_id trial = world_queued(w, te(2));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, trial, small));
    assert_true(plan_holds(w->plan, large));
    assert_true(plan_holds(w->plan, safe));
}

static void a_job_preempted_once_is_protected_for_good(void **state)
{
    struct world *w = *state;
    job_id first = world_running_on(w, 0, be(8, SECONDS(1)));
    job_id second = world_running_on(w, 1, be(8, SECONDS(60)));
    world_job(w, first)->preemptions = 1;
    job_id trial = world_queued(w, te(1));

    world_decide(w, &policy_fitgpp);
    assert_true(world_waits_for(w, trial, second));

    world_decide_with(w, &policy_fitgpp, "max_preemptions=2");
    assert_true(world_waits_for(w, trial, first));

    world_decide_with(w, &policy_fitgpp, "max_preemptions=0");
    assert_true(world_waits_for(w, trial, first));
}

static void a_trial_job_waits_when_no_job_may_be_preempted(void **state)
{
    struct world *w = *state;
    job_id safe = world_running_on(w, 0, be(8, 0));
    world_job(w, safe)->preemptions = 1;
    world_running_on(w, 1, te(6));
    job_id trial = world_queued(w, te(4));
    job_id other = world_queued(w, be(2, 0));

    world_decide(w, &policy_fitgpp);

    assert_int_equal(plan_change_count(w->plan), 0);
    assert_false(plan_holds(w->plan, trial));
    assert_false(plan_holds(
        w->plan, other)); /* it would fit: what becomes free is the trial job's */
}

static void a_trial_job_behind_one_that_waits_still_starts(void **state)
{
    struct world *w = *state;
    world_running_on(w, 0, te(8));
    world_running_on(w, 1, te(6));
    job_id large = world_queued(w, te(4));
    job_id small = world_queued(w, te(2));

    world_decide(w, &policy_fitgpp);

    assert_false(plan_holds(w->plan, large));
    assert_true(plan_holds(w->plan, small));
}

/* Two free beside a victim of two: all four are the trial job's from now on. */
static void gpus_free_beside_the_victim_are_kept_at_once(void **state)
{
    struct world *w = *state;
    job_id victim = world_running_on(w, 0, be(2, SECONDS(60)));
    world_running_on(w, 0, te(4));
    world_running_on(w, 1, te(8));
    job_id trial = world_queued(w, te(4));
    job_id thief = world_queued(w, be(2, 0));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, trial, victim));
    assert_int_equal(world_seat(w, trial, 0)->node, 0);
    assert_int_equal(seat_gpu_count(world_seat(w, trial, 0)), 4);
    assert_false(plan_holds(w->plan, thief));
}

static void a_victim_larger_than_needed_leaves_the_rest_to_the_queue(void **state)
{
    struct world *w = *state;
    job_id victim = world_running_on(w, 0, be(8, SECONDS(60)));
    world_running_on(w, 1, te(8));
    job_id trial = world_queued(w, te(2));
    world_decide(w, &policy_fitgpp);
    assert_true(world_waits_for(w, trial, victim));
    world_carry_out(w);

    job_id other = world_queued(w, be(6, 0));
    world_decide_again(w);
    assert_false(plan_holds(w->plan, other)); /* the victim still runs */

    world_pass(w, SECONDS(60));
    world_apply(w, (struct event){ .kind = EVENT_STOPPED, .job = victim });
    world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = trial });
    world_decide_again(w);
    assert_false(
        plan_holds(w->plan, victim));         /* eight do not fit: it heads the queue */
    assert_false(plan_holds(w->plan, other)); /* and no job overtakes it */
}

static void best_effort_jobs_get_no_pending_allocation(void **state)
{
    struct world *w = *state;
    job_id victim = world_running_on(w, 0, be(8, SECONDS(60)));
    world_running_on(w, 1, te(8));
    job_id trial = world_queued(w, te(2));
    job_id other = world_queued(w, be(4, 0));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, trial, victim));
    assert_false(plan_holds(w->plan, other));
}

static void a_victim_that_ends_in_its_grace_makes_room_as_well(void **state)
{
    struct world *w = *state;
    job_id victim = world_running_on(w, 0, be(8, SECONDS(60)));
    world_running_on(w, 1, te(8));
    job_id trial = world_queued(w, te(2));
    world_decide(w, &policy_fitgpp);
    world_carry_out(w);
    world_pass(w, SECONDS(5));

    world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = victim });
    world_decide_again(w);

    assert_int_equal(plan_change_count(w->plan), 0); /* its GPUs are pending */
    assert_true(world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = trial }));
    assert_int_equal(view_seats(&w->state.view, trial)->node, 0);
    job_id next = world_queued(w, te(6));
    world_decide_again(w);
    assert_true(plan_holds(w->plan, next)); /* and the rest is free */
    assert_int_equal(world_grant(w, next)->pending_count, 0);
}

static void two_trial_jobs_of_one_instant_take_a_victim_each(void **state)
{
    struct world *w = *state;
    job_id a = world_running_on(w, 0, be(8, SECONDS(10)));
    job_id b = world_running_on(w, 1, be(8, SECONDS(20)));
    job_id first = world_queued(w, te(8));
    job_id second = world_queued(w, te(8));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, first, a));
    assert_true(world_waits_for(w, second, b));
}

static void two_trial_jobs_of_one_instant_share_what_one_victim_leaves(void **state)
{
    struct world *w = *state;
    job_id a = world_running_on(w, 0, be(8, SECONDS(10)));
    job_id b = world_running_on(w, 1, be(8, SECONDS(20)));
    job_id first = world_queued(w, te(3));
    job_id second = world_queued(w, te(5));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, first, a));
    assert_true(world_waits_for(w, second, a));
    assert_true(plan_holds(w->plan, b));
}

/* The second must see that the free two of node 0 went to the first. */
static void the_second_of_one_instant_sees_what_the_first_took(void **state)
{
    struct world *w = *state;
    job_id a = world_running_on(w, 0, be(3, SECONDS(10)));
    job_id b = world_running_on(w, 0, be(3, SECONDS(20)));
    job_id c = world_running_on(w, 1, be(8, SECONDS(1000)));
    job_id first = world_queued(w, te(5));
    job_id second = world_queued(w, te(5));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, first, a));
    assert_true(world_waits_for(w, second, c));
    assert_true(plan_holds(w->plan, b));
}

static void the_scarce_resource_may_be_the_cpu(void **state)
{
    struct world *w = *state;
    world_release(w);
    world_init_roomy(w, "2xv100:8", 32000, 262144);
    struct job few = { .gpus = 4, .cpu_milli = 4000 };
    struct job many = { .gpus = 2, .cpu_milli = 26000, .mem_mib = 1024 };
    job_id few_cpus = world_running_on(w, 0, few);
    job_id many_cpus = world_running_on(w, 0, many);
    world_running_on(w, 1, (struct job){ .class = CLASS_TE, .cpu_milli = 32000 });
    job_id trial = world_queued(
        w, (struct job){ .class = CLASS_TE, .gpus = 1, .cpu_milli = 8000 });

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, trial, many_cpus));
    assert_true(plan_holds(w->plan, few_cpus)); /* the smaller, but 6 CPUs are not 8 */
}

static void memory_counts_as_well(void **state)
{
    struct world *w = *state;
    world_release(w);
    world_init_roomy(w, "1xv100:8", 32000, 65536);
    job_id lean = world_running(w, (struct job){ .gpus = 2, .mem_mib = 8192 });
    job_id fat = world_running(w, (struct job){ .gpus = 4, .mem_mib = 49152 });
    job_id trial =
        world_queued(w, (struct job){ .class = CLASS_TE, .gpus = 1, .mem_mib = 32768 });

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, trial, fat));
    assert_true(plan_holds(w->plan, lean));
}

/*
 * No victim alone makes room for eight: both of one node are preempted, and no others.
 */
static void where_one_is_not_enough_several_of_one_node_are_preempted(void **state)
{
    struct world *w = *state;
    job_id jobs[4];
    for (uint32_t i = 0; i < 4; i++)
        jobs[i] = world_running_on(w, i / 2, be(4, SECONDS(i)));
    job_id trial = world_queued(w, te(8));

    world_decide(w, &policy_fitgpp);

    assert_true(plan_holds(w->plan, trial));
    assert_int_equal(revoked_count(w), 2);
    node_id node = world_seat(w, trial, 0)->node;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(plan_holds(w->plan, jobs[i]), i / 2 != node);
}

static void by_the_paper_all_jobs_drawn_are_preempted(void **state)
{
    struct world *w = *state;
    world_release(w);
    world_init(w, 8, 8);
    for (uint32_t i = 0; i < 16; i++)
        world_running_on(w, i / 2, be(4, SECONDS(i)));
    job_id trial = world_queued(w, te(8));

    world_decide_with(w, &policy_fitgpp, "fallback=paper");

    assert_true(plan_holds(w->plan, trial));
    assert_true(revoked_count(w) >
                2); /* eight pairs: that the first two match is rare */
    assert_int_equal(world_grant(w, trial)->pending_count, 2);
}

static void a_trial_gang_takes_victims_on_several_nodes(void **state)
{
    struct world *w = *state;
    world_release(w);
    world_init(w, 3, 8);
    job_id slow = world_running_on(w, 0, be(8, SECONDS(600)));
    job_id quick = world_running_on(w, 1, be(8, SECONDS(10)));
    job_id brief = world_running_on(w, 2, be(8, SECONDS(20)));
    job_id gang = world_queued(w, te(16));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, gang, quick));
    assert_true(world_waits_for(w, gang, brief));
    assert_true(plan_holds(w->plan, slow));
}

static void a_gang_that_is_a_victim_is_preempted_whole(void **state)
{
    struct world *w = *state;
    job_id gang = world_running(w, be(16, SECONDS(10)));
    job_id trial = world_queued(w, te(2));

    world_decide(w, &policy_fitgpp);

    assert_true(world_waits_for(w, trial, gang));
    assert_int_equal(revoked_count(w), 1);
    assert_int_equal(seat_gpu_count(world_seat(w, trial, 0)), 2);
}

static void a_victim_is_the_first_to_start_again(void **state)
{
    struct world *w = *state;
    job_id victim = world_running_on(w, 0, be(8, SECONDS(60)));
    world_running_on(w, 1, te(8));
    job_id waiting = world_queued(w, be(8, 0));
    job_id trial = world_queued(w, te(8));
    world_decide(w, &policy_fitgpp);
    world_carry_out(w);
    world_pass(w, SECONDS(60));
    world_apply(w, (struct event){ .kind = EVENT_STOPPED, .job = victim });
    world_apply(w, (struct event){ .kind = EVENT_STARTED, .job = trial });
    world_pass(w, SECONDS(60));

    world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = trial });
    world_decide_again(w);

    assert_true(plan_holds(w->plan, victim));
    assert_false(plan_holds(w->plan, waiting));
}

static void best_effort_jobs_do_not_pass_each_other(void **state)
{
    struct world *w = *state;
    world_running_on(w, 0, be(8, 0));
    world_running_on(w, 1, be(4, 0));
    job_id head = world_queued(w, be(6, 0));
    job_id small = world_queued(w, be(2, 0));

    world_decide(w, &policy_fitgpp);

    assert_false(plan_holds(w->plan, head));
    assert_false(plan_holds(w->plan, small));
}

static void fixed_maxima_choose_by_the_same_rule(void **state)
{
    struct world *w = *state;
    job_id quick = world_running_on(w, 0, be(6, SECONDS(60)));
    job_id slow = world_running_on(w, 0, be(2, SECONDS(600)));
    world_running_on(w, 1, te(8));
    job_id trial = world_queued(w, te(2));

    /* 6/8/sqrt(3) + 4 * 60/600 against 2/8/sqrt(3) + 4 */
    world_decide_with(w, &policy_fitgpp, "normalise=fixed,grace_max=10m");
    assert_true(world_waits_for(w, trial, quick));

    /* against ten hours both grace periods are next to nothing */
    world_decide_with(w, &policy_fitgpp, "normalise=fixed,grace_max=10h");
    assert_true(world_waits_for(w, trial, slow));
}

WORLD_FIXTURE(/* nodes= */ 2, /* gpus_per_node= */ 8);

RUN_CASES(CASE(a_trial_job_that_fits_preempts_no_job),
          CASE(where_nodes_are_filled_first_fit_the_first_that_fits_is_taken),
          CASE(a_short_grace_period_outweighs_the_size),
          CASE(with_s_zero_only_the_size_counts),
          CASE(without_grace_periods_the_smallest_victim_is_chosen),
          CASE(of_equals_the_lowest_id_is_preempted),
          CASE(the_maxima_are_over_protected_jobs_too),
          CASE(a_job_preempted_once_is_protected_for_good),
          CASE(a_trial_job_waits_when_no_job_may_be_preempted),
          CASE(a_trial_job_behind_one_that_waits_still_starts),
          CASE(gpus_free_beside_the_victim_are_kept_at_once),
          CASE(a_victim_larger_than_needed_leaves_the_rest_to_the_queue),
          CASE(best_effort_jobs_get_no_pending_allocation),
          CASE(a_victim_that_ends_in_its_grace_makes_room_as_well),
          CASE(two_trial_jobs_of_one_instant_take_a_victim_each),
          CASE(two_trial_jobs_of_one_instant_share_what_one_victim_leaves),
          CASE(the_second_of_one_instant_sees_what_the_first_took),
          CASE(the_scarce_resource_may_be_the_cpu), CASE(memory_counts_as_well),
          CASE(where_one_is_not_enough_several_of_one_node_are_preempted),
          CASE(by_the_paper_all_jobs_drawn_are_preempted),
          CASE(a_trial_gang_takes_victims_on_several_nodes),
          CASE(a_gang_that_is_a_victim_is_preempted_whole),
          CASE(a_victim_is_the_first_to_start_again),
          CASE(best_effort_jobs_do_not_pass_each_other),
          CASE(fixed_maxima_choose_by_the_same_rule));
