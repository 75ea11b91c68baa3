/* The accounts of a run, added up by hand. */
#include "support/engine_run.h"

#include "metrics/summary.h"
#include "support/world.h"

/* A run and its figures. */
struct result {
    struct arena arena;
    struct cluster cluster;
    struct engine_run run;
    struct summary summary;
};

static struct result *play(const char *cluster, const char *policy,
                           struct engine_run_setup setup)
{
    struct result *result = calloc(1, sizeof *result);
    assert_non_null(result);
    arena_init(&result->arena, 0);
    assert_int_equal(cluster_load(&result->cluster, &result->arena, cluster, NULL), 0);
    setup.cluster = &result->cluster;
    setup.policy = policy_find(policy);
    assert_non_null(setup.policy);
    engine_run_play(&result->run, &setup);
    summary_make(&result->summary, &result->run.metrics, NULL, NULL, &result->cluster);
    return result;
}

static void release(struct result *result)
{
    engine_run_release(&result->run);
    arena_release(&result->arena);
    free(result);
}

static double value(const struct result *result, const char *id)
{
    return summary_value(&result->summary, id);
}

/*
 *     0   10        30   35   45          95   105              185
 *     |---|---------|----|----|-----------|----|----------------|
 *     load   job 0  pause load   job 1     load     job 0            2 GPUs
 */
static void the_costs_of_a_preemption_are_counted(void **state)
{
    const struct job_spec specs[] = {
        { .gpus = 2,
          .steps = 100,
          .grace_ns = SECONDS(20),
          .pause_ns = SECONDS(5),
          .load_ns = SECONDS(10) },
        { .gpus = 2, .steps = 50, .submit_ns = SECONDS(30), .load_ns = SECONDS(10) },
    };
    struct result *r =
        play("1xv100:2", "srtf",
             (struct engine_run_setup){ .specs = specs, .spec_count = 2 });

    assert_near(value(r, "jobs.total"), 2, 0);
    assert_near(value(r, "jobs.completed"), 2, 0);
    assert_near(value(r, "jobs.unfinished"), 0, 0);
    assert_near(value(r, "makespan_s"), 185, 1e-9);
    assert_near(value(r, "preemptions"), 1, 0);
    assert_near(value(r, "overhead_gpu_s.pause"), 10, 1e-6);
    assert_near(value(r, "overhead_gpu_s.load_first"), 40, 1e-6);
    assert_near(value(r, "overhead_gpu_s.load_again"), 20, 1e-6);
    assert_near(value(r, "overhead_gpu_s.redo_preempted"), 0, 1e-6);
    assert_near(value(r, "overhead_gpu_s.redo_failed"), 0, 1e-6);
    assert_near(value(r, "overhead_gpu_s.resize"), 0, 1e-6);
    assert_near((double)r->run.metrics.held_by_type_ns[0] * 1e-9, 370, 1e-6);
    assert_near(value(r, "gpu_utilization"), 1, 1e-9);
    assert_near(value(r, "jct_s.max"), 185, 1e-6);
    assert_near(value(r, "jct_s.mean"), (185 + 65) / 2.0, 1e-6);
    assert_near(value(r, "wait_s.max"), 60, 1e-6);
    assert_near(value(r, "wait_s.mean"), (60 + 5) / 2.0, 1e-6);
    assert_near(value(r, "slowdown.all.max"), 185 / 100.0, 1e-6);
    assert_near(value(r, "slowdown.all.mean"), (185 / 100.0 + 65 / 50.0) / 2, 1e-6);
    release(r);
}

/* Recalled at 135s, killed at 145s with 135 steps made and 120 saved. */
static void work_lost_by_a_kill_is_counted(void **state)
{
    const struct job_spec specs[] = {
        { .gpus = 1,
          .steps = 200,
          .grace_ns = SECONDS(10),
          .pause_ns = SECONDS(30),
          .ckpt_ns = SECONDS(60) },
        { .gpus = 1, .steps = 50, .submit_ns = SECONDS(135) },
    };
    struct result *r =
        play("1xv100:1", "srtf",
             (struct engine_run_setup){ .specs = specs, .spec_count = 2 });
    assert_near(value(r, "overhead_gpu_s.pause"), 10, 1e-6);
    assert_near(value(r, "overhead_gpu_s.redo_preempted"), 15, 1e-6);
    assert_near(value(r, "overhead_gpu_s.redo_failed"), 0, 0);
    assert_near((double)r->run.metrics.held_by_type_ns[0] * 1e-9, 275, 1e-6);
    release(r);
}

/* Two GPUs lost at 100s, 90s saved; 40s in the queue until the node is back. */
static void work_lost_by_a_failure_is_counted(void **state)
{
    const struct job_spec spec = { .gpus = 2, .steps = 200, .ckpt_ns = SECONDS(30) };
    const struct outage outage = { 0, SECONDS(100), SECONDS(140) };
    struct result *r = play(
        "1xv100:2", "fifo",
        (struct engine_run_setup){
            .specs = &spec, .spec_count = 1, .outages = &outage, .outage_count = 1 });
    assert_near(value(r, "overhead_gpu_s.redo_failed"), 20, 1e-6);
    assert_near(value(r, "overhead_gpu_s.redo_preempted"), 0, 0);
    assert_near(value(r, "preemptions"), 0, 0);
    assert_near(value(r, "wait_s.max"), 40, 1e-6);
    assert_near(value(r, "makespan_s"), 250, 1e-6);
    assert_near(value(r, "gpu_utilization"), (100 + 110) / 250.0, 1e-9);
    release(r);
}

/* Twice as many GPUs from the 50th second on. */
static int grow_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct ask ask = ASK_DEFAULT;
    ask.gpus = view->now_ns < SECONDS(50) ? 2 : 4;
    plan_grant(plan, 0, &ask);
    if (view->now_ns < SECONDS(50))
        plan_wake(plan, SECONDS(50));
    return 0;
}

/* From one type to the other in the 50th second. */
static int move_decide(void *self, const struct view *view, struct plan *plan,
                       struct arena *scratch, struct error *err)
{
    struct ask ask = ASK_DEFAULT;
    ask.types = view->now_ns < SECONDS(50) ? 1 : 2;
    plan_grant(plan, 0, &ask);
    if (view->now_ns < SECONDS(50))
        plan_wake(plan, SECONDS(50));
    return 0;
}

static struct result *play_with(const char *cluster, const struct job_spec *spec,
                                int (*decide)(void *, const struct view *,
                                              struct plan *, struct arena *,
                                              struct error *))
{
    static struct policy policy;
    struct result *result = calloc(1, sizeof *result);
    assert_non_null(result);
    policy = (struct policy){ .name = "scripted", .self_size = 1, .decide = decide };
    arena_init(&result->arena, 0);
    assert_int_equal(cluster_load(&result->cluster, &result->arena, cluster, NULL), 0);
    engine_run_play(&result->run,
                    &(struct engine_run_setup){ .cluster = &result->cluster,
                                                .policy = &policy,
                                                .specs = spec,
                                                .spec_count = 1 });
    summary_make(&result->summary, &result->run.metrics, NULL, NULL, &result->cluster);
    return result;
}

/* Loads to 10s, 40 steps to 50s, 5s of saving and 10s of loading on the old two GPUs. */
static void a_resize_is_counted_apart_from_preemptions(void **state)
{
    const struct job_spec spec = { .gpus = 2,
                                   .gpus_min = 1,
                                   .gpus_max = 4,
                                   .steps = 100,
                                   .pause_ns = SECONDS(5),
                                   .grace_ns = SECONDS(5),
                                   .load_ns = SECONDS(10) };
    struct result *r = play_with("1xv100:4", &spec, grow_decide);
    assert_near(value(r, "makespan_s"), 65 + 60 / 2.0, 1e-6);
    assert_near(value(r, "resizes"), 1, 0);
    assert_near(value(r, "preemptions"), 0, 0);
    assert_near(value(r, "overhead_gpu_s.resize"), 30, 1e-6);
    assert_near(value(r, "overhead_gpu_s.load_first"), 20, 1e-6);
    assert_near(value(r, "overhead_gpu_s.load_again"), 0, 0);
    assert_near(value(r, "overhead_gpu_s.pause"), 0, 0);
    release(r);
}

static void a_move_is_counted_as_a_resize(void **state)
{
    const struct job_spec spec = { .gpus = 2,
                                   .steps = 100,
                                   .pause_ns = SECONDS(5),
                                   .grace_ns = SECONDS(5),
                                   .load_ns = SECONDS(10) };
    struct result *r = play_with("1xv100:2,1xp100:2", &spec, move_decide);
    assert_near(value(r, "makespan_s"), 65 + 60, 1e-6);
    assert_near(value(r, "resizes"), 1, 0);
    assert_near(value(r, "preemptions"), 0, 0);
    assert_near(value(r, "overhead_gpu_s.resize"), 30, 1e-6);
    assert_near(value(r, "overhead_gpu_s.load_first"), 20, 1e-6);
    assert_near(value(r, "overhead_gpu_s.load_again"), 0, 0);
    assert_near(value(r, "overhead_gpu_s.pause"), 0, 0);
    release(r);
}

static void percentiles_lie_between_the_nearest_ranks(void **state)
{
    struct job_spec specs[4];
    for (int i = 0; i < 4; i++)
        specs[i] = (struct job_spec){ .gpus = 1, .steps = 10 * (i + 1) };
    struct result *r =
        play("1xv100:4", "fifo",
             (struct engine_run_setup){ .specs = specs, .spec_count = 4 });
    assert_near(value(r, "jct_s.mean"), 25, 1e-9);
    assert_near(value(r, "jct_s.p50"), 25, 1e-9);
    assert_near(value(r, "jct_s.p95"), 38.5, 1e-9);
    assert_near(value(r, "jct_s.p99"), 39.7, 1e-9);
    assert_near(value(r, "jct_s.max"), 40, 1e-9);
    assert_near(value(r, "slowdown.all.p50"), 1, 1e-9);
    release(r);
}

static void a_single_job_is_every_percentile(void **state)
{
    const struct job_spec spec = { .gpus = 1, .steps = 7 };
    struct result *r =
        play("1xv100:1", "fifo",
             (struct engine_run_setup){ .specs = &spec, .spec_count = 1 });
    assert_near(value(r, "jct_s.p50"), 7, 1e-9);
    assert_near(value(r, "jct_s.p99"), 7, 1e-9);
    assert_near(value(r, "jct_s.max"), 7, 1e-9);
    release(r);
}

/* Both come at once and need all: the first shares with one other, the second with half. */
static void fairness_is_against_an_equal_share(void **state)
{
    const struct job_spec specs[] = { { .gpus = 4, .steps = 100 },
                                      { .gpus = 4, .steps = 100 } };
    struct result *r =
        play("1xv100:4", "fifo",
             (struct engine_run_setup){ .specs = specs, .spec_count = 2 });
    assert_near(value(r, "finish_time_fairness.max"), 200 / 150.0, 1e-6);
    assert_near(value(r, "finish_time_fairness.mean"), (200 / 150.0 + 100 / 200.0) / 2,
                1e-6);
    release(r);
}

static void classes_have_figures_of_their_own(void **state)
{
    const struct job_spec specs[] = {
        { .gpus = 1, .steps = 10, .class = CLASS_BE },
        { .gpus = 1, .steps = 10, .class = CLASS_TE },
    };
    struct result *r =
        play("1xv100:1", "fifo",
             (struct engine_run_setup){ .specs = specs, .spec_count = 2 });
    assert_near(value(r, "slowdown.be.max"), 1, 1e-9);
    assert_near(value(r, "slowdown.te.max"), 2, 1e-9);
    assert_near(value(r, "slowdown.all.max"), 2, 1e-9);
    release(r);
}

static void missed_deadlines_are_counted(void **state)
{
    const struct job_spec specs[] = {
        { .gpus = 1, .steps = 10, .deadline_ns = SECONDS(10) }, /* just in time */
        { .gpus = 1, .steps = 10, .deadline_ns = SECONDS(19) },
        { .gpus = 1, .steps = 10 },
    };
    struct result *r =
        play("1xv100:1", "fifo",
             (struct engine_run_setup){ .specs = specs, .spec_count = 3 });
    assert_near(value(r, "slo_violations"), 1, 0);
    release(r);
}

static void failures_and_rejections_are_counted_apart(void **state)
{
    const struct job_spec specs[] = {
        { .gpus = 1, .steps = 10, .fails = true },
        { .gpus = 2, .steps = 10 },
        { .gpus = 1, .steps = 10 },
    };
    struct result *r =
        play("1xv100:1", "fifo",
             (struct engine_run_setup){ .specs = specs, .spec_count = 3 });
    assert_near(value(r, "jobs.total"), 3, 0);
    assert_near(value(r, "jobs.completed"), 1, 0);
    assert_near(value(r, "jobs.failed"), 1, 0);
    assert_near(value(r, "jobs.rejected"), 1, 0);
    assert_near(value(r, "jobs.unfinished"), 0, 0);
    assert_near(value(r, "jct_s.max"), 20, 1e-9); /* of those completed */
    release(r);
}

static void jobs_that_never_end_are_unfinished(void **state)
{
    const struct job_spec spec = { .gpus = 1, .steps = 100 };
    const struct outage outage = { .node = 0, .down_ns = SECONDS(10), .up_ns = 0 };
    struct result *r = play("1xv100:1", "fifo",
                            (struct engine_run_setup){ .specs = &spec,
                                                       .spec_count = 1,
                                                       .outages = &outage,
                                                       .outage_count = 1,
                                                       .turns_max = 100 });
    assert_near(value(r, "jobs.unfinished"), 1, 0);
    assert_near(value(r, "jobs.completed"), 0, 0);
    release(r);
}

static void gpus_cost_what_their_type_does(void **state)
{
    struct job_spec specs[] = {
        { .gpus = 36, .nodes = 36, .steps = 1800, .types = "v100" },
        { .gpus = 1, .steps = 720, .types = "k80" }
    };
    struct result *r =
        play("gavel-36", "fifo",
             (struct engine_run_setup){ .specs = specs, .spec_count = 2 });
    /* Half an hour of 36 v100 at 0.74, an hour of a k80 (a fifth as fast) at 0.135. */
    assert_near(value(r, "cost_usd"), 36 * 0.5 * 0.74 + 0.135, 1e-6);
    release(r);
}

static void only_jobs_of_the_window_count(void **state)
{
    struct world w;
    struct metrics metrics;
    world_init(&w, 1, 1);
    metrics_init(&metrics, &w.arena, &w.state.view, 1, 2);
    for (int i = 0; i < 3; i++) {
        struct job job = { .gpus = 1 };
        job_id id = world_queued(&w, job);
        struct event submitted = { .kind = EVENT_SUBMITTED,
                                   .at_ns = w.state.view.now_ns,
                                   .job = id };
        metrics_event(&metrics, &w.state.view, &submitted);
        plan_grant(world_plan(&w), id, NULL);
        world_carry_out(&w);
        struct event event = { .kind = EVENT_STARTED,
                               .job = id,
                               .loaded = true,
                               .at_ns = w.state.view.now_ns };
        world_apply(&w, event);
        metrics_event(&metrics, &w.state.view, &event);
        world_pass(&w, SECONDS(i + 1));
        event.kind = EVENT_FINISHED;
        event.at_ns = w.state.view.now_ns;
        event.steps = i + 1;
        world_apply(&w, event);
        metrics_event(&metrics, &w.state.view, &event);
    }
    metrics_end(&metrics, &w.state.view);
    assert_int_equal(metrics.total, 1);
    assert_int_equal(metrics.completed, 1);
    assert_int_equal(metrics.window_left, 0);
    assert_int_equal(metrics.job_count, 1);
    assert_near(metrics.jobs[0].jct_s, 2, 1e-9);
    metrics_release(&metrics);
    world_release(&w);
}

RUN_CASES(TEST(the_costs_of_a_preemption_are_counted),
          TEST(work_lost_by_a_kill_is_counted), TEST(work_lost_by_a_failure_is_counted),
          TEST(a_resize_is_counted_apart_from_preemptions),
          TEST(a_move_is_counted_as_a_resize),
          TEST(percentiles_lie_between_the_nearest_ranks),
          TEST(a_single_job_is_every_percentile),
          TEST(fairness_is_against_an_equal_share),
          TEST(classes_have_figures_of_their_own), TEST(missed_deadlines_are_counted),
          TEST(failures_and_rejections_are_counted_apart),
          TEST(jobs_that_never_end_are_unfinished),
          TEST(gpus_cost_what_their_type_does), TEST(only_jobs_of_the_window_count));
