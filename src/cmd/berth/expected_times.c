/* expected_times.c - when a job is expected to start or to end, in words. */
#include "cmd/berth/expected_times.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/json.h"

#define MOMENT 64      /* bytes of a time in words         */
#define SOON_S 60      /* sooner than this is "any moment" */
#define LATEST_S 1e11  /* times beyond it are mistakes     */
#define WEEKDAYS_MAX 6 /* in so many days a weekday is unambiguous */
#define DAY_S 86400

/* A forecast as the API has it; NAN: beyond its horizon, or not said. */
struct expected {
    double p10, p50, p90;
    double later, horizon, made;
};

static double read_time(const struct json *expected, const char *key)
{
    double at = json_number_or(expected, key, NAN);
    return fabs(at) < LATEST_S ? at : NAN;
}

/* False: nothing is expected. */
static bool read_expected(const struct json *json, struct expected *expected)
{
    *expected = (struct expected){
        .p10 = read_time(json, "p10"),
        .p50 = read_time(json, "p50"),
        .p90 = read_time(json, "p90"),
        .later = json_number_or(json, "later", NAN),
        .horizon = read_time(json, "horizon"),
        .made = read_time(json, "made"),
    };
    return !isnan(expected->p10) || !isnan(expected->horizon);
}

/* ---- times ---- */

static struct tm local_time(double at)
{
    time_t seconds = (time_t)floor(at);
    struct tm tm = { 0 };
    localtime_r(&seconds, &tm);
    return tm;
}

/* Calendar days from one to another; those on which clocks change have as many seconds here. */
static int64_t count_days(struct tm from, struct tm to)
{
    struct tm days[] = {
        { .tm_year = from.tm_year, .tm_mon = from.tm_mon, .tm_mday = from.tm_mday },
        { .tm_year = to.tm_year, .tm_mon = to.tm_mon, .tm_mday = to.tm_mday }
    };
    return (int64_t)(timegm(&days[1]) - timegm(&days[0])) / DAY_S;
}

/* The day of 'at' and a blank; "" on the day of 'from'. */
static void format_day(char *text, size_t size, struct tm at, struct tm from)
{
    static const char *const weekdays[] = { "Sun", "Mon", "Tue", "Wed",
                                            "Thu", "Fri", "Sat" };
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    int64_t days = count_days(from, at);
    text[0] = '\0';
    if (days > 0 && days <= WEEKDAYS_MAX)
        snprintf(text, size, "%s ", weekdays[at.tm_wday % 7]);
    else if (days != 0 && at.tm_year == from.tm_year)
        snprintf(text, size, "%d %s ", at.tm_mday, months[at.tm_mon % 12]);
    else if (days != 0)
        snprintf(text, size, "%04d-%02d-%02d ", at.tm_year + 1900, at.tm_mon + 1,
                 at.tm_mday);
}

/* "14:20", or with its day where that is not today. */
static const char *format_moment(char text[MOMENT], double at, double now)
{
    struct tm tm = local_time(at);
    char day[40];
    format_day(day, sizeof day, tm, local_time(now));
    snprintf(text, MOMENT, "%s%02d:%02d", day, tm.tm_hour, tm.tm_min);
    return text;
}

/* " (UTC+2)" */
static const char *format_zone(char *text, size_t size, struct tm tm)
{
    long minutes = tm.tm_gmtoff / 60, rest = labs(minutes) % 60;
    int count =
        snprintf(text, size, " (UTC%c%ld", minutes < 0 ? '-' : '+', labs(minutes) / 60);
    if (rest && count > 0)
        snprintf(text + count, size - (size_t)count, ":%02ld)", rest);
    else if (count > 0)
        snprintf(text + count, size - (size_t)count, ")");
    return text;
}

/*
 * Both ends of an interval: the day stands once, and where the clocks change between them each
 * has its distance from UTC.
 */
static void format_ends(char first[MOMENT], char last[MOMENT], double from, double to,
                        double now)
{
    struct tm start = local_time(from), end = local_time(to);
    char zone[24];
    format_moment(first, from, now);
    format_moment(last, to, now);
    if (count_days(start, end) != 0)
        return;
    snprintf(last, MOMENT, "%02d:%02d", end.tm_hour, end.tm_min);
    if (start.tm_gmtoff == end.tm_gmtoff)
        return;
    strncat(first, format_zone(zone, sizeof zone, start), MOMENT - strlen(first) - 1);
    strncat(last, format_zone(zone, sizeof zone, end), MOMENT - strlen(last) - 1);
}

static bool is_same_minute(double a, double b)
{
    return floor(a / 60) == floor(b / 60);
}

/* How far the forecast looked: "4 d". */
static const char *format_horizon(char *text, size_t size,
                                  const struct expected *expected, double now)
{
    double from = isnan(expected->made) ? now : expected->made;
    double span = expected->horizon - from;
    if (span >= 2 * DAY_S)
        snprintf(text, size, "%.0f d", floor(span / DAY_S));
    else if (span >= 7200)
        snprintf(text, size, "%.0f h", floor(span / 3600));
    else
        snprintf(text, size, "%.0f min", span >= 120 ? floor(span / 60) : 1);
    return text;
}

/* ---- in a few words ---- */

static void format_interval(char *text, size_t size, const struct expected *expected,
                            double now, const char *dash)
{
    char moment[MOMENT], last[MOMENT], far[MOMENT] = "";
    bool open = isnan(expected->p90); /* beyond the horizon */
    if (open)
        format_horizon(far, sizeof far, expected, now);
    if (isnan(expected->p10))
        snprintf(text, size, "later than %s", far);
    else if (open && expected->p10 <= now)
        snprintf(text, size, "any moment, perhaps later than %s", far);
    else if (open)
        snprintf(text, size, "from %s, perhaps later than %s",
                 format_moment(moment, expected->p10, now), far);
    else if (expected->p90 < now + SOON_S)
        snprintf(text, size, "any moment");
    else if (expected->p10 <= now)
        snprintf(text, size, "by %s", format_moment(moment, expected->p90, now));
    else if (is_same_minute(expected->p10, expected->p90))
        snprintf(text, size, "%s", format_moment(moment, expected->p10, now));
    else {
        format_ends(moment, last, expected->p10, expected->p90, now);
        snprintf(text, size, "%s%s%s", moment, dash, last);
    }
}

const char *expected_times_format(char *text, size_t size, const char *verb,
                                  const struct json *json, double now, bool utf8)
{
    struct expected expected;
    char interval[EXPECTED_TIMES_LENGTH];
    text[0] = '\0';
    if (!read_expected(json, &expected))
        return text;
    format_interval(interval, sizeof interval, &expected, now, utf8 ? "–" : "-");
    snprintf(text, size, "%s%s", verb, interval);
    return text;
}

const char *expected_times_format_job(char *text, size_t size, const struct json *job,
                                      double now, bool utf8)
{
    const struct json *start = json_get(job, "expected_start");
    if (start)
        return expected_times_format(text, size, "starts ", start, now, utf8);
    return expected_times_format(text, size, "ends ", json_get(job, "expected_end"),
                                 now, utf8);
}

/* ---- in sentences ---- */

static void explain_median(struct buf *buf, const struct expected *expected, double now)
{
    char moment[MOMENT];
    if (expected->p50 > now)
        buf_print(buf, ", as likely before as after %s",
                  format_moment(moment, expected->p50, now));
}

/* ", 30 % likely later than 4 d" */
static void explain_later(struct buf *buf, const struct expected *expected, double now)
{
    char far[MOMENT];
    format_horizon(far, sizeof far, expected, now);
    if (isnan(expected->later))
        buf_print(buf, ", perhaps later than %s", far);
    else
        buf_print(buf, ", %.0f %% likely later than %s", 100 * expected->later, far);
}

static void explain_interval(struct buf *buf, const struct expected *expected,
                             double now)
{
    char first[MOMENT], last[MOMENT];
    bool begun = expected->p10 <= now; /* false if it is NAN */
    if (isnan(expected->p10)) {
        format_horizon(last, sizeof last, expected, now);
        buf_print(buf, "later than %s", last);
        if (!isnan(expected->later))
            buf_print(buf, " (%.0f %% likely)", 100 * expected->later);
        return;
    }
    if (isnan(expected->p90)) {
        if (begun)
            buf_text(buf, "any moment");
        else
            buf_print(buf, "from %s on", format_moment(first, expected->p10, now));
        explain_median(buf, expected, now);
        explain_later(buf, expected, now);
        return;
    }
    if (expected->p90 < now + SOON_S) {
        buf_text(buf, "any moment");
        return;
    }
    if (is_same_minute(expected->p10, expected->p90)) {
        buf_print(buf, "about %s (80 %% likely)",
                  format_moment(first, expected->p10, now));
        return;
    }
    if (begun)
        buf_print(buf, "by %s (90 %% likely)", format_moment(last, expected->p90, now));
    else {
        format_ends(first, last, expected->p10, expected->p90, now);
        buf_print(buf, "between %s and %s (80 %% likely)", first, last);
    }
    explain_median(buf, expected, now);
}

/* A basis in words is "before, 57 finished jobs, after". */
struct basis {
    const char *key, *before, *after;
};

static const struct basis bases[] = {
    { "name", "", " of the same name and user" },
    { "user", "", " of the same user and size" },
    { "size", "", " of the same size" },
    { "all", "", " of all kinds" },
    { "estimate", "its declared run time, as those of ", " turned out" },
    { "waits", "waits of ", " of the same size" },
};

const char *expected_times_basis(char *text, size_t size, const struct json *expected)
{
    const char *key = json_text_or(expected, "basis", "");
    double jobs = json_number_or(expected, "basis_jobs", 0);
    text[0] = '\0';
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
        if (strcmp(bases[i].key, key) == 0 && jobs >= 1)
            snprintf(text, size, "%s%.0f finished job%s%s", bases[i].before, jobs,
                     jobs == 1 ? "" : "s", bases[i].after);
    return text;
}

static void explain_origin(struct buf *buf, const struct json *expected)
{
    const char *policy = json_text_or(expected, "policy", "its policy");
    bool declared = strcmp(json_text_or(expected, "basis", ""), "estimate") == 0;
    char basis[96];
    expected_times_basis(basis, sizeof basis, expected);
    if (strcmp(json_text_or(expected, "method", ""), "baseline") == 0)
        buf_print(buf, "from %s: lately nearer to the truth than playing %.40s forward",
                  *basis ? basis : "earlier waits", policy);
    else
        buf_print(buf, "by playing %.40s forward%s%s", policy,
                  !*basis    ? ""
                  : declared ? ", with "
                             : ", with run times of ",
                  basis);
}

static void explain_coverage(struct buf *buf, const struct json *expected)
{
    double coverage = json_number_or(expected, "coverage_80", NAN);
    double count = json_number_or(expected, "coverage_n", NAN);
    if (isnan(coverage))
        buf_text(buf, " How well such forecasts hold is not known yet.");
    else if (isnan(count))
        buf_print(buf, " Of such forecasts %.0f %% held lately.", 100 * coverage);
    else
        buf_print(buf, " Of the last %.0f such forecasts %.0f %% held.", count,
                  100 * coverage);
}

void expected_times_explain(struct buf *buf, const char *verb, const struct json *json,
                            double now)
{
    struct expected expected;
    char moment[MOMENT];
    if (!read_expected(json, &expected))
        return;
    buf_print(buf, "Expected to %s ", verb);
    explain_interval(buf, &expected, now);
    buf_text(buf, ". Forecast");
    if (!isnan(expected.made))
        buf_print(buf, " at %s", format_moment(moment, expected.made, now));
    buf_text(buf, " ");
    explain_origin(buf, json);
    buf_text(buf, ".");
    explain_coverage(buf, json);
}
