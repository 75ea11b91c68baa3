/* The workload on which preemption with a price is measured. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "model/job.h"
#include "workload/workload.h"

static struct error err;

struct seen {
    uint32_t jobs;
    uint32_t by_size[9];
    double gpu_s, run_s, last_s, pause_s, load_s;
    double pause_max_s, load_max_s;
    uint64_t print; /* of sizes and run times, in order */
};

static struct seen draw(const char *text, uint64_t seed)
{
    struct workload *workload;
    struct job_spec job;
    struct seen seen = { 0 };
    if (workload_open(&workload, text, NULL, seed, 0, &err) < 0)
        fail_msg("%s", err.text);
    while (workload_next(workload, &job, &err) > 0) {
        seen.jobs++;
        seen.by_size[job.gpus]++;
        seen.gpu_s += job.gpus * job.steps;
        seen.run_s += job.steps;
        seen.last_s = (double)job.submit_ns / 1e9;
        seen.pause_s += (double)job.pause_ns / 1e9;
        seen.load_s += (double)job.load_ns / 1e9;
        seen.pause_max_s = fmax(seen.pause_max_s, (double)job.pause_ns / 1e9);
        seen.load_max_s = fmax(seen.load_max_s, (double)job.load_ns / 1e9);
        assert_true(job.grace_ns == job.pause_ns);
        assert_int_equal(job.ckpt_ns, 0);
        seen.print = seen.print * 31 + job.gpus + (uint64_t)(job.steps * 1000);
    }
    workload_close(workload);
    return seen;
}

static void sizes_run_times_and_load_are_as_said(void **state)
{
    struct seen seen = draw("xion:jobs=40000,gpus=16,load=0.8", 1);
    assert_int_equal(seen.jobs, 40000);
    assert_true(fabs(seen.by_size[1] / 40000.0 - 0.70) < 0.01);
    assert_true(fabs(seen.by_size[2] / 40000.0 - 0.10) < 0.01);
    assert_true(fabs(seen.by_size[4] / 40000.0 - 0.15) < 0.01);
    assert_true(fabs(seen.by_size[8] / 40000.0 - 0.05) < 0.01);
    assert_true(fabs(seen.run_s / 40000 - 1800) < 60);
    assert_true(fabs(seen.gpu_s / (seen.last_s * 16) - 0.8) < 0.02);
}

static void costs_are_the_factor_times_the_standard(void **state)
{
    struct seen seen = draw("xion:jobs=20000,cost=2", 1);
    assert_true(fabs(seen.pause_s / 20000 - 65) < 1);
    assert_true(fabs(seen.load_s / 20000 - 140) < 1);
    assert_true(seen.pause_max_s <= 120 && seen.load_max_s <= 240);
    seen = draw("xion:jobs=100,cost=0", 1);
    assert_true(seen.pause_s == 0 && seen.load_s == 0);
}

static void the_same_jobs_come_at_every_cost_and_load(void **state)
{
    uint64_t print = draw("xion", 3).print;
    assert_int_equal(draw("xion", 3).jobs, 4000);
    assert_true(print == draw("xion:cost=3,load=0.5,gpus=64", 3).print);
    assert_true(print != draw("xion", 4).print);
}

static void it_brings_nodes_of_eight(void **state)
{
    static const char *const pairs[][2] = { { "xion", "2xv100:8" },
                                            { "xion:gpus=8", "1xv100:8" },
                                            { "xion:gpus=12", "3xv100:4" },
                                            { "xion:gpus=1", "1xv100:1" } };
    for (uint32_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct workload *workload;
        assert_int_equal(workload_open(&workload, pairs[i][0], NULL, 1, 0, &err), 0);
        assert_string_equal(workload_facts(workload)->cluster, pairs[i][1]);
        workload_close(workload);
    }
}

static void no_job_is_larger_than_the_cluster(void **state)
{
    assert_int_equal(draw("xion:gpus=1", 1).by_size[1], 4000);
    struct seen seen = draw("xion:gpus=4", 1);
    assert_int_equal(seen.by_size[8], 0);
    assert_true(seen.by_size[4] > 600);
}

RUN_CASES(TEST(sizes_run_times_and_load_are_as_said),
          TEST(costs_are_the_factor_times_the_standard),
          TEST(the_same_jobs_come_at_every_cost_and_load),
          TEST(it_brings_nodes_of_eight), TEST(no_job_is_larger_than_the_cluster));
