/* tables.h - sizes, run times and arrivals of jobs in public traces. */
#pragma once

#include <stdint.h>

#define TRACE_SIZES 7
#define TRACE_CLASSES 5
#define TRACE_POINTS 11

/*
 * Figures computed from the published traces: Philly (Jeon et al., ATC'19; the dense
 * weeks of 2017-10-03 to 12-15 in the conversion by Pollux' authors), Helios' cluster
 * Venus (Hu et al., SC'21; from 2020-04-01, run times cut at 48 h) and Alibaba PAI
 * (Weng et al., NSDI'22; a sample of the successful tasks, cut at 48 h).
 */
struct trace_tables {
    const char *name;
    double size_share[TRACE_SIZES]; /* of jobs with so many GPUs, in percent */
    double run_s[TRACE_CLASSES][TRACE_POINTS]; /* run time at each percentile */
    double hour_share[24]; /* of submissions in each hour of the day, in percent */
    double hour_shape;     /* gamma shape of the hourly rate: small is bursty    */
    double batch_share;    /* of submissions that come in batches                */
};

/* GPUs by place in size_share, and the row of run_s for each of them. */
extern const uint32_t tables_gpus[TRACE_SIZES];
extern const uint32_t tables_class[TRACE_SIZES];

/* Where on 0..1 the points of run_s lie. */
extern const double tables_points[TRACE_POINTS];

/* By place in tables_names, which ends with NULL. */
extern const struct trace_tables tables_traces[];
extern const char *const tables_names[];

/* Run time at 'q' (0..1), straight in its logarithm between two points. */
double tables_run_s(const struct trace_tables *trace, uint32_t class, double q);
