/*
 * slaq.c - SLAQ's question: how much better are models if GPUs go to those that learn?
 *
 * 160 jobs that learn share 640 units, equally or by what they gain.  The paper shows the
 * mean loss of the jobs that run and the time to 90 and 95 % of a model.  Jobs that are
 * nearly done and hardly get anything stay long, and their low losses make that mean
 * better, so the loss over time per job and the time to the end are measured as well;
 * and how these go with the floor, below which no job's share falls.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "study/reproduce.h"

/* What is compared; equal shares first, then the paper, then ours. */
struct contender {
    const char *id, *policy;
    double floor;
};

static const struct contender contenders[] = {
    { "", "fair", 1 },
    { "", "slaq,floor=0", 0 },
    { "_berth", "slaq", 0.7 },
    { "_floor_20", "slaq,floor=0.2", 0.2 },
    { "_floor_50", "slaq,floor=0.5", 0.5 },
    { "_floor_80", "slaq,floor=0.8", 0.8 },
};
enum { FAIR, PAPER, BERTH, FULL = 6, QUICK = 3 };

/* Time to start and to go on with another size; the paper has none. */
static const char *const full_workloads[] = { "slaq", "slaq:load_cost=1s",
                                              "slaq:load_cost=5s" };
static const char *const workload_ids[] = { "", "_load_1s", "_load_5s" };
static const char *const workload_names[] = { "", ", a resize takes 1 s",
                                              ", a resize takes 5 s" };

enum { LOSS, T90, T95, LOSS_S, END, FIGURES };
static const struct {
    const char *figure, *id, *name;
    double published, tolerance;
} figures[FIGURES] = {
    [LOSS] = { "quality.mean_running_loss", "mean_loss_change",
               "mean loss of jobs that run", -0.73, 0.05 },
    [T90] = { "quality.time_to.90", "t90_change", "time to 90 % of a model", -0.44,
              0.05 },
    [T95] = { "quality.time_to.95", "t95_change", "time to 95 % of a model",
              68.0 / 98 - 1, 0.05 },
    [LOSS_S] = { "quality.loss_seconds_per_job", "loss_seconds_change",
                 "loss over time, per job", NAN, 0 },
    [END] = { "jct_s.mean", "converged_change", "time to the end", NAN, 0 },
};

struct experiment {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    uint32_t contender_count, workload_count, seeds;
    struct sweep_run *runs; /* [workload][contender][seed] */
};

static const struct sweep_run *run_of(const struct experiment *e, uint32_t workload,
                                      uint32_t contender, uint32_t seed)
{
    return &e->runs[(workload * e->contender_count + contender) * e->seeds + seed];
}

/* Against equal shares for the same jobs. */
static double change(const struct experiment *e, uint32_t figure, uint32_t workload,
                     uint32_t contender, uint32_t seed)
{
    const char *id = figures[figure].figure;
    return reproduction_figure(run_of(e, workload, contender, seed), id) /
               reproduction_figure(run_of(e, workload, FAIR, seed), id) -
           1;
}

static int run_all(struct experiment *e, const struct reproduction *r,
                   struct error *err)
{
    uint32_t count = e->workload_count * e->contender_count * e->seeds;
    e->runs = calloc(count, sizeof *e->runs);
    if (!e->runs)
        return error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++)
        e->runs[i].setup = (struct sim_setup){
            .cluster = &e->cluster,
            .rates = &e->rates,
            .workload = full_workloads[i / e->seeds / e->contender_count],
            .policy = contenders[i / e->seeds % e->contender_count].policy,
            .seed = 1 + i % e->seeds,
        };
    return sweep(e->runs, count, sweep_threads(), r->progress, r->context, err);
}

/* --- findings ------------------------------------------------------------------------- */

static void add_change(struct reproduction *r, const struct experiment *e,
                       uint32_t workload, uint32_t contender, uint32_t figure)
{
    bool paper = workload == 0 && contender == PAPER;
    double values[SEEDS_MAX];
    for (uint32_t s = 0; s < e->seeds; s++)
        values[s] = change(e, figure, workload, contender, s);
    char id[64];
    char what[160];
    snprintf(id, sizeof id, "%s%s%s", figures[figure].id, contenders[contender].id,
             workload_ids[workload]);
    snprintf(what, sizeof what, "%s: %s against fair%s", figures[figure].name,
             contenders[contender].policy, workload_names[workload]);
    reproduction_row(r, id, what, "change", paper ? figures[figure].published : NAN,
                     figures[figure].tolerance, values, e->seeds);
}

/* The times themselves, which the paper gives as well. */
static void add_time(struct reproduction *r, const struct experiment *e,
                     uint32_t contender, const char *id, double published)
{
    double values[SEEDS_MAX];
    for (uint32_t s = 0; s < e->seeds; s++)
        values[s] =
            reproduction_figure(run_of(e, 0, contender, s), figures[T90].figure);
    char what[160];
    snprintf(what, sizeof what, "%s: %s", figures[T90].name,
             contenders[contender].policy);
    reproduction_row(r, id, what, "s", published, 0.15 * published, values, e->seeds);
}

static void add_rows(struct reproduction *r, const struct experiment *e)
{
    for (uint32_t w = 0; w < e->workload_count; w++)
        for (uint32_t c = PAPER; c < e->contender_count; c++)
            for (uint32_t f = 0; f < FIGURES && (w == 0 || c <= BERTH); f++)
                add_change(r, e, w, c, f);
    add_time(r, e, FAIR, "t90_fair", 71);
    add_time(r, e, PAPER, "t90_slaq", 39);
}

/* What each floor does, from the paper's to equal shares. */
static void add_chart(struct reproduction *r, const struct experiment *e)
{
    static const uint32_t order[FULL] = { PAPER, 3, 4, BERTH, 5, FAIR };
    double floors[FULL];
    double values[FULL * SEEDS_MAX];
    struct json *chart =
        reproduction_chart(r, "lines", "what a floor does, against equal shares",
                           "floor, share of an equal share", "change");
    for (uint32_t f = 0; f < FIGURES; f++) {
        uint32_t points = 0;
        for (uint32_t i = 0; i < FULL; i++) {
            if (order[i] >= e->contender_count)
                continue;
            floors[points] = contenders[order[i]].floor;
            for (uint32_t s = 0; s < e->seeds; s++)
                values[points * e->seeds + s] = change(e, f, 0, order[i], s);
            points++;
        }
        chart_series(chart, figures[f].name, floors, values, points, e->seeds);
    }
}

static void describe(struct reproduction *r)
{
    reproduction_setup(r,
                       "20 machines of 32 cores; 160 jobs, one in 15 s; epochs of 3 s; "
                       "equal shares as the baseline",
                       "published");
    reproduction_setup(r,
                       "curves of the two families the paper fits, without noise; a "
                       "step takes w/a + 1 s on a cores, w from 18 to 102 core-s",
                       "reconstructed");
    reproduction_setup(r,
                       "what a job has reported is all that is known of its curve; "
                       "with fewer than four reports it is taken to learn quickly",
                       "ours");
    reproduction_setup(r, "variant: nobody falls below 0.7 of an equal share", "ours");
    reproduction_note(
        r,
        "The fixed second of a step was chosen so that gains are near the published "
        "ones: without it they are far larger. That the figures agree says that the "
        "mechanism can do what was published, not that these were the paper's jobs.");
    reproduction_note(
        r,
        "The mean loss of jobs that run flatters a policy that keeps nearly finished "
        "jobs waiting: they stay in the mean. Loss over time per job does not, and "
        "the time to the end shows what late jobs pay.");
}

static int slaq_run(struct reproduction *r, struct error *err)
{
    struct experiment e = {
        .contender_count = r->quick ? QUICK : FULL,
        .workload_count = r->quick ? 1 : sizeof full_workloads / sizeof *full_workloads,
        .seeds = r->seed_count,
    };
    arena_init(&e.arena, 0);
    int status = cluster_load(&e.cluster, &e.arena, "slaq-20", err);
    if (status == 0) {
        throughput_init(&e.rates, &e.cluster);
        status = run_all(&e, r, err);
    }
    if (status == 0) {
        describe(r);
        add_rows(r, &e);
        add_chart(r, &e);
    }
    free(e.runs);
    arena_release(&e.arena);
    return status;
}

const struct study study_slaq = {
    .name = "slaq",
    .title = "SLAQ: GPUs go where they improve a model most",
    .paper = "Zhang, Stafman, Or, Freedman: SLAQ: Quality-Driven Scheduling for "
             "Distributed Machine Learning, SoCC 2017",
    .seeds_full = 5,
    .seeds_quick = 2,
    .run = slaq_run,
};
