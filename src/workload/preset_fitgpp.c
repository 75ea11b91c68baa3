/*
 * preset_fitgpp.c - the workload of FitGpp's simulation: trial and best-effort jobs on 84 nodes.
 *
 * Run times, demands and grace periods are normal variates, drawn again until they lie
 * within bounds; demands are whole numbers.  Jobs come when they would if a first come,
 * first served scheduler were kept busy: the next one is submitted as soon as what is in
 * the system, waiting or running, asks for less than 'load' times the cluster in its
 * scarcest resource.  That needs a small simulation in here: one queue whose head holds
 * up the rest, and the first node that fits, as policy 'fifo' does on
 * cluster 'fitgpp-84'.
 *
 *     demand in the system  = max over resources r of  sum of D_r / (84 x C_r)
 *
 * After Yabuuchi, Taniwaki, Omura, OpML 2019, as remembered, not checked against the text:
 * the cluster, the number of jobs, the share of trial jobs, the way jobs arrive, mean and
 * longest run times and grace periods.  Ours: deviations, means and deviations of the
 * demands, and first fit.  How nodes are filled matters: jobs come as fast as the FIFO run
 * could take them, so a policy that gets one percent less out of the cluster falls behind
 * by hours in the six days this takes.  With the tightest fit the best-effort jobs' figures
 * change sign (docs/policies/fitgpp.md).
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/param.h"
#include "base/rng.h"
#include "base/units.h"
#include "model/job.h"
#include "workload/csv.h"
#include "workload/preset.h"
#include "workload/workload.h"

#define NODES 84

enum { CPU, MEM, GPU, RESOURCES };

static const int32_t node_has[RESOURCES] = { [CPU] = 32, [MEM] = 256, [GPU] = 8 };

/* A normal variate within bounds. */
struct truncated_normal {
    double mean, deviation, low, high;
};

static const struct mix {
    struct truncated_normal run_min, grace_min, demand[RESOURCES];
} mixes[] = {
    [CLASS_TE] = { .run_min = { 5, 5, 0.5, 30 },
                   .demand = { [CPU] = { 4, 4, 1, 32 },
                               [MEM] = { 16, 16, 1, 256 },
                               [GPU] = { 1.5, 1.5, 0, 8 } } },
    [CLASS_BE] = { .run_min = { 30, 15, 1, 1440 },
                   .grace_min = { 3, 3, 0, 20 },
                   .demand = { [CPU] = { 8, 8, 1, 32 },
                               [MEM] = { 48, 48, 1, 256 },
                               [GPU] = { 3, 3, 0, 8 } } },
};

/* A job in the system. */
struct fitgpp_job {
    int32_t demand[RESOURCES];
    int64_t run_ns;
    uint32_t node;
    uint32_t next; /* in the queue, or free */
};

struct preset_fitgpp {
    /* settings */
    uint32_t jobs;
    double load, trial_share;

    struct rng class_rng, run_rng, demand_rng, grace_rng;
    uint32_t yielded;

    struct arena arena;
    struct fitgpp_job *members;
    uint32_t member_used, job_free;
    uint32_t head, tail; /* of the queue */
    struct heap_pool pool;
    struct heap running; /* by end */
    int32_t free[NODES][RESOURCES];
    int64_t in_system[RESOURCES];
    int64_t now_ns;
};

static double draw_normal(struct rng *rng, const struct truncated_normal *normal)
{
    double x;
    do
        x = normal->mean + normal->deviation * rng_normal(rng);
    while (x < normal->low || x > normal->high);
    return x;
}

/* To the millisecond, so that it is short to write and the same when read again. */
static int64_t draw_time(struct rng *rng, const struct truncated_normal *minutes)
{
    if (minutes->high <= 0)
        return 0;
    return (int64_t)round(draw_normal(rng, minutes) * 60e3) * (NS_PER_S / 1000);
}

/* --- first come, first served ------------------------------------------------------------- */

static bool is_below_load(const struct preset_fitgpp *f)
{
    for (uint32_t r = 0; r < RESOURCES; r++)
        if ((double)f->in_system[r] >= f->load * NODES * node_has[r])
            return false;
    return true;
}

/* NODES: none. */
static uint32_t first_node(const struct preset_fitgpp *f,
                           const int32_t demand[RESOURCES])
{
    for (uint32_t n = 0; n < NODES; n++)
        if (f->free[n][CPU] >= demand[CPU] && f->free[n][MEM] >= demand[MEM] &&
            f->free[n][GPU] >= demand[GPU])
            return n;
    return NODES;
}

static void start_heads(struct preset_fitgpp *f)
{
    while (f->head != HEAP_NONE) {
        uint32_t id = f->head;
        struct fitgpp_job *member = &f->members[id];
        member->node = first_node(f, member->demand);
        if (member->node == NODES)
            return;
        for (uint32_t r = 0; r < RESOURCES; r++)
            f->free[member->node][r] -= member->demand[r];
        heap_push(&f->pool, &f->running, id, f->now_ns + member->run_ns, id);
        f->head = member->next;
    }
}

static void finish_one(struct preset_fitgpp *f)
{
    uint32_t id = heap_pop(&f->pool, &f->running);
    struct fitgpp_job *member = &f->members[id];
    for (uint32_t r = 0; r < RESOURCES; r++) {
        f->free[member->node][r] += member->demand[r];
        f->in_system[r] -= member->demand[r];
    }
    member->next = f->job_free;
    f->job_free = id;
}

/* Advance to the next end of a job; all jobs that end in that instant end. */
static void advance_to_end(struct preset_fitgpp *f)
{
    f->now_ns = f->pool.nodes[f->running.top].key;
    while (f->running.top != HEAP_NONE &&
           f->pool.nodes[f->running.top].key == f->now_ns)
        finish_one(f);
    start_heads(f);
}

static void submit_job(struct preset_fitgpp *f, const struct fitgpp_job *job)
{
    uint32_t id = f->job_free;
    if (id != HEAP_NONE)
        f->job_free = f->members[id].next;
    else
        id = f->member_used++;
    f->members[id] = *job;
    f->members[id].next = HEAP_NONE;
    if (f->head == HEAP_NONE)
        f->head = id;
    else
        f->members[f->tail].next = id;
    f->tail = id;
    for (uint32_t r = 0; r < RESOURCES; r++)
        f->in_system[r] += job->demand[r];
    start_heads(f);
}

/* --- the preset --------------------------------------------------------------------------------- */

static int fitgpp_open(void *self, uint64_t seed, uint32_t gpus,
                       struct workload_facts *facts, struct error *err)
{
    struct preset_fitgpp *f = self;
    rng_init(&f->class_rng, seed, "classes");
    rng_init(&f->run_rng, seed, "runs");
    rng_init(&f->demand_rng, seed, "demands");
    rng_init(&f->grace_rng, seed, "graces");

    /* Every job asks for a CPU at least: so many are in the system at most. */
    uint32_t members_max = (uint32_t)ceil(f->load * NODES * node_has[CPU]) + 2;
    arena_init(&f->arena, 0);
    f->members = arena_array(&f->arena, struct fitgpp_job, members_max);
    f->job_free = f->head = f->tail = HEAP_NONE;
    heap_pool_init(&f->pool, &f->arena, members_max);
    heap_init(&f->running);
    for (uint32_t n = 0; n < NODES; n++)
        for (uint32_t r = 0; r < RESOURCES; r++)
            f->free[n][r] = node_has[r];
    facts->expected = f->jobs;
    facts->cluster = "fitgpp-84";
    return 0;
}

static int fitgpp_next(void *self, struct job_spec *spec, struct error *err)
{
    struct preset_fitgpp *f = self;
    if (f->yielded == f->jobs)
        return 0;
    spec->class = rng_unit(&f->class_rng) < f->trial_share ? CLASS_TE : CLASS_BE;
    const struct mix *mix = &mixes[spec->class];
    struct fitgpp_job job = { .run_ns = draw_time(&f->run_rng, &mix->run_min) };
    for (uint32_t r = 0; r < RESOURCES; r++)
        job.demand[r] = (int32_t)lround(draw_normal(&f->demand_rng, &mix->demand[r]));

    while (!is_below_load(f))
        advance_to_end(f);
    submit_job(f, &job);
    if (f->now_ns > TIME_MAX_NS)
        return error_set(err, -ERANGE,
                         "fitgpp: the jobs would come over more than 100 years");
    spec->id = ++f->yielded;
    spec->submit_ns = f->now_ns;
    spec->steps = (double)job.run_ns / NS_PER_S;
    spec->cpu_milli = (uint32_t)job.demand[CPU] * 1000;
    spec->mem_mib = (uint32_t)job.demand[MEM] * 1024;
    spec->gpus = (uint32_t)job.demand[GPU];
    spec->grace_ns = spec->pause_ns = draw_time(&f->grace_rng, &mix->grace_min);
    return 1;
}

static void fitgpp_close(void *self)
{
    struct preset_fitgpp *f = self;
    arena_release(&f->arena);
}

#define AT(field) .offset = offsetof(struct preset_fitgpp, field)

static const struct field fitgpp_params[] = {
    { "jobs", FIELD_COUNT, AT(jobs), "65536", NULL, "how many jobs", 1, 1e8 },
    { "load", FIELD_NUMBER, AT(load), "2.0", NULL,
      "demand in the system that arrivals keep up, in clusters", 0.01, 100 },
    { "trial_share", FIELD_NUMBER, AT(trial_share), "0.3", NULL,
      "share of trial jobs among all", 0, 1 },
    { 0 },
};

const struct preset preset_fitgpp = {
    .name = "fitgpp",
    .brief = "trial and best-effort jobs that keep 84 nodes busy (FitGpp's simulation)",
    .params = fitgpp_params,
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_ID) | COLUMN_BIT(COLUMN_CLASS) |
               COLUMN_BIT(COLUMN_CPUS) | COLUMN_BIT(COLUMN_MEM) |
               COLUMN_BIT(COLUMN_GRACE) | COLUMN_BIT(COLUMN_PAUSE),
    .self_size = sizeof(struct preset_fitgpp),
    .open = fitgpp_open,
    .next = fitgpp_next,
    .close = fitgpp_close,
};
