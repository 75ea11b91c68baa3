/*
 * gavel.h - what the parts of Gavel's evaluation share: points to be run, and figures.
 *
 * A part first adds the points it wants, each a policy on a workload; then all of them
 * run, over all seeds, on all cores; then it reads the figures.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/cluster.h"
#include "model/throughput.h"
#include "study/reproduce.h"

struct gavel_point {
    const struct cluster *cluster;
    const struct throughput *rates;
    char workload[96];
    char policy[96];
    uint64_t window_from, window_to;
    const struct job_spec *jobs; /* [seed][job_count] instead of a workload, or NULL */
    uint64_t job_count;
    bool by_job;   /* completion times of single jobs are wanted */
    double effort; /* see sweep.h */
};

struct gavel_study {
    struct reproduction *r;
    struct arena arena;
    uint32_t seeds;
    bool quick;

    struct cluster big, small, v100; /* 36 and 4 of each type; 36 V100 alone      */
    struct throughput big_rates, small_rates, v100_rates;
    bool pairs_measured; /* rates of pairs are the published ones, not a model's   */

    struct gavel_point *points;
    uint32_t point_count, point_max;
    struct sweep_run *runs; /* [point][seed]                                       */
    uint32_t cost_first;    /* first point of the cost experiment                  */
    struct gavel_curves *curves;
    char **texts; /* [point][seed] a line per job, where asked for       */
    size_t *text_sizes;
};

/* Room for a point; fill in what differs from the standard: the large cluster. */
struct gavel_point *gavel_point(struct gavel_study *study);
uint32_t gavel_last(const struct gavel_study *study); /* its number */

/* A figure of a point, for one seed; or of all seeds. */
double gavel_figure(const struct gavel_study *study, uint32_t point, uint32_t seed,
                    const char *id);
void gavel_figures(const struct gavel_study *study, uint32_t point, const char *id,
                   double scale, double *ret_values);

/* Completion times by job number into an array of 'count'; NAN: not known. */
void gavel_jcts(const struct gavel_study *study, uint32_t point, uint32_t seed,
                double *ret_jct_s, uint32_t count);

/* A row: "id", what it is, unit, as published or NAN, how close counts as the same. */
void gavel_row(struct gavel_study *study, const char *id, const char *what,
               const char *unit, double published, double tolerance,
               const double *values);

/* The parts: what they want to have run, and what they say about it. */
void gavel_curves_plan(struct gavel_study *study);
void gavel_curves_report(struct gavel_study *study);
void gavel_cost_plan(struct gavel_study *study);
void gavel_cost_report(struct gavel_study *study);
int gavel_shares_report(struct gavel_study *study, struct error *err);
int gavel_ideal_report(struct gavel_study *study, struct error *err);
