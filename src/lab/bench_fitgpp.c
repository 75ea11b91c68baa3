/*
 * bench_fitgpp.c - berth bench fitgpp: choosing a victim, and the whole study.
 *
 * 80,000 best-effort jobs run on 10,000 nodes, eight on each, with random CPU, memory and
 * grace period.  For a trial job of one GPU there is always a victim.  For one of eight GPUs
 * no single victim is enough, so every running job has to be considered.
 */
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "lab/bench.h"
#include "model/cluster.h"
#include "model/plan.h"
#include "model/state.h"
#include "model/throughput.h"
#include "policy/shared/victims.h"

#define NODES 10000
#define PER_NODE 8
#define RUNNING (NODES * PER_NODE)
#define CHOICES 2000

struct full_cluster {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct state state;
    struct plan *plan;
    struct victims victims;
    struct rng rng;
};

static void apply_event(struct full_cluster *full, struct event *event)
{
    state_apply(&full->state, event);
    victims_observe(&full->victims, &full->state.view, event);
}

static void start_job(struct full_cluster *full, node_id node, uint32_t gpu)
{
    struct job job = { .gpus = 1,
                       .gpus_min = 1,
                       .gpus_max = 1,
                       .types = 1,
                       .kind = KIND_NONE,
                       .rate_best_per_s = 1,
                       .cpu_milli = 1000 * (1 + rng_below(&full->rng, 4)),
                       .mem_mib = 1024 * (1 + rng_below(&full->rng, 31)),
                       .grace_ns = (int64_t)rng_below(&full->rng, 1200) * 1000000000 };
    job.id = (uint64_t)node * PER_NODE + gpu + 1;
    struct seat seat = { node, job.cpu_milli, job.mem_mib, 0, (uint64_t)1 << gpu };
    struct event submitted = { .kind = EVENT_SUBMITTED, .spec = &job };
    apply_event(full, &submitted);
    struct event placed = { .kind = EVENT_PLACED,
                            .job = submitted.job,
                            .seats = &seat,
                            .seat_count = 1,
                            .beside = JOB_NONE };
    apply_event(full, &placed);
    struct event started = { .kind = EVENT_STARTED,
                             .job = submitted.job,
                             .generation = submitted.generation,
                             .loaded = true };
    apply_event(full, &started);
}

static void full_cluster_make(struct full_cluster *full, bool fixed)
{
    memset(full, 0, sizeof *full);
    arena_init(&full->arena, 0);
    rng_init(&full->rng, 1, "crowd");
    cluster_begin(&full->cluster, &full->arena, "crowd", NODES);
    cluster_type(&full->cluster, &full->arena, "v100");
    for (node_id n = 0; n < NODES; n++)
        cluster_add(
            &full->cluster,
            &(struct node){ .gpu_count = 8, .cpu_milli = 32000, .mem_mib = 262144 });
    cluster_end(&full->cluster, &full->arena);
    throughput_init(&full->rates, &full->cluster);
    state_init(&full->state, &full->arena, &full->cluster, &full->rates, RUNNING + 64);
    full->plan = plan_new(&full->state, &full->arena);
    full->victims = (struct victims){
        .s = 4, .preempt_max = 1, .fixed = fixed, .grace_max_ns = INT64_C(1200000000000)
    };
    victims_init(&full->victims, &full->arena, &full->state.view);
    for (node_id n = 0; n < NODES; n++)
        for (uint32_t gpu = 0; gpu < PER_NODE; gpu++)
            start_job(full, n, gpu);
}

static void full_cluster_release(struct full_cluster *full)
{
    state_release(&full->state);
    arena_release(&full->arena);
}

/* Microseconds to choose a victim for trial jobs of that many GPUs. */
static double time_choice_us(struct full_cluster *full, uint32_t gpus, uint32_t times)
{
    struct job trial = { .class = CLASS_TE, .gpus = gpus, .types = 1 };
    plan_begin(full->plan);
    victims_begin(&full->victims);
    victims_best(&full->victims, &full->state.view, full->plan, &trial);
    double begin_s = clock_cpu_s();
    for (uint32_t i = 0; i < times; i++) {
        trial.cpu_milli = 1000 * (1 + rng_below(&full->rng, 4));
        trial.mem_mib = 1024 * (1 + rng_below(&full->rng, 31));
        victims_best(&full->victims, &full->state.view, full->plan, &trial);
    }
    double us = (clock_cpu_s() - begin_s) * 1e6 / times;
    plan_end(full->plan);
    return us;
}

static void measure_choices(struct bench *bench)
{
    struct full_cluster full;
    full_cluster_make(&full, false);
    bench_row(bench, time_choice_us(&full, 1, CHOICES), "us", RUNNING,
              "victim_running_80k");
    full_cluster_release(&full);
    full_cluster_make(&full, true);
    bench_row(bench, time_choice_us(&full, 1, 100 * CHOICES), "us", RUNNING,
              "victim_fixed_typical_80k");
    bench_row(bench, time_choice_us(&full, 8, CHOICES), "us", RUNNING,
              "victim_fixed_worst_80k");
    full_cluster_release(&full);
}

static int measure_study(struct bench *bench, struct error *err)
{
    struct sim_result result;
    double cpu_s;
    int r = bench_simulate(
        "fitgpp-84", false,
        (struct sim_setup){ .workload = "fitgpp", .policy = "fitgpp", .seed = 1 },
        &result, &cpu_s, err);
    if (r < 0)
        return r;
    bench_row(bench, cpu_s, "s", result.cost.job_count, "study_cpu");
    sim_result_release(&result);
    return 0;
}

static int bench_fitgpp_run(struct bench *bench, struct error *err)
{
    measure_choices(bench);
    return measure_study(bench, err);
}

const struct bench_suite bench_fitgpp = {
    .name = "fitgpp",
    .brief = "choosing a victim, the whole study",
    .run = bench_fitgpp_run,
};
