/* compare.c - berth compare: several policies on the same workloads. */
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "cmd/berth/command.h"
#include "cmd/berth/figures.h"
#include "cmd/berth/sim_options.h"
#include "cmd/berth/terminal.h"
#include "flow/flow.h"
#include "policy/policy.h"
#include "study/comparison.h"
#include "study/report_page.h"

static const struct flag compare_flags[] = {
    SIM_OPTIONS_FLAGS,
    { "seeds", 0, "N", "runs per policy, with seeds S, S+1, …; 1" },
    { 0 },
};

static int add_column(const struct flags *flags, struct comparison *comparison,
                      struct arena *arena, const char *policy, const char *flow)
{
    uint32_t at = comparison->policy_count;
    if (at == COMPARISON_POLICIES_MAX)
        return command_wrong(flags, "more than %d policies", COMPARISON_POLICIES_MAX);
    comparison->policies[at] = policy;
    comparison->flows[at] = flow;
    if (flow && flags_each(flags, "flow", 1)) {
        size_t bytes = strlen(policy) + strlen(flow) + 4;
        char *name = arena_array(arena, char, bytes);
        snprintf(name, bytes, "%s + %s", policy, flow);
        comparison->names[at] = name;
    }
    comparison->policy_count++;
    return 0;
}

/* One column for every pair of a policy and a flow policy. */
static int read_policies(const struct flags *flags, struct comparison *comparison,
                         struct arena *arena)
{
    const char *text;
    for (uint32_t i = 0; (text = flags_each(flags, "policy", i)); i++) {
        const struct policy *policy;
        const char *settings;
        struct error err;
        int r = policy_parse(text, &policy, &settings, &err);
        if (r < 0)
            return command_status(flags, r, &err);
        const char *flow = flags_each(flags, "flow", 0);
        uint32_t f = 0;
        do {
            const struct flow_policy *found;
            r = flow ? flow_parse(flow, &found, &settings, &err) : 0;
            if (r < 0)
                return command_status(flags, r, &err);
            r = add_column(flags, comparison, arena, text, flow);
            if (r != 0)
                return r;
        } while ((flow = flags_each(flags, "flow", ++f)));
    }
    if (comparison->policy_count == 0)
        return command_wrong(flags,
                             "--policy is missing; give it once for each policy");
    return 0;
}

static int write_page(struct output *output, const struct comparison *comparison,
                      struct error *err)
{
    struct json *page = comparison_page(comparison);
    int r = report_page_write(output, page, err);
    json_free(page);
    return r;
}

static void print_result(const struct flags *flags, const struct comparison *comparison)
{
    const char *report = flags_get(flags, "report");
    FILE *file = report && output_is_stdout(report) ? stderr : stdout;
    sim_options_print_warnings(flags, comparison);
    if (flags_get(flags, "json")) {
        struct json *json = comparison_json(comparison);
        json_print(json, stdout, true);
        json_free(json);
        return;
    }
    figures_print(comparison, file);
    if (report && file == stdout)
        printf("\n%s has the plots.\n", report);
}

static int run_comparison(const struct flags *flags, struct sim_options *options,
                          struct comparison *comparison)
{
    const char *report = flags_get(flags, "report");
    struct output page = { 0 };
    struct error err;
    if (report && flags_get(flags, "json") && output_is_stdout(report))
        return command_wrong(flags, "--json and --report both want standard output");
    comparison->cluster_text = options->cluster_text;
    comparison->workload_text = options->sim.workload;
    comparison->command = sim_options_command_line(&options->arena, flags);
    comparison->first_seed = options->sim.seed;
    comparison->seed_count =
        (uint32_t)flags_count(flags, "seeds", 1, COMPARISON_SEEDS_MAX, 1);
    options->sim.chart = report != NULL;
    int r = report ? report_page_open(&page, report, &err) : 0;
    if (r == 0)
        r = comparison_run(comparison, &options->sim, terminal_progress, NULL, &err);
    terminal_progress_end();
    if (r == 0 && report)
        r = write_page(&page, comparison, &err);
    if (r == 0)
        print_result(flags, comparison);
    output_release(&page);
    return command_status(flags, r, &err);
}

static int compare_run(const struct flags *flags)
{
    struct comparison comparison = { 0 };
    struct sim_options options;
    int r = sim_options_read(&options, flags);
    if (r == 0)
        r = read_policies(flags, &comparison, &options.arena);
    if (r == 0)
        r = run_comparison(flags, &options, &comparison);
    comparison_release(&comparison);
    sim_options_release(&options);
    return r < 0 ? 0 : r;
}

const struct command command_compare = {
    .name = "compare",
    .group = "Study",
    .brief = "run several policies on the same workloads and compare them",
    .usage = "--cluster C --workload W --policy P --policy P … [flags]",
    .flags = compare_flags,
    .more =
        "Example:\n"
        "  berth compare --cluster 4xv100:8 --workload synthetic:jobs=500,load=0.9 \\\n"
        "      --policy fifo --policy srtf --seeds 5 --report page.html",
    .run = compare_run,
};
