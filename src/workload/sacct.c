/*
 * sacct.c - what 'sacct --parsable2' (or -P) prints: fields between bars, a header.
 *
 * Columns by name: JobID or JobIDRaw; Submit; Start and End, or ElapsedRaw or Elapsed;
 * AllocTRES, ReqTRES, AllocGRES or ReqGRES for the GPUs ("gres/gpu=4", "gres/gpu:v100=4",
 * "gpu:4"); optionally State, User, Account, AllocCPUS, ReqMem.  Steps of a job
 * ("123.batch") belong to the job and are passed over without counting.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/units.h"
#include "workload/csv.h"
#include "workload/format.h"
#include "workload/log.h"

#define TRES_MAX 4
#define CPUS_MAX 1000000

struct sacct {
    uint32_t id, submit, start, end, elapsed, elapsed_raw, state, user, account, cpus;
    uint32_t tres[TRES_MAX]; /* columns that may hold the GPUs, best first */
    uint32_t tres_count;
};

static bool sacct_sniff(const char *bytes, size_t count)
{
    char line[4096];
    format_first_line(bytes, count, line, sizeof line);
    return strchr(line, '|') && strcasestr(line, "JobID") && strcasestr(line, "Submit");
}

static int no_column(const struct source *source, const char *name, struct error *err)
{
    return error_set(err, -EINVAL, "%s:1: no column %s in the header",
                     source->reader.name, name);
}

static int sacct_open(void *self, struct source *source, struct error *err)
{
    struct sacct *s = self;
    struct table *table = &source->table;
    table_init(table, &source->reader, '|', /* quoted= */ false);
    int r = table_header(table, err);
    if (r < 0)
        return r;
    s->id = table_find(table, "JobID");
    if (s->id == TABLE_NONE)
        s->id = table_find(table, "JobIDRaw");
    s->submit = table_find(table, "Submit");
    s->start = table_find(table, "Start");
    s->end = table_find(table, "End");
    s->elapsed = table_find(table, "Elapsed");
    s->elapsed_raw = table_find(table, "ElapsedRaw");
    s->state = table_find(table, "State");
    s->user = table_find(table, "User");
    s->account = table_find(table, "Account");
    s->cpus = table_find(table, "AllocCPUS");
    static const char *const tres[TRES_MAX] = { "AllocTRES", "ReqTRES", "AllocGRES",
                                                "ReqGRES" };
    for (uint32_t i = 0; i < TRES_MAX; i++)
        if ((s->tres[s->tres_count] = table_find(table, tres[i])) != TABLE_NONE)
            s->tres_count++;
    if (s->id == TABLE_NONE)
        return no_column(source, "JobID or JobIDRaw", err);
    if (s->submit == TABLE_NONE)
        return no_column(source, "Submit", err);
    if (s->tres_count == 0)
        return no_column(source, "AllocTRES, ReqTRES or ReqGRES", err);
    if (s->elapsed == TABLE_NONE && s->elapsed_raw == TABLE_NONE &&
        (s->start == TABLE_NONE || s->end == TABLE_NONE))
        return no_column(source, "ElapsedRaw or Elapsed, nor Start and End", err);
    return 0;
}

/*
 * GPUs in "billing=8,cpu=8,gres/gpu=4,gres/gpu:v100=4" or "gpu:v100:4(IDX:0-3)".  The
 * plain entry is the sum of the typed ones, so those count only where it is missing.
 * False if a number is no number.
 */
static bool read_gpus(const char *text, uint64_t *ret_gpus)
{
    uint64_t plain = 0;
    uint64_t typed = 0;
    while (*text) {
        size_t bytes = strcspn(text, ",");
        const char *name = strncmp(text, "gres/", 5) == 0 ? text + 5 : text;
        size_t name_bytes = bytes - (size_t)(name - text);
        if (name_bytes >= 3 && strncmp(name, "gpu", 3) == 0 &&
            (name_bytes == 3 || strchr(":=(", name[3]))) {
            size_t end = 0;
            while (end < name_bytes && name[end] != '(')
                end++;
            size_t digits = end;
            while (isdigit((unsigned char)name[digits - 1])) /* up to "gpu" */
                digits--;
            uint64_t count = 1; /* "gpu" or "gpu:v100" alone means one */
            bool given = digits < end && strchr(":=", name[digits - 1]);
            if (given && !number_count(name + digits, end - digits, &count))
                return false;
            if (!given && memchr(name, '=', end))
                return false;
            if (count > FORMAT_GPUS_MAX)
                return false;
            bool bare = name[3] == '=' || (name[3] == ':' && digits == 4);
            if (bare)
                plain += count;
            else
                typed += count;
        }
        text += bytes;
        text += *text == ',';
    }
    *ret_gpus = plain ? plain : typed;
    return *ret_gpus <= FORMAT_GPUS_MAX;
}

/* "[days-]hours:minutes:seconds[.fraction]" or "minutes:seconds" to nanoseconds. */
static bool read_elapsed(const char *text, int64_t *ret_ns)
{
    uint64_t days = 0;
    const char *dash = strchr(text, '-');
    if (dash && !number_count(text, (size_t)(dash - text), &days))
        return false;
    if (days > 36525)
        return false;
    const char *part = dash ? dash + 1 : text;
    int64_t seconds = 0;
    for (int i = 0; i < 3; i++) {
        size_t bytes = strcspn(part, ":");
        bool last = part[bytes] == '\0';
        int64_t value_ns;
        if (bytes == 0 || *part == '-' ||
            !number_scaled(part, bytes, last ? NS_PER_S : 1, &value_ns))
            return false;
        if (last) {
            *ret_ns = ((int64_t)days * 86400 + seconds * 60) * NS_PER_S + value_ns;
            return i > 0 && *ret_ns <= TIME_MAX_NS;
        }
        if (value_ns > 1000000)
            return false;
        seconds = seconds * 60 + value_ns;
        part += bytes + 1;
    }
    return false;
}

static int read_run(const struct sacct *s, const struct table *table,
                    int64_t *ret_run_ns, struct error *err)
{
    if (s->elapsed_raw != TABLE_NONE && !table_empty(table, s->elapsed_raw))
        return table_time(table, s->elapsed_raw, NS_PER_S, ret_run_ns, err);
    if (s->elapsed != TABLE_NONE && !table_empty(table, s->elapsed)) {
        if (!read_elapsed(table->fields[s->elapsed].text, ret_run_ns))
            return table_wrong(table, s->elapsed, "a time such as 1-02:03:04", err);
        return 0;
    }
    *ret_run_ns = 0;
    if (s->start == TABLE_NONE || s->end == TABLE_NONE ||
        !log_has_time(table, s->start) || !log_has_time(table, s->end))
        return 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int r = table_stamp(table, s->start, &start_ns, err);
    if (r == 0)
        r = table_stamp(table, s->end, &end_ns, err);
    if (r < 0)
        return r;
    if (end_ns < start_ns)
        return table_wrong(table, s->end, "no earlier than Start", err);
    *ret_run_ns = end_ns - start_ns;
    return 0;
}

static int read_job(const struct sacct *s, const struct table *table,
                    struct trace_row *row, struct error *err)
{
    struct job_spec *spec = &row->spec;
    uint64_t gpus = 0;
    uint64_t cpus = 0;
    int64_t run_ns = 0;
    int r;
    if ((r = table_text(table, s->id, &spec->name, err)) < 0 ||
        (r = table_stamp(table, s->submit, &spec->submit_ns, err)) < 0 ||
        (r = read_run(s, table, &run_ns, err)) < 0)
        return r;
    if (s->user != TABLE_NONE && (r = table_text(table, s->user, &spec->user, err)) < 0)
        return r;
    if (s->account != TABLE_NONE &&
        (r = table_text(table, s->account, &spec->entity, err)) < 0)
        return r;
    if (s->cpus != TABLE_NONE && !table_empty(table, s->cpus) &&
        (r = table_count(table, s->cpus, CPUS_MAX, &cpus, err)) < 0)
        return r;
    for (uint32_t i = 0; i < s->tres_count && gpus == 0; i++)
        if (!read_gpus(table->fields[s->tres[i]].text, &gpus))
            return table_wrong(table, s->tres[i], "resources such as gres/gpu=4", err);
    spec->gpus = (uint32_t)gpus;
    spec->cpu_milli = (uint32_t)cpus * 1000;
    trace_row_set_run(row, run_ns);
    return 0;
}

static int sacct_next(void *self, struct source *source, struct trace_row *row,
                      struct error *err)
{
    const struct sacct *s = self;
    struct table *table = &source->table;
    for (;;) {
        int r = table_row(table, err);
        if (r <= 0)
            return r;
        if (strchr(table->fields[s->id].text, '.'))
            continue; /* a step of a job */
        r = read_job(s, table, row, err);
        if (r < 0)
            return r;
        bool ended =
            s->state == TABLE_NONE || log_has_ended(table->fields[s->state].text);
        bool started = s->start == TABLE_NONE || log_has_time(table, s->start);
        const char *reason = log_reason(row->spec.gpus, ended, started, row->run_ns);
        if (!reason)
            return 1;
        source_skip(source, reason);
    }
}

const struct format format_sacct = {
    .name = "sacct",
    .brief = "what Slurm's 'sacct --parsable2' prints",
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_NAME) | COLUMN_BIT(COLUMN_USER) |
               COLUMN_BIT(COLUMN_ENTITY) | COLUMN_BIT(COLUMN_CPUS),
    .self_size = sizeof(struct sacct),
    .sniff = sacct_sniff,
    .open = sacct_open,
    .next = sacct_next,
};
