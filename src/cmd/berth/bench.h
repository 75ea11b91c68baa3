/* bench.h - measured figures, one row each; each suite of 'berth bench' adds its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/sim.h"

struct bench;
struct error;

/*
 * Add a row: "replay_s.fifo", 0.08, "s", over n jobs.  'versus' names what it is compared
 * with, measured in the same run, and 'ratio' says how many times as fast as that it is,
 * below 1 for slower; NULL and 0 where there is nothing.
 */
void bench_row(struct bench *bench, const char *id, double value, const char *unit,
               uint64_t n, const char *versus, double ratio);

/* Say how what follows was measured. */
void bench_note(struct bench *bench, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* CPU time of this process, in seconds. */
double bench_cpu_s(void);

/*
 * Run a simulation on that cluster, at published rates if asked for, and say what it cost;
 * 'setup' has all but the cluster and the rates.  Release the result.
 */
int bench_simulate(const char *cluster, bool published, struct sim_setup setup,
                   struct sim_result *ret_result, double *ret_cpu_s, struct error *err);

struct bench_suite {
    const char *name;
    const char *brief;
    int (*run)(struct bench *bench, struct error *err);
    bool
        optional; /* -ENOTSUP: it cannot be measured here, which is no failure of 'all' */
};

extern const struct bench_suite bench_sim, bench_fit, bench_fitgpp, bench_flow,
    bench_solve, bench_gavel, bench_live, bench_slurm;

/* A part of the suite 'solve': sums, floors, ratios and pairs. */
int bench_solve_sums(struct bench *bench, struct error *err);
