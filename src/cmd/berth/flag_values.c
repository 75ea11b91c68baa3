/* flag_values.c - parsing time limits, times, arrays, grids and other values of flags. */
#include "cmd/berth/flag_values.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "api/request.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/units.h"

#define DAY_S 86400
#define TEXT_MAX 4096 /* bytes of a list */

bool flag_value_count(const char *text, uint64_t max, uint64_t *ret_count)
{
    if (!isdigit((unsigned char)*text))
        return false;
    char *end;
    errno = 0;
    unsigned long long count = strtoull(text, &end, 10);
    if (*end || errno || count > max)
        return false;
    *ret_count = count;
    return true;
}

/* "a:b:c" to numbers; how many, or 0 if it is something else. */
static uint32_t parse_colon_numbers(const char *text, uint64_t numbers[3])
{
    char part[16];
    for (uint32_t count = 0; count < 3; count++) {
        size_t length = strcspn(text, ":");
        if (length == 0 || length >= sizeof part)
            return 0;
        snprintf(part, sizeof part, "%.*s", (int)length, text);
        if (!flag_value_count(part, 100000000, &numbers[count]))
            return 0;
        if (text[length] == '\0')
            return count + 1;
        text += length + 1;
    }
    return 0;
}

int flag_value_limit(const char *text, double *ret_s, struct error *err)
{
    uint64_t days = 0, n[3] = { 0 };
    const char *rest = text;
    const char *dash = strchr(text, '-');
    int64_t ns;

    if (strcasecmp(text, "UNLIMITED") == 0 || strcasecmp(text, "INFINITE") == 0) {
        *ret_s = 0;
        return 0;
    }
    if (dash) {
        char before[12];
        snprintf(before, sizeof before, "%.*s", (int)(dash - text), text);
        if (dash - text >= (int)sizeof before ||
            !flag_value_count(before, 36500, &days))
            return error_set(err, -EINVAL, "\"%.60s\" is no time limit", text);
        rest = dash + 1;
    }
    uint32_t count = parse_colon_numbers(rest, n);
    if (count == 0 && !dash && *text &&
        isalpha((unsigned char)text[strlen(text) - 1]) && units_time(text, &ns)) {
        *ret_s = (double)ns * 1e-9;
        return 0;
    }
    double seconds = (double)days * DAY_S;
    if (count == 0)
        return error_set(err, -EINVAL,
                         "\"%.60s\" is no time limit: want 30 (minutes), 1:00:00, "
                         "1-12:00:00 or 2h",
                         text);
    if (dash || count == 3) /* [days-]hours[:minutes[:seconds]] */
        seconds += (double)(n[0] * 3600 + n[1] * 60 + n[2]);
    else /* minutes[:seconds] */
        seconds += (double)(n[0] * 60 + n[1]);
    if (seconds > (double)(TIME_MAX_NS / NS_PER_S))
        return error_set(err, -EINVAL, "\"%.60s\" is longer than 100 years", text);
    *ret_s = seconds;
    return 0;
}

/* Parse what follows "now+": a number, and perhaps a unit. */
static bool parse_delay(const char *text, double *ret_s)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {
        { "", 1 },
        { "second", 1 },
        { "seconds", 1 },
        { "minute", 60 },
        { "minutes", 60 },
        { "hour", 3600 },
        { "hours", 3600 },
        { "day", DAY_S },
        { "days", DAY_S },
        { "week", 7 * DAY_S },
        { "weeks", 7 * DAY_S },
    };
    char *end;
    double number = strtod(text, &end);
    if (!isdigit((unsigned char)*text) || number > 1e9)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(end, units[i].name) == 0) {
            *ret_s = number * units[i].seconds;
            return *ret_s <= 1e9;
        }
    int64_t ns;
    if (!units_time(text, &ns))
        return false;
    *ret_s = (double)ns * 1e-9;
    return true;
}

/* "16:30[:10]" into the time of day. */
static bool parse_day_time(const char *text, struct tm *tm)
{
    uint64_t n[3] = { 0 };
    uint32_t count = parse_colon_numbers(text, n);
    if (count < 2 || n[0] > 23 || n[1] > 59 || n[2] > 59)
        return false;
    tm->tm_hour = (int)n[0];
    tm->tm_min = (int)n[1];
    tm->tm_sec = (int)n[2];
    return true;
}

static bool parse_date_time(const char *text, struct tm *tm)
{
    int year, month, day, used = 0;
    if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &used) != 3 || used < 8 ||
        year < 1970 || year > 2068 || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
    if (text[used] == '\0')
        return true;
    return (text[used] == 'T' || text[used] == ' ') &&
           parse_day_time(text + used + 1, tm);
}

int flag_value_time(const char *text, int64_t now_s, double *ret_s, struct error *err)
{
    double later = 0;
    if (strncasecmp(text, "now", 3) == 0 &&
        (text[3] == '\0' || (text[3] == '+' && parse_delay(text + 4, &later)))) {
        *ret_s = (double)now_s + later;
        return 0;
    }
    static const struct {
        const char *name;
        int hour, days;
    } names[] = {
        { "today", 0, 0 }, { "midnight", 0, 1 }, { "noon", 12, 0 }, { "tomorrow", 0, 1 }
    };
    time_t now = (time_t)now_s;
    struct tm tm;
    localtime_r(&now, &tm);
    bool daily = false, known = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(text, names[i].name) == 0) {
            tm.tm_hour = names[i].hour;
            tm.tm_min = tm.tm_sec = 0;
            tm.tm_mday += names[i].days;
            known = true;
            daily = names[i].hour == 12;
        }
    if (!known && parse_day_time(text, &tm))
        known = daily = true;
    if (!known && !parse_date_time(text, &tm))
        return error_set(err, -EINVAL,
                         "\"%.60s\" is no moment: want now+1hour, 16:30 or "
                         "2031-02-28T16:30",
                         text);
    tm.tm_isdst = -1;
    time_t at = mktime(&tm);
    if (daily && at <= now) {
        tm.tm_mday++;
        tm.tm_isdst = -1;
        at = mktime(&tm);
    }
    *ret_s = (double)at;
    return 0;
}

int flag_value_gpus(struct arena *arena, const char *text, bool gres,
                    uint32_t *ret_gpus, const char **ret_type, struct error *err)
{
    const char *rest = text;
    uint64_t count = 1;
    *ret_type = NULL;
    if (gres) {
        if (strncmp(rest, "gpu", 3) != 0 || (rest[3] && rest[3] != ':'))
            return error_set(err, -EINVAL, "\"%.60s\": want gpu[:TYPE]:N", text);
        rest += rest[3] ? 4 : 3;
        if (!*rest) {
            *ret_gpus = 1;
            return 0;
        }
    }
    const char *colon = strchr(rest, ':');
    const char *number = colon ? colon + 1 : rest;
    bool type_alone = gres && !colon && !isdigit((unsigned char)*rest);
    if (type_alone)
        colon = rest + strlen(rest);
    else if (!flag_value_count(number, REQUEST_GPUS_MAX, &count))
        return error_set(err, -EINVAL, "\"%.60s\": want a number, or TYPE:N", text);
    if (colon && colon == rest)
        return error_set(err, -EINVAL, "\"%.60s\": the type is empty", text);
    if (colon) {
        size_t length = (size_t)(colon - rest);
        char *type = arena_array(arena, char, length + 1);
        memcpy(type, rest, length);
        *ret_type = type;
    }
    *ret_gpus = (uint32_t)count;
    return 0;
}

int flag_value_memory(const char *text, uint64_t *ret_bytes, struct error *err)
{
    uint64_t count;
    if (flag_value_count(text, (uint64_t)1 << 30, &count)) {
        *ret_bytes = count << 20;
        return 0;
    }
    if (!isdigit((unsigned char)*text) || !units_size(text, ret_bytes) ||
        *ret_bytes > (uint64_t)1 << 50)
        return error_set(err, -EINVAL, "\"%.60s\" is no size: want 512M or 20G", text);
    return 0;
}

int flag_value_signal(const char *text, struct flag_value_signal *ret_signal,
                      struct error *err)
{
    *ret_signal = (struct flag_value_signal){ .warn_s = 60 };
    const char *rest = text;
    const char *colon = strchr(text, ':');
    if (colon && strspn(text, "BR") == (size_t)(colon - text))
        rest = colon + 1;
    size_t length = strcspn(rest, "@");
    uint64_t seconds = 0;
    if (length > 0 && length < sizeof ret_signal->name) {
        snprintf(ret_signal->name, sizeof ret_signal->name, "%.*s", (int)length, rest);
        ret_signal->warns = rest[length] == '@';
        int number = request_signal(ret_signal->name);
        bool timed =
            !ret_signal->warns || flag_value_count(rest + length + 1, 65535, &seconds);
        if (ret_signal->warns)
            ret_signal->warn_s = (double)seconds;
        if (number != 0 && timed)
            return 0;
    }
    return error_set(err, -EINVAL,
                     "\"%.60s\": want [B:]SIGNAL[@SECONDS], as in USR1@60", text);
}

static int set_too_many_jobs(struct error *err)
{
    return error_set(err, -EINVAL, "more than %d jobs", FLAG_VALUE_JOBS_MAX);
}

/* "5", "0-9" or "0-20:5", appended. */
static int parse_array_part(const char *part, struct flag_value_array *array,
                            struct error *err)
{
    unsigned long long first, last, step = 1;
    int used = 0;
    if (isdigit((unsigned char)part[0]) &&
        sscanf(part, "%9llu%n", &first, &used) == 1 && !part[used])
        last = first;
    else if (!(isdigit((unsigned char)part[0]) &&
               ((sscanf(part, "%9llu-%9llu%n", &first, &last, &used) == 2 &&
                 !part[used]) ||
                (sscanf(part, "%9llu-%9llu:%9llu%n", &first, &last, &step, &used) ==
                     3 &&
                 !part[used]))))
        return error_set(err, -EINVAL, "\"%.60s\": want 0-9, 1,3,5 or 0-20:5, and %%N",
                         part);
    if (first > last || step == 0)
        return error_set(err, -EINVAL, "\"%.60s\" is empty", part);
    for (unsigned long long i = first; i <= last; i += step) {
        if (array->count == FLAG_VALUE_JOBS_MAX)
            return set_too_many_jobs(err);
        array->indices[array->count++] = (uint32_t)i;
    }
    return 0;
}

static int compare_indices(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int flag_value_array(struct arena *arena, const char *text,
                     struct flag_value_array *ret_array, struct error *err)
{
    if (strlen(text) > TEXT_MAX)
        return error_set(err, -EINVAL, "is longer than %d bytes", TEXT_MAX);
    *ret_array = (struct flag_value_array){ .indices = arena_array(
                                                arena, uint32_t, FLAG_VALUE_JOBS_MAX) };
    char *copy = arena_text(arena, text), *save;
    if (!*text || text[strlen(text) - 1] == ',')
        return error_set(err, -EINVAL, "\"%.60s\": want 0-9, 1,3,5 or 0-20:5", text);
    for (char *part = strtok_r(copy, ",", &save); part;
         part = strtok_r(NULL, ",", &save)) {
        char *percent = strchr(part, '%');
        uint64_t limit = 0;
        if (percent) {
            *percent = '\0';
            if (!flag_value_count(percent + 1, FLAG_VALUE_JOBS_MAX, &limit) ||
                limit == 0 || ret_array->limit)
                return error_set(err, -EINVAL, "\"%.60s\": want one number after %%",
                                 text);
            ret_array->limit = (uint32_t)limit;
        }
        int r = parse_array_part(part, ret_array, err);
        if (r < 0)
            return r;
    }
    qsort(ret_array->indices, ret_array->count, sizeof(uint32_t), compare_indices);
    for (uint32_t i = 1; i < ret_array->count; i++)
        if (ret_array->indices[i] == ret_array->indices[i - 1])
            return error_set(err, -EINVAL, "has %u twice", ret_array->indices[i]);
    return 0;
}

/* "1..5" to its numbers; false if it is something else. */
static bool parse_param_range(struct arena *arena, const char *text,
                              struct flag_value_param *param)
{
    long long first, last;
    int used = 0;
    if (sscanf(text, "%9lld..%9lld%n", &first, &last, &used) != 2 || text[used] ||
        last < first || last - first >= FLAG_VALUE_JOBS_MAX)
        return false;
    param->count = (uint32_t)(last - first + 1);
    param->values = arena_array(arena, const char *, param->count);
    for (uint32_t i = 0; i < param->count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", first + i);
        param->values[i] = arena_text(arena, number);
    }
    return true;
}

int flag_value_param(struct arena *arena, const char *text,
                     struct flag_value_param *ret_param, struct error *err)
{
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i]))
            length = 0;
    if (length == 0 || length > 60 || !text[length] || !text[length + 1])
        return error_set(err, -EINVAL, "\"%.60s\": want NAME=VALUE,VALUE… or NAME=1..5",
                         text);
    if (strlen(text) > (1 << 16))
        return error_set(err, -EINVAL, "is longer than %d bytes", 1 << 16);
    char *copy = arena_text(arena, text);
    copy[length] = '\0';
    char *rest = copy + length + 1;
    *ret_param = (struct flag_value_param){ .name = copy };
    if (parse_param_range(arena, rest, ret_param))
        return 0;
    uint32_t count = 1;
    for (const char *c = rest; *c; c++)
        count += *c == ',';
    if (count > FLAG_VALUE_JOBS_MAX)
        return set_too_many_jobs(err);
    ret_param->values = arena_array(arena, const char *, count);
    for (char *value; (value = strsep(&rest, ","));)
        ret_param->values[ret_param->count++] = value;
    return 0;
}

int flag_value_words(struct arena *arena, const char *line, char **words, uint32_t max,
                     uint32_t *ret_count, struct error *err)
{
    char *out = arena_array(arena, char, strlen(line) + 1);
    uint32_t count = 0;
    for (const char *c = line; *c;) {
        while (*c == ' ' || *c == '\t')
            c++;
        if (!*c || *c == '#') /* the rest is a comment */
            break;
        if (count == max)
            return error_set(err, -EINVAL, "more than %u words", max);
        words[count++] = out;
        char quote = 0;
        for (; *c && (quote || (*c != ' ' && *c != '\t')); c++) {
            if (quote ? *c == quote : *c == '\'' || *c == '"')
                quote = quote ? 0 : *c;
            else if (*c == '\\' && quote != '\'' && c[1])
                *out++ = *++c;
            else
                *out++ = *c;
        }
        if (quote)
            return error_set(err, -EINVAL, "a quote is not closed");
        *out++ = '\0';
    }
    *ret_count = count;
    return 0;
}
