/*
 * philly.c - the Philly trace (Jeon et al., ATC'19) as published: cluster_job_log.
 *
 * One JSON array of jobs, read one job at a time.  A job has attempts, each with a start,
 * an end and the machines and GPUs it had.  GPUs are those of the last attempt that has them;
 * run time is the sum over the attempts with both times.  Times carry no zone and are
 * taken as UTC.  A job without GPUs or run time in any attempt is skipped.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/units.h"
#include "workload/csv.h"
#include "workload/format.h"
#include "workload/log.h"

#define JOB_BYTES_MAX (16 * 1024 * 1024)

enum place { BEFORE, BEHIND_JOB, AFTER };

struct philly {
    enum place place;
    struct json *job; /* the last one yielded: its texts are borrowed */
};

static bool philly_sniff(const char *bytes, size_t count)
{
    bytes += strspn(bytes, " \t\r\n");
    if (*bytes != '[')
        return false;
    bytes++;
    bytes += strspn(bytes, " \t\r\n");
    return *bytes == '{' || *bytes == ']' || *bytes == '\0';
}

static int line_error(const struct source *source, const char *what, struct error *err)
{
    return error_set(err, -EINVAL, "%s:%llu: %s", source->reader.name,
                     (unsigned long long)source->reader.line, what);
}

/* Pass over white space; 1 and the byte that follows, or 0 at the end of the file. */
static int next_byte(struct source *source, char *ret_byte, struct error *err)
{
    struct reader *reader = &source->reader;
    for (;;) {
        while (reader->start < reader->end) {
            char c = reader->bytes[reader->start];
            if (!strchr(" \t\r\n", c) || c == '\0') {
                *ret_byte = c;
                return 1;
            }
            reader->line += c == '\n';
            reader->start++;
        }
        int r = reader_fill(reader, err);
        if (r <= 0)
            return r;
    }
}

/* Stand before the next job: 1, or 0 after the last. */
static int find_job(struct philly *philly, struct source *source, struct error *err)
{
    char c = '\0';
    for (;;) {
        int r = next_byte(source, &c, err);
        if (r < 0)
            return r;
        if (philly->place == AFTER)
            return r == 0 ? 0
                          : line_error(source, "more after the end of the array", err);
        if (r == 0)
            return line_error(
                source, "the file ends within the array, want the whole file", err);
        if (philly->place == BEHIND_JOB && c == ']') {
            philly->place = AFTER;
        } else if (philly->place == BEHIND_JOB && c != ',') {
            return line_error(source, "no comma between two jobs", err);
        } else {
            break;
        }
        source->reader.start++;
    }
    if (philly->place == BEFORE && c != '[')
        return line_error(source, "no array of jobs, want '['", err);
    source->reader.start++; /* the bracket or the comma */
    int r = next_byte(source, &c, err);
    if (r > 0 && c == ']' && philly->place == BEFORE) {
        source->reader.start++;
        philly->place = AFTER;
        return find_job(philly, source, err);
    }
    if (r >= 0 && c != '{')
        return line_error(source, "no job, want '{'", err);
    return r < 0 ? r : 1;
}

/* Take the object that begins here, and count its lines. */
static int read_object(struct source *source, struct json **ret_json, struct error *err)
{
    struct reader *reader = &source->reader;
    struct json_scan scan = { 0 };
    size_t seen = 0;
    size_t end;
    for (;;) {
        end = json_scan(&scan, reader->bytes + reader->start + seen,
                        reader->end - reader->start - seen);
        if (end > 0)
            break;
        seen = reader->end - reader->start;
        if (seen > JOB_BYTES_MAX)
            return line_error(source, "a job of more than 16 MiB", err);
        int r = reader_fill(reader, err);
        if (r < 0)
            return r;
        if (r == 0)
            return line_error(
                source, "the file ends within this job, want the whole file", err);
    }
    const char *text = reader->bytes + reader->start;
    size_t bytes = seen + end;
    int r = json_parse_piece(text, bytes, reader->name, reader->line, ret_json, err);
    if (r < 0)
        return r;
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + bytes - p))); p++)
        reader->line++;
    reader->start += bytes;
    return 0;
}

/* A time, if there is one: null, "" and "None" are none. */
static int read_time(const struct source *source, const struct json *object,
                     const char *key, bool *ret_known, int64_t *ret_ns,
                     struct error *err)
{
    const struct json *value = json_get(object, key);
    const char *text = json_as_text(value);
    *ret_known = false;
    if (!value || json_is_null(value) ||
        (text && (*text == '\0' || strcmp(text, "None") == 0)))
        return 0;
    if (!text)
        text = "no text";
    if (!number_stamp(text, strlen(text), ret_ns))
        return reader_wrong(&source->reader, key, text, strlen(text),
                            "a time such as \"2017-10-07 01:12:09\"", err);
    *ret_known = true;
    return 0;
}

static uint64_t count_gpus(const struct json *attempt)
{
    const struct json *detail = json_get(attempt, "detail");
    uint64_t gpus = 0;
    for (size_t i = 0; i < json_count(detail); i++)
        gpus += json_count(json_get(json_item(detail, i), "gpus"));
    return gpus;
}

static int read_attempts(const struct source *source, const struct json *attempts,
                         uint64_t *ret_gpus, bool *ret_started, int64_t *ret_run_ns,
                         struct error *err)
{
    *ret_gpus = 0;
    *ret_started = false;
    *ret_run_ns = 0;
    for (size_t i = 0; i < json_count(attempts); i++) {
        const struct json *attempt = json_item(attempts, i);
        bool started;
        bool ended;
        int64_t start_ns;
        int64_t end_ns;
        int r;
        if ((r = read_time(source, attempt, "start_time", &started, &start_ns, err)) <
                0 ||
            (r = read_time(source, attempt, "end_time", &ended, &end_ns, err)) < 0)
            return r;
        if (started && ended && end_ns > start_ns)
            *ret_run_ns += end_ns - start_ns;
        *ret_started |= started;
        if (json_count(json_get(attempt, "detail")) > 0)
            *ret_gpus = count_gpus(attempt);
    }
    if (*ret_gpus > FORMAT_GPUS_MAX || *ret_run_ns > TIME_MAX_NS)
        return line_error(
            source, "attempts add up to more than a million GPUs or 100 years", err);
    return 0;
}

static int read_text(const struct source *source, const struct json *job,
                     const char *key, const char **ret_text, struct error *err)
{
    const char *text = json_as_text(json_get(job, key));
    if (text && !table_clean(text, strlen(text)))
        return reader_wrong(&source->reader, key, text, strlen(text),
                            "no control characters", err);
    *ret_text = text && *text ? text : NULL;
    return 0;
}

static int read_job(const struct source *source, const struct json *job,
                    struct trace_row *row, const char **ret_reason, struct error *err)
{
    struct job_spec *spec = &row->spec;
    const struct json *attempts = json_get(job, "attempts");
    uint64_t gpus;
    bool submitted;
    bool started;
    int64_t run_ns;
    int r;
    if ((r = read_text(source, job, "jobid", &spec->name, err)) < 0 ||
        (r = read_text(source, job, "user", &spec->user, err)) < 0 ||
        (r = read_text(source, job, "vc", &spec->entity, err)) < 0 ||
        (r = read_time(source, job, "submitted_time", &submitted, &spec->submit_ns,
                       err)) < 0 ||
        (r = read_attempts(source, attempts, &gpus, &started, &run_ns, err)) < 0)
        return r;
    if (!attempts)
        return line_error(source, "the job above has no attempts, want an array", err);
    spec->gpus = (uint32_t)gpus;
    trace_row_set_run(row, run_ns);
    *ret_reason = !started     ? "never started"
                  : !submitted ? "no submission time"
                               : log_reason(gpus, true, started, run_ns);
    return 0;
}

static int philly_next(void *self, struct source *source, struct trace_row *row,
                       struct error *err)
{
    struct philly *philly = self;
    if (philly->place == BEFORE && source->reader.line == 0)
        source->reader.line = 1;
    for (;;) {
        int r = find_job(philly, source, err);
        if (r <= 0)
            return r;
        philly->place = BEHIND_JOB;
        if (philly->job)
            json_free(philly->job);
        philly->job = NULL;
        const char *reason = NULL;
        r = read_object(source, &philly->job, err);
        if (r == 0)
            r = read_job(source, philly->job, row, &reason, err);
        if (r < 0)
            return r;
        if (!reason)
            return 1;
        source_skip(source, reason);
    }
}

static void philly_close(void *self)
{
    struct philly *philly = self;
    if (philly->job)
        json_free(philly->job);
}

const struct format format_philly = {
    .name = "philly",
    .brief = "the Philly trace's cluster_job_log (JSON)",
    .unique = true,
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_NAME) | COLUMN_BIT(COLUMN_USER) |
               COLUMN_BIT(COLUMN_ENTITY),
    .self_size = sizeof(struct philly),
    .sniff = philly_sniff,
    .next = philly_next,
    .close = philly_close,
};
