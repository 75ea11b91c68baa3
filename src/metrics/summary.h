/*
 * summary.h - completion times, makespan, slowdown and fairness of a run.
 *
 * Every figure has a name such as "jct_s.mean"; tables, JSON and the report page are
 * made from the same list, in the same order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "metrics/series.h"

struct cluster;
struct json;
struct ledger;
struct metrics;
struct quality;

enum summary_better { BETTER_NONE, BETTER_LESS, BETTER_MORE };

struct summary_figure {
    const char *id;    /* "jct_s.mean": the path in JSON          */
    const char *label; /* for people                              */
    const char *unit;  /* "s", "share", "GPU-s", "", "usd"        */
    enum summary_better better;
    bool whole; /* a count                                 */
};

#define FIGURES_MAX 80
#define CDF_POINTS 201

/* Points of a distribution, smallest first. */
struct summary_cdf {
    double x[CDF_POINTS];
    double y[CDF_POINTS];
    uint32_t count;
};

enum cdf_of { CDF_JCT, CDF_WAIT, CDF_SLOWDOWN, CDF_KINDS };
enum cdf_class { CDF_ALL, CDF_TE, CDF_BE, CDF_CLASSES };

struct summary {
    double values[FIGURES_MAX]; /* by place in summary_figures; NAN: does not apply */
    uint64_t preempted_jobs;    /* that were preempted at all */
    struct summary_cdf cdfs[CDF_KINDS][CDF_CLASSES];
    struct {
        uint32_t count;
        double t_s[SERIES_BINS], gpus_held[SERIES_BINS], waiting[SERIES_BINS],
            running[SERIES_BINS];
    } series; /* means over bins of time */
    struct {
        uint32_t count;
        double t_s[SERIES_BINS], preemptions[SERIES_BINS], predicted_gpu_s[SERIES_BINS],
            actual_gpu_s[SERIES_BINS];
    } ledger; /* sums over bins of time, by when a preemption was */
    struct {
        uint32_t count;
        double t_s[SERIES_BINS], loss[SERIES_BINS];
    } quality; /* mean loss over bins of time in which any job learnt */
};

/* The list, ended by a row with the id NULL. */
extern const struct summary_figure summary_figures[];

/* 'ledger' and 'quality' may be NULL. */
void summary_make(struct summary *summary, const struct metrics *metrics,
                  const struct ledger *ledger, const struct quality *quality,
                  const struct cluster *cluster);

/* Value of a figure by name; NAN if it does not apply. */
double summary_value(const struct summary *summary, const char *id);

/* Put the figures into an object, nested at the dots; what does not apply is absent. */
void summary_json(const struct summary *summary, struct json *object);
