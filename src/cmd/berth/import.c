/* import.c - berth import: convert a public trace to Berth's own format, and describe it. */
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/units.h"
#include "cmd/berth/command.h"
#include "workload/csv.h"
#include "workload/workload.h"

static const struct flag import_flags[] = {
    { "format", 0, "NAME", "of the file; by default recognised by its content" },
    { "output", 'o', "FILE",
      "write the jobs there in Berth's own format; - is standard output" },
    { "json", 0, NULL, "print the facts as JSON" },
    { 0 },
};

static void print_json(const struct workload_facts *facts)
{
    struct json *json = json_new_object();
    json_put_text(json, "format", facts->format);
    json_put_count(json, "jobs", (int64_t)facts->job_count);
    json_put_count(json, "skipped", (int64_t)facts->skipped);
    struct json *reasons = json_new_object();
    for (uint32_t i = 0; i < facts->reason_count; i++)
        json_put_count(reasons, facts->reasons[i].reason,
                       (int64_t)facts->reasons[i].count);
    json_put(json, "skipped_reasons", reasons);
    if (facts->gpu_time_known)
        json_put_number(json, "gpu_hours", workload_gpu_hours(facts));
    if (facts->job_count > 0) {
        json_put_number(json, "first_submit", (double)facts->first_submit_ns / 1e9);
        json_put_number(json, "last_submit", (double)facts->last_submit_ns / 1e9);
        json_put_count(json, "max_gpus", facts->max_gpus);
    }
    json_print(json, stdout, /* indented= */ false);
    json_free(json);
}

static void print_table(const struct workload_facts *facts, FILE *file)
{
    fprintf(file, "%-14s %s\n", "format", facts->format);
    fprintf(file, "%-14s %llu\n", "jobs", (unsigned long long)facts->job_count);
    fprintf(file, "%-14s %llu\n", "skipped", (unsigned long long)facts->skipped);
    for (uint32_t i = 0; i < facts->reason_count; i++)
        fprintf(file, "  %-18s %llu\n", facts->reasons[i].reason,
                (unsigned long long)facts->reasons[i].count);
    if (facts->gpu_time_known)
        fprintf(file, "%-14s %.4f\n", "GPU-hours", workload_gpu_hours(facts));
    char span[32];
    units_show_time(span, sizeof span,
                    (double)(facts->last_submit_ns - facts->first_submit_ns) / 1e9);
    fprintf(file, "%-14s %s\n", "submitted in", span);
    fprintf(file, "%-14s %u GPUs\n", "largest job", facts->max_gpus);
}

/* Read all jobs, writing them if there is an 'output'. */
static int read_jobs(struct workload *workload, const char *path, bool writes,
                     struct error *err)
{
    struct job_spec job;
    struct output output = { 0 };
    int r;
    if (!writes) {
        while ((r = workload_next(workload, &job, err)) > 0)
            ;
        return r;
    }
    r = output_open(&output, path, err);
    if (r == 0)
        r = workload_write(workload, output.file, err);
    if (r == 0)
        r = output_commit(&output, err);
    output_release(&output);
    return r;
}

static int import_run(const struct flags *flags)
{
    if (flags->word_count != 1)
        return command_wrong(flags, "want one file; see 'berth import --help'");
    const char *path = flags_get(flags, "output");
    const char *format = flags_get(flags, "format");
    bool json = flags_get(flags, "json") != NULL;
    bool to_stdout = path ? output_is_stdout(path) : !json;
    if (json && to_stdout)
        return command_wrong(flags, "--json and -o both want standard output");

    struct workload *workload = NULL;
    struct error err;
    int r =
        workload_open(&workload, flags->words[0], format ? format : "auto", 0, 0, &err);
    if (r == 0)
        r = read_jobs(workload, path, path || to_stdout, &err);
    if (r == 0 && json)
        print_json(workload_facts(workload));
    else if (r == 0)
        print_table(workload_facts(workload), to_stdout ? stderr : stdout);
    workload_close(workload);
    return command_status(flags, r, &err);
}

const struct command command_import = {
    .name = "import",
    .group = "Study",
    .brief = "turn a trace into Berth's own format and tell its facts",
    .usage = "FILE [--format NAME] [-o OUT.csv] [--json]",
    .flags = import_flags,
    .more = "Formats: auto, berth, philly, philly-csv, helios, pai, acme, gavel, swf, "
            "sacct,\n"
            "generic.  The file may be gzip or zstd, or - for\n"
            "standard input.  Without -o and --json the jobs go to standard output and "
            "the\n"
            "facts to standard error.",
    .run = import_run,
};
