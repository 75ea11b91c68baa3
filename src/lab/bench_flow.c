/*
 * bench_flow.c - berth bench flow: a decision about 1,000 jobs on 1,000 hosts, and how
 * fast the network is simulated.
 *
 * Each job is on four of the hosts and has reported a loss that goes down, 40 times.  A
 * decision is the order and the levels; with new reports of every job it is also a fit
 * of every curve.  Rows are the longest of several decisions.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "lab/bench.h"
#include "flow/flow.h"
#include "model/cluster.h"
#include "model/event.h"
#include "model/state.h"
#include "model/throughput.h"

#define HOSTS 1000
#define JOBS 1000
#define GANG 4
#define REPORTS 40
#define FIRST 4 /* decisions over which the first fits of all curves may spread */
#define TIMES 20
#define PERIOD_NS INT64_C(10000000000)

struct crowd {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct state state;
    struct rng rng;
    const struct flow_policy *flow;
    void *self;
    struct flow_plan plan;
    double taus[JOBS];
    int64_t now_ns;
};

static void tell(struct crowd *crowd, struct event *event)
{
    event->at_ns = crowd->now_ns;
    state_apply(&crowd->state, event);
    crowd->flow->observe(crowd->self, &crowd->state.view, event);
}

static void seat_one(struct crowd *crowd, uint32_t number)
{
    struct job job = { .id = number + 1,
                       .gpus = GANG,
                       .gpus_min = GANG,
                       .gpus_max = GANG,
                       .types = 1,
                       .kind = KIND_NONE,
                       .rate_best_per_s = 1,
                       .steps_total = 1e6,
                       .step_s = 0.2 + 0.6 * rng_unit(&crowd->rng),
                       .bytes_per_step = 10000000 + rng_below(&crowd->rng, 100000000) };
    struct seat seats[GANG] = { { 0 } };
    for (uint32_t i = 0; i < GANG; i++)
        seats[i] = (struct seat){ .node = (number + i * 251) % HOSTS,
                                  .gpus = (uint64_t)1 << i };
    struct event submitted = { .kind = EVENT_SUBMITTED, .spec = &job };
    tell(crowd, &submitted);
    struct event placed = { .kind = EVENT_PLACED,
                            .job = submitted.job,
                            .seats = seats,
                            .seat_count = GANG,
                            .beside = JOB_NONE };
    tell(crowd, &placed);
    struct event started = { .kind = EVENT_STARTED,
                             .job = submitted.job,
                             .generation = submitted.generation,
                             .loaded = true };
    tell(crowd, &started);
    crowd->taus[number] = 60 + 1000 * rng_unit(&crowd->rng);
}

/* Everybody reports, some steps further on. */
static void report_all(struct crowd *crowd, uint32_t round)
{
    for (job_id job = 0; job < JOBS; job++) {
        double steps = 8.0 * round;
        struct event event = { .kind = EVENT_PROGRESS,
                               .job = job,
                               .steps = steps,
                               .rate_per_s = 1,
                               .loss = 0.2 + exp(-steps / crowd->taus[job]) };
        tell(crowd, &event);
    }
}

static int crowd_make(struct crowd *crowd, const char *flow, struct error *err)
{
    memset(crowd, 0, sizeof *crowd);
    arena_init(&crowd->arena, 0);
    rng_init(&crowd->rng, 1, "crowd");
    cluster_begin(&crowd->cluster, &crowd->arena, "crowd", HOSTS);
    cluster_type(&crowd->cluster, &crowd->arena, "v100");
    for (node_id n = 0; n < HOSTS; n++)
        cluster_add(&crowd->cluster, &(struct node){ .gpu_count = 8,
                                                     .cpu_milli = 32000,
                                                     .mem_mib = 262144,
                                                     .link_bps = 10000000000 });
    cluster_end(&crowd->cluster, &crowd->arena);
    throughput_init(&crowd->rates, &crowd->cluster);
    state_init(&crowd->state, &crowd->arena, &crowd->cluster, &crowd->rates, JOBS);
    const char *settings;
    int r = flow_parse(flow, &crowd->flow, &settings, err);
    if (r < 0)
        return r;
    crowd->self = arena_alloc(&crowd->arena, 1, crowd->flow->self_size, 16);
    param_defaults(crowd->flow->params, crowd->self);
    param_parse(crowd->flow->params, crowd->self, flow, settings, err);
    crowd->flow->init(crowd->self, &crowd->state.view, &crowd->arena, err);
    crowd->plan.changes = arena_array(&crowd->arena, struct flow_change, JOBS);
    for (uint32_t i = 0; i < JOBS; i++)
        seat_one(crowd, i);
    for (uint32_t round = 0; round < REPORTS; round++)
        report_all(crowd, round);
    return 0;
}

static void crowd_release(struct crowd *crowd)
{
    if (crowd->flow && crowd->flow->fini)
        crowd->flow->fini(crowd->self);
    state_release(&crowd->state);
    arena_release(&crowd->arena);
}

/* One decision, a period later: milliseconds. */
static double decide_ms(struct crowd *crowd, struct error *err)
{
    crowd->now_ns += PERIOD_NS;
    crowd->state.view.now_ns = crowd->now_ns;
    crowd->plan.change_count = 0;
    crowd->plan.wake_ns = INT64_MAX;
    double begin_s = clock_cpu_s();
    crowd->flow->decide(crowd->self, &crowd->state.view, &crowd->plan, err);
    double ms = (clock_cpu_s() - begin_s) * 1e3;
    for (uint32_t i = 0; i < crowd->plan.change_count; i++) {
        struct event event = { .kind = EVENT_LEVELLED,
                               .job = crowd->plan.changes[i].job,
                               .level = crowd->plan.changes[i].level };
        tell(crowd, &event);
    }
    return ms;
}

static int bench_decisions(struct bench *bench, const char *flow, struct error *err)
{
    struct crowd crowd;
    char id[96];
    int r = crowd_make(&crowd, flow, err);
    if (r == 0) {
        const char *name = strchr(flow, ',') ? "jpas_berth" : crowd.flow->name;
        snprintf(id, sizeof id, "decide_first.%s", name);
        double first_ms = 0;
        for (uint32_t i = 0; i < FIRST; i++)
            first_ms = fmax(first_ms, decide_ms(&crowd, err));
        bench_row(bench, id, first_ms, "ms", JOBS, NULL, 0);
        double worst[2] = { 0, 0 };
        for (uint32_t i = 0; i < TIMES; i++) {
            worst[0] = fmax(worst[0], decide_ms(&crowd, err));
            report_all(&crowd, REPORTS + i);
            worst[1] = fmax(worst[1], decide_ms(&crowd, err));
        }
        snprintf(id, sizeof id, "decide.%s", name);
        bench_row(bench, id, worst[0], "ms", JOBS, NULL, 0);
        snprintf(id, sizeof id, "decide_with_fits.%s", name);
        bench_row(bench, id, worst[1], "ms", JOBS, NULL, 0);
    }
    crowd_release(&crowd);
    return r;
}

static int bench_network(struct bench *bench, const char *flow, const char *id,
                         struct error *err)
{
    struct sim_result result;
    double cpu_s;
    int r = bench_simulate(
        "jpas-13", false,
        (struct sim_setup){
            .workload = "jpas", .policy = "fifo", .flow = flow, .seed = 1 },
        &result, &cpu_s, err);
    if (r < 0)
        return r;
    bench_row(bench, id, (double)result.network.changes / cpu_s, "changes/s",
              result.network.changes, NULL, 0);
    sim_result_release(&result);
    return 0;
}

static int bench_flow_run(struct bench *bench, struct error *err)
{
    static const char *const flows[] = { "jpas", "jpas,early=nearest,late=shortest",
                                         "crux", "smallest-first", "las-flow" };
    int r = 0;
    for (uint32_t i = 0; i < sizeof flows / sizeof *flows && r == 0; i++)
        r = bench_decisions(bench, flows[i], err);
    if (r == 0)
        r = bench_network(bench, "fair", "network.fair", err);
    if (r == 0)
        r = bench_network(bench, "jpas", "network.jpas", err);
    return r;
}

const struct bench_suite bench_flow = {
    .name = "flow",
    .brief = "order and levels of 1,000 jobs on 1,000 hosts, the simulated network",
    .run = bench_flow_run,
};
