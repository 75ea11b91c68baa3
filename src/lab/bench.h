/*
 * bench.h - 'berth bench': suites that measure speed, and the rows they write.
 *
 * Figures, never verdicts: machines differ, and other processes run on them.  Times are CPU
 * time of this process; those of 'live' and 'slurm', where other processes do the work, are
 * of the wall clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/sim.h"

struct error;
struct json;

struct bench {
    struct json *rows; /* NULL: print a table */
    struct json *notes;
};

/* Add a row: 0.08, "s", over n jobs, with the id "replay_s.%s" of a policy. */
void bench_row(struct bench *bench, double value, const char *unit, uint64_t n,
               const char *id, ...) __attribute__((format(printf, 5, 6)));

/*
 * Add a row that is compared with 'versus', measured in the same run: 'ratio' says how many
 * times as fast as that it is, below 1 for slower.  NULL and 0 without a comparison.
 */
void bench_row_versus(struct bench *bench, const char *id, double value,
                      const char *unit, uint64_t n, const char *versus, double ratio);

/*
 * Run a simulation on that cluster, with published rates or none, and return its CPU time.
 * 'setup' has all but the cluster and the rates.  The caller releases the result.
 */
int bench_simulate(const char *cluster, bool published, struct sim_setup setup,
                   struct sim_result *ret_result, double *ret_cpu_s, struct error *err);

#define BENCH_SAMPLES_MAX 20000

/* Durations of one kind, in milliseconds. */
struct bench_samples {
    double ms[BENCH_SAMPLES_MAX];
    uint32_t count;
};

void bench_add_sample(struct bench_samples *samples, double ms);

/* The q-quantile, 0 <= q <= 1, or NAN without samples; sorts the samples. */
double bench_quantile(struct bench_samples *samples, double q);

struct bench_suite {
    const char *name;
    const char *brief;
    int (*run)(struct bench *bench, struct error *err);
    bool optional; /* 'all' does not fail if this suite returns -ENOTSUP */
};

/* All of them, ended by NULL. */
extern const struct bench_suite *const bench_suites[];

extern const struct bench_suite bench_sim, bench_fit, bench_fitgpp, bench_flow,
    bench_solve, bench_gavel, bench_one, bench_forecast, bench_live, bench_slurm;
