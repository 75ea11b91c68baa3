/*
 * bench.c - berth bench: how fast, as figures.
 *
 * Figures, never verdicts: machines differ and have neighbours.  Times are CPU time of
 * this process; those of 'live' and 'slurm', where others do the work, are of the wall
 * clock.
 */
#include "cmd/berth/bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "cmd/berth/command.h"
#include "model/cluster.h"
#include "model/throughput.h"

static const struct bench_suite *const suites[] = {
    &bench_sim,   &bench_fit,  &bench_fitgpp, &bench_flow, &bench_solve,
    &bench_gavel, &bench_live, &bench_slurm,  NULL
};

#define SUITES_MAX 16

struct bench {
    struct json *rows; /* NULL: print a table */
    struct json *notes;
};

static const struct flag bench_flags[] = {
    { "json", 0, NULL, "for programs: one object" },
    { 0 },
};

double bench_cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

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
        double begin_s = bench_cpu_s();
        r = sim_run(&setup, ret_result, err);
        *ret_cpu_s = bench_cpu_s() - begin_s;
    }
    arena_release(&arena);
    return r;
}

void bench_row(struct bench *bench, const char *id, double value, const char *unit,
               uint64_t n, const char *versus, double ratio)
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

void bench_note(struct bench *bench, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (bench->rows)
        json_add_text(bench->notes, text);
    else
        printf("# %s\n", text);
}

static int run_suites(const struct flags *flags, const char *name, struct bench *bench)
{
    const char *names[SUITES_MAX + 2] = { "all" };
    bool found = false;
    for (uint32_t i = 0; suites[i]; i++) {
        names[i + 1] = suites[i]->name;
        if (strcmp(name, "all") != 0 && strcmp(name, suites[i]->name) != 0)
            continue;
        found = true;
        struct error err;
        int r = suites[i]->run(bench, &err);
        if (r == -ENOTSUP && suites[i]->optional && strcmp(name, "all") == 0)
            fprintf(stderr, "berth bench: %s: %s\n", suites[i]->name, err.text);
        else if (r < 0)
            return command_status(flags, r, &err);
    }
    if (found)
        return 0;
    char hint[128];
    return command_wrong(flags, "no suite '%.40s'%s; see 'berth bench --help'", name,
                         suggest(hint, sizeof hint, name, names));
}

static int bench_run(const struct flags *flags)
{
    if (flags->word_count != 1)
        return command_wrong(
            flags,
            "want one suite: sim, fit, fitgpp, flow, solve, gavel, live, slurm, or "
            "all");
    struct bench bench = { .rows = flags_get(flags, "json") ? json_new_array() : NULL };
    bench.notes = bench.rows ? json_new_array() : NULL;
    int status = run_suites(flags, flags->words[0], &bench);
    if (bench.rows) {
        struct json *root = json_new_object();
        json_put(root, "rows", bench.rows);
        json_put(root, "notes", bench.notes);
        if (status == 0 || json_count(bench.rows) > 0) /* what came before it failed */
            json_print(root, stdout, true);
        json_free(root);
    }
    return status;
}

const struct command command_bench = {
    .name = "bench",
    .group = "Study",
    .brief = "measure how fast it is",
    .usage = "sim|fit|fitgpp|flow|solve|gavel|live|slurm|all [--json]",
    .flags = bench_flags,
    .more =
        "sim    replay of 100,000 and of 1,000,000 jobs, cost of a decision, reading\n"
        "fit    learning curves of 100 points, both families, cold and warm; "
        "forecasts\n"
        "fitgpp choosing a victim among 80,000 jobs, the whole study\n"
        "flow   whose packets go first, for 1,000 jobs on 1,000 hosts; the network\n"
        "solve  shares of 100,000 jobs by prices, and CLP beside it\n"
        "gavel  a solution and a round of each policy, over the number of jobs\n"
        "live   berthd itself: submissions, starts, preemptions, restarts\n"
        "slurm  Berth on a Slurm of its own, beside Slurm alone; as root, in the "
        "sources\n"
        "all    everything there is",
    .run = bench_run,
};
