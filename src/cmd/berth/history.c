/* history.c - berth history: finished jobs, newest first. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/units.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/flag_values.h"
#include "cmd/berth/format.h"
#include "cmd/berth/job_pages.h"
#include "cmd/berth/text_table.h"

#define LIMIT_MAX 1000000000

static const struct flag history_flags[] = {
    { "user", 'u', "NAME", "whose jobs; everybody's" },
    { "state", 't', "LIST", "in these states; all that have ended" },
    { "name", 'n', "NAME", "of this name" },
    { "since", 0, "WHEN", "submitted then or later: 2d (ago), 2031-02-28" },
    { "until", 0, "WHEN", "submitted before" },
    { "limit", 0, "N", "so many at most; 100" },
    { "csv", 0, NULL, "for spreadsheets: a line per job" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static const struct text_table_column columns[] = {
    { "ID", .right = true },
    { "NAME", .min = 8 },
    { "USER", .min = 6, .spare = 4 },
    { "CLASS", .spare = 7 },
    { "STATE" },
    { "GPUS", .right = true, .spare = 2 },
    { "SUBMITTED", .spare = 3 },
    { "WAITED", .right = true, .spare = 6 },
    { "TOOK", .right = true, .spare = 1 },
    { "PREEMPTED", .right = true, .spare = 5 },
    { "EXIT", .right = true },
    { "REASON", .min = 12 },
};

/* In the order of the columns of the CSV. */
static const char *const csv_keys[] = {
    "id",           "name",    "user",        "class",     "state",
    "gpus",         "submit",  "start",       "end",       "waited_s",
    "served_gpu_s", "attempt", "preemptions", "exit_code", "reason",
};

static void print_csv_text(const char *text)
{
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_csv_titles(void)
{
    size_t count = sizeof csv_keys / sizeof *csv_keys;
    for (size_t k = 0; k < count; k++)
        printf("%s%s", k ? "," : "", csv_keys[k]);
    putchar('\n');
}

static void print_csv(void *context, const struct json *jobs)
{
    (void)context;
    size_t count = sizeof csv_keys / sizeof *csv_keys;
    for (size_t i = 0; i < json_count(jobs); i++) {
        const struct json *job = json_item(jobs, i);
        for (size_t k = 0; k < count; k++) {
            const struct json *value = json_get(job, csv_keys[k]);
            double number;
            if (k)
                putchar(',');
            if (json_as_number(value, &number))
                printf("%.15g", number);
            else if (json_as_text(value))
                print_csv_text(json_as_text(value));
        }
        putchar('\n');
    }
}

static void add_job(struct text_table *table, const struct json *job)
{
    char text[64];
    const char *state = json_text_or(job, "state", "");
    double start = json_number_or(job, "start", NAN),
           end = json_number_or(job, "end", NAN);
    double preemptions = json_number_or(job, "preemptions", 0);
    double code = json_number_or(job, "exit_code", NAN);
    text_table_add(table, "%s", format_job_id(text, sizeof text, job));
    text_table_add(table, "%s", json_text_or(job, "name", ""));
    text_table_add(table, "%s", json_text_or(job, "user", ""));
    text_table_add(table, "%s", json_text_or(job, "class", ""));
    text_table_add(table, "%s", state);
    text_table_set_colour(table, format_state_colour(state));
    text_table_add(table, "%.0f", json_number_or(job, "gpus", 0));
    text_table_add(table, "%s",
                   format_time(text, sizeof text, json_number_or(job, "submit", NAN)));
    text_table_add(
        table, "%s",
        format_duration(text, sizeof text, json_number_or(job, "waited_s", NAN)));
    text_table_add(table, "%s", format_duration(text, sizeof text, end - start));
    snprintf(text, sizeof text, "%.0f", preemptions);
    text_table_add(table, "%s", preemptions > 0 ? text : "");
    snprintf(text, sizeof text, "%.0f", code);
    text_table_add(table, "%s", isnan(code) ? "" : text);
    text_table_add(table, "%s", json_text_or(job, "reason", ""));
}

static void print_table(void *context, const struct json *jobs)
{
    struct text_table *table = context;
    if (json_count(jobs) == 0)
        return;
    for (size_t i = 0; i < json_count(jobs); i++)
        add_job(table, json_item(jobs, i));
    text_table_show(table, stdout);
    text_table_clear(table);
}

/* Where the list ends because older jobs were deleted. */
static void say_history_from(const struct job_pages *pages)
{
    char text[64];
    fflush(stdout);
    if (pages->history_from > 0 && !pages->is_limited)
        fprintf(stderr,
                "History goes back to %s; jobs that ended before are no longer kept.\n",
                format_time(text, sizeof text, pages->history_from));
}

/* A time, or a duration such as "2d": so long ago. */
static int add_time(const struct flags *flags, struct buf *path, const char *name)
{
    const char *text = flags_get(flags, name);
    int64_t ns;
    double at;
    struct error err;
    char value[32];
    if (!text)
        return 0;
    if (units_time(text, &ns))
        at = (double)time(NULL) - (double)ns * 1e-9;
    else if (flag_value_time(text, time(NULL), &at, &err) < 0)
        return command_wrong(flags, "--%s: %s", name, err.text);
    snprintf(value, sizeof value, "%.3f", at > 0 ? at : 0);
    connection_add_query(path, name, value);
    return 0;
}

static int make_query(const struct flags *flags, struct buf *path)
{
    static const char *const filters[] = { "user", "state", "name" };
    buf_text(path, "/v1/jobs?history=true");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (flags_get(flags, filters[i]))
            connection_add_query(path, filters[i], flags_get(flags, filters[i]));
    if (!flags_get(flags, "state"))
        connection_add_query(path, "state", "COMPLETED,FAILED,CANCELLED,REJECTED");
    int status = add_time(flags, path, "since");
    return status ? status : add_time(flags, path, "until");
}

static int show_history(const struct flags *flags, const char *path)
{
    struct text_table table;
    struct call *call = NULL;
    bool csv = flags_get(flags, "csv");
    struct job_pages pages = { .flags = flags,
                               .path = path,
                               .newest_first = true,
                               .max = flags_count(flags, "limit", 1, LIMIT_MAX, 100),
                               .json = flags_get(flags, "json"),
                               .print = csv ? print_csv : print_table,
                               .context = &table };
    int status = connection_open(&call, flags);
    if (status)
        return status;
    if (csv)
        print_csv_titles();
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    status = job_pages_read(&pages, call);
    bool plain = status == 0 && !csv && !pages.json;
    if (plain && pages.count == 0)
        puts("No such jobs.");
    if (plain)
        say_history_from(&pages);
    job_pages_release(&pages);
    text_table_release(&table);
    call_close(call);
    return status;
}

static int history_run(const struct flags *flags)
{
    struct buf path;
    if (command_refuse_words(flags))
        return 2;
    if (flags_get(flags, "json") && flags_get(flags, "csv"))
        return command_wrong(flags, "either --json or --csv");
    buf_init(&path, 1 << 16);
    int status = make_query(flags, &path);
    if (status == 0)
        status = show_history(flags, path.bytes);
    buf_release(&path);
    return status;
}

const struct command command_history = {
    .name = "history",
    .group = "Use",
    .brief = "jobs that were, newest first",
    .usage = "[flags]",
    .flags = history_flags,
    .run = history_run,
};
