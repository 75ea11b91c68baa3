/*
 * bench_gavel.c - berth bench gavel: a solution and a round of each policy, over the
 * number of jobs, what events and decisions cost on large clusters, what many jobs in one
 * instant cost every policy, and the paper's window as a whole.
 *
 * Jobs are those of the published generator, four per accelerator; a third of the accelerators
 * is of each type.  CLP solves the same programmes up to sizes that take it seconds.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "lab/bench.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "policy/policy.h"
#include "solve/solve.h"
#include "study/gavel_jobs.h"

#define CLP_PATIENCE_S 2.0
#define INSTANT_JOBS 20000

static const uint32_t sizes[] = { 32, 128, 512, 2048, 8192, 32768, 100000 };

#define SIZE_COUNT (sizeof sizes / sizeof *sizes)

static const struct {
    const char *id;
    enum goal goal;
    bool floors, prices;
} programmes[] = {
    { "las", GOAL_MAX_MIN, false, false },
    { "las_water_filling", GOAL_WATER_FILLING, false, false },
    { "hierarchical", GOAL_HIERARCHICAL, false, false },
    { "makespan", GOAL_MAKESPAN, false, false },
    { "ftf", GOAL_FINISH_TIME, false, false },
    { "throughput", GOAL_SUM, false, false },
    { "cost", GOAL_COST_RATIO, false, true },
    { "cost_slo", GOAL_COST_RATIO, true, true },
};

#define PROGRAMME_COUNT (sizeof programmes / sizeof *programmes)

/* Everything that any of the programmes needs. */
struct gavel_instance {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct gavel_jobs jobs;
    struct programme programme;
};

static int gavel_instance_make(struct gavel_instance *instance, uint32_t count,
                               struct error *err)
{
    static const struct programme_group groups[5] = {
        { 1, false }, { 2, false }, { 3, false }, { 4, false }, { 5, false }
    };
    arena_init(&instance->arena, 0);
    int r = cluster_load(&instance->cluster, &instance->arena, "gavel-36", err);
    if (r < 0)
        return r;
    throughput_init(&instance->rates, &instance->cluster);
    throughput_published(&instance->rates, &instance->arena);
    r = gavel_jobs_draw(&instance->jobs, &instance->rates, ",multi=true", 0, count,
                        &instance->arena, err);
    uint32_t types = instance->cluster.type_count;
    double *capacity = arena_array(&instance->arena, double, types);
    double *price = arena_array(&instance->arena, double, types);
    double *age_s = arena_array(&instance->arena, double, count);
    double *alone_s = arena_array(&instance->arena, double, count);
    double *floor = arena_array(&instance->arena, double, count);
    for (uint32_t t = 0; t < types; t++) {
        capacity[t] = count / 12.0;
        price[t] = instance->cluster.types[t].usd_per_hour;
    }
    for (uint32_t j = 0; j < count; j++) {
        const double *rate = &instance->jobs.rate[(size_t)j * types];
        instance->jobs.group[j] = j % 5;
        age_s[j] = 3600.0 * (1 + j % 100);
        alone_s[j] = 1800.0 * (1 + j % 50);
        floor[j] = j % 10 == 0 ? 0.05 * rate[0] : 0; /* one in ten has a deadline */
    }
    instance->programme = (struct programme){ .job_count = count,
                                              .type_count = types,
                                              .capacity = capacity,
                                              .gang = instance->jobs.gang,
                                              .rate = instance->jobs.rate,
                                              .weight = instance->jobs.weight,
                                              .steps = instance->jobs.steps,
                                              .age_s = age_s,
                                              .alone_s = alone_s,
                                              .group = instance->jobs.group,
                                              .groups = groups,
                                              .group_count = 5,
                                              .price = price,
                                              .floor = floor };
    return r;
}

/* The best time of a few solutions; how many depends on how long one takes. */
static int time_solution(const struct programme *programme, enum solve_engine engine,
                         double *ret_s, struct error *err)
{
    *ret_s = INFINITY;
    double spent_s = 0;
    for (int i = 0; i < 5 && spent_s < 0.5; i++) {
        struct arena arena;
        struct shares shares;
        arena_init(&arena, 0);
        double from_s = clock_cpu_s();
        int r = programme_solve(programme, engine, NULL, &arena, &shares, err);
        double took_s = clock_cpu_s() - from_s;
        arena_release(&arena);
        if (r < 0)
            return r;
        spent_s += took_s;
        *ret_s = fmin(*ret_s, took_s);
    }
    return 0;
}

static int measure_solutions(struct bench *bench, struct error *err)
{
    double clp_last_s[PROGRAMME_COUNT] = { 0 };
    for (uint32_t s = 0; s < SIZE_COUNT; s++) {
        struct gavel_instance instance;
        int r = gavel_instance_make(&instance, sizes[s], err);
        for (uint32_t p = 0; r == 0 && p < PROGRAMME_COUNT; p++) {
            struct programme programme = instance.programme;
            programme.goal = programmes[p].goal;
            if (!programmes[p].floors)
                programme.floor = NULL;
            if (!programmes[p].prices)
                programme.price = NULL;
            double fast_s;
            double clp_s = 0;
            char id[64];
            r = time_solution(&programme, SOLVE_FAST, &fast_s, err);
            /* Four times the jobs take CLP about sixteen times as long. */
            bool patient = clp_last_s[p] * 16 < CLP_PATIENCE_S && sizes[s] <= 8192;
            if (r == 0 && patient) {
                r = time_solution(&programme, SOLVE_CLP, &clp_s, err);
                bench_row(bench, clp_s * 1e3, "ms", sizes[s], "solve_clp_%s_%u",
                          programmes[p].id, sizes[s]);
                clp_last_s[p] = clp_s;
            } else {
                clp_last_s[p] = INFINITY;
            }
            snprintf(id, sizeof id, "solve_%s_%u", programmes[p].id, sizes[s]);
            if (r == 0)
                bench_row_versus(bench, id, fast_s * 1e3, "ms", sizes[s],
                                 clp_s > 0 ? "CLP" : NULL,
                                 clp_s > 0 ? clp_s / fast_s : 0);
        }
        arena_release(&instance.arena);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- rounds ------------------------------------------------------------------------- */

static const char *const round_policies[] = { "gavel-las", "gavel-ftf",
                                              "gavel-makespan", "gavel-throughput",
                                              "gavel-hierarchical" };

/* So many jobs at once, four per accelerator, until job 2 has ended. */
static int measure_round(struct bench *bench, const char *policy, uint32_t count,
                         struct error *err)
{
    struct sim_result result;
    double cpu_s;
    char cluster[96];
    char workload[64];
    snprintf(cluster, sizeof cluster, "v100:%u,p100:%u,k80:%u", count / 12, count / 12,
             count / 12);
    snprintf(workload, sizeof workload, "gavel:static=%u", count);
    int r = bench_simulate(
        cluster, true,
        (struct sim_setup){
            .workload = workload, .policy = policy, .window_from = 2, .window_to = 3 },
        &result, &cpu_s, err);
    if (r < 0)
        return r;
    bench_row(bench, result.cost.decide_us_p50 / 1e3, "ms", count, "round_%s_%u",
              policy, count);
    sim_result_release(&result);
    return 0;
}

static int measure_rounds(struct bench *bench, struct error *err)
{
    static const uint32_t counts[] = { 120, 1200, 10000 };
    for (uint32_t p = 0; p < sizeof round_policies / sizeof *round_policies; p++)
        for (uint32_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            if (counts[c] > 2000 && p > 0)
                continue; /* one policy at that size is enough to wait for */
            int r = measure_round(bench, round_policies[p], counts[c], err);
            if (r < 0)
                return r;
        }
    return 0;
}

/* --- growth ---------------------------------------------------------------------------- */

/* Cost per event of jobs that come one by one, over the number of GPUs. */
static int measure_events(struct bench *bench, uint32_t nodes, uint64_t jobs,
                          struct error *err)
{
    struct sim_result result;
    double cpu_s;
    char cluster[64];
    char workload[64];
    snprintf(cluster, sizeof cluster, "%uxv100:8", nodes);
    snprintf(workload, sizeof workload, "synthetic:jobs=%llu,load=1.2",
             (unsigned long long)jobs);
    int r = bench_simulate(
        cluster, false,
        (struct sim_setup){ .workload = workload, .policy = "gavel-las" }, &result,
        &cpu_s, err);
    if (r < 0)
        return r;
    bench_row(bench, cpu_s / (double)result.cost.event_count * 1e6, "us", jobs,
              "event_gavel-las_%u_gpus", nodes * 8);
    sim_result_release(&result);
    return 0;
}

/* A million jobs, one by one. */
static int measure_million(struct bench *bench, struct error *err)
{
    struct sim_result result;
    double cpu_s;
    int r = bench_simulate(
        "125xv100:8", false,
        (struct sim_setup){ .workload = "synthetic:jobs=1000000,load=1.0",
                            .policy = "gavel-las" },
        &result, &cpu_s, err);
    if (r < 0)
        return r;
    bench_row(bench, cpu_s, "s", 1000000, "million_gavel-las");
    sim_result_release(&result);
    return 0;
}

/* --- many jobs in one instant ------------------------------------------------------------ */

/* Of 1, 2, 4 or 8 GPUs, on average for ten minutes. */
static int write_instant(FILE *file, uint32_t count)
{
    static const uint32_t gangs[] = { 1, 1, 1, 1, 2, 2, 4, 8 };
    struct rng rng;
    rng_init(&rng, 1, "instant");
    fputs("#berth-jobs 1\nsubmit_s,gpus,work_s\n", file);
    for (uint32_t i = 0; i < count; i++)
        fprintf(file, "0,%u,%.1f\n", gangs[rng_below(&rng, 8)],
                10 - 600 * log(1 - rng_unit(&rng)));
    return fflush(file) == 0 ? 0 : -errno;
}

/* Every policy that needs no more than these jobs say. */
static int measure_instant(struct bench *bench, struct error *err)
{
    char path[] = "/tmp/berth-instant-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file)
        return error_set(err, -errno, "%s cannot be written", path);
    int r = write_instant(file, INSTANT_JOBS);
    for (const struct policy *const *p = policy_list; r == 0 && *p; p++) {
        struct sim_result result;
        double cpu_s;
        if (strncmp((*p)->name, "gavel-cost", strlen("gavel-cost")) == 0)
            continue; /* V100s have no price here */
        r = bench_simulate("8xv100:8", false,
                           (struct sim_setup){ .workload = path, .policy = (*p)->name },
                           &result, &cpu_s, err);
        if (r < 0)
            break;
        bench_row(bench, cpu_s, "s", INSTANT_JOBS, "instant_%s", (*p)->name);
        sim_result_release(&result);
    }
    fclose(file);
    unlink(path);
    return r;
}

/* Every decision while 100,000 jobs are active, until 300 of them have ended. */
static int measure_active(struct bench *bench, struct error *err)
{
    struct sim_result result;
    double cpu_s;
    int r = bench_simulate("v100:8000,p100:8000,k80:8000", true,
                           (struct sim_setup){ .workload = "gavel:static=100000",
                                               .policy = "gavel-las",
                                               .window_from = 2,
                                               .window_to = 300,
                                               .times_all = true },
                           &result, &cpu_s, err);
    if (r < 0)
        return r;
    uint64_t decisions = result.cost.decision_count;
    bench_row(bench, result.cost.decide_us_p50 / 1e3, "ms", decisions,
              "active_p50_100000");
    bench_row(bench, result.cost.decide_us_p99 / 1e3, "ms", decisions,
              "active_p99_100000");
    bench_row(bench, result.cost.decide_us_max / 1e3, "ms", decisions,
              "active_worst_100000");
    sim_result_release(&result);
    return 0;
}

static int measure_growth(struct bench *bench, struct error *err)
{
    int r = measure_events(bench, 125, 100000, err);
    if (r == 0)
        r = measure_events(bench, 1250, 100000, err);
    if (r == 0)
        r = measure_events(bench, 12500, 100000, err);
    if (r == 0)
        r = measure_million(bench, err);
    if (r == 0)
        r = measure_instant(bench, err);
    return r < 0 ? r : measure_active(bench, err);
}

/* --- the paper's window --------------------------------------------------------------- */

static int measure_window(struct bench *bench, const char *id, const char *policy,
                          struct error *err)
{
    struct sim_result result;
    double cpu_s;
    int r = bench_simulate("gavel-36", true,
                           (struct sim_setup){ .workload = "gavel:lam=900",
                                               .policy = policy,
                                               .window_from = 4000,
                                               .window_to = 5000 },
                           &result, &cpu_s, err);
    if (r < 0)
        return r;
    bench_row(bench, cpu_s, "s", result.cost.job_count, "%s", id);
    sim_result_release(&result);
    return 0;
}

static int bench_gavel_run(struct bench *bench, struct error *err)
{
    int r = measure_window(bench, "window_las", "gavel-las", err);
    if (r == 0)
        r = measure_window(bench, "window_las_released", "gavel-las,compat=released",
                           err);
    if (r == 0)
        r = measure_growth(bench, err);
    if (r == 0)
        r = measure_rounds(bench, err);
    return r < 0 ? r : measure_solutions(bench, err);
}

const struct bench_suite bench_gavel = {
    .name = "gavel",
    .brief = "solutions and rounds of Gavel's policies over the number of jobs",
    .run = bench_gavel_run,
};
