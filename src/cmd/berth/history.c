/* history.c - berth history: jobs that were, newest first. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/units.h"
#include "cmd/berth/forms.h"
#include "cmd/berth/live.h"
#include "cmd/berth/sheet.h"

static const struct flag history_flags[] = {
    { "user", 'u', "NAME", "whose jobs; everybody's" },
    { "state", 't', "LIST", "in these states: COMPLETED,FAILED…" },
    { "name", 'n', "NAME", "of this name" },
    { "since", 0, "WHEN", "submitted then or later: 2d (ago), 2031-02-28" },
    { "until", 0, "WHEN", "submitted before" },
    { "limit", 0, "N", "so many at most; 100" },
    { "csv", 0, NULL, "for spreadsheets: a line per job" },
    LIVE_JSON,
    LIVE_FLAGS,
    { 0 },
};

static const struct sheet_column columns[] = {
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

static void print_csv(const struct json *jobs)
{
    size_t count = sizeof csv_keys / sizeof *csv_keys;
    for (size_t k = 0; k < count; k++)
        printf("%s%s", k ? "," : "", csv_keys[k]);
    putchar('\n');
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

static void add_job(struct sheet *sheet, const struct json *job)
{
    char text[64];
    const char *state = live_text(job, "state", "");
    double start = live_number(job, "start", NAN), end = live_number(job, "end", NAN);
    double preemptions = live_number(job, "preemptions", 0);
    double code = live_number(job, "exit_code", NAN);
    sheet_add(sheet, "%s", live_name(text, sizeof text, job));
    sheet_add(sheet, "%s", live_text(job, "name", ""));
    sheet_add(sheet, "%s", live_text(job, "user", ""));
    sheet_add(sheet, "%s", live_text(job, "class", ""));
    sheet_add(sheet, "%s", state);
    sheet_colour(sheet, live_colour(state));
    sheet_add(sheet, "%.0f", live_number(job, "gpus", 0));
    sheet_add(sheet, "%s",
              live_moment(text, sizeof text, live_number(job, "submit", NAN)));
    sheet_add(sheet, "%s",
              live_span(text, sizeof text, live_number(job, "waited_s", NAN)));
    sheet_add(sheet, "%s", live_span(text, sizeof text, end - start));
    snprintf(text, sizeof text, "%.0f", preemptions);
    sheet_add(sheet, "%s", preemptions > 0 ? text : "");
    snprintf(text, sizeof text, "%.0f", code);
    sheet_add(sheet, "%s", isnan(code) ? "" : text);
    sheet_add(sheet, "%s", live_text(job, "reason", ""));
}

static void print_table(const struct json *jobs)
{
    struct sheet sheet;
    sheet_init(&sheet, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(jobs); i++)
        add_job(&sheet, json_item(jobs, i));
    if (json_count(jobs) == 0)
        puts("No such jobs.");
    else
        sheet_print(&sheet, stdout, sheet_width(stdout), sheet_coloured(stdout));
    sheet_release(&sheet);
}

/* "2d": so long ago; or a moment. */
static int add_moment(const struct flags *flags, struct buf *path, const char *name)
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
    else if (form_moment(text, time(NULL), &at, &err) < 0)
        return command_wrong(flags, "--%s: %s", name, err.text);
    snprintf(value, sizeof value, "%.3f", at > 0 ? at : 0);
    live_query(path, name, value);
    return 0;
}

static int make_path(const struct flags *flags, struct buf *path)
{
    static const char *const filters[] = { "user", "state", "name" };
    char limit[24];
    buf_text(path, "/v1/jobs?history=true");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (flags_get(flags, filters[i]))
            live_query(path, filters[i], flags_get(flags, filters[i]));
    snprintf(limit, sizeof limit, "%llu",
             (unsigned long long)flags_count(flags, "limit", 1, 100000, 100));
    live_query(path, "limit", limit);
    int status = add_moment(flags, path, "since");
    return status ? status : add_moment(flags, path, "until");
}

static int history_run(const struct flags *flags)
{
    struct json *answer = NULL;
    struct buf path;
    if (flags->word_count > 0)
        return command_wrong(flags, "unexpected \"%.60s\"", flags->words[0]);
    if (flags_get(flags, "json") && flags_get(flags, "csv"))
        return command_wrong(flags, "either --json or --csv");
    buf_init(&path, 1 << 16);
    int status = make_path(flags, &path);
    if (status == 0)
        status = live_get(flags, path.bytes, &answer);
    buf_release(&path);
    if (status)
        return status;
    if (flags_get(flags, "json"))
        return live_print_json(answer);
    if (flags_get(flags, "csv"))
        print_csv(json_get(answer, "jobs"));
    else
        print_table(json_get(answer, "jobs"));
    json_free(answer);
    return 0;
}

const struct command command_history = {
    .name = "history",
    .group = "Use",
    .brief = "jobs that were, newest first",
    .usage = "[flags]",
    .flags = history_flags,
    .run = history_run,
};
