/* job_table.c - the table of 'berth queue' and 'berth top'. */
#include "cmd/berth/job_table.h"

#include <math.h>
#include <time.h>

#include "base/json.h"
#include "cmd/berth/format.h"
#include "cmd/berth/text_table.h"

static const struct text_table_column columns[] = {
    { "ID", .right = true },
    { "NAME", .min = 8 },
    { "USER", .min = 6, .spare = 4 },
    { "CLASS", .spare = 5 },
    { "STATE" },
    { "GPUS", .right = true, .spare = 1 },
    { "TIME", .right = true, .spare = 3 },
    { "PROGRESS", .min = 8, .spare = 2 },
    { "LOSS", .right = true, .spare = 6 },
    { "REASON", .min = 12 },
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

/* Time since its start, or since its submission if it waits. */
static double compute_elapsed_s(const struct json *job)
{
    double from = json_number_or(job, "start", json_number_or(job, "submit", NAN));
    double to = json_number_or(job, "end", (double)time(NULL));
    return to > from ? to - from : 0;
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
    text_table_add(table, "%s",
                   format_duration(text, sizeof text, compute_elapsed_s(job)));
    text_table_add(table, "%s", format_progress(text, sizeof text, job));
    if (isnan(loss))
        text_table_add(table, "%s", "");
    else
        text_table_add(table, "%.4g", loss);
    text_table_add(table, "%s", json_text_or(job, "reason", ""));
}

void job_table_init(struct text_table *table)
{
    text_table_init(table, columns, sizeof columns / sizeof *columns);
}

void job_table_add(struct text_table *table, const struct json *jobs)
{
    for (size_t i = 0; i < json_count(jobs); i++)
        add_job(table, json_item(jobs, i));
}

void job_table_print(const struct json *jobs, FILE *file, unsigned width, bool colour)
{
    struct text_table table;
    job_table_init(&table);
    job_table_add(&table, jobs);
    text_table_print(&table, file, width, colour);
    text_table_release(&table);
}
