/*
 * Jobs that use the network in whole runs: how long they take, and which ones levels
 * help.
 */
#include "support/engine_run.h"

#include <math.h>
#include <string.h>

#include "net/fluid.h"

extern const struct policy policy_fifo, policy_las;

#define S INT64_C(1000000000)

ARENA_FIXTURE(arena);
static struct cluster cluster;
static double ends_s[8];
static uint32_t progress_count;

static void watch(void *self, const struct view *view, const struct event *event)
{
    if (event->kind == EVENT_FINISHED)
        ends_s[view->jobs[event->job].id] = (double)event->at_ns * 1e-9;
    progress_count += event->kind == EVENT_PROGRESS;
}

/* Nodes of four GPUs, each with a link of 1 MB/s of payload. */
static void begin(uint32_t nodes)
{
    arena_reset(&arena);
    cluster_begin(&cluster, &arena, "test", nodes);
    cluster_type(&cluster, &arena, "v100");
    for (uint32_t i = 0; i < nodes; i++)
        cluster_add(&cluster,
                    &(struct node){ .gpu_count = 4,
                                    .cpu_milli = 1000000,
                                    .mem_mib = 1000000,
                                    .link_bps = (uint64_t)(8e6 * 1514 / 1448) });
    cluster_end(&cluster, &arena);
    progress_count = 0;
    memset(ends_s, 0, sizeof ends_s);
}

static void play(struct engine_run *run, const struct job_spec *specs, uint32_t count,
                 const struct policy *policy, const char *flow)
{
    static struct engine_run_setup setup;
    setup = (struct engine_run_setup){ .cluster = &cluster,
                                       .policy = policy,
                                       .specs = specs,
                                       .spec_count = count,
                                       .flow = flow ? flow_find(flow) : NULL,
                                       .turns_max = 1000,
                                       .observer = { .event = watch } };
    engine_run_play(run, &setup);
}

static void on_several_nodes_a_step_takes_its_sending_too(void **state)
{
    begin(2);
    const struct job_spec specs[] = {
        { .gpus = 2, .nodes = 2, .steps = 10, .step_s = 1.5, .bytes_per_step = 500000 },
    };
    struct engine_run run;
    play(&run, specs, 1, &policy_fifo, NULL);
    assert_near(ends_s[1], 20, 1e-3);
    assert_near(run.sim.fluid->bytes_sent, 5e6, 100);
    engine_run_release(&run);
}

static void on_one_node_it_does_not(void **state)
{
    begin(2);
    const struct job_spec specs[] = {
        { .gpus = 2, .steps = 10, .step_s = 1.5, .bytes_per_step = 500000 },
    };
    struct engine_run run;
    play(&run, specs, 1, &policy_fifo, NULL);
    assert_near(ends_s[1], 15, 1e-6);
    assert_null(run.sim.fluid);
    engine_run_release(&run);
}

static void jobs_without_bytes_or_curves_report_nothing(void **state)
{
    begin(2);
    const struct job_spec specs[] = { { .gpus = 2, .nodes = 2, .steps = 1000 } };
    struct engine_run run;
    play(&run, specs, 1, &policy_fifo, NULL);
    assert_near(ends_s[1], 1000, 1e-6);
    assert_int_equal(progress_count, 0);
    engine_run_release(&run);
}

static void the_first_level_goes_as_if_alone(void **state)
{
    begin(2);
    const struct job_spec specs[] = {
        /* computes much for what it sends: crux gives it the first level */
        { .gpus = 2, .nodes = 2, .steps = 50, .step_s = 1, .bytes_per_step = 200000 },
        { .gpus = 2, .nodes = 2, .steps = 50, .step_s = 0.2, .bytes_per_step = 900000 },
    };
    struct engine_run run;
    play(&run, specs, 2, &policy_fifo, "crux");
    assert_near(ends_s[1], 60, 0.01);
    assert_true(ends_s[2] > 55.5); /* alone */
    engine_run_release(&run);
    play(&run, specs, 2, &policy_fifo, "fair");
    assert_true(ends_s[1] > 62);
    engine_run_release(&run);
}

static void a_preempted_job_goes_on_where_it_was(void **state)
{
    begin(2);
    const struct job_spec specs[] = {
        { .gpus = 8, .nodes = 2, .steps = 600, .step_s = 1, .bytes_per_step = 500000 },
        { .gpus = 8,
          .nodes = 2,
          .submit_ns = 500 * S,
          .steps = 20,
          .step_s = 1,
          .bytes_per_step = 500000 },
    };
    struct engine_run run;
    play(&run, specs, 2, &policy_las, NULL);
    assert_near(ends_s[2], 530, 1e-3);
    assert_near(ends_s[1], 930, 1e-3);
    engine_run_release(&run);
}

static void without_bandwidth_a_job_never_ends_and_the_run_does(void **state)
{
    begin(2);
    cluster.nodes[1].link_bps = 0;
    const struct job_spec specs[] = {
        { .gpus = 2, .nodes = 2, .steps = 10, .bytes_per_step = 500000 },
    };
    static const char *const flows[] = { "fair", "jpas", "las-flow" };
    for (uint32_t i = 0; i < 3; i++) {
        struct engine_run run;
        play(&run, specs, 1, &policy_fifo, flows[i]);
        assert_int_equal(run.ended, 0);
        assert_int_equal(run.engine.state.live_count, 1);
        engine_run_release(&run);
    }
}

static void a_job_reports_its_true_speed(void **state)
{
    begin(2);
    const struct job_spec specs[] = {
        { .gpus = 2,
          .nodes = 2,
          .steps = 100,
          .step_s = 0.5,
          .bytes_per_step = 500000 },
        { .gpus = 2,
          .nodes = 2,
          .steps = 1000,
          .step_s = 0.5,
          .bytes_per_step = 500000 },
    };
    struct engine_run run;
    play(&run, specs, 2, &policy_fifo, "smallest-first");
    assert_true(progress_count > 100);
    assert_true(progress_count < 250);
    assert_near(ends_s[1], 100, 1);
    engine_run_release(&run);
}

RUN_GROUP(setup, teardown, TEST(on_several_nodes_a_step_takes_its_sending_too),
          TEST(on_one_node_it_does_not),
          TEST(jobs_without_bytes_or_curves_report_nothing),
          TEST(the_first_level_goes_as_if_alone),
          TEST(a_preempted_job_goes_on_where_it_was),
          TEST(without_bandwidth_a_job_never_ends_and_the_run_does),
          TEST(a_job_reports_its_true_speed));
