/*
 * bench_fitgpp.c - berth bench fitgpp: choosing a victim, and the whole study.
 *
 * 80,000 best-effort jobs on 10,000 nodes, eight on each, of random CPU, memory and grace
 * period.  A trial job of one GPU finds somebody in any case; for one of eight GPUs nobody
 * makes room alone, so everybody has to be looked at.
 */
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
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

struct crowd {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct state state;
    struct plan *plan;
    struct victims victims;
    struct rng rng;
};

static void tell(struct crowd *crowd, struct event *event)
{
    state_apply(&crowd->state, event);
    victims_observe(&crowd->victims, &crowd->state.view, event);
}

static void seat_one(struct crowd *crowd, node_id node, uint32_t gpu)
{
    struct job job = { .gpus = 1,
                       .gpus_min = 1,
                       .gpus_max = 1,
                       .types = 1,
                       .kind = KIND_NONE,
                       .rate_best_per_s = 1,
                       .cpu_milli = 1000 * (1 + rng_below(&crowd->rng, 4)),
                       .mem_mib = 1024 * (1 + rng_below(&crowd->rng, 31)),
                       .grace_ns = (int64_t)rng_below(&crowd->rng, 1200) * 1000000000 };
    job.id = (uint64_t)node * PER_NODE + gpu + 1;
    struct seat seat = { node, job.cpu_milli, job.mem_mib, 0, (uint64_t)1 << gpu };
    struct event submitted = { .kind = EVENT_SUBMITTED, .spec = &job };
    tell(crowd, &submitted);
    struct event placed = { .kind = EVENT_PLACED,
                            .job = submitted.job,
                            .seats = &seat,
                            .seat_count = 1,
                            .beside = JOB_NONE };
    tell(crowd, &placed);
    struct event started = { .kind = EVENT_STARTED,
                             .job = submitted.job,
                             .generation = submitted.generation,
                             .loaded = true };
    tell(crowd, &started);
}

static void crowd_make(struct crowd *crowd, bool fixed)
{
    memset(crowd, 0, sizeof *crowd);
    arena_init(&crowd->arena, 0);
    rng_init(&crowd->rng, 1, "crowd");
    cluster_begin(&crowd->cluster, &crowd->arena, "crowd", NODES);
    cluster_type(&crowd->cluster, &crowd->arena, "v100");
    for (node_id n = 0; n < NODES; n++)
        cluster_add(
            &crowd->cluster,
            &(struct node){ .gpu_count = 8, .cpu_milli = 32000, .mem_mib = 262144 });
    cluster_end(&crowd->cluster, &crowd->arena);
    throughput_init(&crowd->rates, &crowd->cluster);
    state_init(&crowd->state, &crowd->arena, &crowd->cluster, &crowd->rates,
               RUNNING + 64);
    crowd->plan = plan_new(&crowd->state, &crowd->arena);
    crowd->victims = (struct victims){
        .s = 4, .preempt_max = 1, .fixed = fixed, .grace_max_ns = INT64_C(1200000000000)
    };
    victims_init(&crowd->victims, &crowd->arena, &crowd->state.view);
    for (node_id n = 0; n < NODES; n++)
        for (uint32_t gpu = 0; gpu < PER_NODE; gpu++)
            seat_one(crowd, n, gpu);
}

static void crowd_release(struct crowd *crowd)
{
    state_release(&crowd->state);
    arena_release(&crowd->arena);
}

/* Microseconds a choice takes for trial jobs of that many GPUs. */
static double choice_us(struct crowd *crowd, uint32_t gpus, uint32_t times)
{
    struct job trial = { .class = CLASS_TE, .gpus = gpus, .types = 1 };
    plan_begin(crowd->plan);
    victims_begin(&crowd->victims);
    victims_best(&crowd->victims, &crowd->state.view, crowd->plan, &trial);
    double begin_s = clock_cpu_s();
    for (uint32_t i = 0; i < times; i++) {
        trial.cpu_milli = 1000 * (1 + rng_below(&crowd->rng, 4));
        trial.mem_mib = 1024 * (1 + rng_below(&crowd->rng, 31));
        victims_best(&crowd->victims, &crowd->state.view, crowd->plan, &trial);
    }
    double us = (clock_cpu_s() - begin_s) * 1e6 / times;
    plan_end(crowd->plan);
    return us;
}

static void bench_choices(struct bench *bench)
{
    struct crowd crowd;
    crowd_make(&crowd, false);
    bench_row(bench, "victim_running_80k", choice_us(&crowd, 1, CHOICES), "us", RUNNING,
              NULL, 0);
    crowd_release(&crowd);
    crowd_make(&crowd, true);
    bench_row(bench, "victim_fixed_typical_80k", choice_us(&crowd, 1, 100 * CHOICES),
              "us", RUNNING, NULL, 0);
    bench_row(bench, "victim_fixed_worst_80k", choice_us(&crowd, 8, CHOICES), "us",
              RUNNING, NULL, 0);
    crowd_release(&crowd);
}

static int bench_study(struct bench *bench, struct error *err)
{
    struct sim_result result;
    double cpu_s;
    int r = bench_simulate(
        "fitgpp-84", false,
        (struct sim_setup){ .workload = "fitgpp", .policy = "fitgpp", .seed = 1 },
        &result, &cpu_s, err);
    if (r < 0)
        return r;
    bench_row(bench, "study_cpu", cpu_s, "s", result.cost.job_count, NULL, 0);
    sim_result_release(&result);
    return 0;
}

static int bench_fitgpp_run(struct bench *bench, struct error *err)
{
    bench_choices(bench);
    return bench_study(bench, err);
}

const struct bench_suite bench_fitgpp = {
    .name = "fitgpp",
    .brief = "choosing a victim, the whole study",
    .run = bench_fitgpp_run,
};
