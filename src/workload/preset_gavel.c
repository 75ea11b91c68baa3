/*
 * preset_gavel.c - the jobs on which Gavel (Narayanan et al., OSDI '20) is measured.
 *
 * Number for number those of the published generator, from the same seeds:
 *
 *     GPUs      1, 2, 4, 8 with 70, 10, 15, 5 % (multi=true; otherwise 1)
 *     run time  60 s x 10^U, on V100s; U in [3, 4] for one in five, else in [1.5, 3]
 *     kind      one of 26, all alike; of those that distribute where there are more GPUs
 *     weight    5 for one in five, else 1 (priorities=true)
 *     deadline  1.2, 2 or 10 times the run time (slos=true), a third each
 *
 * Work is run time times the published rate on V100s, so jobs have fractions of steps.
 * The first job comes at 0, the others as a Poisson process with a mean gap of 'lam'; or
 * all at once (static=N), or the first N of them (steady=N), so that the cluster need not
 * fill up first.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "base/error.h"
#include "base/mt19937.h"
#include "base/param.h"
#include "base/units.h"
#include "model/job.h"
#include "model/published.h"
#include "workload/csv.h"
#include "workload/preset.h"
#include "workload/workload.h"

#define JOBS_ENOUGH 1000

/* The streams are the run's seed and so much. */
enum { SEED_JOBS = 2, SEED_ARRIVALS = 3, SEED_SLOS = 6 };

struct preset_gavel {
    /* settings */
    double lam_s;
    uint32_t steady;
    bool multi, priorities, slos;
    uint32_t at_once, jobs;

    struct mt19937 job_rng, arrival_rng, slo_rng;
    double at_s;
    uint64_t yielded;
};

static int gavel_open(void *self, uint64_t seed, uint32_t gpus,
                      struct workload_facts *facts, struct error *err)
{
    struct preset_gavel *g = self;
    if (g->at_once > 0 && g->jobs > 0)
        return error_set(err, -EINVAL,
                         "gavel: both static and jobs say how many jobs there are");
    mt_init(&g->job_rng, seed + SEED_JOBS);
    mt_init(&g->arrival_rng, seed + SEED_ARRIVALS);
    mt_init(&g->slo_rng, seed + SEED_SLOS);
    facts->expected = g->at_once > 0 ? g->at_once : g->jobs;
    facts->enough = facts->expected > 0 ? 0 : JOBS_ENOUGH;
    facts->cluster = "gavel-36";
    return 0;
}

/* The number is drawn whether it is used or not. */
static uint32_t draw_gpus(struct preset_gavel *g)
{
    double at = mt_random(&g->job_rng);
    if (!g->multi || at < 0.7)
        return 1;
    if (at <= 0.8)
        return 2;
    return at <= 0.95 ? 4 : 8;
}

static double draw_run_s(struct preset_gavel *g)
{
    bool is_long = mt_random(&g->job_rng) >= 0.8;
    double power =
        is_long ? mt_uniform(&g->job_rng, 3, 4) : mt_uniform(&g->job_rng, 1.5, 3);
    return 60 * pow(10, power);
}

static const struct published_kind *draw_kind(struct preset_gavel *g, uint32_t gpus)
{
    const struct published_kind *kind;
    do
        kind = &published_kinds[mt_below(&g->job_rng, PUBLISHED_KINDS)];
    while (gpus > 1 && !kind->distributes);
    return kind;
}

static double draw_slo(struct preset_gavel *g)
{
    double at = mt_random(&g->slo_rng);
    if (at < 0.33)
        return 1.2;
    return at < 0.67 ? 2 : 10;
}

static int gavel_next(void *self, struct job_spec *spec, struct error *err)
{
    struct preset_gavel *g = self;
    uint64_t jobs = g->at_once > 0 ? g->at_once : g->jobs;
    if (jobs > 0 && g->yielded == jobs)
        return 0;
    bool present = g->yielded < (g->steady > 1 ? g->steady : 1);
    if (!present && g->at_once == 0)
        g->at_s += -log(1.0 - mt_random(&g->arrival_rng)) / (1.0 / g->lam_s);
    if (g->at_s * 1e9 > (double)TIME_MAX_NS)
        return error_set(err, -ERANGE,
                         "gavel: the jobs would come over more than 100 years");
    spec->id = ++g->yielded;
    spec->submit_ns = units_ns(g->at_s);
    spec->gpus = draw_gpus(g);
    double run_s = draw_run_s(g);
    const struct published_kind *kind = draw_kind(g, spec->gpus);
    uint32_t size = 31 - (uint32_t)__builtin_clz(spec->gpus);
    spec->kind = kind->name;
    spec->steps = run_s * kind->rate[PUBLISHED_V100][size][0];
    spec->weight = g->priorities && mt_random(&g->job_rng) <= 0.2 ? 5 : 1;
    if (g->slos)
        spec->deadline_ns = spec->submit_ns + units_ns(run_s * draw_slo(g));
    return 1;
}

#define AT(field) .offset = offsetof(struct preset_gavel, field)

static const struct field gavel_params[] = {
    { "lam", FIELD_NUMBER, AT(lam_s), "900", "s", "mean time between arrivals", 0.001,
      1e9 },
    { "multi", FIELD_FLAG, AT(multi), "false", NULL,
      "some jobs ask for 2, 4 or 8 GPUs" },
    { "priorities", FIELD_FLAG, AT(priorities), "false", NULL,
      "one job in five has weight 5" },
    { "slos", FIELD_FLAG, AT(slos), "false", NULL, "jobs have deadlines" },
    { "steady", FIELD_COUNT, AT(steady), "0", NULL, "jobs that are there at the start",
      0, 1e9 },
    { "static", FIELD_COUNT, AT(at_once), "0", NULL,
      "so many jobs, all at the start; 0: they come one by one", 0, 1e8 },
    { "jobs", FIELD_COUNT, AT(jobs), "0", NULL,
      "how many jobs; 0: 1000, or as many as the window needs", 0, 1e8 },
    { 0 },
};

const struct preset preset_gavel = {
    .name = "gavel",
    .brief = "the jobs Gavel is measured on, number for number",
    .params = gavel_params,
    .columns = COLUMN_BIT(COLUMN_ID) | COLUMN_BIT(COLUMN_SUBMIT) |
               COLUMN_BIT(COLUMN_GPUS) | COLUMN_BIT(COLUMN_KIND) |
               COLUMN_BIT(COLUMN_STEPS) | COLUMN_BIT(COLUMN_WEIGHT) |
               COLUMN_BIT(COLUMN_DEADLINE),
    .self_size = sizeof(struct preset_gavel),
    .open = gavel_open,
    .next = gavel_next,
};
