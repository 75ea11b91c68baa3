/* sim.c - berth sim: one policy on one workload. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "cmd/berth/command.h"
#include "cmd/berth/figures.h"
#include "cmd/berth/sim_options.h"
#include "cmd/berth/terminal.h"
#include "policy/policy.h"
#include "study/comparison.h"
#include "study/report_page.h"

static const struct flag sim_flags[] = {
    SIM_OPTIONS_FLAGS,
    { "allocations", 0, "FILE",
      "recorded shares, JSON lines, instead of a time-share policy's own" },
    { "jobs-out", 0, "F.csv", "write a line per job" },
    { "ledger", 0, "F.csv", "write a line per preemption: what it cost and brought" },
    { "trace-out", 0, "F.json", "write who held which GPU when, for Perfetto" },
    { 0 },
};

static void print_json(const struct comparison *comparison,
                       const struct sim_setup *options)
{
    const struct sim_result *result = &comparison->runs[0].result;
    const struct sim_cost *cost = &result->cost;
    struct json *root = json_new_object();
    json_put_text(root, "policy", options->policy);
    if (result->network.mode)
        json_put_text(root, "flow_policy", options->flow ? options->flow : "fair");
    json_put_count(root, "seed", (int64_t)options->seed);
    summary_json(&result->summary, root);
    if (result->network.mode) {
        struct json *network = json_new_object();
        json_put_text(network, "mode", result->network.mode);
        json_put_count(network, "jobs_max", result->network.jobs);
        json_put_count(network, "changes", (int64_t)result->network.changes);
        json_put_count(network, "level_changes", (int64_t)result->network.levels);
        json_put(root, "network", network);
    }
    struct json *sim = json_new_object();
    json_put_count(sim, "events", (int64_t)cost->event_count);
    json_put_count(sim, "decisions", (int64_t)cost->decision_count);
    json_put_number(sim, "wall_s", cost->wall_s);
    if (cost->wall_s > 0)
        json_put_number(sim, "events_per_s", (double)cost->event_count / cost->wall_s);
    struct json *decide = json_new_object();
    json_put_number(decide, "p50", cost->decide_us_p50);
    json_put_number(decide, "p99", cost->decide_us_p99);
    json_put_number(decide, "max", cost->decide_us_max);
    json_put(sim, "decide_us", decide);
    json_put_count(sim, "peak_rss_bytes", (int64_t)cost->peak_rss_bytes);
    json_put(root, "sim", sim);
    json_print(root, stdout, true);
    json_free(root);
}

static void print_table(const struct comparison *comparison, FILE *file)
{
    const struct sim_cost *cost = &comparison->runs[0].result.cost;
    const struct sim_network *network = &comparison->runs[0].result.network;
    char line[256];
    figures_print(comparison, file);
    snprintf(line, sizeof line,
             "%llu events in %.2f s (%.1f million/s), a decision takes %.1f us (99 %%: "
             "%.1f)",
             (unsigned long long)cost->event_count, cost->wall_s,
             cost->wall_s > 0 ? (double)cost->event_count / cost->wall_s * 1e-6 : 0,
             cost->decide_us_p50, cost->decide_us_p99);
    fputc('\n', file);
    terminal_print_wrapped(line, 0, file);
    if (network->mode) {
        snprintf(line, sizeof line,
                 "network: %s, at most %u jobs at once, %llu times somebody began or "
                 "ended to send",
                 network->mode, network->jobs, (unsigned long long)network->changes);
        terminal_print_wrapped(line, 0, file);
    }
    if (cost->skipped > 0) {
        snprintf(line, sizeof line,
                 "%llu rows of the trace are no job that can be run and were passed "
                 "over; 'berth import' says why",
                 (unsigned long long)cost->skipped);
        terminal_print_wrapped(line, 0, file);
    }
}

/* The files that a run writes while it goes, by the flags that name them; and its page. */
enum { OUT_JOBS, OUT_LEDGER, OUT_TRACE, OUT_REPORT, OUT_COUNT };

static const char *const out_flags[OUT_COUNT] = { "jobs-out", "ledger", "trace-out",
                                                  "report" };

static bool is_same_file(const char *a, const char *b)
{
    struct stat at, bt;
    if (!a || !b || output_is_stdout(a) || output_is_stdout(b))
        return false;
    return strcmp(a, b) == 0 ||
           (stat(a, &at) == 0 && stat(b, &bt) == 0 && S_ISREG(at.st_mode) &&
            at.st_dev == bt.st_dev && at.st_ino == bt.st_ino);
}

/* No output may replace another, or a file that is read. */
static int check_outputs(const struct flags *flags)
{
    static const char *const in_flags[] = { "workload", "cluster", "throughputs",
                                            "allocations" };
    const char *to_stdout = flags_get(flags, "json") ? "json" : NULL;
    for (int i = 0; i < OUT_COUNT; i++) {
        const char *path = flags_get(flags, out_flags[i]);
        if (!path)
            continue;
        if (output_is_stdout(path) && to_stdout)
            return command_wrong(flags, "--%s and --%s both want standard output",
                                 to_stdout, out_flags[i]);
        if (output_is_stdout(path))
            to_stdout = out_flags[i];
        for (int k = 0; k < i; k++)
            if (is_same_file(path, flags_get(flags, out_flags[k])))
                return command_wrong(flags, "--%s and --%s both name %s", out_flags[k],
                                     out_flags[i], path);
        for (size_t k = 0; k < sizeof in_flags / sizeof *in_flags; k++)
            if (is_same_file(path, flags_get(flags, in_flags[k])))
                return command_wrong(flags, "--%s is %s, which is read by --%s",
                                     out_flags[i], path, in_flags[k]);
    }
    return 0;
}

static int open_outputs(const struct flags *flags, struct output *outputs,
                        struct error *err)
{
    for (int i = 0; i < OUT_COUNT; i++) {
        const char *path = flags_get(flags, out_flags[i]);
        int r = !path             ? 0
                : i == OUT_REPORT ? report_page_open(&outputs[i], path, err)
                                  : output_open(&outputs[i], path, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int commit_outputs(struct output *outputs, const struct comparison *comparison,
                          struct error *err)
{
    int r = 0;
    for (int i = 0; i < OUT_REPORT && r == 0; i++)
        r = outputs[i].file ? output_commit(&outputs[i], err) : 0;
    if (r < 0 || !outputs[OUT_REPORT].file)
        return r;
    struct json *page = comparison_page(comparison);
    r = report_page_write(&outputs[OUT_REPORT], page, err);
    json_free(page);
    return r;
}

static void print_result(const struct flags *flags, const struct comparison *comparison,
                         const struct sim_setup *options)
{
    FILE *file = stdout;
    for (int i = 0; i < OUT_COUNT; i++) {
        const char *path = flags_get(flags, out_flags[i]);
        if (path && output_is_stdout(path))
            file = stderr; /* standard output holds another output */
    }
    if (flags_get(flags, "json"))
        print_json(comparison, options);
    else
        print_table(comparison, file);
    const char *report = flags_get(flags, "report");
    if (report && file == stdout && !flags_get(flags, "json"))
        printf("\n%s has the plots.\n", report);
    sim_options_print_warnings(flags, comparison);
}

static int run_simulation(const struct flags *flags, struct sim_options *options,
                          const char *policy)
{
    struct output outputs[OUT_COUNT] = { { 0 } };
    struct error err;
    struct comparison comparison = { .cluster_text = options->cluster_text,
                                     .workload_text = options->sim.workload,
                                     .command = sim_options_command_line(
                                         &options->arena, flags),
                                     .policies = { policy },
                                     .policy_count = 1,
                                     .first_seed = options->sim.seed,
                                     .seed_count = 1 };
    int r = open_outputs(flags, outputs, &err);
    options->sim.policy = policy;
    options->sim.jobs_out = outputs[OUT_JOBS].file;
    options->sim.ledger_out = outputs[OUT_LEDGER].file;
    options->sim.trace_out = outputs[OUT_TRACE].file;
    options->sim.chart = outputs[OUT_REPORT].file != NULL;
    if (r == 0)
        r = comparison_run(&comparison, &options->sim, terminal_progress, NULL, &err);
    terminal_progress_end();
    if (r == 0)
        r = commit_outputs(outputs, &comparison, &err);
    if (r == 0)
        print_result(flags, &comparison, &options->sim);
    for (int i = 0; i < OUT_COUNT; i++)
        output_release(&outputs[i]);
    comparison_release(&comparison);
    return command_status(flags, r, &err);
}

/* The policy, with --allocations as one of its settings. */
static int policy_text(const struct flags *flags, char *text, size_t size)
{
    const char *policy = flags_get(flags, "policy");
    const char *file = flags_get(flags, "allocations");
    if (file && strchr(file, ','))
        return command_wrong(flags, "--allocations: '%.80s' has a comma in its name",
                             file);
    int length = snprintf(text, size, "%s%s%s", policy ? policy : POLICY_STANDARD,
                          file ? ",allocations=" : "", file ? file : "");
    if (length < 0 || (size_t)length >= size)
        return command_wrong(flags, "--policy and --allocations are too long together");
    return 0;
}

static int sim_run_command(const struct flags *flags)
{
    char text[2048];
    struct sim_options options;
    for (const char *const *name = (const char *const[]){ "policy", "flow", NULL };
         *name; name++)
        if (flags_each(flags, *name, 1))
            return command_wrong(
                flags, "--%s is given twice; 'berth compare' takes several", *name);
    int r = sim_options_read(&options, flags);
    if (r == 0)
        r = check_outputs(flags);
    if (r == 0)
        r = policy_text(flags, text, sizeof text);
    if (r == 0)
        r = run_simulation(flags, &options, text);
    sim_options_release(&options);
    return r < 0 ? 0 : r;
}

const struct command command_sim = {
    .name = "sim",
    .group = "Study",
    .brief = "run a workload under one policy, in virtual time",
    .usage = "--cluster C --workload W [--policy P] [flags]",
    .flags = sim_flags,
    .more = "Example:\n"
            "  berth sim --cluster 4xv100:8 --workload synthetic:jobs=500,load=0.9",
    .run = sim_run_command,
};
