/*
 * study_gavel.c - Gavel's evaluation: completion times over load, makespan, fairness, cost,
 * groups, mechanism, estimator and solver.
 *
 * The rounds follow the published system's rules (compat=released), on its cluster, with its
 * jobs bit for bit and its window of jobs 4000 to 4999; our own rounds are measured as well.
 * Each part of the evaluation has a file.
 */
#include "study/study_gavel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/memory.h"

static const struct gavel_part *const parts[] = { &gavel_part_curves, &gavel_part_cost,
                                                  &gavel_part_shares,
                                                  &gavel_part_ideal };

#define PART_COUNT (sizeof parts / sizeof *parts)

struct gavel_point *gavel_study_add_point(struct gavel_study *study)
{
    study->points = grow_array(study->points, &study->point_max, study->point_count + 1,
                               sizeof *study->points);
    struct gavel_point *point = &study->points[study->point_count++];
    *point = (struct gavel_point){ .cluster = &study->big, .rates = &study->big_rates };
    return point;
}

static int run_points(struct gavel_study *study, struct error *err)
{
    uint32_t count = study->point_count * study->seeds;
    study->runs = memory_checked(calloc(count + 1, sizeof *study->runs));
    study->texts = memory_checked(calloc(count + 1, sizeof *study->texts));
    study->text_sizes = memory_checked(calloc(count + 1, sizeof *study->text_sizes));
    for (uint32_t i = 0; i < count; i++) {
        const struct gavel_point *point = &study->points[i / study->seeds];
        uint32_t seed = i % study->seeds;
        struct sim_setup *setup = &study->runs[i].setup;
        study->runs[i].effort = point->effort;
        *setup = (struct sim_setup){ .cluster = point->cluster,
                                     .rates = point->rates,
                                     .workload = point->workload,
                                     .policy = point->policy,
                                     .window_from = point->window_from,
                                     .window_to = point->window_to,
                                     .seed = seed };
        if (point->jobs) {
            setup->workload = NULL;
            setup->jobs = &point->jobs[seed * point->job_count];
            setup->job_count = point->job_count;
        }
        if (point->by_job)
            setup->jobs_out = open_memstream(&study->texts[i], &study->text_sizes[i]);
    }
    int status = sweep_run_all(study->runs, count, sweep_threads(), study->r->progress,
                               study->r->context, err);
    for (uint32_t i = 0; i < count; i++)
        if (study->runs[i].setup.jobs_out)
            fclose(study->runs[i].setup.jobs_out);
    return status;
}

double gavel_study_figure(const struct gavel_study *study, uint32_t point,
                          uint32_t seed, const char *id)
{
    return reproduction_figure(&study->runs[point * study->seeds + seed], id);
}

void gavel_study_figures(const struct gavel_study *study, uint32_t point,
                         const char *id, double scale, double *ret_values)
{
    for (uint32_t s = 0; s < study->seeds; s++)
        ret_values[s] = gavel_study_figure(study, point, s, id) * scale;
}

struct finding *gavel_study_row(struct gavel_study *study, const char *id,
                                const char *what, const char *unit, double published,
                                double tolerance, const double *values)
{
    return reproduction_row(study->r, id, what, unit, published, tolerance, values,
                            study->seeds);
}

/* Load the clusters, and the rates of pairs if BERTH_DATA has the published table. */
static int load_clusters(struct gavel_study *study, struct error *err)
{
    int status = cluster_load(&study->big, &study->arena, "gavel-36", err);
    if (status == 0)
        status = cluster_load(&study->v100, &study->arena, "v100:36", err);
    if (status == 0)
        status = cluster_load(&study->small, &study->arena, "v100:4,p100:4,k80:4", err);
    if (status < 0)
        return status;
    throughput_init(&study->big_rates, &study->big);
    throughput_init(&study->small_rates, &study->small);
    throughput_init(&study->v100_rates, &study->v100);
    throughput_published(&study->v100_rates, &study->arena);
    throughput_published(&study->big_rates, &study->arena);
    throughput_published(&study->small_rates, &study->arena);
    const char *data = getenv("BERTH_DATA");
    if (!data)
        return 0;
    char path[4096];
    snprintf(path, sizeof path, "%s/gavel/simulation_throughputs.json", data);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    fclose(file);
    study->pairs_measured = true;
    throughput_init(&study->big_rates, &study->big);
    throughput_init(&study->small_rates, &study->small);
    status = throughput_load(&study->big_rates, &study->arena, path, err);
    if (status == 0)
        status = throughput_load(&study->small_rates, &study->arena, path, err);
    return status;
}

static void describe_setup(const struct gavel_study *study)
{
    struct reproduction *r = study->r;
    reproduction_setup(r, "36 V100, 36 P100, 36 K80, one GPU per server", "published");
    reproduction_setup(r,
                       "jobs of 26 configurations, Poisson arrivals, seeds 0, 1, 2 of "
                       "the published generator; figures over jobs 4000 to 4999",
                       "published");
    reproduction_setup(r,
                       "rounds of 360 s by the released system's rules "
                       "(compat=released); rows with 'berth' follow our own",
                       "published");
    reproduction_setup(r, "rates of the configurations, alone and in gangs",
                       "published");
    reproduction_setup(
        r,
        study->pairs_measured
            ? "rates of pairs that share a GPU: the published table"
            : "rates of pairs that share a GPU: a model of interference, "
              "as BERTH_DATA is not set",
        study->pairs_measured ? "published" : "ours");
    reproduction_setup(r, "arrivals of the cost experiment", "reconstructed");
    reproduction_setup(
        r, "jobs 500 to 999 of the estimator's experiment, in our own rounds",
        "reconstructed");
    reproduction_setup(r,
                       "FIFO's makespans: every job is given to the V100 at once, far "
                       "beyond their number, and they take turns on them",
                       "reconstructed");
    reproduction_note(
        r, "FIFO: completion times are compared with seed 0 alone. The published ones "
           "follow that seed from load to load, for single-GPU jobs at every load and "
           "for gangs at most; the other two seeds are far away from them.");
    reproduction_note(
        r,
        "FIFO's makespans: the released code sends every job to the V100, whatever it "
        "draws, until their number is used up exactly. A gang that exceeds it keeps "
        "them on the list, and from then on all jobs share the V100 by turns: that is "
        "what happens with seeds 1 and 2. With seed 0 the number is met exactly, and "
        "jobs are put on K80 for good. The published makespans of all four sizes are "
        "those of V100 shared by turns with all three seeds, so that is what is run "
        "here (proportional on 36 V100). Rows makespan_fifo_released and "
        "makespan_fifo_strict are the released code as it is, and first come, first "
        "served on 36 V100.");
    reproduction_note(r, "Optimal shares are not unique: another solver gives other "
                         "completion times, by up to 5 %, from the same optimum.");
}

static void release_study(struct gavel_study *study)
{
    for (uint32_t i = 0; study->texts && i < study->point_count * study->seeds; i++)
        free(study->texts[i]);
    free(study->texts);
    free(study->text_sizes);
    for (uint32_t i = 0; study->runs && i < study->point_count * study->seeds; i++)
        sim_result_release(&study->runs[i].result);
    free(study->runs);
    free(study->points);
    arena_release(&study->arena);
}

static int gavel_run(struct reproduction *r, struct error *err)
{
    struct gavel_study study = { .r = r, .seeds = r->seed_count, .quick = r->quick };
    arena_init(&study.arena, 0);
    int status = load_clusters(&study, err);
    if (status == 0) {
        describe_setup(&study);
        for (uint32_t i = 0; i < PART_COUNT; i++)
            if (parts[i]->plan)
                parts[i]->plan(&study);
        status = run_points(&study, err);
    }
    for (uint32_t i = 0; i < PART_COUNT && status == 0; i++)
        status = parts[i]->report(&study, err);
    release_study(&study);
    return status;
}

const struct study study_gavel = {
    .name = "gavel",
    .title = "Gavel: how much of which accelerator each job is due",
    .paper = "Narayanan, Santhanam, Kazhamiaka, Phanishayee, Zaharia: "
             "Heterogeneity-aware cluster scheduling policies for deep learning "
             "workloads, OSDI 2020",
    .seeds_full = 3,
    .seeds_quick = 1,
    .seed_first = 0,
    .fidelity = FIDELITY_RELEASED_CODE,
    .run = gavel_run,
};
