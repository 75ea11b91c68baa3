/* bench.c - the list of suites, and the rows and notes that they write. */
#include "lab/bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "model/cluster.h"
#include "model/throughput.h"

const struct bench_suite *const bench_suites[] = {
    &bench_sim,   &bench_fit,   &bench_fitgpp, &bench_flow,
    &bench_solve, &bench_gavel, &bench_one,    &bench_forecast,
    &bench_live,  &bench_slurm, NULL
};

int bench_simulate(const char *name, bool published, struct sim_setup setup,
                   struct sim_result *ret_result, double *ret_cpu_s, struct error *err)
{
    struct arena arena;
    struct cluster cluster;
    struct throughput rates;
    arena_init(&arena, 0);
    int r = cluster_load(&cluster, &arena, name, err);
    if (r == 0) {
        throughput_init(&rates, &cluster);
        if (published)
            throughput_published(&rates, &arena);
        setup.cluster = &cluster;
        setup.rates = &rates;
        double begin_s = clock_cpu_s();
        r = sim_run(&setup, ret_result, err);
        *ret_cpu_s = clock_cpu_s() - begin_s;
    }
    arena_release(&arena);
    return r;
}

void bench_row_versus(struct bench *bench, const char *id, double value,
                      const char *unit, uint64_t n, const char *versus, double ratio)
{
    if (!bench->rows) {
        printf("%-34s %12.4g %-12s", id, value, unit);
        if (versus)
            printf(" %8.3g x %s", ratio, versus);
        printf("\n");
        fflush(stdout);
        return;
    }
    struct json *row = json_new_object();
    json_put_text(row, "id", id);
    json_put_number(row, "value", value);
    json_put_text(row, "unit", unit);
    json_put_count(row, "n", (int64_t)n);
    if (versus) {
        json_put_text(row, "versus", versus);
        json_put_number(row, "ratio", ratio);
    }
    json_add(bench->rows, row);
}

void bench_row(struct bench *bench, double value, const char *unit, uint64_t n,
               const char *id, ...)
{
    char text[96];
    va_list args;
    va_start(args, id);
    vsnprintf(text, sizeof text, id, args);
    va_end(args);
    bench_row_versus(bench, text, value, unit, n, NULL, 0);
}

void bench_add_sample(struct bench_samples *samples, double ms)
{
    if (samples->count < BENCH_SAMPLES_MAX)
        samples->ms[samples->count++] = ms;
}

static int compare_numbers(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double bench_quantile(struct bench_samples *samples, double q)
{
    if (samples->count == 0)
        return NAN;
    qsort(samples->ms, samples->count, sizeof *samples->ms, compare_numbers);
    return samples->ms[(uint32_t)(q * (samples->count - 1) + 0.5)];
}
