/* jobs.c - the queue's table: who, what, how far, and why not yet. */
#include "cmd/berth/jobs.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "cmd/berth/live.h"
#include "cmd/berth/sheet.h"

static const struct sheet_column columns[] = {
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

/* "2", "2 v100" where it runs or may run on some types only. */
static void add_gpus(struct sheet *sheet, const struct json *job)
{
    const char *type =
        live_text(json_item(json_get(job, "placement"), 0), "type", NULL);
    double gpus = live_number(job, "gpus", 0);
    if (!type)
        type = live_text(job, "types", NULL);
    if (gpus > 0 && type)
        sheet_add(sheet, "%.0f %s", gpus, type);
    else
        sheet_add(sheet, "%.0f", gpus);
}

/* Since it started, or since it was submitted if it waits. */
static double time_of(const struct json *job)
{
    double from = live_number(job, "start", live_number(job, "submit", NAN));
    double to = live_number(job, "end", (double)time(NULL));
    return to > from ? to - from : 0;
}

static void add_job(struct sheet *sheet, const struct json *job)
{
    char text[64];
    const char *state = live_text(job, "state", "");
    double loss = live_number(json_get(job, "progress"), "loss", NAN);
    sheet_add(sheet, "%s", live_name(text, sizeof text, job));
    sheet_add(sheet, "%s", live_text(job, "name", ""));
    sheet_add(sheet, "%s", live_text(job, "user", ""));
    sheet_add(sheet, "%s", live_text(job, "class", ""));
    sheet_add(sheet, "%s", state);
    sheet_colour(sheet, live_colour(state));
    add_gpus(sheet, job);
    sheet_add(sheet, "%s", live_span(text, sizeof text, time_of(job)));
    sheet_add(sheet, "%s", live_progress(text, sizeof text, job));
    if (isnan(loss))
        sheet_add(sheet, "%s", "");
    else
        sheet_add(sheet, "%.4g", loss);
    sheet_add(sheet, "%s", live_text(job, "reason", ""));
}

void jobs_print(const struct json *jobs, FILE *file, unsigned width, bool colour)
{
    struct sheet sheet;
    sheet_init(&sheet, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_count(jobs); i++)
        add_job(&sheet, json_item(jobs, i));
    sheet_print(&sheet, file, width, colour);
    sheet_release(&sheet);
}
