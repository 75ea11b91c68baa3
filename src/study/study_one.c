/*
 * study_one.c - one policy in every paper's study: what does it lose against each specialist?
 *
 * Five systems answer five questions; a user has one cluster and all of the questions.  This
 * study runs one policy, SUBJECT, on the workloads of all five papers, on mixed workloads at
 * several loads and on four others that no setting was chosen on, beside the policies that
 * are best there.  Its measure is regret: by how much a figure is worse than that of the best
 * other policy in that very figure, or of the policy that a target names.
 *
 *     regret = figure of SUBJECT / figure of the reference - 1,  per seed, then averaged
 *
 * The reference of a cell (a workload on a cluster) is the policy with the least mean over
 * seeds.  Settings were chosen on seeds 1 to 3; these are others.  All cells with all
 * policies stand in the JSON, in the chart of kind "regret".
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/cluster.h"
#include "model/throughput.h"
#include "policy/policy.h"
#include "study/reproduction.h"

#ifndef SUBJECT
#define SUBJECT "berth"
#define SUBJECT_MAKESPAN SUBJECT ",objective=makespan"
#define SUBJECT_FAIRNESS SUBJECT ",objective=fairness"
#define SUBJECT_COST SUBJECT ",objective=cost"
#endif

#define CELLS_MAX 96
#define RIVALS_MAX 16
#define METRICS_MAX 8
#define NOISY_SEEDS 12 /* where single seeds decide, in the quick study */
#define GAVEL_JOBS 20000u
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

/* A column of a study: a figure, and by how much it may be worse. */
struct one_metric {
    const char *id, *figure, *what; /* figures with a '+' between are added up */
    double target;
    const char *against; /* the policy the target is about; NULL: the best other one */
};

/* A study: the same rivals and metrics in all its cells. */
struct one_study {
    const char *name;
    const char *subject; /* with its settings; NULL: without */
    const char *rivals[RIVALS_MAX];
    struct one_metric metrics[METRICS_MAX];
};

#define TE_P95 "te_p95", "slowdown.te.p95", "95 % slowdown of trial jobs"
#define BE_P50 "be_p50", "slowdown.be.p50", "median slowdown of best-effort jobs"
#define BE_P95 "be_p95", "slowdown.be.p95", "95 % slowdown of best-effort jobs"
#define BE_P99 "be_p99", "slowdown.be.p99", "99 % slowdown of best-effort jobs"
#define MEAN "mean", "jct_s.mean", "mean completion time"
#define P95 "p95", "jct_s.p95", "95 % completion time"
#define T90 "t90", "quality.time_to.90", "time to 90 % less loss"
#define T90_ACCURACY \
    "t90", "quality.time_to_accuracy.90", "time to 90 % of the last accuracy"
#define LOSS_S "loss_s", "quality.loss_seconds_per_job", "loss over time, per job"
#define MAKESPAN "makespan", "makespan_s", "makespan"
#define FAIRNESS "fairness", "finish_time_fairness.mean", "finish-time fairness, mean"
#define FAIRNESS_P95 \
    "fairness_p95", "finish_time_fairness.p95", "finish-time fairness, 95 %"
#define COST "cost", "cost_usd", "money for GPU time"
#define WASTE \
    "waste", \
        "overhead_gpu_s.pause+overhead_gpu_s.load_again+overhead_gpu_s.redo_" \
        "preempted+" \
        "overhead_gpu_s.resize", \
        "GPU-seconds wasted by preemptions, moves and resizes"
#define WORST_USER \
    "worst_user", "slowdown.worst_user", "mean slowdown of the user who fares worst"

#define ALL_RIVALS \
    { \
        "sjf", "srtf", "las", "las,worth=xion", "fitgpp", "xion", "fitgpp,worth=xion", \
            "gavel-las", "gavel-ftf", "gavel-makespan", "gavel-hierarchical", "allox", \
            "slaq", "fair", "fifo-backfill" \
    }

#define MIXED_METRICS(more) \
    { \
        { TE_P95, 0 + (more) }, { MEAN, 0 + (more) }, { P95, 0 + (more) }, \
            { T90, 0.05 + (more) }, \
        { \
            MAKESPAN, 0.05 + (more) \
        } \
    }

#define OTHER_METRICS \
    { \
        { MEAN, 0.03 }, { TE_P95, 0.10 }, { P95, 0.07 }, { T90, 0.05 }, \
            { MAKESPAN, 0.07 }, { BE_P99, 0.5 }, \
        { \
            WORST_USER, 1.0 \
        } \
    }

/*
 * An objective on mixed workloads: no worse in its own figure than Gavel's policy, which it has
 * the shares from, with less waste; and trial jobs as with the objective 'completion'.
 */
#define OBJECTIVE_STUDY(title, with, gavel, ...) \
    { \
        .name = (title), .subject = (with), .rivals = { (gavel), SUBJECT }, \
        .metrics = { \
            { __VA_ARGS__, 0.03, (gavel) }, \
            { TE_P95, 0.10, SUBJECT }, \
            { "te_p95_gavel", "slowdown.te.p95", "95 % slowdown of trial jobs", -0.30, \
              (gavel) }, \
            { WASTE, 0, (gavel) } \
        } \
    }

enum {
    FITGPP,
    XION,
    XION_OVERLOAD,
    GAVEL,
    GAVEL_MAKESPAN,
    GAVEL_FAIRNESS,
    GAVEL_COST,
    SLAQ,
    SLAQ_REAL,
    JPAS,
    MIXED_70,
    MIXED_90,
    MIXED_110,
    MIXED_130,
    MIXED_ERROR,
    LAB,
    INDUSTRY,
    SWEEPS,
    BOX,
    MIXED_MAKESPAN,
    MIXED_FAIRNESS,
    MIXED_COST,
    STUDY_COUNT
};

static const struct one_study studies[STUDY_COUNT] = {
    [FITGPP] = { "fitgpp",
                 .rivals = { "fitgpp", "fitgpp,worth=xion", "lrtp", "sjf", "srtf",
                             "las", "xion" },
                 .metrics = { { TE_P95, 0.03, "fitgpp" },
                              { BE_P50, 0, "fitgpp" },
                              { BE_P95, 0, "fitgpp" },
                              { MEAN, 0.20, "sjf" } } },
    [XION] = { "xion", .rivals = { "xion", "sjf", "srtf", "las,worth=xion" },
               .metrics = { { MEAN, 0.02, "xion" } } },
    [XION_OVERLOAD] = { "xion_overload",
                        .rivals = { "xion", "sjf", "srtf", "las,worth=xion" },
                        .metrics = { { MEAN, -0.10, "xion" } } },
    [GAVEL] = { "gavel",
                .rivals = { "gavel-las", "gavel-ftf", "gavel-sjf", "gavel-fifo",
                            "gavel-makespan", "allox" },
                .metrics = { { MEAN, 0.025 } } },
    [GAVEL_MAKESPAN] = { "gavel_makespan", .subject = SUBJECT_MAKESPAN,
                         .rivals = { "gavel-makespan", "gavel-las", "allox" },
                         .metrics = { { MAKESPAN, 0.03, "gavel-makespan" } } },
    [GAVEL_FAIRNESS] = { "gavel_fairness", .subject = SUBJECT_FAIRNESS,
                         .rivals = { "gavel-ftf", "gavel-las", "gavel-hierarchical" },
                         .metrics = { { FAIRNESS, 0.03, "gavel-ftf" },
                                      { FAIRNESS_P95, 0.03, "gavel-ftf" },
                                      { "fairness_hierarchical",
                                        "finish_time_fairness.mean",
                                        "finish-time fairness, mean", 0.03,
                                        "gavel-hierarchical" } } },
    [GAVEL_COST] = { "gavel_cost", .subject = SUBJECT_COST,
                     .rivals = { "gavel-cost", "gavel-las" },
                     .metrics = { { COST, 0.03, "gavel-cost" } } },
    [SLAQ] = { "slaq", .rivals = { "slaq", "fair", "las", "sjf" },
               .metrics = { { T90, 0.02, "slaq" },
                            { LOSS_S, 0.02, "slaq" },
                            { MEAN, 0.10, "fair" } } },
    [SLAQ_REAL] = { "slaq_real", .rivals = { "slaq", "fair", "las", "sjf" },
                    .metrics = { { T90, 0.02, "slaq" },
                                 { LOSS_S, 0.02, "slaq" },
                                 { MEAN, 0.05, "fair" } } },
    [JPAS] = { "jpas", .rivals = { "fifo" },
               .metrics = { { MEAN, 0, "fifo" }, { T90_ACCURACY, 0, "fifo" } } },
    [MIXED_70] = { "mixed@0.7", .rivals = ALL_RIVALS, .metrics = MIXED_METRICS(0) },
    [MIXED_90] = { "mixed@0.9", .rivals = ALL_RIVALS, .metrics = MIXED_METRICS(0) },
    [MIXED_110] = { "mixed@1.1", .rivals = ALL_RIVALS, .metrics = MIXED_METRICS(0) },
    [MIXED_130] = { "mixed@1.3", .rivals = ALL_RIVALS, .metrics = MIXED_METRICS(0) },
    [MIXED_ERROR] = { "mixed_error", .rivals = ALL_RIVALS,
                      .metrics = MIXED_METRICS(0.05) },
    [LAB] = { "lab", .rivals = ALL_RIVALS, .metrics = OTHER_METRICS },
    [INDUSTRY] = { "industry", .rivals = ALL_RIVALS, .metrics = OTHER_METRICS },
    [SWEEPS] = { "sweeps", .rivals = ALL_RIVALS, .metrics = OTHER_METRICS },
    [BOX] = { "box", .rivals = ALL_RIVALS, .metrics = OTHER_METRICS },
    [MIXED_MAKESPAN] =
        OBJECTIVE_STUDY("mixed_makespan", SUBJECT_MAKESPAN, "gavel-makespan", MAKESPAN),
    [MIXED_FAIRNESS] =
        OBJECTIVE_STUDY("mixed_fairness", SUBJECT_FAIRNESS, "gavel-ftf", FAIRNESS),
    [MIXED_COST] = OBJECTIVE_STUDY("mixed_cost", SUBJECT_COST, "gavel-cost", COST),
};

/* A workload on a cluster; all policies of its study run there, over all seeds. */
struct one_cell {
    uint32_t study;
    char name[96], workload[96];
    const struct one_place *place;
    const char *flow;
    double estimate_error;
    uint64_t window_from, window_to;
    double effort;
    uint32_t policy_count; /* the subject and its rivals */
    uint32_t seeds;        /* as many as asked for, or more where single seeds decide */
    struct sweep_run *runs; /* [policy][seed]; the subject is policy 0 */
};

/* A cluster that is loaded once. */
struct one_place {
    const char *name;
    struct cluster cluster;
    struct throughput rates;
};

struct one_experiment {
    struct reproduction *r;
    struct arena arena;
    struct one_place *places[16];
    uint32_t place_count;
    struct one_cell cells[CELLS_MAX];
    uint32_t cell_count, run_count, seeds;
    struct sweep_run *runs;
    int status;
    struct error *err;
};

/* --- which cells there are -------------------------------------------------------- */

static const struct one_place *find_place(struct one_experiment *e, const char *name)
{
    for (uint32_t i = 0; i < e->place_count; i++)
        if (strcmp(e->places[i]->name, name) == 0)
            return e->places[i];
    struct one_place *place = arena_new(&e->arena, struct one_place);
    place->name = arena_text(&e->arena, name);
    if (e->status == 0)
        e->status = cluster_load(&place->cluster, &e->arena, name, e->err);
    throughput_init(&place->rates, &place->cluster);
    if (e->status == 0)
        throughput_published(&place->rates, &e->arena);
    e->places[e->place_count++] = place;
    return place;
}

static const char *subject_of(const struct one_study *study)
{
    return study->subject ? study->subject : SUBJECT;
}

static uint32_t count_rivals(const struct one_study *study)
{
    uint32_t count = 0;
    while (count < RIVALS_MAX && study->rivals[count])
        count++;
    return count;
}

static uint32_t count_metrics(const struct one_study *study)
{
    uint32_t count = 0;
    while (count < METRICS_MAX && study->metrics[count].id)
        count++;
    return count;
}

static struct one_cell *add_cell(struct one_experiment *e, uint32_t study,
                                 const char *cluster, const char *workload)
{
    struct one_cell *cell = &e->cells[e->cell_count++];
    cell->study = study;
    cell->place = find_place(e, cluster);
    cell->effort = 1;
    cell->seeds = e->seeds;
    cell->policy_count = 1 + count_rivals(&studies[study]);
    snprintf(cell->workload, sizeof cell->workload, "%s", workload);
    snprintf(cell->name, sizeof cell->name, "%s", workload);
    return cell;
}

/*
 * In the quick study a single job of 200 or 300 decides the makespan of a seed, so these cells
 * run on more seeds, unless a number of seeds was asked for.
 */
static struct one_cell *add_noisy_cell(struct one_experiment *e, uint32_t study,
                                       const char *cluster, const char *workload)
{
    struct one_cell *cell = add_cell(e, study, cluster, workload);
    if (e->r->quick && e->seeds == e->r->study->seeds_quick)
        cell->seeds = NOISY_SEEDS;
    cell->effort = 20;
    return cell;
}

static void add_xion_cells(struct one_experiment *e)
{
    static const uint32_t sizes[] = { 8, 16, 32, 64 };
    static const double loads[] = { 0.7, 0.85, 1.2 };
    static const double costs[] = { 0, 1, 3 };
    bool quick = e->r->quick;
    for (uint32_t i = 0; i < COUNT(sizes); i++)
        for (uint32_t l = 0; l < COUNT(loads); l++)
            for (uint32_t c = 0; c < COUNT(costs); c++) {
                if (quick && i % 2 == 0)
                    continue;
                bool overload = loads[l] > 1 && costs[c] > 0;
                char cluster[32];
                char workload[96];
                snprintf(cluster, sizeof cluster, "%uxv100:8", sizes[i] / 8);
                snprintf(workload, sizeof workload, "xion:gpus=%u,load=%g,cost=%g%s",
                         sizes[i], loads[l], costs[c], quick ? ",jobs=1500" : "");
                add_cell(e, overload ? XION_OVERLOAD : XION, cluster, workload);
            }
}

/* The workload, cluster, window and seeds of another study's cell. */
static void add_same_cell(struct one_experiment *e, uint32_t study,
                          const struct one_cell *as)
{
    struct one_cell *cell = add_cell(e, study, as->place->name, as->workload);
    memcpy(cell->name, as->name, sizeof cell->name);
    cell->window_from = as->window_from;
    cell->window_to = as->window_to;
    cell->effort = as->effort;
    cell->seeds = as->seeds;
}

/*
 * Loads in jobs per hour, of single GPUs and of gangs, as the paper has them.  Jobs come until
 * all of the window have ended; under 'gavel-sjf' a long one of an overloaded cluster never
 * would, so that no more than GAVEL_JOBS come.
 */
static void add_gavel_cells(struct one_experiment *e)
{
    static const double single[] = { 0.4, 2.0, 4.0, 4.8, 5.2, 5.6, 6.0 };
    static const double multiple[] = { 0.2, 1.0, 2.0, 2.4, 2.6, 2.8 };
    bool quick = e->r->quick;
    for (uint32_t multi = 0; multi < 2; multi++)
        for (uint32_t i = 0; i < (multi ? COUNT(multiple) : COUNT(single)); i++) {
            if (quick && i != 2)
                continue;
            double rate = multi ? multiple[i] : single[i];
            char workload[96];
            snprintf(workload, sizeof workload, "gavel:lam=%g%s,jobs=%u", 3600 / rate,
                     multi ? ",multi=true" : "", GAVEL_JOBS);
            struct one_cell *cell = add_cell(e, GAVEL, "gavel-36", workload);
            snprintf(cell->name, sizeof cell->name, "%s, %g jobs/h",
                     multi ? "multiple" : "single", rate);
            cell->window_from = quick ? 100 : 1000;
            cell->window_to = quick ? 250 : 2000;
            cell->effort = 40;
            if (i == 2)
                add_same_cell(e, GAVEL_COST, cell);
            if (multi == 1 && i >= 2)
                add_same_cell(e, GAVEL_FAIRNESS, cell);
        }
    add_cell(e, GAVEL_MAKESPAN, "gavel-36",
             quick ? "gavel:static=100" : "gavel:static=300");
    add_cell(e, GAVEL_MAKESPAN, "gavel-36",
             quick ? "gavel:static=100,multi=true" : "gavel:static=300,multi=true");
}

/* Curves of real training are not part of Berth. */
static bool has_curves(void)
{
    const char *data = getenv("BERTH_DATA");
    char path[4096];
    if (!data || !*data)
        return false;
    snprintf(path, sizeof path, "%s/curves/curves.csv.gz", data);
    return access(path, R_OK) == 0;
}

static void add_mixed_cells(struct one_experiment *e)
{
    static const double loads[] = { 0.7, 0.9, 1.1, 1.3 };
    const char *jobs = e->r->quick ? ",jobs=300" : "";
    char workload[96];
    for (uint32_t i = 0; i < COUNT(loads); i++) {
        snprintf(workload, sizeof workload, "mixed:load=%g%s", loads[i], jobs);
        struct one_cell *mixed = add_noisy_cell(e, MIXED_70 + i, "mixed-112", workload);
        for (uint32_t study = MIXED_MAKESPAN; study <= MIXED_COST; study++)
            add_same_cell(e, study, mixed);
    }
    snprintf(workload, sizeof workload, "mixed:load=0.9%s", jobs);
    struct one_cell *cell = add_noisy_cell(e, MIXED_ERROR, "mixed-112", workload);
    snprintf(cell->name, sizeof cell->name, "%.40s, estimate error 0.5", workload);
    cell->estimate_error = 0.5;
}

static void add_cells(struct one_experiment *e)
{
    static const double gaps[] = { 90, 130 };
    static const char *const others[][3] = {
        { "lab", "lab-44", "lab:jobs=250" },
        { "industry", "industry-256", "industry:jobs=250" },
        { "sweeps", "sweeps-64", "sweeps:jobs=300" },
        { "box", "box-8", "box:jobs=200" }
    };
    bool quick = e->r->quick;
    struct one_cell *cell =
        add_cell(e, FITGPP, "fitgpp-84", quick ? "fitgpp:jobs=4096" : "fitgpp");
    cell->effort = 30;
    add_xion_cells(e);
    add_gavel_cells(e);
    add_cell(e, SLAQ, "slaq-20", quick ? "slaq:jobs=60" : "slaq")->effort = 10;
    if (has_curves())
        add_cell(e, SLAQ_REAL, "slaq-20",
                 quick ? "slaq:curves=real,jobs=60" : "slaq:curves=real")
            ->effort = 10;
    for (uint32_t i = 0; i < (quick ? 1 : COUNT(gaps)); i++) {
        char workload[96];
        snprintf(workload, sizeof workload, "jpas:gap=%g%s", gaps[i],
                 quick ? ",jobs=20" : "");
        add_cell(e, JPAS, "jpas-13", workload)->flow = "jpas";
    }
    add_mixed_cells(e);
    for (uint32_t i = 0; i < COUNT(others); i++)
        add_noisy_cell(e, LAB + i, others[i][1], others[i][quick ? 2 : 0]);
}

/* --- running them ----------------------------------------------------------------- */

static const char *policy_of(const struct one_cell *cell, uint32_t policy)
{
    const struct one_study *study = &studies[cell->study];
    return policy == 0 ? subject_of(study) : study->rivals[policy - 1];
}

static int run_cells(struct one_experiment *e)
{
    for (uint32_t c = 0; c < e->cell_count; c++)
        e->run_count += e->cells[c].policy_count * e->cells[c].seeds;
    e->runs = memory_checked(calloc(e->run_count, sizeof *e->runs));
    struct sweep_run *next = e->runs;
    for (uint32_t c = 0; c < e->cell_count; c++) {
        struct one_cell *cell = &e->cells[c];
        cell->runs = next;
        for (uint32_t i = 0; i < cell->policy_count * cell->seeds; i++, next++) {
            const char *policy = policy_of(cell, i / cell->seeds);
            bool solves = strncmp(policy, "gavel", 5) == 0;
            next->effort = cell->effort * (solves ? 20 : 1);
            next->setup = (struct sim_setup){
                .cluster = &cell->place->cluster,
                .rates = &cell->place->rates,
                .workload = cell->workload,
                .policy = policy,
                .flow = cell->flow,
                .network = { .mode = FLUID_EXACT },
                .seed = e->r->study->seed_first + i % cell->seeds,
                .window_from = cell->window_from,
                .window_to = cell->window_to,
                .estimate_error = cell->estimate_error,
            };
        }
    }
    return sweep_run_all(e->runs, e->run_count, sweep_threads(), e->r->progress,
                         e->r->context, e->err);
}

/* --- regret ------------------------------------------------------------------------ */

static double figure_of(const struct one_experiment *e, const struct one_cell *cell,
                        uint32_t policy, uint32_t seed, const char *figure)
{
    const struct sweep_run *run = &cell->runs[policy * cell->seeds + seed];
    char part[64];
    double sum = 0;
    for (const char *at = figure; *at; at += *at == '+') {
        size_t length = strcspn(at, "+");
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        sum += reproduction_figure(run, part);
        at += length;
    }
    return sum;
}

static double mean_figure(const struct one_experiment *e, const struct one_cell *cell,
                          uint32_t policy, const char *figure)
{
    double sum = 0;
    for (uint32_t s = 0; s < cell->seeds; s++)
        sum += figure_of(e, cell, policy, s, figure);
    return sum / cell->seeds;
}

/* The best of all policies but 'policy', by its mean over seeds. */
static uint32_t find_best_other(const struct one_experiment *e,
                                const struct one_cell *cell, uint32_t policy,
                                const char *figure)
{
    uint32_t best = policy;
    for (uint32_t p = 0; p < cell->policy_count; p++)
        if (p != policy && (best == policy || mean_figure(e, cell, p, figure) <
                                                  mean_figure(e, cell, best, figure)))
            best = p;
    return best;
}

/* The policy that the target is about. */
static uint32_t find_reference(const struct one_experiment *e,
                               const struct one_cell *cell,
                               const struct one_metric *metric)
{
    for (uint32_t p = 1; metric->against && p < cell->policy_count; p++)
        if (strcmp(policy_of(cell, p), metric->against) == 0)
            return p;
    return find_best_other(e, cell, 0, metric->figure);
}

static double regret_in(const struct one_experiment *e, const struct one_cell *cell,
                        uint32_t policy, uint32_t reference, uint32_t seed,
                        const char *figure)
{
    return figure_of(e, cell, policy, seed, figure) /
               figure_of(e, cell, reference, seed, figure) -
           1;
}

static double mean_regret(const struct one_experiment *e, const struct one_cell *cell,
                          uint32_t policy, uint32_t reference, const char *figure)
{
    double sum = 0;
    for (uint32_t s = 0; s < cell->seeds; s++)
        sum += regret_in(e, cell, policy, reference, s, figure);
    return sum / cell->seeds;
}

/*
 * Add to the regret of each seed that of all cells of a study, which have as many seeds; returns
 * how many cells.
 */
static uint32_t add_regrets(const struct one_experiment *e, uint32_t study,
                            const struct one_metric *metric, double *values,
                            uint32_t *ret_seeds)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < e->cell_count; c++) {
        const struct one_cell *cell = &e->cells[c];
        if (cell->study != study || isnan(mean_figure(e, cell, 0, metric->figure)))
            continue;
        uint32_t reference = find_reference(e, cell, metric);
        for (uint32_t s = 0; s < cell->seeds; s++)
            values[s] += regret_in(e, cell, 0, reference, s, metric->figure);
        *ret_seeds = cell->seeds;
        count++;
    }
    return count;
}

/* --- rows -------------------------------------------------------------------------- */

static void add_metric_row(struct one_experiment *e, uint32_t study,
                           const struct one_metric *metric)
{
    double values[SEEDS_MAX] = { 0 };
    uint32_t seeds = 0;
    uint32_t count = add_regrets(e, study, metric, values, &seeds);
    if (count == 0)
        return;
    for (uint32_t s = 0; s < seeds; s++)
        values[s] /= count;
    char id[64];
    char what[256];
    snprintf(id, sizeof id, "%s_%s_regret", studies[study].name, metric->id);
    snprintf(what, sizeof what, "%s: %s of %s against %s%s", studies[study].name,
             metric->what, subject_of(&studies[study]),
             metric->against ? metric->against : "the best other policy",
             count > 1 ? ", mean over cells" : "");
    reproduction_row(e->r, id, what, "change", NAN, 0, values, seeds);
    reproduction_target(e->r, metric->target);
}

/* The cell and metric that is furthest beyond its target. */
static void add_worst_row(struct one_experiment *e, uint32_t study)
{
    const struct one_cell *worst_cell = NULL;
    const struct one_metric *worst = NULL;
    uint32_t worst_reference = 0;
    double most = -INFINITY;
    for (uint32_t c = 0; c < e->cell_count; c++) {
        const struct one_cell *cell = &e->cells[c];
        for (uint32_t m = 0; m < count_metrics(&studies[study]); m++) {
            const struct one_metric *metric = &studies[study].metrics[m];
            if (cell->study != study || isnan(mean_figure(e, cell, 0, metric->figure)))
                continue;
            uint32_t reference = find_reference(e, cell, metric);
            double beyond =
                mean_regret(e, cell, 0, reference, metric->figure) - metric->target;
            if (!(beyond > most))
                continue;
            most = beyond;
            worst_cell = cell;
            worst = metric;
            worst_reference = reference;
        }
    }
    if (!worst)
        return;
    double values[SEEDS_MAX];
    for (uint32_t s = 0; s < worst_cell->seeds; s++)
        values[s] = regret_in(e, worst_cell, 0, worst_reference, s, worst->figure);
    char id[64];
    char what[256];
    snprintf(id, sizeof id, "%s_worst", studies[study].name);
    snprintf(what, sizeof what, "%s: its worst cell: %s in %s against %s",
             studies[study].name, worst->what, worst_cell->name,
             policy_of(worst_cell, worst_reference));
    reproduction_row(e->r, id, what, "change", NAN, 0, values, worst_cell->seeds);
    reproduction_target(e->r, worst->target);
}

/* First in the mean over the loads by a tenth, in the first three columns. */
static void add_mixed_rows(struct one_experiment *e)
{
    const struct one_study *first = &studies[MIXED_70];
    for (uint32_t m = 0; m < count_metrics(first); m++) {
        double values[SEEDS_MAX] = { 0 };
        uint32_t seeds = 0;
        uint32_t count = 0;
        for (uint32_t study = MIXED_70; study <= MIXED_130; study++)
            count += add_regrets(e, study, &studies[study].metrics[m], values, &seeds);
        for (uint32_t s = 0; s < seeds; s++)
            values[s] /= count;
        const struct one_metric *metric = &first->metrics[m];
        char id[64];
        char what[256];
        snprintf(id, sizeof id, "mixed_%s_regret", metric->id);
        snprintf(what, sizeof what,
                 "mixed: %s of %s against the best other policy, mean over loads",
                 metric->what, SUBJECT);
        reproduction_row(e->r, id, what, "change", NAN, 0, values, seeds);
        reproduction_target(e->r, metric->target > 0 ? metric->target : -0.10);
    }
}

/* --- all cells, for programs and for the picture -------------------------------------- */

static struct json *metric_json(const struct one_experiment *e,
                                const struct one_cell *cell,
                                const struct one_metric *metric)
{
    struct json *object = json_new_object();
    struct json *policies = json_new_array();
    uint32_t reference = find_reference(e, cell, metric);
    json_put_text(object, "metric", metric->id);
    json_put_text(object, "what", metric->what);
    json_put_number(object, "target", metric->target);
    json_put_text(object, "against", policy_of(cell, reference));
    json_put_number(object, "regret",
                    mean_regret(e, cell, 0, reference, metric->figure));
    for (uint32_t p = 0; p < cell->policy_count; p++) {
        struct json *row = json_new_object();
        struct json *values = json_new_array();
        uint32_t best = find_best_other(e, cell, p, metric->figure);
        for (uint32_t s = 0; s < cell->seeds; s++)
            json_add_number(values, figure_of(e, cell, p, s, metric->figure));
        json_put_text(row, "policy", policy_of(cell, p));
        json_put_number(row, "mean", mean_figure(e, cell, p, metric->figure));
        json_put_number(row, "regret", mean_regret(e, cell, p, best, metric->figure));
        json_put(row, "seeds", values);
        json_add(policies, row);
    }
    json_put(object, "policies", policies);
    return object;
}

static struct json *cell_json(const struct one_experiment *e,
                              const struct one_cell *cell)
{
    const struct one_study *study = &studies[cell->study];
    struct json *object = json_new_object();
    struct json *metrics = json_new_array();
    json_put_text(object, "study", study->name);
    json_put_text(object, "cell", cell->name);
    json_put_text(object, "cluster", cell->place->name);
    json_put_text(object, "workload", cell->workload);
    for (uint32_t m = 0; m < count_metrics(study); m++)
        if (!isnan(mean_figure(e, cell, 0, study->metrics[m].figure)))
            json_add(metrics, metric_json(e, cell, &study->metrics[m]));
    json_put(object, "metrics", metrics);
    return object;
}

/*
 * A policy's regret in a study: the worst of its metrics, each the mean over cells, against
 * the best other policy; NAN where it did not run.
 */
static double study_regret(const struct one_experiment *e, uint32_t study,
                           const char *name)
{
    double worst = NAN;
    for (uint32_t m = 0; m < count_metrics(&studies[study]); m++) {
        const char *figure = studies[study].metrics[m].figure;
        double sum = 0;
        uint32_t count = 0;
        for (uint32_t c = 0; c < e->cell_count; c++) {
            const struct one_cell *cell = &e->cells[c];
            uint32_t p = 0;
            while (p < cell->policy_count && strcmp(policy_of(cell, p), name) != 0)
                p++;
            if (strcmp(name, SUBJECT) == 0)
                p = 0; /* with whatever settings the study gives it */
            if (cell->study != study || p == cell->policy_count ||
                isnan(mean_figure(e, cell, p, figure)))
                continue;
            sum += mean_regret(e, cell, p, find_best_other(e, cell, p, figure), figure);
            count++;
        }
        if (count > 0 && !(sum / count <= worst))
            worst = sum / count;
    }
    return worst;
}

/* A line of the picture: a policy's regret, 'y', in each study 'x' where it ran. */
static void add_series(const struct one_experiment *e, struct json *all,
                       const char *name)
{
    struct json *series = json_new_object();
    struct json *at = json_new_array();
    struct json *regrets = json_new_array();
    uint32_t group = 0;
    json_put_text(series, "name", name);
    for (uint32_t study = 0; study < STUDY_COUNT; study++) {
        if (isnan(study_regret(e, study, SUBJECT)))
            continue; /* the study did not run */
        double regret = study_regret(e, study, name);
        if (!isnan(regret)) {
            json_add_count(at, group);
            json_add_number(regrets, regret);
        }
        group++;
    }
    json_put(series, "x", at);
    json_put(series, "y", regrets);
    json_add(all, series);
}

static void add_picture(struct one_experiment *e)
{
    struct json *chart = reproduction_chart(
        e->r, "regret", "How much worse than the best policy of each study", NULL,
        "worst figure of the study, against the best other policy");
    for (uint32_t study = 0; study < STUDY_COUNT; study++)
        if (!isnan(study_regret(e, study, SUBJECT)))
            reproduction_chart_group(chart, studies[study].name);
    struct json *all = json_new_array();
    add_series(e, all, SUBJECT);
    const char *named[STUDY_COUNT * RIVALS_MAX + 1] = { SUBJECT };
    uint32_t count = 1;
    for (uint32_t study = STUDY_COUNT; study-- > 0;)
        for (uint32_t p = 0; p < count_rivals(&studies[study]); p++) {
            const char *name = studies[study].rivals[p];
            uint32_t at = 0;
            while (at < count && strcmp(named[at], name) != 0)
                at++;
            if (at < count)
                continue;
            named[count++] = name;
            add_series(e, all, name);
        }
    json_put(chart, "series", all);
    struct json *cells = json_new_array();
    for (uint32_t c = 0; c < e->cell_count; c++)
        json_add(cells, cell_json(e, &e->cells[c]));
    json_put(chart, "cells", cells);
}

static void describe_setup(const struct one_experiment *e)
{
    struct reproduction *r = e->r;
    reproduction_setup(r, "one set of defaults in all studies; " SUBJECT, "ours");
    reproduction_setup(r, "workloads and clusters of the five papers' studies",
                       "reconstructed");
    reproduction_setup(r, "workloads mixed, lab, industry, sweeps and box", "ours");
    if (r->quick)
        reproduction_setup(r,
                           "fewer cells and jobs than in the full study; mixed, lab, "
                           "industry, sweeps and box on seeds 4 to 15",
                           "ours");
    reproduction_note(
        r,
        "Settings were chosen on seeds 1 to 3 of mixed and of the papers' "
        "workloads. Three of them (what a good model counts, how long an elastic job "
        "is taken to stay smaller, the order of gangs) were chosen anew on seeds 1 to "
        "3 "
        "of all workloads after the figures of seeds 4 to 8 had been seen.");
    reproduction_note(
        r, "A row is met ('better') if the regret is at most its target, else 'worse'. "
           "A negative regret means that the policy is better than the reference.");
    reproduction_note(r,
                      "Rows '<study>_worst' name the cell and figure that is furthest "
                      "beyond its target. All cells are in the JSON.");
}

static int one_run(struct reproduction *r, struct error *err)
{
    struct one_experiment *e = memory_checked(calloc(1, sizeof *e));
    e->r = r;
    e->seeds = r->seed_count;
    e->err = err;
    arena_init(&e->arena, 0);
    add_cells(e);
    int status = e->status;
    if (status == 0)
        status = run_cells(e);
    if (status == 0) {
        describe_setup(e);
        for (uint32_t study = 0; study < STUDY_COUNT; study++) {
            for (uint32_t m = 0; m < count_metrics(&studies[study]); m++)
                add_metric_row(e, study, &studies[study].metrics[m]);
            add_worst_row(e, study);
        }
        add_mixed_rows(e);
        add_picture(e);
    }
    for (uint32_t i = 0; e->runs && i < e->run_count; i++)
        sim_result_release(&e->runs[i].result);
    free(e->runs);
    arena_release(&e->arena);
    free(e);
    return status;
}

const struct study study_one = {
    .name = "one",
    .title = "One policy in every study: how much it loses against each specialist",
    .paper = "Berth's own: the five papers' workloads, mixed ones, and four that no "
             "setting was chosen on",
    .apart = true,
    .seeds_full = 5,
    .seeds_quick = 2,
    .seed_first = 4,
    .run = one_run,
};
