/*
 * bench_one.c - berth bench one: what the policy 'berth' costs, beside xion on the same jobs.
 *
 * CPU time of whole simulations divided by their events, and the longest decision: over the
 * number of GPUs, with one type of GPU and with three, with a short queue and with a long one,
 * and over the number of jobs.  The jobs are rigid, so that both policies have the same work.
 */
#include <stdio.h>

#include "base/error.h"
#include "lab/bench.h"

#define JOBS 10000
#define LOAD_SHORT 0.7
#define LOAD_LONG 1.2

struct bench_cell {
    const char *cluster, *name;
    uint32_t gpus;
    bool kinds; /* the cluster has three types, and jobs run at other speeds on each */
};

static const struct bench_cell cells[] = {
    { "14xv100:8", "112_gpus_1_type", 112, false },
    { "128xv100:8", "1024_gpus_1_type", 1024, false },
    { "1250xv100:8", "10000_gpus_1_type", 10000, false },
    { "mixed-112", "112_gpus_3_types", 112, true },
    { "43xv100:8,43xp100:8,42xk80:8", "1024_gpus_3_types", 1024, true },
    { "417xv100:8,417xp100:8,416xk80:8", "10000_gpus_3_types", 10000, true },
};

/* The CPU time of an event, or, with every decision timed, the longest decision. */
static int measure_policy(const struct bench_cell *cell, const char *policy,
                          double load, uint64_t jobs, double *ret_event_us,
                          double *ret_worst_ms, struct error *err)
{
    struct sim_result result;
    double cpu_s;
    char workload[96];
    snprintf(workload, sizeof workload, "%s:jobs=%llu,load=%g%s",
             cell->kinds ? "mixed" : "synthetic", (unsigned long long)jobs, load,
             cell->kinds ? ",elastic_share=0" : "");
    int r = bench_simulate(cell->cluster, cell->kinds,
                           (struct sim_setup){ .workload = workload,
                                               .policy = policy,
                                               .seed = 1,
                                               .times_all = ret_worst_ms != NULL },
                           &result, &cpu_s, err);
    if (r < 0)
        return r;
    if (ret_event_us)
        *ret_event_us = cpu_s / (double)result.cost.event_count * 1e6;
    if (ret_worst_ms)
        *ret_worst_ms = result.cost.decide_us_max / 1e3;
    sim_result_release(&result);
    return 0;
}

static int measure_cell(struct bench *bench, const struct bench_cell *cell, double load,
                        uint64_t jobs, const char *queue, struct error *err)
{
    double xion_us, berth_us, worst_ms;
    char id[96];
    int r = measure_policy(cell, "xion", load, jobs, &xion_us, NULL, err);
    if (r == 0)
        r = measure_policy(cell, "berth", load, jobs, &berth_us, NULL, err);
    if (r == 0)
        r = measure_policy(cell, "berth", load, jobs, NULL, &worst_ms, err);
    if (r < 0)
        return r;
    snprintf(id, sizeof id, "event_%s_%s", cell->name, queue);
    bench_row_versus(bench, id, berth_us, "us", jobs, "xion", xion_us / berth_us);
    bench_row(bench, worst_ms, "ms", jobs, "worst_%s_%s", cell->name, queue);
    return 0;
}

static int bench_one_run(struct bench *bench, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof *cells && r == 0; i++) {
        r = measure_cell(bench, &cells[i], LOAD_SHORT, JOBS, "short_queue", err);
        if (r == 0)
            r = measure_cell(bench, &cells[i], LOAD_LONG, JOBS, "long_queue", err);
    }
    for (uint64_t jobs = 10000; jobs <= 1000000 && r == 0; jobs *= 10) {
        char name[32];
        snprintf(name, sizeof name, "%llu_jobs", (unsigned long long)jobs);
        r = measure_cell(bench, &cells[1], LOAD_SHORT, jobs, name, err);
    }
    return r;
}

const struct bench_suite bench_one = {
    .name = "one",
    .brief = "the policy berth beside xion, by GPUs, types, queue and jobs",
    .run = bench_one_run,
};
