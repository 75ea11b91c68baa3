/* queue.c - berth queue: running and waiting jobs, and why they wait. */
#include "cmd/berth/queue.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "cmd/berth/connection.h"
#include "cmd/berth/expected_times.h"
#include "cmd/berth/format.h"
#include "cmd/berth/job_pages.h"
#include "cmd/berth/terminal.h"
#include "cmd/berth/text_table.h"

/* --- the table, also of 'berth top' --- */

static const struct text_table_column columns[] = {
    { "ID", .right = true },
    { "NAME", .min = 8 },
    { "USER", .min = 6, .spare = 4 },
    { "CLASS", .spare = 5 },
    { "STATE" },
    { "GPUS", .right = true, .spare = 1 },
    { "BESIDE", .spare = 5 },
    { "TIME", .right = true, .spare = 3 },
    { "PROGRESS", .min = 8, .spare = 2 },
    { "LOSS", .right = true, .spare = 6 },
    { "REASON", .min = 19 },
};

/* "2", or "2 v100" if it runs on a type or is limited to some types. */
static void add_gpus(struct text_table *table, const struct json *job)
{
    const char *type =
        json_text_or(json_item(json_get(job, "placement"), 0), "type", NULL);
    double gpus = json_number_or(job, "gpus", 0);
    if (!type)
        type = json_text_or(job, "types", NULL);
    if (gpus > 0 && type)
        text_table_add(table, "%.0f %s", gpus, type);
    else
        text_table_add(table, "%.0f", gpus);
}

/* The job that it shares its GPUs with, and what part of its speed it keeps: "8, 87 %". */
static void add_partner(struct text_table *table, const struct json *job)
{
    double beside = json_number_or(job, "beside", NAN);
    double kept = json_number_or(job, "kept", NAN);
    if (isnan(beside))
        text_table_add(table, "%s", "");
    else if (isnan(kept))
        text_table_add(table, "%.0f", beside);
    else
        text_table_add(table, "%.0f, %.0f %%", beside, 100 * kept);
}

/* Time since its start, or since its submission if it waits. */
static double compute_elapsed_s(const struct json *job)
{
    double from = json_number_or(job, "start", json_number_or(job, "submit", NAN));
    double to = json_number_or(job, "end", (double)time(NULL));
    return to > from ? to - from : 0;
}

/* When it is expected to start or end, which is most asked for, and why it waits. */
static void add_reason(struct text_table *table, const struct json *job)
{
    char expected[EXPECTED_TIMES_LENGTH];
    const char *reason = json_text_or(job, "reason", "");
    expected_times_format_job(expected, sizeof expected, job, (double)time(NULL),
                              terminal_has_utf8(stdout));
    text_table_add(table, "%s%s%s", expected, *expected && *reason ? "; " : "", reason);
}

static void add_job(struct text_table *table, const struct json *job)
{
    char text[64];
    const char *state = json_text_or(job, "state", "");
    double loss = json_number_or(json_get(job, "progress"), "loss", NAN);
    text_table_add(table, "%s", format_job_id(text, sizeof text, job));
    text_table_add(table, "%s", json_text_or(job, "name", ""));
    text_table_add(table, "%s", json_text_or(job, "user", ""));
    text_table_add(table, "%s", json_text_or(job, "class", ""));
    text_table_add(table, "%s", state);
    text_table_set_colour(table, format_state_colour(state));
    add_gpus(table, job);
    add_partner(table, job);
    text_table_add(table, "%s",
                   format_duration(text, sizeof text, compute_elapsed_s(job)));
    text_table_add(table, "%s", format_progress(text, sizeof text, job));
    if (isnan(loss))
        text_table_add(table, "%s", "");
    else
        text_table_add(table, "%.4g", loss);
    add_reason(table, job);
}

static void init_table(struct text_table *table)
{
    text_table_init(table, columns, sizeof columns / sizeof *columns);
}

static void add_jobs(struct text_table *table, const struct json *jobs)
{
    for (size_t i = 0; i < json_count(jobs); i++)
        add_job(table, json_item(jobs, i));
}

void queue_print(const struct json *jobs, FILE *file, unsigned width, bool colour)
{
    struct text_table table;
    init_table(&table);
    add_jobs(&table, jobs);
    text_table_print(&table, file, width, colour);
    text_table_release(&table);
}

/* --- the command --- */

static const struct flag queue_flags[] = {
    { "user", 'u', "NAME", "whose jobs; everybody's" },
    { "state", 't', "LIST", "in these states; all that have not ended" },
    { "name", 'n', "NAME", "of this name" },
    { "watch", 'w', NULL, "again every two seconds, until Ctrl-C" },
    FLAG_JSON,
    CONNECTION_FLAGS,
    { 0 },
};

static void print_page(void *context, const struct json *jobs)
{
    struct text_table *table = context;
    if (json_count(jobs) == 0)
        return;
    add_jobs(table, jobs);
    text_table_show(table, stdout);
    text_table_clear(table);
}

static int show_once(const struct flags *flags, struct call *call, const char *path)
{
    struct text_table table;
    struct job_pages pages = { .flags = flags,
                               .path = path,
                               .json = flags_get(flags, "json"),
                               .print = print_page,
                               .context = &table };
    if (flags_get(flags, "watch"))
        fputs("\033[H\033[2J", stdout);
    init_table(&table);
    int status = job_pages_read(&pages, call);
    if (status == 0 && pages.count == 0 && !pages.json)
        puts("Nothing runs and nothing waits.");
    fflush(stdout);
    if (pages.trouble && !pages.json)
        fprintf(stderr,
                "Slurm does not answer, and nothing starts until it does: %.150s\n",
                pages.trouble);
    job_pages_release(&pages);
    text_table_release(&table);
    return status;
}

static int queue_run(const struct flags *flags)
{
    static const char *const filters[] = { "user", "state", "name" };
    struct call *call = NULL;
    struct buf path;
    bool watch = flags_get(flags, "watch") != NULL;
    if (command_refuse_words(flags))
        return 2;
    if (watch && (!isatty(STDOUT_FILENO) || flags_get(flags, "json")))
        return command_wrong(flags, "--watch wants a terminal, and no --json");
    int status = connection_open(&call, flags);
    if (status)
        return status;
    buf_init(&path, 1 << 16);
    buf_text(&path, "/v1/jobs");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (flags_get(flags, filters[i]))
            connection_add_query(&path, filters[i], flags_get(flags, filters[i]));
    do {
        status = show_once(flags, call, path.bytes);
        fflush(stdout);
        if (watch && status == 0)
            nanosleep(&(struct timespec){ .tv_sec = 2 }, NULL);
    } while (watch && status == 0);
    buf_release(&path);
    call_close(call);
    return status;
}

const struct command command_queue = {
    .name = "queue",
    .alias = "q",
    .group = "Use",
    .brief = "what runs, how far it is; what waits, and why",
    .usage = "[flags]",
    .flags = queue_flags,
    .run = queue_run,
};
