/*
 * study_gavel.h - what the parts of Gavel's evaluation share: points to be run, and figures.
 *
 * Each part first adds points, each a policy on a workload; then all points run, over all
 * seeds, on all cores; then each part reads the figures of its points.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/cluster.h"
#include "model/throughput.h"
#include "study/reproduction.h"

struct gavel_point {
    const struct cluster *cluster;
    const struct throughput *rates;
    char workload[96];
    char policy[96];
    uint64_t window_from, window_to;
    const struct job_spec *jobs; /* [seed][job_count] instead of a workload, or NULL */
    uint64_t job_count;
    bool by_job;   /* keep the completion time of every job */
    double effort; /* see sweep.h */
};

struct gavel_study {
    struct reproduction *r;
    struct arena arena;
    uint32_t seeds;
    bool quick;

    struct cluster big, small, v100; /* 36 and 4 of each type; 36 V100 alone      */
    struct throughput big_rates, small_rates, v100_rates;
    bool pairs_measured; /* rates of pairs are the published ones, not modelled     */

    struct gavel_point *points;
    uint32_t point_count, point_max;
    struct sweep_run *runs; /* [point][seed]                                       */
    uint32_t cost_first;    /* first point of the cost experiment                  */
    struct gavel_curves *curves;
    char **texts; /* [point][seed] a line per job, for points with by_job */
    size_t *text_sizes;
};

/* Add a point on the large cluster; the caller fills in what differs. */
struct gavel_point *gavel_study_add_point(struct gavel_study *study);

/* A figure of a point, for one seed; or of all seeds. */
double gavel_study_figure(const struct gavel_study *study, uint32_t point,
                          uint32_t seed, const char *id);
void gavel_study_figures(const struct gavel_study *study, uint32_t point,
                         const char *id, double scale, double *ret_values);

/* Add a row; 'published' may be NAN, 'tolerance' is how close counts as the same. */
struct finding *gavel_study_row(struct gavel_study *study, const char *id,
                                const char *what, const char *unit, double published,
                                double tolerance, const double *values);

/* A part of the evaluation: adds its points, and reports its figures when all have run. */
struct gavel_part {
    void (*plan)(struct gavel_study *study); /* or NULL */
    int (*report)(struct gavel_study *study, struct error *err);
};

extern const struct gavel_part gavel_part_curves, gavel_part_cost, gavel_part_shares,
    gavel_part_ideal;
