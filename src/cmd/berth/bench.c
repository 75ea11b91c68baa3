/* bench.c - berth bench: measure the speed of a suite of lab/, as a table or as JSON. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "cmd/berth/command.h"
#include "lab/bench.h"

#define SUITES_MAX 16

static const struct flag bench_flags[] = {
    { "json", 0, NULL, "for programs: one object" },
    { 0 },
};

static int run_suites(const struct flags *flags, const char *name, struct bench *bench)
{
    const char *names[SUITES_MAX + 2] = { "all" };
    bool found = false;
    for (uint32_t i = 0; bench_suites[i]; i++) {
        names[i + 1] = bench_suites[i]->name;
        if (strcmp(name, "all") != 0 && strcmp(name, bench_suites[i]->name) != 0)
            continue;
        found = true;
        struct error err;
        int r = bench_suites[i]->run(bench, &err);
        if (r == -ENOTSUP && bench_suites[i]->optional && strcmp(name, "all") == 0)
            fprintf(stderr, "berth bench: %s: %s\n", bench_suites[i]->name, err.text);
        else if (r < 0)
            return command_status(flags, r, &err);
    }
    if (found)
        return 0;
    char hint[128];
    return command_wrong(flags, "no suite '%.40s'%s; see 'berth bench --help'", name,
                         suggest_names(hint, sizeof hint, name, names));
}

static int bench_run(const struct flags *flags)
{
    if (flags->word_count != 1)
        return command_wrong(
            flags,
            "want one suite: sim, fit, fitgpp, flow, solve, gavel, one, live, slurm, "
            "or all");
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
    .usage = "sim|fit|fitgpp|flow|solve|gavel|one|live|slurm|all [--json]",
    .flags = bench_flags,
    .more =
        "sim    replay of 100,000 and of 1,000,000 jobs, cost of a decision, reading\n"
        "fit    learning curves of 100 points, both families, cold and warm; "
        "forecasts\n"
        "fitgpp choosing a victim among 80,000 jobs, the whole study\n"
        "flow   whose packets go first, for 1,000 jobs on 1,000 hosts; the network\n"
        "solve  shares of 100,000 jobs by prices, and CLP beside it\n"
        "gavel  a solution and a round of each policy, over the number of jobs\n"
        "one    the policy berth beside xion, by GPUs, types, queue and jobs\n"
        "live   berthd itself: submissions, starts, preemptions, restarts\n"
        "slurm  Berth on a Slurm of its own, beside Slurm alone; as root, in the "
        "sources\n"
        "all    everything there is",
    .run = bench_run,
};
