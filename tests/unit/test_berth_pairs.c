/* The policy berth, where two jobs may share GPUs: which do, and until when. */
#include "support/world.h"

extern const struct policy policy_berth;

/*
 * A and B suit each other, as D and C do; A and C, and B and D, do less so.  Two of kind A slow
 * each other to less than half.
 */
static const char table[] =
    "kind,type,gpus,rate,beside,rate_beside\n"
    "A,v100,1,1,,\nB,v100,1,1,,\nC,v100,1,1,,\nD,v100,1,1,,\n"
    "A,k80,1,0.2,,\nB,k80,1,0.2,,\nC,k80,1,0.2,,\nD,k80,1,0.2,,\n"
    "A,v100,1,0.9,B,0.9\nC,v100,1,0.9,D,0.9\n"
    "A,v100,1,0.65,C,0.65\nB,v100,1,0.65,D,0.65\n"
    "A,v100,1,0.4,A,0.4\n";

static struct world world;

static struct world *open_world(const char *cluster)
{
    struct error err;
    world_init_as(&world, cluster);
    if (throughput_parse(&world.rates, &world.arena, "table.csv", table,
                         sizeof table - 1, &err) < 0)
        fail_msg("%s", err.text);
    return &world;
}

/* A job of one GPU; the next that is added is of this kind. */
static struct job of_kind(struct world *w, const char *kind, double work)
{
    w->kind = kind;
    return (struct job){ .gpus = 1, .steps_total = work };
}

static void decide(struct world *w)
{
    world_decide_with(w, &policy_berth, "sharing=true");
}

static job_id beside(const struct world *w, job_id job)
{
    const struct change *grant = world_grant(w, job);
    return grant ? grant->beside : JOB_NONE;
}

static void a_waiting_job_joins_one_that_it_suits(void **state)
{
    struct world *w = open_world("1xv100:2");
    job_id alike = world_running(w, of_kind(w, "A", 1000));
    job_id other = world_running(w, of_kind(w, "B", 1000));
    job_id new = world_queued(w, of_kind(w, "A", 1000));
    world_decide(w, &policy_berth);
    assert_false(plan_holds(w->plan, new)); /* unless it is set, or both said so */

    decide(w);
    assert_int_equal(beside(w, new), other);
    assert_false(plan_changes(w->plan, alike));
    world_release(w);
}

/* Without a setting it is for the jobs to say. */
static void jobs_that_said_so_share(void **state)
{
    for (int said = 0; said < 4; said++) {
        struct world *w = open_world("1xv100:1");
        job_id old = world_running(w, of_kind(w, "A", 1000));
        job_id new = world_queued(w, of_kind(w, "B", 1000));
        world_job(w, old)->shares = said & 1;
        world_job(w, new)->shares = said & 2;
        world_decide(w, &policy_berth);
        assert_int_equal(plan_holds(w->plan, new), said == 3);
        world_decide_with(w, &policy_berth, "sharing=false");
        assert_false(plan_holds(w->plan, new));
        world_release(w);
    }
}

static void jobs_that_slow_each_other_take_turns(void **state)
{
    struct world *w = open_world("1xv100:1");
    world_running(w, of_kind(w, "A", 1000));
    job_id new = world_queued(w, of_kind(w, "A", 1000));
    decide(w);
    assert_false(plan_holds(w->plan, new));
    world_release(w);
}

/* Each would keep 0.6 of its rate, for all that is known. */
static void jobs_of_which_nothing_is_known_take_turns(void **state)
{
    struct world *w = open_world("1xv100:1");
    world_running(w, of_kind(w, "A", 1000));
    struct job job = of_kind(w, "A", 1000);
    w->kind = NULL;
    job_id new = world_queued(w, job);
    decide(w);
    assert_false(plan_holds(w->plan, new));
    world_release(w);
}

static void no_trial_job_shares(void **state)
{
    struct world *w = open_world("1xv100:1");
    struct job trial = of_kind(w, "A", 1000);
    trial.class = CLASS_TE;
    world_running(w, trial);
    job_id new = world_queued(w, of_kind(w, "B", 1000));
    decide(w);
    assert_false(plan_holds(w->plan, new));
    world_release(w);
}

/* Beside the other one it would take 1000 / 0.9 s. */
static void a_job_that_needs_its_rate_for_its_deadline_does_not_share(void **state)
{
    const int64_t deadlines_s[] = { 1050, 1200 };
    for (int far = 0; far < 2; far++) {
        struct world *w = open_world("1xv100:1");
        struct job job = of_kind(w, "A", 1000);
        job.deadline_ns = SECONDS(deadlines_s[far]);
        world_running(w, job);
        job_id new = world_queued(w, of_kind(w, "B", 1000));
        decide(w);
        assert_int_equal(plan_holds(w->plan, new), far);
        world_release(w);
    }
}

/* A trial job needs the GPU: both have to stop for it. */
static void a_trial_job_clears_a_pair(void **state)
{
    struct world *w = open_world("1xv100:1");
    job_id host = world_running(w, of_kind(w, "A", 1000));
    job_id second = world_beside(w, host, of_kind(w, "B", 1000));
    struct job trial = of_kind(w, "A", 100);
    trial.class = CLASS_TE;
    job_id new = world_queued(w, trial);
    decide(w);
    assert_true(plan_holds(w->plan, new));
    assert_true(world_waits_for(w, new, host));
    assert_true(world_waits_for(w, new, second));
    world_release(w);
}

static void one_of_a_pair_goes_to_gpus_that_became_free(void **state)
{
    struct world *w = open_world("2xv100:1");
    job_id host = world_running_on(w, 0, of_kind(w, "A", 1000));
    job_id second = world_beside(w, host, of_kind(w, "B", 1000));
    job_id old = world_running_on(w, 1, of_kind(w, "A", 5000));
    decide(w);
    assert_int_equal(plan_change_count(w->plan), 0);

    world_apply(w, (struct event){ .kind = EVENT_FINISHED, .job = old });
    const struct event event = { .kind = EVENT_FINISHED, .job = old };
    policy_berth.observe(w->policy_self, &w->state.view, &event);
    world_decide_again(w);
    assert_true(plan_changes(w->plan, host) != plan_changes(w->plan, second));
    world_release(w);
}

/* Stopping and loading it takes longer than what it would gain. */
static void a_pair_stays_where_parting_costs_more_than_it_saves(void **state)
{
    struct world *w = open_world("2xv100:1");
    job_id pair[2];
    struct job dear = of_kind(w, "A", 1000);
    dear.load_ns = SECONDS(400);
    pair[0] = world_running_on(w, 0, dear);
    w->kind = "B";
    pair[1] = world_beside(w, pair[0], dear);
    decide(w);
    assert_int_equal(plan_change_count(w->plan), 0);
    world_release(w);
}

static void a_job_on_slow_gpus_joins_one_on_fast_ones(void **state)
{
    struct world *w = open_world("1xv100:1,1xk80:1");
    job_id fast = world_running_on(w, 0, of_kind(w, "A", 1000));
    job_id slow = world_running_on(w, 1, of_kind(w, "B", 1000));
    decide(w);
    assert_int_equal(beside(w, slow), fast);
    world_release(w);
}

static void jobs_exchange_partners(void **state)
{
    struct world *w = open_world("2xv100:1");
    job_id a = world_running_on(w, 0, of_kind(w, "A", 1000));
    job_id c = world_beside(w, a, of_kind(w, "C", 1000));
    job_id d = world_running_on(w, 1, of_kind(w, "D", 1000));
    job_id b = world_beside(w, d, of_kind(w, "B", 1000));
    decide(w);
    bool seconds_move = beside(w, c) == d && beside(w, b) == a;
    bool hosts_move = beside(w, a) == b && beside(w, d) == c;
    assert_true(seconds_move || hosts_move);
    world_release(w);
}

RUN_CASES(TEST(a_waiting_job_joins_one_that_it_suits), TEST(jobs_that_said_so_share),
          TEST(jobs_that_slow_each_other_take_turns),
          TEST(jobs_of_which_nothing_is_known_take_turns), TEST(no_trial_job_shares),
          TEST(a_job_that_needs_its_rate_for_its_deadline_does_not_share),
          TEST(a_trial_job_clears_a_pair),
          TEST(one_of_a_pair_goes_to_gpus_that_became_free),
          TEST(a_pair_stays_where_parting_costs_more_than_it_saves),
          TEST(a_job_on_slow_gpus_joins_one_on_fast_ones),
          TEST(jobs_exchange_partners));
