/* gen.c - berth gen: write a generated workload as a file. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/output.h"
#include "base/suggest.h"
#include "cmd/berth/command.h"
#include "cmd/berth/policies.h"
#include "workload/csv.h"
#include "workload/preset.h"
#include "workload/workload.h"

#define TEXT_MAX 4096
#define NAMES_MAX 64

static const struct flag gen_flags[] = {
    { "preset", 0, "NAME[:SETTINGS]",
      "the generator, such as synthetic:trace=helios; or 'list'" },
    { "jobs", 0, "N", "the setting jobs" },
    { "gpus", 0, "G", "the setting gpus: GPUs the load is meant for" },
    { "load", 0, "L", "the setting load: work per GPU time there is" },
    { "trial-share", 0, "F", "the setting trial_share" },
    { "seed", 0, "S", "of the random numbers; 1" },
    { "output", 'o', "FILE", "where to write; standard output" },
    { 0 },
};

/* Flags that set a setting of the preset. */
static const char *const settings[][2] = { { "jobs", "jobs" },
                                           { "gpus", "gpus" },
                                           { "load", "load" },
                                           { "trial-share", "trial_share" } };

static int unknown_preset(const struct flags *flags, const char *name)
{
    const char *names[NAMES_MAX + 1] = { NULL };
    for (uint32_t i = 0; preset_list[i] && i < NAMES_MAX; i++)
        names[i] = preset_list[i]->name;
    char hint[128];
    return command_wrong(flags, "no preset '%.40s'%s; '--preset list' shows them", name,
                         suggest_names(hint, sizeof hint, name, names));
}

static int write_preset(const struct flags *flags, const char *text)
{
    uint64_t seed = flags_count(flags, "seed", 0, UINT64_MAX, 1);
    struct workload *workload = NULL;
    struct output output = { 0 };
    struct error err;
    int r = workload_open(&workload, text, NULL, seed, 0, &err);
    if (r == 0)
        r = output_open(&output, flags_get(flags, "output"), &err);
    if (r == 0)
        r = workload_write(workload, output.file, &err);
    if (r == 0)
        r = output_commit(&output, &err);
    output_release(&output);
    workload_close(workload);
    return command_status(flags, r, &err);
}

static int gen_run(const struct flags *flags)
{
    if (flags->word_count > 0)
        return command_wrong(flags, "'%.40s' is too much; the generator is --preset",
                             flags->words[0]);
    const char *given = flags_get(flags, "preset");
    if (!given)
        return command_wrong(
            flags, "--preset is missing; '--preset list' shows what there is");
    if (strcmp(given, "list") == 0) {
        policies_print_presets(stdout);
        return 0;
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, ":"), given);
    if (!preset_find(name))
        return unknown_preset(flags, name);

    struct buf text;
    buf_init(&text, TEXT_MAX);
    buf_text(&text, given);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *value = flags_get(flags, settings[i][0]);
        if (value)
            buf_print(&text, "%s%s=%s", strchr(text.bytes, ':') ? "," : ":",
                      settings[i][1], value);
    }
    int status = text.full ? command_wrong(flags, "the settings are too long")
                           : write_preset(flags, text.bytes);
    buf_release(&text);
    return status;
}

const struct command command_gen = {
    .name = "gen",
    .group = "Study",
    .brief = "write a generated workload in Berth's own format",
    .usage = "--preset NAME[:SETTING=VALUE,…] [--seed S] [-o FILE.csv]",
    .flags = gen_flags,
    .more = "Equal settings and seed give equal files.",
    .run = gen_run,
};
