/* The public traces: as many jobs, as many GPU-hours as were counted by other means. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "workload/workload.h"

struct fact {
    const char *path; /* below BERTH_DATA/traces */
    const char *format;
    uint64_t rows; /* jobs and what was skipped */
    double gpu_hours;
    uint32_t max_gpus;    /* 0: not known */
    double last_submit_s; /* 0: not known */
};

static const struct fact facts[] = {
    { "philly-csv/philly.csv.gz", "philly-csv", 72967, 694087.5225, 128, 1513929731 },
    { "raw-format-fixtures/philly/cluster_job_log.real3.json", "philly", 3,
      (8 * 193256.0 + 43) / 3600, 8, 0 },
    { "raw-format-fixtures/philly/cluster_job_log.reenc400.json.gz", "philly", 400,
      77697.2544, 16, 0 },
    { "raw-format-fixtures/helios/cluster_log.real3.csv", "helios", 3,
      (36848 + 4 * 249.0 + 675233) / 3600, 4, 0 },
    { "raw-format-fixtures/helios/cluster_log.reenc3000.csv.gz", "helios", 3000,
      83135.7594, 0, 0 },
    { "helios/venus_gpu_jobs.csv.gz", "generic", 86904, 1763040.9508, 160, 12957383 },
    { "alibaba-pai-v2020/pai_gpu_tasks_sample.csv.gz", "generic", 39043, 450161.6647,
      400, 0 },
    { "raw-format-fixtures/pai-v2020/pai_task_table.real1.csv", "pai", 1, 19.0 / 3600,
      1, 1739162 },
    { "tiresias/60_job.csv", "generic", 60, 26624.0 / 3600, 0, 1779 },
    { "muri/trace1.csv", "generic", 1494, 383326.7678, 0, 0 },
    { "muri/trace3.csv", "generic", 992, 116690.0986, 0, 0 },
    { "muri/cluster_trace.csv", "generic", 400, 61343.5914, 0, 0 },
    { "elasticflow/philly_103959.csv", "generic", 876, 42816.0775, 0, 7910536 },
    { "elasticflow/elasticVpollux_e.csv", "generic", 195, 9293.8497, 0, 0 },
    { "chronus/trace_job_Philly_MIX2.csv.gz", "generic", 30940, 378975.3667, 0,
      20151 * 60 },
    { "chronus/trace_job_Philly_SLO.csv.gz", "generic", 30940, 368510.9167, 0, 0 },
    { "rubick/workload-base.csv", "generic", 406, 617.7692, 0, 47550 },
    { "swf/NASA-iPSC-1993-3.1-cln.swf.gz", "swf", 18239, 131732.7819, 128, 7948936 },
    { "raw-format-fixtures/acme/trace_seren.real2.csv", "acme", 2, 22480.0 / 3600, 8,
      0 },
    { "raw-format-fixtures/acme/trace_kalos.real2.csv", "acme", 2, 64 * 78.0 / 3600, 64,
      0 },
    { "raw-format-fixtures/spot-v2026/job_info_df.real4.csv", "generic", 4, -1, 94, 0 },
};

static const char *folder(void)
{
    const char *data = getenv("BERTH_DATA");
    if (!data || !*data)
        SKIP("BERTH_DATA not set");
    return data;
}

/* Read a trace to its end; the sum of all steps. */
static double read_trace(const char *path, struct workload **ret_workload)
{
    struct error err = { "" };
    struct job_spec job;
    double steps = 0;
    int r = workload_open(ret_workload, path, NULL, 1, 0, &err);
    while (r >= 0 && (r = workload_next(*ret_workload, &job, &err)) > 0)
        steps += job.steps;
    if (r < 0)
        fail_msg("%s", err.text);
    return steps;
}

static void every_trace_has_its_jobs_and_gpu_hours(void **state)
{
    const char *data = folder();
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const struct fact *fact = &facts[i];
        char path[4096];
        struct workload *workload;
        snprintf(path, sizeof path, "%s/traces/%s", data, fact->path);
        read_trace(path, &workload);
        const struct workload_facts *got = workload_facts(workload);
        printf("# %s\n", fact->path);
        assert_string_equal(got->format, fact->format);
        assert_int_equal(got->job_count + got->skipped, fact->rows);
        if (fact->gpu_hours >= 0)
            assert_true(fabs(workload_gpu_hours(got) - fact->gpu_hours) < 0.0001);
        if (fact->max_gpus)
            assert_int_equal(got->max_gpus, fact->max_gpus);
        if (fact->last_submit_s > 0)
            assert_true((double)got->last_submit_ns / 1e9 == fact->last_submit_s);
        workload_close(workload);
    }
}

static void gavel_traces_have_their_steps(void **state)
{
    static const struct {
        const char *path;
        uint64_t jobs;
        double steps, last_s;
    } traces[] = {
        { "120_0.2_5_100_40_25_0_0.5_0.5_0.6_0.3_0.09_0.01_multigpu_dynamic.trace", 120,
          24328903, 5011 },
        { "220_0.2_5_100_25_4_0_0.5_0.5_0.6_0.3_0.09_0.01_multigpu_dynamic.trace", 220,
          43856275, 5956 },
        { "460_0.2_5_100_10_1_0_0.5_0.5_0.6_0.3_0.09_0.01_multigpu_dynamic.trace", 460,
          121646405, 4749 },
    };
    const char *data = folder();
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        char path[4096];
        struct workload *workload;
        snprintf(path, sizeof path, "%s/traces/shockwave/%s", data, traces[i].path);
        assert_true(read_trace(path, &workload) == traces[i].steps);
        const struct workload_facts *got = workload_facts(workload);
        assert_string_equal(got->format, "gavel");
        assert_int_equal(got->job_count, traces[i].jobs);
        assert_true((double)got->last_submit_ns / 1e9 == traces[i].last_s);
        workload_close(workload);
    }
}

RUN_CASES(TEST(every_trace_has_its_jobs_and_gpu_hours),
          TEST(gavel_traces_have_their_steps));
