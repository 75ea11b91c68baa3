/* sim_options.c - the flags that sim and compare share. */
#include "cmd/berth/sim_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/param.h"
#include "cmd/berth/command.h"
#include "cmd/berth/policies.h"
#include "flow/flow.h"
#include "lab/recorded_shares.h"
#include "study/comparison.h"
#include "workload/workload.h"

#define ERROR_SIGMA_MAX 5.0
#define MTBF_MIN_NS 1000000000

static const struct field faults_params[] = {
    { "mtbf", FIELD_TIME, offsetof(struct sim_faults, mtbf_ns), "0s", NULL,
      "mean time between failures of a node" },
    { "mttr", FIELD_TIME, offsetof(struct sim_faults, mttr_ns), "10m", NULL,
      "mean time to repair" },
    { NULL },
};

static int read_faults(struct sim_options *options, const struct flags *flags,
                       struct error *err)
{
    const char *text = flags_get(flags, "faults");
    param_defaults(faults_params, &options->sim.faults);
    int r = param_parse(faults_params, &options->sim.faults, "--faults", text, err);
    if (r == 0 && text && options->sim.faults.mtbf_ns < MTBF_MIN_NS)
        return error_set(err, -EINVAL,
                         "--faults is \"%.40s\", want such as mtbf=12h,mttr=10m, with "
                         "mtbf at least 1s",
                         text);
    return r;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int read_window(struct sim_options *options, const struct flags *flags,
                       struct error *err)
{
    const char *text = flags_get(flags, "window");
    if (!text)
        return 0;
    char *middle;
    char *end = NULL;
    errno = 0;
    uint64_t from = strtoull(text, &middle, 10);
    uint64_t to = *middle == ':' ? strtoull(middle + 1, &end, 10) : 0;
    if (!is_digit(text[0]) || !end || !is_digit(middle[1]) || *end || errno ||
        to <= from)
        return error_set(err, -EINVAL,
                         "--window is \"%.40s\", want A:B, whole numbers with A < B",
                         text);
    options->sim.window_from = from;
    options->sim.window_to = to;
    return 0;
}

static int read_network(struct sim_options *options, const struct flags *flags,
                        struct error *err)
{
    static const char *const modes[] = {
        [FLUID_AUTO] = "auto", [FLUID_EXACT] = "exact", [FLUID_MEAN] = "mean"
    };
    const char *text = flags_get(flags, "network");
    const struct flow_policy *flow;
    const char *settings;
    options->sim.flow = flags_get(flags, "flow");
    int r =
        options->sim.flow ? flow_parse(options->sim.flow, &flow, &settings, err) : 0;
    if (r < 0 || !text)
        return r;
    for (uint32_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i], text) == 0) {
            options->sim.network.mode = (enum fluid_mode)i;
            return 0;
        }
    return error_set(err, -EINVAL, "--network is \"%.40s\", want auto, exact or mean",
                     text);
}

/* The cluster that is given, or the one the workload is meant for. */
static int read_cluster(struct sim_options *options, const struct flags *flags,
                        struct error *err)
{
    const char *text = flags_get(flags, "cluster");
    if (!text) {
        struct workload *workload;
        int r = workload_open(&workload, options->sim.workload, options->sim.format,
                              options->sim.seed, 0, err);
        if (r < 0)
            return r;
        const char *own = workload_facts(workload)->cluster;
        text = own ? arena_text(&options->arena, own) : NULL;
        workload_close(workload);
    }
    if (!text)
        return error_set(
            err, -EINVAL,
            "--cluster is missing: a preset, a YAML file, or such as 4xv100:8");
    options->cluster_text = text;
    return cluster_load(&options->cluster, &options->arena, text, err);
}

int sim_options_read(struct sim_options *options, const struct flags *flags)
{
    *options = (struct sim_options){ 0 };
    arena_init(&options->arena, 0);
    recorded_shares_enable();
    if (flags->word_count > 0)
        return command_wrong(flags, "'%.60s' is not a flag; see 'berth %s --help'",
                             flags->words[0], flags->command->name);
    const char *cluster = flags_get(flags, "cluster");
    if (cluster && strcmp(cluster, "list") == 0) {
        cluster_list(stdout);
        return -1;
    }
    options->sim.workload = flags_get(flags, "workload");
    if (options->sim.workload && strcmp(options->sim.workload, "list") == 0) {
        policies_print_presets(stdout);
        return -1;
    }
    options->sim.format = flags_get(flags, "format");
    options->sim.seed = flags_count(flags, "seed", 0, UINT64_MAX, 1);
    options->sim.cost_error = flags_number(flags, "cost-error", 0, ERROR_SIGMA_MAX, 0);
    options->sim.estimate_error =
        flags_number(flags, "estimate-error", 0, ERROR_SIGMA_MAX, 0);
    options->sim.calendar = flags_get(flags, "calendar");
    options->sim.declare_curves = flags_get(flags, "declare-curves") != NULL;
    options->sim.learn_rates = flags_get(flags, "learn-rates") != NULL;
    if (!options->sim.workload)
        return command_wrong(flags, "--workload is missing: a trace file, or a preset "
                                    "such as synthetic:jobs=1000,load=0.9");
    struct error err;
    int r = read_faults(options, flags, &err);
    if (r == 0)
        r = read_window(options, flags, &err);
    if (r == 0)
        r = read_network(options, flags, &err);
    if (r == 0)
        r = read_cluster(options, flags, &err);
    if (r < 0)
        return command_status(flags, r, &err);
    options->sim.cluster = &options->cluster;
    throughput_init(&options->rates, &options->cluster);
    options->sim.rates = &options->rates;
    const char *path = flags_get(flags, "throughputs");
    if (path)
        r = throughput_load(&options->rates, &options->arena, path, &err);
    else
        throughput_published(&options->rates, &options->arena);
    return command_status(flags, r, &err);
}

void sim_options_release(struct sim_options *options)
{
    arena_release(&options->arena);
}

/* Append a word, quoted for the shell. */
static void put_word(struct buf *buf, const char *word)
{
    bool plain = word[0] && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz"
                                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                               "0123456789_-+=,.:/@%")];
    if (plain) {
        buf_text(buf, word);
        return;
    }
    buf_text(buf, "'");
    for (; *word; word++)
        if (*word == '\'')
            buf_text(buf, "'\\''");
        else
            buf_add(buf, word, 1);
    buf_text(buf, "'");
}

const char *sim_options_command_line(struct arena *arena, const struct flags *flags)
{
    struct buf buf;
    buf_init(&buf, 4096);
    buf_print(&buf, "berth %s", flags->command->name);
    for (uint32_t i = 0; i < flags->given_count; i++) {
        buf_print(&buf, " --%s", flags->given[i].flag->name);
        if (flags->given[i].flag->value) {
            buf_text(&buf, " ");
            put_word(&buf, flags->given[i].value);
        }
    }
    const char *text = arena_text(arena, buf.bytes);
    buf_release(&buf);
    return text;
}

void sim_options_print_warnings(const struct flags *flags,
                                const struct comparison *comparison)
{
    const char *name = flags->command->name;
    const struct sim_result *first = &comparison->runs[0].result;
    const char *rejection = "";
    for (uint32_t i = 0; i < comparison->policy_count * comparison->seed_count; i++) {
        const struct sim_cost *cost = &comparison->runs[i].result.cost;
        if (!rejection[0])
            rejection = cost->rejection;
        if (cost->refused_count > 0)
            fprintf(
                stderr,
                "berth %s: %llu plans of %s were thrown away, the last because %s\n",
                name, (unsigned long long)cost->refused_count,
                comparison_name(comparison, i / comparison->seed_count), cost->refusal);
    }
    if (rejection[0])
        fprintf(stderr, "berth %s: rejected jobs can never run here: %s\n", name,
                rejection);
    if (flags_get(flags, "flow") && !first->network.mode)
        fprintf(stderr,
                "berth %s: no job of this workload uses the network: --flow changes "
                "nothing\n",
                name);
}
