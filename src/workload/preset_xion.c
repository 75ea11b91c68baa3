/*
 * preset_xion.c - the jobs on which preemption with a price is measured.
 *
 * The paper (Xion, Go et al., IEEE CLOUD 2023) does not publish its workload; this
 * one is ours, made so that what a swap costs is a setting:
 *
 *     GPUs 1, 2, 4, 8 with 70, 10, 15, 5 %; run time log-normal, mean 1800 s, sigma 1.2
 *     pause = cost x U[5, 60] s, load = cost x U[20, 120] s
 *
 * A job's grace is its pause, so nothing is ever lost but time.  Arrivals are Poisson.
 * As in synthetic.c all jobs are drawn once beforehand, so that the load is that of the
 * jobs that really come.  The same seed gives the same jobs at every cost and load.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/param.h"
#include "base/rng.h"
#include "base/units.h"
#include "model/job.h"
#include "workload/csv.h"
#include "workload/preset.h"
#include "workload/workload.h"

#define NODE_GPUS 8
#define RUN_MEAN_S 1800.0
#define RUN_SIGMA 1.2
#define PAUSE_MIN_S 5.0
#define PAUSE_MAX_S 60.0
#define LOAD_MIN_S 20.0
#define LOAD_MAX_S 120.0

static const uint32_t size_gpus[] = { 1, 2, 4, 8 };
static const double size_share[] = { 0.70, 0.10, 0.15, 0.05 };
#define SIZES 4

struct preset_xion {
    /* settings */
    uint32_t jobs, gpus;
    double load, cost;

    struct rng size_rng, run_rng, arrival_rng, cost_rng;
    double gap_s; /* mean time between arrivals */
    double at_s;
    uint32_t yielded;
    char cluster[32];
};

static uint32_t draw_gpus(struct rng *rng, uint32_t gpus_max)
{
    double at = rng_unit(rng);
    uint32_t size = 0;
    while (size < SIZES - 1 && at >= size_share[size])
        at -= size_share[size++];
    while (size > 0 && size_gpus[size] > gpus_max)
        size--;
    return size_gpus[size];
}

static double draw_run_s(struct rng *rng)
{
    double mu = log(RUN_MEAN_S) - RUN_SIGMA * RUN_SIGMA / 2;
    return fmax(preset_rounded(exp(mu + RUN_SIGMA * rng_normal(rng)), 1000), 0.001);
}

static double total_gpu_s(const struct preset_xion *x)
{
    struct rng size_rng = x->size_rng;
    struct rng run_rng = x->run_rng;
    double gpu_s = 0;
    for (uint32_t i = 0; i < x->jobs; i++) {
        uint32_t gpus = draw_gpus(&size_rng, x->gpus);
        gpu_s += gpus * draw_run_s(&run_rng);
    }
    return gpu_s;
}

/* Nodes of eight, or the largest power of two below that divides the cluster. */
static void name_cluster(struct preset_xion *x)
{
    uint32_t per_node = NODE_GPUS;
    while (x->gpus % per_node != 0)
        per_node /= 2;
    snprintf(x->cluster, sizeof x->cluster, "%uxv100:%u", x->gpus / per_node, per_node);
}

static int xion_open(void *self, uint64_t seed, uint32_t gpus,
                     struct workload_facts *facts, struct error *err)
{
    struct preset_xion *x = self;
    rng_init(&x->size_rng, seed, "sizes");
    rng_init(&x->run_rng, seed, "runs");
    rng_init(&x->arrival_rng, seed, "arrivals");
    rng_init(&x->cost_rng, seed, "costs");
    x->gap_s = total_gpu_s(x) / x->jobs / (x->load * x->gpus);
    name_cluster(x);
    facts->expected = x->jobs;
    facts->cluster = x->cluster;
    return 0;
}

static int xion_next(void *self, struct job_spec *spec, struct error *err)
{
    struct preset_xion *x = self;
    if (x->yielded == x->jobs)
        return 0;
    x->at_s += rng_exponential(&x->arrival_rng, x->gap_s);
    if (x->at_s * 1e9 > (double)TIME_MAX_NS)
        return error_set(err, -ERANGE,
                         "xion: the jobs would come over more than 100 years");
    spec->id = ++x->yielded;
    spec->submit_ns = units_ns(preset_rounded(x->at_s, 1000));
    spec->gpus = draw_gpus(&x->size_rng, x->gpus);
    spec->steps = draw_run_s(&x->run_rng);
    double pause_s = x->cost * rng_between(&x->cost_rng, PAUSE_MIN_S, PAUSE_MAX_S);
    double load_s = x->cost * rng_between(&x->cost_rng, LOAD_MIN_S, LOAD_MAX_S);
    spec->pause_ns = units_ns(preset_rounded(pause_s, 1000));
    spec->load_ns = units_ns(preset_rounded(load_s, 1000));
    spec->grace_ns = spec->pause_ns;
    return 1;
}

#define AT(field) .offset = offsetof(struct preset_xion, field)

static const struct field xion_params[] = {
    { "gpus", FIELD_COUNT, AT(gpus), "16", NULL, "GPUs the load is meant for", 1, 1e6 },
    { "load", FIELD_NUMBER, AT(load), "0.8", NULL,
      "GPU time asked for per GPU time there is, pauses and loads not counted", 0.01,
      100 },
    { "cost", FIELD_NUMBER, AT(cost), "1", NULL,
      "factor on what it costs to pause and load a job", 0, 1000 },
    { "jobs", FIELD_COUNT, AT(jobs), "4000", NULL, "how many jobs", 1, 1e8 },
    { 0 },
};

const struct preset preset_xion = {
    .name = "xion",
    .brief = "log-normal run times, and a price on every swap",
    .params = xion_params,
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_ID) | COLUMN_BIT(COLUMN_GRACE) |
               COLUMN_BIT(COLUMN_PAUSE) | COLUMN_BIT(COLUMN_LOAD),
    .self_size = sizeof(struct preset_xion),
    .open = xion_open,
    .next = xion_next,
};
