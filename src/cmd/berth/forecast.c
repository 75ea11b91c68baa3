/* forecast.c - berth forecast: when jobs will start and end, and how well that was known lately. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/expected_times.h"
#include "cmd/berth/format.h"
#include "cmd/berth/terminal.h"
#include "cmd/berth/text_table.h"

#define IDS_MAX 400 /* jobs in one request */
#define PATH_MAX_BYTES 8192

/* The jobs that are wanted; none: all. */
struct asked {
    uint64_t *ids;
    uint32_t count;
};

static const struct flag forecast_flags[] = {
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

/* --- jobs --- */

static const struct text_table_column columns[] = {
    { "ID", .right = true },
    { "NAME", .min = 8 },
    { "USER", .min = 6, .spare = 3 },
    { "STATE", .spare = 2 },
    { "GPUS", .right = true, .spare = 1 },
    { "START", .min = 11 },
    { "END", .min = 11 },
    { "BASIS", .min = 16, .spare = 4 },
};

static void add_expected(struct text_table *table, const struct json *expected)
{
    char text[EXPECTED_TIMES_LENGTH];
    text_table_add(table, "%s",
                   expected_times_format(text, sizeof text, "", expected,
                                         (double)time(NULL),
                                         terminal_has_utf8(stdout)));
}

static void add_job(struct text_table *table, const struct json *job)
{
    char text[EXPECTED_TIMES_LENGTH];
    const char *state = json_text_or(job, "state", "");
    const struct json *start = json_get(job, "expected_start");
    const struct json *end = json_get(job, "expected_end");
    text_table_add(table, "%s", format_job_id(text, sizeof text, job));
    text_table_add(table, "%s", json_text_or(job, "name", ""));
    text_table_add(table, "%s", json_text_or(job, "user", ""));
    text_table_add(table, "%s", state);
    text_table_set_colour(table, format_state_colour(state));
    text_table_add(table, "%.0f", json_number_or(job, "gpus", 0));
    add_expected(table, start);
    add_expected(table, end);
    text_table_add(table, "%s",
                   expected_times_basis(text, sizeof text, start ? start : end));
}

static void print_jobs(const struct json *jobs)
{
    struct text_table table;
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(jobs); i++)
        add_job(&table, json_item(jobs, i));
    text_table_show(&table, stdout);
    text_table_release(&table);
}

/* When it was made, by what, and how far it looks. */
static void print_origin(const struct json *forecast)
{
    char made[64], far[64], took[64];
    double at = json_number_or(forecast, "made", NAN);
    double horizon = json_number_or(forecast, "horizon", NAN);
    double replicates = json_number_or(forecast, "replicates", NAN);
    double took_s = json_number_or(forecast, "took_s", NAN);
    if (isnan(at))
        return;
    printf("\nMade at %s by playing ", format_time(made, sizeof made, at));
    terminal_print_safely(json_text_or(forecast, "policy", "the policy"));
    printf(" forward");
    if (replicates > 0)
        printf(" %.0f times", replicates);
    if (horizon > at)
        printf(", up to %s", format_duration(far, sizeof far, horizon - at));
    if (took_s >= 0.001)
        printf("; it took %s", format_duration(took, sizeof took, took_s));
    puts(". An interval is to hold four times in five.");
}

/* --- how well they held --- */

static const struct text_table_column kind_columns[] = {
    { "POLICY", .min = 8 },
    { "OF THE" },
    { "FORECASTS", .right = true },
    { "HELD", .right = true },
    { "MEDIAN ERROR", .right = true },
    { "SHOWN", .spare = 2 },
    { "LOSS", .right = true, .spare = 1 },
};

static void add_percent(struct text_table *table, double share)
{
    if (isnan(share))
        text_table_add(table, "%s", "");
    else
        text_table_add(table, "%.0f %%", 100 * share);
}

static void add_kind(struct text_table *table, const struct json *kind)
{
    char text[64];
    double loss = json_number_or(kind, "loss_ratio", NAN);
    text_table_add(table, "%s", json_text_or(kind, "policy", ""));
    text_table_add(table, "%s", json_text_or(kind, "target", ""));
    text_table_add(table, "%.0f", json_number_or(kind, "n", 0));
    add_percent(table, json_number_or(kind, "coverage_80", NAN));
    text_table_add(table, "%s",
                   format_duration(text, sizeof text,
                                   json_number_or(kind, "median_abs_error_s", NAN)));
    text_table_add(table, "%s", json_text_or(kind, "shown", ""));
    if (isnan(loss))
        text_table_add(table, "%s", "");
    else
        text_table_add(table, "%.2f", loss);
}

static void print_kinds(const struct json *kinds)
{
    struct text_table table;
    text_table_init(&table, kind_columns, sizeof kind_columns / sizeof *kind_columns);
    for (size_t i = 0; i < json_count(kinds); i++)
        add_kind(&table, json_item(kinds, i));
    text_table_show(&table, stdout);
    text_table_release(&table);
}

static void print_calibration(const struct json *calibration)
{
    char error[64];
    const struct json *kinds = json_get(calibration, "kinds");
    double n = json_number_or(calibration, "n", 0);
    double coverage = json_number_or(calibration, "coverage_80", NAN);
    double days = json_number_or(calibration, "days", 14);
    format_duration(error, sizeof error,
                    json_number_or(calibration, "median_abs_error_s", NAN));
    putchar('\n');
    if (n < 1 || isnan(coverage))
        printf(
            "How well forecasts hold is not known yet: under this policy none of the "
            "last %.0f days could be compared with what happened.\n",
            days);
    else
        printf("Of %.0f forecasts of starts in the last %.0f days, %.0f %% held%s%s.\n",
               n, days, 100 * coverage, *error ? "; median error " : "", error);
    if (json_count(kinds) > 0)
        print_kinds(kinds);
}

/* --- all of it --- */

static bool is_listed(const struct json *jobs, uint64_t id)
{
    for (size_t i = 0; i < json_count(jobs); i++)
        if (json_number_or(json_item(jobs, i), "id", 0) == (double)id)
            return true;
    return false;
}

/* Of the jobs that were asked for, those of which nothing can be said. */
static void print_silent(const struct json *jobs, const struct asked *asked)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < asked->count; i++)
        if (!is_listed(jobs, asked->ids[i]))
            printf("%s %" PRIu64, count++ ? "," : "Nothing can be said of job",
                   asked->ids[i]);
    if (count > 0)
        puts(".");
}

static void print_forecast(const struct json *forecast, const struct asked *asked)
{
    const struct json *jobs = json_get(forecast, "jobs");
    const char *reason = json_text_or(forecast, "reason", NULL);
    if (json_count(jobs) > 0)
        print_jobs(jobs);
    if (reason) {
        fputs("There is no forecast: ", stdout);
        terminal_print_safely(reason);
        puts(".");
    } else if (asked->count > 0)
        print_silent(jobs, asked);
    else if (json_count(jobs) == 0)
        puts("Nothing runs and nothing waits.");
    print_origin(forecast);
    print_calibration(json_get(forecast, "calibration"));
}

/* --- the command --- */

/* "/v1/forecast?ids=3,17"; false: too many jobs. */
static bool write_path(const struct asked *asked, struct buf *path)
{
    buf_text(path, "/v1/forecast");
    for (uint32_t i = 0; i < asked->count && asked->count <= IDS_MAX; i++)
        buf_print(path, "%s%" PRIu64, i ? "," : "?ids=", asked->ids[i]);
    return asked->count <= IDS_MAX && !path->full;
}

static int show_forecast(const struct flags *flags, const struct asked *asked)
{
    struct buf path;
    struct json *forecast = NULL;
    buf_init(&path, PATH_MAX_BYTES);
    int status =
        write_path(asked, &path)
            ? connection_get(flags, path.bytes, &forecast)
            : command_wrong(flags,
                            "%u jobs are too many for one request: want at most %d, "
                            "or none for all",
                            asked->count, IDS_MAX);
    buf_release(&path);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return format_print_json(forecast);
    print_forecast(forecast, asked);
    json_free(forecast);
    return 0;
}

static int forecast_run(const struct flags *flags)
{
    struct asked asked = { NULL, 0 };
    int status = flags->word_count == 0
                     ? 0
                     : connection_job_ids(flags, &asked.ids, &asked.count);
    if (status == 0)
        status = show_forecast(flags, &asked);
    free(asked.ids);
    return status;
}

const struct command command_forecast = {
    .name = "forecast",
    .group = "Use",
    .brief = "when jobs will start and end, and how well that was known lately",
    .usage = "[ID…] [--json]",
    .flags = forecast_flags,
    .run = forecast_run,
};
