/*
 * bench_sim.c - berth bench sim: replay, decisions, reading a trace.
 *
 * Jobs are drawn once and kept in memory, so that a replay is the engine, the policy,
 * the simulated cluster and the metrics, and nothing else.  The large run has ten times
 * the jobs on ten times the accelerators.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "lab/bench.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "sim/sim.h"
#include "workload/csv.h"
#include "workload/workload.h"

#define SMALL_JOBS 100000
#define LARGE_JOBS 1000000
#define REPEATS 3
#define READ_JOBS "synthetic:jobs=200000"

static const char *const policies[] = { "fifo", "fifo-backfill", "sjf", "srtf", "las" };
#define POLICY_COUNT (sizeof policies / sizeof *policies)

struct replay_input {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct job_spec *jobs;
    uint64_t job_count;
};

static int replay_input_make(struct replay_input *input, const char *cluster,
                             uint64_t job_count, struct error *err)
{
    char text[64];
    snprintf(text, sizeof text, "synthetic:jobs=%llu,load=1.2",
             (unsigned long long)job_count);
    arena_init(&input->arena, 0);
    int r = cluster_load(&input->cluster, &input->arena, cluster, err);
    if (r < 0)
        return r;
    throughput_init(&input->rates, &input->cluster);
    input->jobs = arena_array(&input->arena, struct job_spec, job_count);
    struct workload *workload;
    r = workload_open(&workload, text, NULL, 1, input->cluster.gpu_count, err);
    if (r < 0)
        return r;
    while (input->job_count < job_count &&
           (r = workload_next(workload, &input->jobs[input->job_count], err)) > 0) {
        struct job_spec *spec = &input->jobs[input->job_count++];
        spec->name = spec->user = spec->entity = spec->kind = spec->types = NULL;
    }
    workload_close(workload);
    return r < 0 ? r : 0;
}

/* Run the jobs once, and return the CPU time. */
static int run_replay(const struct replay_input *input, const char *policy,
                      double *ret_cpu_s, struct sim_result *ret_result,
                      struct error *err)
{
    struct sim_setup setup = { .cluster = &input->cluster,
                               .rates = &input->rates,
                               .jobs = input->jobs,
                               .job_count = input->job_count,
                               .policy = policy,
                               .seed = 1 };
    double begin_s = clock_cpu_s();
    int r = sim_run(&setup, ret_result, err);
    *ret_cpu_s = clock_cpu_s() - begin_s;
    return r;
}

/* The rows of one policy: the best of a few runs, then the large run by cost per event. */
static int measure_policy(struct bench *bench, const struct replay_input *small,
                          const struct replay_input *large, const char *policy,
                          struct error *err)
{
    struct sim_result result;
    double best_s = 1e9;
    double cpu_s;
    char id[64];
    for (int i = 0; i < REPEATS; i++) {
        int r = run_replay(small, policy, &cpu_s, &result, err);
        if (r < 0)
            return r;
        best_s = cpu_s < best_s ? cpu_s : best_s;
    }
    double events = (double)result.cost.event_count;
    bench_row(bench, best_s, "s", small->job_count, "replay_100k.%s", policy);
    bench_row(bench, events / best_s, "per_s", small->job_count, "events.%s", policy);
    bench_row(bench, result.cost.decide_us_p50, "us", result.cost.decision_count,
              "decide_p50.%s", policy);
    bench_row(bench, result.cost.decide_us_p99, "us", result.cost.decision_count,
              "decide_p99.%s", policy);

    int r = run_replay(large, policy, &cpu_s, &result, err);
    if (r < 0)
        return r;
    double per_event = cpu_s / (double)result.cost.event_count;
    snprintf(id, sizeof id, "replay_1m.%s", policy);
    bench_row_versus(bench, id, cpu_s, "s", large->job_count, "per event at 100k",
                     best_s / events / per_event);
    return 0;
}

/* CPU time to find every line, the least that a reader has to do. */
static double find_lines(const char *bytes, size_t count)
{
    double begin_s = clock_cpu_s();
    const char *end = bytes + count;
    for (const char *at = bytes; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        ;
    return clock_cpu_s() - begin_s;
}

/* Read a file in memory to its end; the best of a few times, and how far from memchr(). */
static int measure_reading(struct bench *bench, const char *id, const char *bytes,
                           size_t count, struct error *err)
{
    double best_s = 1e9;
    double lines_s = 1e9;
    uint64_t jobs = 0;
    int r = 0;
    for (int i = 0; i < REPEATS && r == 0; i++) {
        struct workload *workload;
        double begin_s = clock_cpu_s();
        r = workload_open_memory(&workload, "bench.csv", bytes, count, NULL, err);
        if (r < 0)
            return r;
        struct job_spec spec;
        while ((r = workload_next(workload, &spec, err)) > 0)
            ;
        jobs = workload_facts(workload)->job_count;
        workload_close(workload);
        best_s = fmin(best_s, clock_cpu_s() - begin_s);
        lines_s = fmin(lines_s, find_lines(bytes, count));
    }
    if (r == 0)
        bench_row_versus(bench, id, (double)count / best_s * 1e-6, "MB_per_s", jobs,
                         "lines found by memchr", lines_s / best_s);
    return r;
}

/* The same jobs as Berth writes them, and as a table with the columns of most traces. */
static int write_tables(FILE *own, FILE *generic, struct error *err)
{
    struct workload *workload;
    int r = workload_open(&workload, READ_JOBS, NULL, 1, 1000, err);
    if (r < 0)
        return r;
    r = workload_write(workload, own, err);
    workload_close(workload);
    if (r == 0)
        r = workload_open(&workload, READ_JOBS, NULL, 1, 1000, err);
    if (r < 0)
        return r;
    struct job_spec spec;
    fputs("job_id,user,vc,submit_time,num_gpus,duration\n", generic);
    while ((r = workload_next(workload, &spec, err)) > 0)
        fprintf(generic, "job-%" PRIu64 ",%s,vc%" PRIu64 ",%.3f,%u,%.3f\n", spec.id,
                spec.user, spec.id % 12, (double)spec.submit_ns * 1e-9, spec.gpus,
                spec.steps);
    workload_close(workload);
    return r;
}

static int measure_readers(struct bench *bench, struct error *err)
{
    char *own = NULL, *generic = NULL;
    size_t own_count = 0, generic_count = 0;
    FILE *own_file = memory_checked(open_memstream(&own, &own_count));
    FILE *generic_file = memory_checked(open_memstream(&generic, &generic_count));
    int r = write_tables(own_file, generic_file, err);
    fclose(own_file);
    fclose(generic_file);
    if (r == 0)
        r = measure_reading(bench, "read_csv", own, own_count, err);
    if (r == 0)
        r = measure_reading(bench, "read_generic", generic, generic_count, err);
    free(own);
    free(generic);
    return r;
}

static int bench_sim_run(struct bench *bench, struct error *err)
{
    struct replay_input small = { 0 };
    struct replay_input large = { 0 };
    struct sim_result result;
    double cpu_s;
    int r = replay_input_make(&small, "125xv100:8", SMALL_JOBS, err);
    if (r == 0)
        r = replay_input_make(&large, "1250xv100:8", LARGE_JOBS, err);
    if (r == 0)
        r = run_replay(&large, "fifo", &cpu_s, &result, err);
    if (r == 0)
        bench_row(bench, (double)result.cost.peak_rss_bytes, "bytes", large.job_count,
                  "peak_rss_1m");
    for (size_t i = 0; i < POLICY_COUNT && r == 0; i++)
        r = measure_policy(bench, &small, &large, policies[i], err);
    if (r == 0)
        r = measure_readers(bench, err);
    arena_release(&small.arena);
    arena_release(&large.arena);
    return r;
}

const struct bench_suite bench_sim = {
    .name = "sim",
    .brief = "replay, decisions, reading a trace",
    .run = bench_sim_run,
};
