/* format.c - values of the API as text for people. */
#include "cmd/berth/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/units.h"

const char *format_job_id(char *text, size_t size, const struct json *job)
{
    double array = json_number_or(job, "array_id", 0);
    if (array > 0)
        snprintf(text, size, "%.0f_%.0f", array, json_number_or(job, "array_index", 0));
    else
        snprintf(text, size, "%.0f", json_number_or(job, "id", 0));
    return text;
}

const char *format_time(char *text, size_t size, double seconds)
{
    text[0] = '\0';
    if (!(fabs(seconds) < 1e11))
        return text;
    time_t at = (time_t)seconds, now = time(NULL);
    struct tm then, today;
    localtime_r(&at, &then);
    localtime_r(&now, &today);
    bool same = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
    bool year = then.tm_year == today.tm_year;
    strftime(text, size,
             same   ? "%H:%M:%S"
             : year ? "%d %b %H:%M"
                    : "%Y-%m-%d %H:%M",
             &then);
    return text;
}

const char *format_duration(char *text, size_t size, double seconds)
{
    text[0] = '\0';
    if (isnan(seconds))
        return text;
    return units_show_time(text, (unsigned)size, seconds < 0 ? 0 : seconds);
}

const char *format_state_colour(const char *state)
{
    static const struct {
        const char *state, *colour;
    } colours[] = { { "RUNNING", "32" },   { "STOPPING", "33" }, { "FAILED", "31" },
                    { "REJECTED", "31" },  { "PENDING", "36" },  { "HELD", "35" },
                    { "CANCELLED", "33" }, { "COMPLETED", "2" } };
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        if (strcmp(state, colours[i].state) == 0)
            return colours[i].colour;
    return NULL;
}

/* Only a job that has ended has done all. */
static double percent_done(const struct json *job, double step, double steps)
{
    bool ended = strcmp(json_text_or(job, "state", ""), "COMPLETED") == 0;
    double percent = step < steps ? floor(100 * step / steps) : 100;
    return ended || percent < 100 ? percent : 99;
}

const char *format_progress(char *text, size_t size, const struct json *job)
{
    const struct json *progress = json_get(job, "progress");
    double step = json_number_or(progress, "step", NAN);
    double steps = json_number_or(progress, "steps", NAN);
    double eta = json_number_or(progress, "eta_s", NAN);
    char span[32];
    text[0] = '\0';
    if (step >= 0 && steps > 0)
        snprintf(text, size, "%.0f %%", percent_done(job, step, steps));
    else if (step > 0)
        snprintf(text, size, "step %.0f", step);
    size_t count = strlen(text);
    if (!isnan(eta))
        snprintf(text + count, size - count, "%s%s", count ? " · " : "",
                 format_duration(span, sizeof span, eta));
    else if (count && steps > 0 &&
             strcmp(json_text_or(job, "state", ""), "RUNNING") == 0)
        snprintf(text + count, size - count, " · –"); /* nothing tells how long */
    return text;
}

int format_print_json(struct json *json)
{
    json_print_fine(json, stdout);
    json_free(json);
    return 0;
}
