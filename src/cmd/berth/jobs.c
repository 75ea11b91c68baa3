/* jobs.c - the queue's table: who, what, how far, and why not yet. */
#include "cmd/berth/jobs.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "cmd/berth/live.h"
#include "cmd/berth/table.h"

static const struct table_column columns[] = {
    { "ID", .right = true },
    { "NAME", .min = 8 },
    { "USER", .min = 6 },
    { "CLASS" },
    { "STATE" },
    { "GPUS", .right = true },
    { "TIME", .right = true },
    { "PROGRESS", .min = 8 },
    { "LOSS", .right = true },
    { "REASON", .min = 12 },
};

/* "2", "2 v100" where it runs or may run on some types only. */
static void add_gpus(struct table *table, const struct json *job)
{
    const char *type =
        live_text(json_item(json_get(job, "placement"), 0), "type", NULL);
    double gpus = live_number(job, "gpus", 0);
    if (!type)
        type = live_text(job, "types", NULL);
    if (gpus > 0 && type)
        table_add(table, "%.0f %s", gpus, type);
    else
        table_add(table, "%.0f", gpus);
}

/* Since it started, or since it was submitted if it waits. */
static double time_of(const struct json *job)
{
    double from = live_number(job, "start", live_number(job, "submit", NAN));
    double to = live_number(job, "end", (double)time(NULL));
    return to > from ? to - from : 0;
}

static void add_job(struct table *table, const struct json *job)
{
    char text[64];
    const char *state = live_text(job, "state", "");
    double loss = live_number(json_get(job, "progress"), "loss", NAN);
    table_add(table, "%.0f", live_number(job, "id", 0));
    table_add(table, "%s", live_text(job, "name", ""));
    table_add(table, "%s", live_text(job, "user", ""));
    table_add(table, "%s", live_text(job, "class", ""));
    table_add(table, "%s", state);
    table_colour(table, live_colour(state));
    add_gpus(table, job);
    table_add(table, "%s", live_span(text, sizeof text, time_of(job)));
    table_add(table, "%s", live_progress(text, sizeof text, job));
    if (isnan(loss))
        table_add(table, "%s", "");
    else
        table_add(table, "%.4g", loss);
    table_add(table, "%s", live_text(job, "reason", ""));
}

void jobs_print(const struct json *jobs, FILE *file, unsigned width, bool colour)
{
    struct table table;
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(jobs); i++)
        add_job(&table, json_item(jobs, i));
    table_print(&table, file, width, colour);
    table_release(&table);
}
