/* live.c - finding the daemon, asking it, and saying what it said. */
#include "cmd/berth/live.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/units.h"
#include "cmd/berth/forms.h"
#include "api/programs.h"

int live_open(struct call **ret_call, const struct flags *flags)
{
    struct error err;
    struct call *call = NULL;
    int r = call_open(&call, flags_get(flags, "socket"), &err);
    if (r < 0)
        return command_status(flags, r, &err);
    const char *no = getenv("BERTH_NO_START");
    if (call_is_standard(call) && !(no && *no) && !call_answers(call)) {
        r = programs_start_berthd(call, NULL, NULL, &err);
        if (r < 0) {
            call_close(call);
            return command_failed(flags, "%s", err.text);
        }
    }
    *ret_call = call;
    return 0;
}

int live_get(const struct flags *flags, const char *path, struct json **ret)
{
    struct call *call = NULL;
    struct error err;
    int status = live_open(&call, flags);
    if (status)
        return status;
    int r = call_json(call, "GET", path, NULL, ret, &err);
    call_close(call);
    return command_status(flags, r, &err);
}

/* "5" or "5-9", appended. */
static bool add_ids(const char *word, uint64_t *ids, uint32_t *count)
{
    char first[24];
    uint64_t from, to;
    size_t length = strcspn(word, "-");
    snprintf(first, sizeof first, "%.*s", (int)length, word);
    if (length >= sizeof first || !form_count(first, INT64_MAX, &from) || from == 0)
        return false;
    to = from;
    if (word[length] && !form_count(word + length + 1, INT64_MAX, &to))
        return false;
    if (to < from || to - from >= LIVE_IDS_MAX - *count)
        return false;
    for (uint64_t id = from; id <= to; id++)
        ids[(*count)++] = id;
    return true;
}

/* "12_3", a task of an array: berthd knows its number.  0, or an exit status. */
static int find_task(const struct flags *flags, const char *word, uint64_t *ret_id)
{
    char path[80];
    struct json *job = NULL;
    int64_t id = 0;
    snprintf(path, sizeof path, "/v1/jobs/%.40s", word);
    int status = live_get(flags, path, &job);
    json_as_count(json_get(job, "id"), &id);
    *ret_id = (uint64_t)id;
    json_free(job);
    return status;
}

static bool is_task(const char *word)
{
    size_t array = strspn(word, "0123456789");
    size_t index = word[array] == '_' ? strspn(word + array + 1, "0123456789") : 0;
    return array > 0 && array < 20 && index > 0 && index < 12 &&
           word[array + 1 + index] == '\0';
}

int live_ids(const struct flags *flags, uint64_t **ret_ids, uint32_t *ret_count)
{
    if (flags->word_count == 0)
        return command_wrong(flags, "want the number of a job, or several");
    uint64_t *ids = calloc(LIVE_IDS_MAX, sizeof *ids);
    uint32_t count = 0;
    for (uint32_t i = 0; ids && i < flags->word_count; i++) {
        if (add_ids(flags->words[i], ids, &count))
            continue;
        if (is_task(flags->words[i]) && count < LIVE_IDS_MAX) {
            int status = find_task(flags, flags->words[i], &ids[count++]);
            if (status == 0)
                continue;
            free(ids);
            return status;
        }
        free(ids);
        return command_wrong(flags, "\"%.60s\" is no job: want a number, or 5-9",
                             flags->words[i]);
    }
    *ret_ids = ids;
    *ret_count = count;
    return ids ? 0 : command_failed(flags, "out of memory");
}

int live_id(const struct flags *flags, uint64_t *ret_id)
{
    if (flags->word_count != 1)
        return command_wrong(flags, "want the number of one job");
    if (is_task(flags->words[0]))
        return find_task(flags, flags->words[0], ret_id);
    if (!form_count(flags->words[0], INT64_MAX, ret_id) || *ret_id == 0)
        return command_wrong(flags, "\"%.60s\" is no job: want a number",
                             flags->words[0]);
    return 0;
}

const char *live_name(char *text, size_t size, const struct json *job)
{
    double array = live_number(job, "array_id", 0);
    if (array > 0)
        snprintf(text, size, "%.0f_%.0f", array, live_number(job, "array_index", 0));
    else
        snprintf(text, size, "%.0f", live_number(job, "id", 0));
    return text;
}

void live_query(struct buf *path, const char *name, const char *value)
{
    buf_print(path, "%c%s=", strchr(path->bytes, '?') ? '&' : '?', name);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        if ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
            (*c >= 'A' && *c <= 'Z') || strchr("-_.~,", *c))
            buf_print(path, "%c", *c);
        else
            buf_print(path, "%%%02X", *c);
}

const char *live_text(const struct json *object, const char *key, const char *fallback)
{
    const char *text = json_as_text(json_get(object, key));
    return text ? text : fallback;
}

double live_number(const struct json *object, const char *key, double fallback)
{
    double number;
    return json_as_number(json_get(object, key), &number) ? number : fallback;
}

const char *live_moment(char *text, size_t size, double seconds)
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

const char *live_span(char *text, size_t size, double seconds)
{
    text[0] = '\0';
    if (isnan(seconds))
        return text;
    return units_show_time(text, (unsigned)size, seconds < 0 ? 0 : seconds);
}

const char *live_colour(const char *state)
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

const char *live_progress(char *text, size_t size, const struct json *job)
{
    const struct json *progress = json_get(job, "progress");
    double step = live_number(progress, "step", NAN);
    double steps = live_number(progress, "steps", NAN);
    double eta = live_number(progress, "eta_s", NAN);
    char span[32];
    text[0] = '\0';
    if (step >= 0 && steps > 0)
        snprintf(text, size, "%.0f %%", 100 * (step < steps ? step / steps : 1));
    else if (step > 0)
        snprintf(text, size, "step %.0f", step);
    size_t count = strlen(text);
    if (!isnan(eta))
        snprintf(text + count, size - count, "%s%s", count ? " · " : "",
                 live_span(span, sizeof span, eta));
    return text;
}

void live_put(const char *text)
{
    for (; *text; text++)
        putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

int live_print_json(struct json *json)
{
    json_print_fine(json, stdout);
    json_free(json);
    return 0;
}
