/*
 * study_fitgpp.c - FitGpp's evaluation: slowdown by class under FIFO, FitGpp, LRTP and RAND.
 *
 * Every seed is another workload; the four policies replay the same arrival times.
 * Changes are against one-queue FIFO, per seed, then averaged.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "study/reproduction.h"

enum { FIFO, FITGPP, LRTP, RAND, POLICY_COUNT };

static const char *const policies[POLICY_COUNT] = { "fifo", "fitgpp", "lrtp", "rand" };
static const char *const suffixes[POLICY_COUNT] = { "", "", "_lrtp", "_rand" };

/*
 * What is compared, the figure it is read from, and the published value of FitGpp.  Trial jobs
 * start as soon whichever job is preempted; the choice saves best-effort jobs' time.  The
 * figures of 'rand', which makes no choice, therefore stand beside FitGpp's.
 */
static const struct {
    const char *id, *figure, *what;
    double published;
    double tolerance;
    const char *price, *beside;
} changes[] = {
    { "te_p95_change", "slowdown.te.p95", "trial jobs, 95 % slowdown, against FIFO",
      -0.966, 0.015, "be_p50_change", "te_p95_change_rand" },
    { "be_p50_change", "slowdown.be.p50",
      "best-effort jobs, median slowdown, against FIFO", 0.180, 0.10, NULL,
      "be_p50_change_rand" },
    { "be_p95_change", "slowdown.be.p95",
      "best-effort jobs, 95 % slowdown, against FIFO", 0.239, 0.15, NULL,
      "be_p95_change_rand" },
};

#define CHANGE_COUNT (sizeof changes / sizeof *changes)

struct fitgpp_experiment {
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    struct sweep_run *runs; /* [policy][seed] */
    uint32_t seeds;
};

static const struct sweep_run *run_of(const struct fitgpp_experiment *e,
                                      uint32_t policy, uint32_t seed)
{
    return &e->runs[policy * e->seeds + seed];
}

static int run_experiment(struct fitgpp_experiment *e, const struct reproduction *r,
                          struct error *err)
{
    const char *workload = r->quick ? "fitgpp:jobs=16384" : "fitgpp";
    int status = cluster_load(&e->cluster, &e->arena, "fitgpp-84", err);
    if (status < 0)
        return status;
    throughput_init(&e->rates, &e->cluster);
    for (uint32_t i = 0; i < POLICY_COUNT * e->seeds; i++)
        e->runs[i].setup = (struct sim_setup){ .cluster = &e->cluster,
                                               .rates = &e->rates,
                                               .workload = workload,
                                               .policy = policies[i / e->seeds],
                                               .seed = 1 + i % e->seeds };
    return sweep_run_all(e->runs, POLICY_COUNT * e->seeds, sweep_threads(), r->progress,
                         r->context, err);
}

static void add_changes(struct reproduction *r, const struct fitgpp_experiment *e,
                        uint32_t policy)
{
    double values[SEEDS_MAX];
    for (uint32_t c = 0; c < CHANGE_COUNT; c++) {
        for (uint32_t s = 0; s < e->seeds; s++)
            values[s] = reproduction_figure(run_of(e, policy, s), changes[c].figure) /
                            reproduction_figure(run_of(e, FIFO, s), changes[c].figure) -
                        1;
        char id[64];
        char what[128];
        snprintf(id, sizeof id, "%s%s", changes[c].id, suffixes[policy]);
        snprintf(what, sizeof what, "%s: %s", policies[policy], changes[c].what);
        struct finding *row = reproduction_row(
            r, id, what, "change", policy == FITGPP ? changes[c].published : NAN,
            changes[c].tolerance, values, e->seeds);
        row->direction = DIRECTION_LOWER;
        row->setting = policies[policy];
        if (policy != FITGPP)
            continue;
        row->price = changes[c].price;
        row->beside = changes[c].beside;
    }
}

static void add_preempted(struct reproduction *r, const struct fitgpp_experiment *e,
                          uint32_t policy)
{
    double values[SEEDS_MAX];
    for (uint32_t s = 0; s < e->seeds; s++) {
        const struct sweep_run *run = run_of(e, policy, s);
        values[s] = (double)run->result.summary.preempted_jobs /
                    reproduction_figure(run, "jobs.total");
    }
    char id[64];
    char what[128];
    snprintf(id, sizeof id, "preempted_share%s", suffixes[policy]);
    snprintf(what, sizeof what, "%s: share of jobs that were preempted",
             policies[policy]);
    reproduction_row(r, id, what, "share", NAN, 0, values, e->seeds);
}

/* Slowdown percentiles by policy, as the paper's figures show them. */
static void add_chart(struct reproduction *r, const struct fitgpp_experiment *e,
                      const char *class, const char *title)
{
    static const char *const points[] = { "p50", "p95", "p99" };
    static const char *const names[] = { "median", "95 %", "99 %" };
    struct json *chart = reproduction_chart(r, "bars", title, NULL, "slowdown");
    for (uint32_t p = 0; p < 3; p++)
        reproduction_chart_group(chart, names[p]);
    for (uint32_t policy = 0; policy < POLICY_COUNT; policy++) {
        double values[3 * SEEDS_MAX];
        for (uint32_t p = 0; p < 3; p++) {
            char id[64];
            snprintf(id, sizeof id, "slowdown.%s.%s", class, points[p]);
            for (uint32_t s = 0; s < e->seeds; s++)
                values[p * e->seeds + s] =
                    reproduction_figure(run_of(e, policy, s), id);
        }
        reproduction_chart_series(chart, policies[policy], NULL, values, 3, e->seeds);
    }
}

static void describe_setup(struct reproduction *r)
{
    reproduction_setup(r, "84 nodes of 32 CPUs, 256 GB and 8 GPUs", "published");
    reproduction_setup(r,
                       r->quick ? "2^14 jobs (the full study has 2^16), 30 % trial"
                                : "2^16 jobs, 30 % of them trial jobs",
                       "published");
    reproduction_setup(r, "s = 4, at most one preemption per job", "published");
    reproduction_setup(
        r, "arrivals that would hold the demand at 2.0 x capacity under FIFO",
        "published");
    reproduction_setup(r,
                       "deviations and demand means of the truncated normals: of 16 "
                       "mixes that were tried, the one with the nearest figures",
                       "reconstructed");
    reproduction_setup(r,
                       "the first node that fits; no progress during the grace period",
                       "reconstructed");
    reproduction_note(
        r, "The replay runs at critical load, so the best-effort figures move "
           "by about ten points from workload to workload; the trial figure "
           "does not.");
    reproduction_note(
        r, "Trial jobs start as soon when the victim is drawn at random (rand): their "
           "figure says that preempting helps them, not which job to preempt. What "
           "FitGpp's choice saves is best-effort jobs' slowdown.");
}

static int fitgpp_run(struct reproduction *r, struct error *err)
{
    struct fitgpp_experiment e = { .seeds = r->seed_count };
    arena_init(&e.arena, 0);
    e.runs = memory_checked(calloc(POLICY_COUNT * e.seeds, sizeof *e.runs));
    int status = run_experiment(&e, r, err);
    if (status == 0) {
        describe_setup(r);
        for (uint32_t policy = FITGPP; policy < POLICY_COUNT; policy++) {
            add_changes(r, &e, policy);
            add_preempted(r, &e, policy);
        }
        add_chart(r, &e, "te", "Slowdown of trial jobs");
        add_chart(r, &e, "be", "Slowdown of best-effort jobs");
    }
    free(e.runs);
    arena_release(&e.arena);
    return status;
}

const struct study study_fitgpp = {
    .name = "fitgpp",
    .title = "FitGpp: trial jobs start at once, at the least cost to the others",
    .paper =
        "Yabuuchi, Taniwaki, Omura: Low-latency job scheduling with preemption for the "
        "development of deep learning, OpML 2019",
    .seeds_full = 8,
    .seeds_quick = 4,
    .seed_first = 1,
    .fidelity = FIDELITY_RECONSTRUCTED,
    .run = fitgpp_run,
};
