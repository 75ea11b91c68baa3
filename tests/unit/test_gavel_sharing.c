/*
 * Sharing in our own rounds: which jobs are paired, which take turns, what is refused.  By consent,
 * with rates that are learned, under the policy berth as well.
 */
#include "support/engine_run.h"
#include "support/world.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

#define SECOND INT64_C(1000000000)

static struct arena arena;
static struct cluster cluster;
static struct throughput rates;
static struct error err;

/* A and B suit each other, C suits no other. */
static const char table[] = "kind,type,gpus,rate,beside,rate_beside\n"
                            "A,v100,1,1,,\nB,v100,1,1,,\nC,v100,1,1,,\n"
                            "A,v100,1,0.9,B,0.8\n"
                            "A,v100,1,0.4,A,0.4\nB,v100,1,0.4,B,0.4\n"
                            "A,v100,1,0,C,0\nB,v100,1,0,C,0\nC,v100,1,0,C,0\n";

struct seen {
    uint32_t together; /* starts beside another */
    int64_t last_ns;
};

static void see(void *self, const struct view *view, const struct event *event)
{
    struct seen *seen = self;
    seen->last_ns = event->at_ns;
    const struct job *job =
        event->kind == EVENT_STARTED ? &view->jobs[event->job] : NULL;
    if (!job || job->partner == JOB_NONE)
        return;
    seen->together++;
    assert_true(job->kind != view->jobs[job->partner].kind);
}

static int64_t play(const char *policy, const char *const *kinds, uint32_t count,
                    double steps, struct seen *seen)
{
    struct job_spec specs[8] = { { 0 } };
    struct engine_run run;
    const struct policy *found;
    const char *settings;
    assert_int_equal(policy_parse(policy, &found, &settings, &err), 0);
    for (uint32_t i = 0; i < count; i++)
        specs[i] = (struct job_spec){ .gpus = 1, .steps = steps, .kind = kinds[i] };
    *seen = (struct seen){ 0 };
    engine_run_play(&run, &(struct engine_run_setup){
                              .cluster = &cluster,
                              .rates = &rates,
                              .policy = found,
                              .settings = settings,
                              .specs = specs,
                              .spec_count = count,
                              .seed = 1,
                              .observer = { .event = see, .self = seen },
                          });
    assert_int_equal(run.ended, count);
    assert_int_equal(run.engine.refused_count, 0);
    engine_run_release(&run);
    return seen->last_ns;
}

static void jobs_that_suit_each_other_run_together(void **state)
{
    static const char *const kinds[] = { "A", "B" };
    struct seen seen;
    int64_t end_ns = play("gavel-las,sharing=true", kinds, 2, 720, &seen);
    assert_true(seen.together > 0);
    assert_true(end_ns < 1000 * SECOND); /* one after the other: 1440 */
    play("gavel-las", kinds, 2, 720, &seen);
    assert_int_equal(seen.together, 0);
}

static void jobs_that_do_not_fit_take_turns(void **state)
{
    static const char *const kinds[] = { "C", "A", "C" };
    struct seen seen;
    int64_t end_ns = play("gavel-las,sharing=true", kinds, 3, 720, &seen);
    assert_int_equal(seen.together, 0);
    assert_true(end_ns == 3 * 720 * SECOND);
}

/* Two alike would make 0.8 together: less than one alone. */
static void jobs_that_hinder_each_other_are_kept_apart(void **state)
{
    static const char *const kinds[] = { "A", "A", "B", "B" };
    struct seen seen;
    int64_t end_ns = play("gavel-makespan,sharing=true", kinds, 4, 720, &seen);
    assert_true(seen.together >= 2);
    assert_true(end_ns < 4 * 720 * SECOND * 7 / 10);
}

/* --- which jobs stay where they are ------------------------------------------------------- */

extern const struct policy policy_gavel_las;

/* A and C suit each other, as B and D do; all others do not. */
static const char suited[] = "kind,type,gpus,rate,beside,rate_beside\n"
                             "A,v100,1,1,,\nB,v100,1,1,,\nC,v100,1,1,,\nD,v100,1,1,,\n"
                             "A,v100,1,0.95,C,0.95\nB,v100,1,0.95,D,0.95\n"
                             "A,v100,1,0.4,A,0.4\nA,v100,1,0.4,B,0.4\n"
                             "A,v100,1,0.4,D,0.4\nB,v100,1,0.4,B,0.4\n"
                             "B,v100,1,0.4,C,0.4\nC,v100,1,0.4,C,0.4\n"
                             "C,v100,1,0.4,D,0.4\nD,v100,1,0.4,D,0.4\n";

static void begin_suited(struct world *w, const char *nodes)
{
    world_init_as(w, nodes);
    assert_int_equal(throughput_parse(&w->rates, &w->arena, "suited", suited,
                                      sizeof suited - 1, &err),
                     0);
}

static job_id add_running(struct world *w, const char *kind, node_id node)
{
    w->kind = kind;
    return world_running_on(w, node, (struct job){ .gpus = 1, .steps_total = 90000 });
}

static job_id add_beside(struct world *w, job_id host, const char *kind)
{
    w->kind = kind;
    return world_beside(w, host, (struct job){ .gpus = 1, .steps_total = 90000 });
}

static job_id add_waiting(struct world *w, const char *kind)
{
    w->kind = kind;
    return world_queued(w, (struct job){ .gpus = 1, .steps_total = 90000 });
}

/*
 * Two of 'pair' share a GPU, one of 'alone' has another, one of 'new' waits.  The one of the pair
 * that suits the new job stays, and the other moves: so one job stops, and not two.
 */
static void new_jobs_come_to_running_ones(void **state)
{
    static const char *const kinds[][4] = {
        { "A", "B", "C", "D" }, { "B", "A", "C", "D" }, { "A", "B", "D", "C" },
        { "C", "D", "A", "B" }, { "D", "C", "B", "A" }, { "C", "D", "B", "A" }
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        static struct world w;
        begin_suited(&w, "2xv100:1");
        job_id running[3] = { add_running(&w, kinds[i][0], 0) };
        running[1] = add_beside(&w, running[0], kinds[i][1]);
        running[2] = add_running(&w, kinds[i][2], 1);
        job_id new = add_waiting(&w, kinds[i][3]);
        world_decide_with(&w, &policy_gavel_las, "sharing=true");
        const struct change *grant = world_grant(&w, new);
        assert_non_null(grant);
        assert_true(grant->beside == running[0] || grant->beside == running[1]);
        assert_false(plan_changes(w.plan, grant->beside));
        assert_false(plan_changes(w.plan, running[2]));
        world_release(&w);
    }
}

/* --- partners that part without being asked ------------------------------------------------ */

static void add_waiting_of_all_kinds(struct world *w)
{
    static const char *const all[] = { "A", "B", "C", "D" };
    for (int i = 0; i < 12; i++)
        add_waiting(w, all[i % 4]);
}

/* Rounds go by: what is decided is done at once. */
static void play_rounds(struct world *w)
{
    for (int i = 0; i < 40; i++) {
        world_pass(w, MINUTES(i % 2 ? 6 : 1));
        world_decide_again(w);
        world_carry_out(w);
        for (job_id id = 0; id < w->state.job_count; id++)
            if (world_job(w, id)->state == JOB_STOPPING)
                world_apply(w, (struct event){ .kind = EVENT_STOPPED, .job = id });
        for (job_id id = 0; id < w->state.job_count; id++)
            if (world_job(w, id)->state == JOB_PLACED)
                world_apply(w, (struct event){
                                   .kind = EVENT_STARTED, .job = id, .loaded = true });
    }
}

/*
 * A job came to one of a pair when the other had stopped.  Then that one ends, and the job is
 * alone, while another pair is like those two were.
 */
static void a_job_that_came_to_one_of_a_pair_is_alone_when_that_one_ends(void **state)
{
    static struct world w;
    begin_suited(&w, "2xv100:1");
    job_id host = add_running(&w, "A", 0);
    job_id leaving = add_beside(&w, host, "D");
    add_beside(&w, add_running(&w, "A", 1), "C");
    job_id coming = add_waiting(&w, "C");
    world_decide_with(&w, &policy_gavel_las, "sharing=true");
    world_plan(&w);
    struct ask ask = ASK_DEFAULT;
    ask.beside = host;
    plan_revoke(w.plan, leaving, RULE_ORDER, coming);
    assert_true(plan_grant(w.plan, coming, &ask));
    world_carry_out(&w);
    assert_int_equal(world_job(&w, host)->coming, coming);
    add_waiting_of_all_kinds(&w);
    world_apply(&w, (struct event){ .kind = EVENT_STOPPED, .job = leaving });
    world_apply(&w,
                (struct event){ .kind = EVENT_STARTED, .job = coming, .loaded = true });
    world_apply(&w, (struct event){ .kind = EVENT_FINISHED, .job = host });
    play_rounds(&w);
    world_release(&w);
}

/* --- by consent, with rates that are learned ---------------------------------------------- */

struct learner {
    uint32_t together, apart; /* starts of jobs of A beside B, and of A beside A */
    uint32_t against;         /* and beside jobs that did not say that they share */
    int64_t last_apart_ns;    /* a job of A ran beside another */
    int64_t last_ns;
};

static void watch(void *self, const struct view *view, const struct event *event)
{
    struct learner *learner = self;
    learner->last_ns = event->at_ns;
    const struct job *job =
        event->kind == EVENT_STARTED || event->kind == EVENT_PROGRESS
            ? &view->jobs[event->job]
            : NULL;
    if (!job || job->partner == JOB_NONE)
        return;
    const struct job *partner = &view->jobs[job->partner];
    if (job->learned == partner->learned)
        learner->last_apart_ns = event->at_ns;
    if (event->kind != EVENT_STARTED)
        return;
    learner->together += job->learned != partner->learned;
    learner->apart += job->learned == partner->learned;
    learner->against += !job->shares || !partner->shares || job->user != partner->user;
}

static struct learner learn(const char *policy, const struct job_spec *specs,
                            uint32_t count)
{
    struct learner learner = { 0 };
    struct engine_run run;
    const struct policy *found;
    const char *settings;
    assert_int_equal(policy_parse(policy, &found, &settings, &err), 0);
    engine_run_play(&run, &(struct engine_run_setup){
                              .cluster = &cluster,
                              .hidden = &rates,
                              .policy = found,
                              .settings = settings,
                              .specs = specs,
                              .spec_count = count,
                              .seed = 1,
                              .observer = { .event = watch, .self = &learner },
                          });
    assert_int_equal(run.ended, count);
    engine_run_release(&run);
    return learner;
}

#define SHARER(of, by) \
    { \
        .gpus = 1, .steps = 7200, .kind = (of), .user = (by), .shares = true \
    }

static const char *const sharing_policies[] = { "gavel-las,sharing=true", "berth" };

/* Jobs of both kinds have run alone: then they are tried together, and it is worth it. */
static void jobs_that_say_so_share_when_that_is_worth_it(void **state)
{
    struct job_spec specs[] = { SHARER("A", "ann"), SHARER("B", "ann"),
                                SHARER("A", "ann"), SHARER("B", "ann") };
    specs[0].steps = specs[1].steps = 100;
    for (int i = 0; i < 2; i++) {
        struct learner learner = learn(sharing_policies[i], specs, 4);
        assert_true(learner.together > 0);
        assert_true(learner.last_ns < 11000 * SECOND); /* in turns: 14,600 */
    }
    struct learner learner = learn("berth,sharing=false", specs, 4);
    assert_int_equal(learner.together + learner.apart, 0);
}

static void jobs_that_harm_each_other_are_parted_and_not_tried_again(void **state)
{
    const struct job_spec specs[] = { SHARER("A", "ann"), SHARER("A", "ann"),
                                      SHARER("A", "ann") };
    for (int i = 0; i < 2; i++) {
        struct learner learner = learn(sharing_policies[i], specs, 3);
        assert_true(learner.apart > 0);
        assert_true(learner.last_apart_ns < 3600 * SECOND);
        assert_true(learner.last_ns < 3 * 7200 * SECOND + 3600 * SECOND);
    }
}

static void nobody_shares_who_did_not_say_so_or_with_another_user(void **state)
{
    struct job_spec specs[] = { SHARER("A", "ann"), SHARER("B", "bob"),
                                SHARER("B", "ann") };
    specs[2].shares = false;
    for (int i = 0; i < 2; i++) {
        struct learner learner = learn(sharing_policies[i], specs, 3);
        assert_int_equal(learner.together + learner.apart, 0);
        assert_int_equal(learner.against, 0);
    }
    struct learner learner = learn("berth,sharing=true", specs, 3);
    assert_int_equal(learner.together + learner.apart, 0);
}

static void wrong_settings_are_refused(void **state)
{
    static const struct {
        const char *policy, *sentence;
    } wrong[] = {
        { "gavel-las,sharing=true,worth=xion", "worth asks about one job" },
        { "gavel-las,sharing=true,rates=estimated", "rates=estimated needs kinds" },
    };
    static struct throughput none;
    throughput_init(&none, &cluster);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct engine engine;
        struct arena run;
        struct engine_setup setup = {
            .cluster = &cluster, .rates = &none, .executor = &executor_sim, .job_max = 8
        };
        arena_init(&run, 0);
        assert_int_equal(
            policy_parse(wrong[i].policy, &setup.policy, &setup.settings, &err), 0);
        assert_int_equal(engine_init(&engine, &run, &setup, &err), -EINVAL);
        if (!strstr(err.text, wrong[i].sentence))
            fail_msg("\"%s\", want \"%s\"", err.text, wrong[i].sentence);
        arena_release(&run);
    }
}

static int setup(void **state)
{
    arena_init(&arena, 0);
    int r = cluster_load(&cluster, &arena, "v100:1", &err);
    throughput_init(&rates, &cluster);
    return r < 0 ? r
                 : throughput_parse(&rates, &arena, "table", table, sizeof table - 1,
                                    &err);
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

RUN_CASES(CASE(jobs_that_suit_each_other_run_together),
          CASE(jobs_that_do_not_fit_take_turns),
          CASE(jobs_that_hinder_each_other_are_kept_apart),
          CASE(new_jobs_come_to_running_ones),
          CASE(a_job_that_came_to_one_of_a_pair_is_alone_when_that_one_ends),
          CASE(jobs_that_say_so_share_when_that_is_worth_it),
          CASE(jobs_that_harm_each_other_are_parted_and_not_tried_again),
          CASE(nobody_shares_who_did_not_say_so_or_with_another_user),
          CASE(wrong_settings_are_refused));
