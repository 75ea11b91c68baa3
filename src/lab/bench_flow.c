/*
 * bench_flow.c - berth bench flow: a decision about 1,000 jobs on 1,000 hosts, and how
 * fast the network is simulated.
 *
 * Each job runs on four of the hosts and has reported a decreasing loss 40 times.  A decision
 * is the order and the levels; with new reports of every job it is also a fit of every
 * curve.  Rows are the longest of several decisions.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "flow/flow.h"
#include "lab/bench.h"
#include "model/cluster.h"
#include "model/event.h"
#include "model/state.h"
#include "model/throughput.h"

#define HOSTS 1000
#define JOBS 1000
#define GANG 4
#define REPORTS 40
#define FIRST 4 /* decisions over which the first fits of all curves may spread */
#define DECISIONS 20
#define PERIOD_NS INT64_C(10000000000)

struct flow_world {
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

static void apply_event(struct flow_world *world, struct event *event)
{
    event->at_ns = world->now_ns;
    state_apply(&world->state, event);
    world->flow->observe(world->self, &world->state.view, event);
}

static void start_job(struct flow_world *world, uint32_t number)
{
    struct job job = { .id = number + 1,
                       .gpus = GANG,
                       .gpus_min = GANG,
                       .gpus_max = GANG,
                       .types = 1,
                       .kind = KIND_NONE,
                       .rate_best_per_s = 1,
                       .steps_total = 1e6,
                       .step_s = 0.2 + 0.6 * rng_unit(&world->rng),
                       .bytes_per_step = 10000000 + rng_below(&world->rng, 100000000) };
    struct seat seats[GANG] = { { 0 } };
    for (uint32_t i = 0; i < GANG; i++)
        seats[i] = (struct seat){ .node = (number + i * 251) % HOSTS,
                                  .gpus = (uint64_t)1 << i };
    struct event submitted = { .kind = EVENT_SUBMITTED, .spec = &job };
    apply_event(world, &submitted);
    struct event placed = { .kind = EVENT_PLACED,
                            .job = submitted.job,
                            .seats = seats,
                            .seat_count = GANG,
                            .beside = JOB_NONE };
    apply_event(world, &placed);
    struct event started = { .kind = EVENT_STARTED,
                             .job = submitted.job,
                             .generation = submitted.generation,
                             .loaded = true };
    apply_event(world, &started);
    world->taus[number] = 60 + 1000 * rng_unit(&world->rng);
}

/* Every job reports progress, some steps further on. */
static void report_progress(struct flow_world *world, uint32_t round)
{
    for (job_id job = 0; job < JOBS; job++) {
        double steps = 8.0 * round;
        struct event event = { .kind = EVENT_PROGRESS,
                               .job = job,
                               .steps = steps,
                               .rate_per_s = 1,
                               .loss = 0.2 + exp(-steps / world->taus[job]) };
        apply_event(world, &event);
    }
}

static int flow_world_make(struct flow_world *world, const char *flow,
                           struct error *err)
{
    memset(world, 0, sizeof *world);
    arena_init(&world->arena, 0);
    rng_init(&world->rng, 1, "crowd");
    cluster_begin(&world->cluster, &world->arena, "crowd", HOSTS);
    cluster_type(&world->cluster, &world->arena, "v100");
    for (node_id n = 0; n < HOSTS; n++)
        cluster_add(&world->cluster, &(struct node){ .gpu_count = 8,
                                                     .cpu_milli = 32000,
                                                     .mem_mib = 262144,
                                                     .link_bps = 10000000000 });
    cluster_end(&world->cluster, &world->arena);
    throughput_init(&world->rates, &world->cluster);
    state_init(&world->state, &world->arena, &world->cluster, &world->rates, JOBS);
    const char *settings;
    int r = flow_parse(flow, &world->flow, &settings, err);
    if (r < 0)
        return r;
    world->self = arena_alloc(&world->arena, 1, world->flow->self_size, 16);
    param_defaults(world->flow->params, world->self);
    param_parse(world->flow->params, world->self, flow, settings, err);
    world->flow->init(world->self, &world->state.view, &world->arena, err);
    world->plan.changes = arena_array(&world->arena, struct flow_change, JOBS);
    for (uint32_t i = 0; i < JOBS; i++)
        start_job(world, i);
    for (uint32_t round = 0; round < REPORTS; round++)
        report_progress(world, round);
    return 0;
}

static void flow_world_release(struct flow_world *world)
{
    if (world->flow && world->flow->fini)
        world->flow->fini(world->self);
    state_release(&world->state);
    arena_release(&world->arena);
}

/* Make one decision, a period later, and return its milliseconds. */
static double time_decision_ms(struct flow_world *world, struct error *err)
{
    world->now_ns += PERIOD_NS;
    world->state.view.now_ns = world->now_ns;
    world->plan.change_count = 0;
    world->plan.wake_ns = INT64_MAX;
    double begin_s = clock_cpu_s();
    world->flow->decide(world->self, &world->state.view, &world->plan, err);
    double ms = (clock_cpu_s() - begin_s) * 1e3;
    for (uint32_t i = 0; i < world->plan.change_count; i++) {
        struct event event = { .kind = EVENT_LEVELLED,
                               .job = world->plan.changes[i].job,
                               .level = world->plan.changes[i].level };
        apply_event(world, &event);
    }
    return ms;
}

static int measure_decisions(struct bench *bench, const char *flow, struct error *err)
{
    struct flow_world world;
    int r = flow_world_make(&world, flow, err);
    if (r == 0) {
        const char *name = strchr(flow, ',') ? "jpas_berth" : world.flow->name;
        double first_ms = 0;
        for (uint32_t i = 0; i < FIRST; i++)
            first_ms = fmax(first_ms, time_decision_ms(&world, err));
        bench_row(bench, first_ms, "ms", JOBS, "decide_first.%s", name);
        double worst[2] = { 0, 0 };
        for (uint32_t i = 0; i < DECISIONS; i++) {
            worst[0] = fmax(worst[0], time_decision_ms(&world, err));
            report_progress(&world, REPORTS + i);
            worst[1] = fmax(worst[1], time_decision_ms(&world, err));
        }
        bench_row(bench, worst[0], "ms", JOBS, "decide.%s", name);
        bench_row(bench, worst[1], "ms", JOBS, "decide_with_fits.%s", name);
    }
    flow_world_release(&world);
    return r;
}

static int measure_network(struct bench *bench, const char *flow, const char *id,
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
    bench_row(bench, (double)result.network.changes / cpu_s, "changes/s",
              result.network.changes, "%s", id);
    sim_result_release(&result);
    return 0;
}

static int bench_flow_run(struct bench *bench, struct error *err)
{
    static const char *const flows[] = { "jpas", "jpas,early=nearest,late=shortest",
                                         "crux", "smallest-first", "las-flow" };
    int r = 0;
    for (uint32_t i = 0; i < sizeof flows / sizeof *flows && r == 0; i++)
        r = measure_decisions(bench, flows[i], err);
    if (r == 0)
        r = measure_network(bench, "fair", "network.fair", err);
    if (r == 0)
        r = measure_network(bench, "jpas", "network.jpas", err);
    return r;
}

const struct bench_suite bench_flow = {
    .name = "flow",
    .brief = "order and levels of 1,000 jobs on 1,000 hosts, the simulated network",
    .run = bench_flow_run,
};
