/* The policy berth: what each of its layers decides. */
#include <math.h>
#include <string.h>

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

/* A 128th of its run time later, with the next event or at the latest after 8 of these. */
static void a_swap_that_did_not_pay_is_tried_again_soon(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 10000, 5000, 20));
    job_id new = world_queued(w, a_job(4, 128, 10, 20));
    world_decide(w, &policy_berth);
    assert_false(plan_holds(w->plan, new));

    world_job(w, old)->pause_ns = world_job(w, old)->grace_ns = SECONDS(5);
    world_decide_again(w);
    assert_false(plan_holds(w->plan, new));
    assert_true(world_next_wake(w) <= w->state.view.now_ns + SECONDS(8));

    world_pass(w, SECONDS(1));
    world_decide_again(w);
    assert_true(plan_holds(w->plan, new));
}

/* A guess that was exceeded: the job is expected to run on, not to make room at once. */
static void a_job_that_ran_longer_than_guessed_is_not_waited_for(void **state)
{
    struct world *w = *state;
    world_running(w, a_job(2, 0, 10, 20));
    job_id old = world_running(w, a_job(2, 1e6, 10, 20));
    world_decide(w, &policy_berth);
    world_pass(w, SECONDS(86400));
    job_id new = world_queued(w, a_job(2, 100, 10, 20));
    world_decide_again(w);
    assert_true(plan_holds(w->plan, new));
    assert_false(plan_holds(w->plan, old));
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

/* --- what a job is worth --- */

static struct reasons reasons;

static void explain(struct world *w, job_id id)
{
    reasons_reset(&reasons);
    w->policy->explain(w->policy_self, &w->state.view, id, &reasons);
}

static bool is_ahead(struct world *w, job_id first, job_id second)
{
    explain(w, second);
    for (uint32_t i = 0; i < reasons.ahead_count; i++)
        if (reasons.ahead[i].id == world_job(w, first)->id)
            return true;
    return false;
}

static const char *reason_text(struct world *w, job_id id, const char *token)
{
    explain(w, id);
    for (uint32_t i = 0; i < reasons.count; i++)
        if (strcmp(reasons.list[i].token, token) == 0)
            return reasons.list[i].text;
    return "";
}

static void fill_cluster(struct world *w)
{
    world_running(w, (struct job){ .gpus = 4, .stays = true });
}

/* Twice the weight is worth as much as half the work. */
static void a_job_of_twice_the_weight_goes_where_half_the_work_would(void **state)
{
    struct world *w = *state;
    fill_cluster(w);
    for (int weight = 1; weight <= 16; weight *= 2) {
        struct job heavy = a_job(4, 1000 * weight - 5, 0, 0);
        heavy.weight = weight;
        struct job heavier = a_job(4, 1000 * weight + 5, 0, 0);
        heavier.weight = weight;
        job_id plain = world_queued(w, a_job(4, 1000, 0, 0));
        job_id before = world_queued(w, heavy);
        job_id after = world_queued(w, heavier);
        world_decide(w, &policy_berth);
        assert_true(is_ahead(w, before, plain));
        assert_true(is_ahead(w, plain, after));
    }
}

/* GPU-time that a user had until now. */
static void add_use(struct world *w, uint32_t user, uint32_t entity, double hours)
{
    int64_t now_ns = w->state.view.now_ns;
    struct job past = { .user = user,
                        .entity = entity,
                        .served_ns = SECONDS(4 * 3600 * hours) };
    w->policy->recall(w->policy_self, &w->state.view, &past,
                      now_ns - SECONDS(3600 * hours), now_ns);
}

static struct job a_job_of(uint32_t user, uint32_t entity, double work_s)
{
    struct job job = a_job(4, work_s, 0, 0);
    job.user = user;
    job.entity = entity;
    return job;
}

static void decide_later(struct world *w)
{
    world_pass(w, SECONDS(120));
    world_decide_again(w);
}

static void a_user_who_had_less_goes_first(void **state)
{
    struct world *w = *state;
    fill_cluster(w);
    job_id much = world_queued(w, a_job_of(1, 0, 1000));
    job_id little = world_queued(w, a_job_of(2, 0, 1500));
    world_decide(w, &policy_berth);
    assert_true(is_ahead(w, much, little));
    add_use(w, 1, 0, 24);
    decide_later(w);
    assert_true(is_ahead(w, little, much));
    assert_non_null(strstr(reason_text(w, much, "share"), "more than its share"));
    assert_non_null(strstr(reason_text(w, little, "share"), "less than its share"));

    add_use(w, 2, 0, 24); /* now both have had as much */
    decide_later(w);
    assert_true(is_ahead(w, much, little));
    char text[sizeof reasons.list->text];
    snprintf(text, sizeof text, "%s", reason_text(w, much, "share"));
    assert_string_equal(reason_text(w, little, "share"), text);
}

static void users_who_had_as_much_are_not_corrected(void **state)
{
    struct world *w = *state;
    struct job other = { .gpus = 4, .stays = true, .user = 1 };
    world_running(w, other);
    job_id one = world_queued(w, a_job_of(1, 0, 1000));
    job_id two = world_queued(w, a_job_of(2, 0, 1000));
    world_decide(w, &policy_berth);
    add_use(w, 1, 0, 24);
    add_use(w, 2, 0, 24);
    decide_later(w);
    assert_string_equal(reason_text(w, one, "share"), "");
    assert_string_equal(reason_text(w, two, "share"), "");
}

static void what_a_user_had_is_forgotten_by_and_by(void **state)
{
    struct world *w = *state;
    fill_cluster(w);
    job_id much = world_queued(w, a_job_of(1, 0, 1000));
    job_id little = world_queued(w, a_job_of(2, 0, 1300));
    world_decide_with(w, &policy_berth, "age=1000d");
    add_use(w, 1, 0, 24);
    decide_later(w);
    assert_true(is_ahead(w, little, much));
    world_pass(w, SECONDS(86400) * 4);
    world_decide_again(w);
    assert_true(is_ahead(w, much, little));
}

static void a_correction_is_bounded(void **state)
{
    struct world *w = *state;
    fill_cluster(w);
    job_id much = world_queued(w, a_job_of(1, 0, 1000));
    job_id little = world_queued(w, a_job_of(2, 0, 17000));
    world_decide(w, &policy_berth);
    add_use(w, 1, 0, 10000); /* 4 of 1/4 is the most that it can make */
    decide_later(w);
    assert_true(is_ahead(w, much, little));
}

static void weights_of_users_and_groups_count(void **state)
{
    struct world *w = *state;
    struct entity heavy = { .name = "heavy", .weight = 4 };
    for (int groups = 0; groups < 2; groups++) {
        world_release(w);
        world_init(w, 1, 4);
        w->cluster.entities = groups ? &heavy : NULL;
        w->cluster.users = groups ? NULL : &heavy;
        w->cluster.entity_count = groups;
        w->cluster.user_count = !groups;
        fill_cluster(w);
        job_id first = world_queued(w, a_job_of(!groups, groups, 1200));
        job_id other = world_queued(w, a_job_of(!groups ? 2 : 0, groups ? 2 : 0, 1000));
        world_decide(w, &policy_berth);
        add_use(w, !groups, groups, 12);
        add_use(w, !groups ? 2 : 0, groups ? 2 : 0, 12);
        decide_later(w);
        assert_true(is_ahead(w, first, other));
    }
}

static void a_deadline_that_is_near_raises_the_value(void **state)
{
    struct world *w = *state;
    fill_cluster(w);
    struct job urgent = a_job(4, 1500, 0, 0);
    urgent.deadline_ns = w->state.view.now_ns + SECONDS(20000);
    job_id due = world_queued(w, urgent);
    job_id plain = world_queued(w, a_job(4, 1000, 0, 0));
    world_decide(w, &policy_berth);
    assert_true(is_ahead(w, plain, due)); /* it is far */
    assert_true(world_next_wake(w) < urgent.deadline_ns);

    world_pass(w, SECONDS(18000));
    world_decide_again(w);
    assert_true(is_ahead(w, due, plain));
    assert_non_null(strstr(reason_text(w, due, "deadline"), "is near"));

    world_pass(w, SECONDS(600)); /* 1400 s are left: it is lost */
    world_decide_again(w);
    assert_true(is_ahead(w, plain, due));
}

/* --- work that is not declared --- */

static void undeclared_work_is_guessed_from_jobs_of_its_name(void **state)
{
    struct world *w = *state;
    fill_cluster(w);
    struct job known = a_job_of(1, 0, 0);
    known.name = 77;
    known.kind = KIND_NONE;
    struct job other = known;
    other.name = 78;
    other.user = 2;
    job_id quick = world_queued(w, known);
    job_id vague = world_queued(w, other);
    job_id declared = world_queued(w, a_job_of(3, 0, 400));
    world_decide(w, &policy_berth);
    assert_true(is_ahead(w, declared, quick));

    for (int i = 0; i < 30; i++) {
        struct job past = known;
        past.rate_best_per_s = 1;
        past.steps = 100;
        w->policy->recall(w->policy_self, &w->state.view, &past, 0, 0);
        if (i == 3) {
            assert_non_null(strstr(reason_text(w, quick, "value"), "of its class"));
        }
    }
    assert_non_null(strstr(reason_text(w, quick, "value"),
                           "30 finished jobs of its name and user"));
    world_apply(w, (struct event){ .kind = EVENT_HELD, .job = quick });
    world_apply(w, (struct event){ .kind = EVENT_RELEASED, .job = quick });
    assert_true(is_ahead(w, quick, declared));
    assert_true(is_ahead(w, quick, vague));
}

static void the_cost_test_names_the_victims_it_considered(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, a_job(4, 10000, 5000, 20));
    job_id new = world_queued(w, a_job(4, 100, 10, 20));
    world_decide(w, &policy_berth);
    assert_false(plan_holds(w->plan, new));
    explain(w, new);
    assert_int_equal(reasons.considered_count, 1);
    assert_int_equal(reasons.considered[0].id, world_job(w, old)->id);
    assert_true(reasons.considered[0].price_gpu_s >= 4 * 5000);
    assert_string_equal(reasons.considered[0].verdict, "costs more than it saves");
}

/* --- sizes ----------------------------------------------------------------------------- */

static struct job an_elastic(uint32_t gpus, double work_s, int64_t cost_s)
{
    struct job job = a_job(gpus, work_s, cost_s, cost_s);
    job.gpus_min = 1;
    job.gpus_max = 4;
    job.step_s = 1;
    job.fixed_s = 0.1;
    return job;
}

static void an_elastic_job_grows_into_free_gpus_if_that_pays(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, an_elastic(1, 10000, 10));
    world_decide(w, &policy_berth);
    assert_int_equal(world_size(w, old), 4);

    world_job(w, old)->steps_total = world_job(w, old)->steps + 30;
    world_decide(w, &policy_berth);
    assert_false(plan_changes(w->plan, old)); /* it is nearly done */
}

static void an_elastic_job_gives_up_gpus_for_one_that_waits(void **state)
{
    struct world *w = *state;
    job_id old = world_running(w, an_elastic(4, 10000, 1));
    job_id other = world_queued(w, a_job(1, 20000, 1, 1));
    world_decide(w, &policy_berth);
    assert_int_equal(world_size(w, old), 3);
    assert_int_equal(world_size(w, other), 1);

    world_job(w, old)->pause_ns = world_job(w, old)->grace_ns = SECONDS(5000);
    world_decide(w, &policy_berth);
    assert_false(plan_changes(w->plan, old)); /* that would cost more than it saves */
}

/* It does not heed its grace period: the resize takes as long as it likes. */
static void an_epoch_begins_only_when_a_job_can_be_resized(void **state)
{
    struct world *w = *state;
    job_id slow = world_running(w, an_elastic(1, 10000, 0));
    world_decide(w, &policy_berth);
    const struct change *grant = world_grant(w, slow);
    struct event order = { .kind = EVENT_RESIZING,
                           .job = slow,
                           .seats = plan_seats(w->plan, grant),
                           .seat_count = grant->seat_count,
                           .pending_shares = plan_pending(w->plan, grant),
                           .pending_count = grant->pending_count,
                           .beside = JOB_NONE };
    assert_true(world_apply(w, order));
    world_pass(w, SECONDS(2));
    world_decide_again(w);
    assert_int_equal(world_next_wake(w), INT64_MAX);

    world_pass(w, SECONDS(3.5));
    assert_true(world_apply(w, (struct event){ .kind = EVENT_RESIZED, .job = slow }));
    world_decide_again(w);
    assert_int_equal(world_next_wake(w), SECONDS(6)); /* epochs are as they were */
}

/* The guess of its work changes when it has done 120 s of it, of which it has lost 60. */
static void a_job_that_lost_work_is_not_looked_at_before_it_made_it_again(void **state)
{
    struct world *w = *state;
    job_id job = world_running(w, a_job(4, 0, 0, 0));
    world_queued(w, a_job(4, 1e6, 0, 0));
    world_decide(w, &policy_berth);
    world_pass(w, SECONDS(119));
    struct event lost = {
        .kind = EVENT_LOST, .job = job, .steps = 60, .steps_reached = 120 - 5e-8
    };
    assert_true(world_apply(w, lost));
    world_decide_again(w);
    assert_true(plan_holds(w->plan, job));
    world_carry_out(w);
    assert_true(world_apply(
        w, (struct event){ .kind = EVENT_STARTED, .job = job, .loaded = true }));
    world_decide_again(w);
    assert_true(world_next_wake(w) >= w->state.view.now_ns + SECONDS(60));
}

/* Each report is one of exp(-k / tau). */
static void learn(struct world *w, job_id job, double from, double tau)
{
    for (double k = from; k < from + 10; k++)
        assert_true(world_apply(w, (struct event){ .kind = EVENT_PROGRESS,
                                                   .job = job,
                                                   .steps = k,
                                                   .rate_per_s = 1,
                                                   .loss = exp(-k / tau) }));
}

/* The first has a good model long since, the second learns; 'cost_s' is that of a resize. */
static void let_two_learn(struct world *w, int64_t cost_s, job_id *ret_good,
                          job_id *ret_young)
{
    world_release(w);
    world_init_as(w, "1xv100:8");
    struct job job = an_elastic(4, 1000, cost_s);
    job.gpus_max = 8;
    *ret_good = world_running(w, job);
    *ret_young = world_running(w, job);
    world_decide(w, &policy_berth);
    learn(w, *ret_young, 0, 20);
    learn(w, *ret_good, 0, 2);
    learn(w, *ret_good, 10, 2);
    world_pass(w, SECONDS(2));
    world_decide_again(w);
}

static void gpus_go_to_the_model_that_learns(void **state)
{
    struct world *w = *state;
    job_id good;
    job_id young;
    let_two_learn(w, 0, &good, &young);
    assert_in_range(world_size(w, good), 1, 3);
    assert_int_equal(world_size(w, young), 8 - world_size(w, good));
}

static void a_dear_resize_takes_no_gpus_that_a_job_asked_for(void **state)
{
    struct world *w = *state;
    job_id good;
    job_id young;
    let_two_learn(w, 60, &good, &young);
    assert_int_equal(world_size(w, good), 4);
    assert_int_equal(world_size(w, young), 4);
}

WORLD_FIXTURE(/* nodes= */ 1, /* gpus_per_node= */ 4);

RUN_CASES(CASE(a_short_job_passes_one_that_does_not_fit),
          CASE(a_swap_is_made_if_it_pays),
          CASE(a_swap_that_did_not_pay_is_tried_again_soon),
          CASE(a_job_that_ran_longer_than_guessed_is_not_waited_for),
          CASE(a_trial_spares_the_job_that_cannot_save),
          CASE(a_job_preempted_often_is_dear_but_not_untouchable),
          CASE(a_trial_waits_for_an_end_that_is_near),
          CASE(a_trial_beyond_their_share_preempts_no_shorter_job),
          CASE(an_undeclared_job_comes_between_short_and_long_ones),
          CASE(a_job_moves_to_faster_gpus_that_are_free),
          CASE(nodes_are_kept_for_a_gang_that_waited_too_long),
          CASE(a_job_that_waited_too_long_leaves_what_it_does_not_need),
          CASE(a_job_that_waited_too_long_goes_first),
          CASE(a_job_of_twice_the_weight_goes_where_half_the_work_would),
          CASE(a_user_who_had_less_goes_first),
          CASE(users_who_had_as_much_are_not_corrected),
          CASE(what_a_user_had_is_forgotten_by_and_by), CASE(a_correction_is_bounded),
          CASE(weights_of_users_and_groups_count),
          CASE(a_deadline_that_is_near_raises_the_value),
          CASE(undeclared_work_is_guessed_from_jobs_of_its_name),
          CASE(the_cost_test_names_the_victims_it_considered),
          CASE(an_elastic_job_grows_into_free_gpus_if_that_pays),
          CASE(an_elastic_job_gives_up_gpus_for_one_that_waits),
          CASE(an_epoch_begins_only_when_a_job_can_be_resized),
          CASE(a_job_that_lost_work_is_not_looked_at_before_it_made_it_again),
          CASE(gpus_go_to_the_model_that_learns),
          CASE(a_dear_resize_takes_no_gpus_that_a_job_asked_for));
