/* Generated workloads: repeatable, and as heavy as asked for. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "workload/tables.h"
#include "workload/workload.h"

static struct error err;

struct seen {
    uint32_t jobs, trials, gpus_max;
    double gpu_s, last_s;
    uint64_t print; /* of everything, in order */
};

static struct seen draw(const char *text, uint64_t seed, uint32_t gpus)
{
    struct workload *workload;
    struct job_spec job;
    struct seen seen = { 0 };
    if (workload_open(&workload, text, NULL, seed, gpus, &err) < 0)
        fail_msg("%s", err.text);
    while (workload_next(workload, &job, &err) > 0) {
        seen.jobs++;
        seen.trials += job.class == CLASS_TE;
        seen.gpus_max = job.gpus > seen.gpus_max ? job.gpus : seen.gpus_max;
        seen.gpu_s += job.gpus * job.steps;
        seen.last_s = (double)job.submit_ns / 1e9;
        assert_true(job.class == CLASS_BE || job.steps <= 1800);
        assert_true(job.pause_ns > 0);
        seen.print = seen.print * 31 + (uint64_t)job.submit_ns * 7 + job.gpus +
                     (uint64_t)(job.steps * 1000) + (uint64_t)job.load_ns;
    }
    workload_close(workload);
    return seen;
}

static void the_same_seed_gives_the_same_jobs(void **state)
{
    assert_true(draw("synthetic", 3, 64).print == draw("synthetic", 3, 64).print);
    assert_true(draw("synthetic", 3, 64).print != draw("synthetic", 4, 64).print);
}

static void the_load_is_the_one_asked_for(void **state)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct seen seen =
            draw("synthetic:jobs=20000,load=0.8,trace=helios", seed, 512);
        double load = seen.gpu_s / (seen.last_s * 512);
        assert_true(fabs(load - 0.8) < 0.04);
    }
}

static void trial_jobs_are_the_share_asked_for(void **state)
{
    struct seen seen = draw("synthetic:jobs=20000,trial_share=0.25", 1, 64);
    assert_true(fabs((double)seen.trials / seen.jobs - 0.25) < 0.015);
    seen = draw("synthetic:jobs=1000,trial_share=0", 1, 64);
    assert_int_equal(seen.trials, 0);
}

static void no_job_is_larger_than_the_cluster(void **state)
{
    assert_int_equal(draw("synthetic:jobs=5000,trace=pai", 1, 1).gpus_max, 1);
    assert_int_equal(draw("synthetic:jobs=5000,trace=pai", 1, 4).gpus_max, 4);
    assert_int_equal(draw("synthetic:jobs=5000,trace=pai", 1, 256).gpus_max, 64);
    assert_int_equal(draw("synthetic:jobs=5000,trace=pai,max_gpus=20", 1, 256).gpus_max,
                     16);
}

static void bursty_arrivals_come_in_bursts(void **state)
{
    struct workload *workload;
    struct job_spec job;
    double mean[2], square[2];
    for (int bursty = 0; bursty < 2; bursty++) {
        const char *text =
            bursty ? "synthetic:jobs=20000,arrivals=bursty" : "synthetic:jobs=20000";
        assert_int_equal(workload_open(&workload, text, NULL, 1, 512, &err), 0);
        int64_t last_ns = 0;
        double sum = 0, squares = 0;
        while (workload_next(workload, &job, &err) > 0) {
            double gap = (double)(job.submit_ns - last_ns) / 1e9;
            last_ns = job.submit_ns;
            sum += gap;
            squares += gap * gap;
        }
        workload_close(workload);
        mean[bursty] = sum / 20000;
        square[bursty] = squares / 20000;
    }
    double variation = sqrt(square[0] / mean[0] / mean[0] - 1);
    assert_true(variation > 0.9 && variation < 1.1); /* Poisson: 1 */
    assert_true(sqrt(square[1] / mean[1] / mean[1] - 1) > 2);
}

/* The mean of tables_run_s(), exactly. */
static double mean_run_s(const struct trace_tables *trace, uint32_t class)
{
    const double *run_s = trace->run_s[class];
    double mean = 0;
    for (uint32_t i = 1; i < TRACE_POINTS; i++) {
        double share = tables_points[i] - tables_points[i - 1];
        double ratio = run_s[i] / run_s[i - 1];
        double between = ratio == 1 ? run_s[i] : (run_s[i] - run_s[i - 1]) / log(ratio);
        mean += share * between;
    }
    return mean;
}

static void the_mean_run_time_is_that_of_the_table(void **state)
{
    const struct trace_tables *philly = &tables_traces[0];
    double sum = 0;
    enum { STEPS = 100000 };
    for (uint32_t i = 0; i < STEPS; i++)
        sum += tables_run_s(philly, 0, (i + 0.5) / STEPS);
    assert_true(fabs(sum / STEPS / mean_run_s(philly, 0) - 1) < 0.001);
    assert_true(tables_run_s(philly, 0, 0.5) == 1299);
    for (int t = 0; tables_names[t]; t++) {
        double shares = 0;
        for (int i = 0; i < TRACE_SIZES; i++)
            shares += tables_traces[t].size_share[i];
        assert_true(fabs(shares - 100) < 0.1);
        assert_string_equal(tables_traces[t].name, tables_names[t]);
    }
}

static void wrong_settings_are_refused(void **state)
{
    struct workload *workload;
    assert_true(workload_open(&workload, "synthetic:job=5", NULL, 1, 8, &err) < 0);
    assert_non_null(strstr(err.text, "did you mean 'jobs'"));
    assert_true(workload_open(&workload, "synthetic:load=-1", NULL, 1, 8, &err) < 0);
    assert_true(workload_open(&workload, "sinthetic", NULL, 1, 8, &err) < 0);
    assert_non_null(strstr(err.text, "did you mean 'synthetic'"));
}

RUN_CASES(TEST(the_same_seed_gives_the_same_jobs), TEST(the_load_is_the_one_asked_for),
          TEST(trial_jobs_are_the_share_asked_for),
          TEST(no_job_is_larger_than_the_cluster), TEST(bursty_arrivals_come_in_bursts),
          TEST(the_mean_run_time_is_that_of_the_table),
          TEST(wrong_settings_are_refused));
