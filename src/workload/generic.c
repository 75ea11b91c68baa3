/*
 * generic.c - any table with columns for arrival, duration and GPU count.
 *
 * Separated by commas, tabs, semicolons or bars, whichever is most frequent in the
 * header.  Names are compared without case, blanks and punctuation, and may end in a
 * unit ("duration_ms", "arrival_min", "run time (h)"); without one times are in seconds,
 * and an arrival may be a date.  Without a duration, start and end will do.
 *
 * Two published layouts carry no unit and are not in seconds; their whole header identifies
 * them: Muri's traces are in milliseconds, Chronus' in minutes.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/units.h"
#include "workload/csv.h"
#include "workload/format.h"
#include "workload/log.h"

enum role {
    ARRIVAL,
    DURATION,
    START,
    END,
    GPUS,
    WORKERS,
    ID,
    USER,
    ENTITY,
    ROLE_COUNT
};

/* Spellings by role, best first, as they are after folding. */
static const char *const spellings[ROLE_COUNT][16] = {
    [ARRIVAL] = { "arrival", "arrivaltime", "submit", "submittime", "submission",
                  "submissiontime", "submitted", "submittedtime", "submittedat",
                  "submitat", "creationtime", "created", "timestamp", "time" },
    [DURATION] = { "duration", "service", "servicetime", "runtime", "run",
                   "runningtime", "elapsed", "elapsedtime", "work", "walltime",
                   "length", "executiontime" },
    [START] = { "start", "starttime", "started", "startedat", "scheduledtime" },
    [END] = { "end", "endtime", "ended", "endedat", "finish", "finishtime", "finished",
              "deletiontime" },
    [GPUS] = { "gpus", "gpucount", "numgpus", "numgpu", "gpunum", "ngpus", "ngpu",
               "gpurequest", "requestedgpus", "gpu", "scalefactor", "numberofgpus" },
    [WORKERS] = { "workernum", "numworkers", "instances", "instnum" },
    [ID] = { "jobid", "id", "jobname" },
    [USER] = { "user", "username", "userid", "owner" },
    [ENTITY] = { "vc", "account", "cluster", "group", "tenant", "organization",
                 "queue" },
};

struct time_unit {
    const char *name;
    int64_t ns;
};

/* Longest first, so that "ms" is not taken for "s". */
static const struct time_unit units[] = {
    { "milliseconds", NS_PER_S / 1000 },
    { "seconds", NS_PER_S },
    { "minutes", NS_PER_S * 60 },
    { "hours", NS_PER_S * 3600 },
    { "days", NS_PER_S * 86400 },
    { "msec", NS_PER_S / 1000 },
    { "mins", NS_PER_S * 60 },
    { "secs", NS_PER_S },
    { "hrs", NS_PER_S * 3600 },
    { "min", NS_PER_S * 60 },
    { "sec", NS_PER_S },
    { "ms", NS_PER_S / 1000 },
    { "us", NS_PER_S / 1000000 },
    { "ns", 1 },
    { "s", NS_PER_S },
    { "h", NS_PER_S * 3600 },
    { "d", NS_PER_S * 86400 },
};

struct generic {
    uint32_t at[ROLE_COUNT]; /* columns, or TABLE_NONE */
    int64_t unit_ns[ROLE_COUNT];
    bool dates[ROLE_COUNT]; /* times are dates, as the first row shows */
    bool first_seen;
};

/* Lower case, letters and digits only. */
static void fold_name(const char *name, char *folded, size_t size)
{
    size_t count = 0;
    for (; *name && count + 1 < size; name++)
        if (isalnum((unsigned char)*name))
            folded[count++] = (char)tolower((unsigned char)*name);
    folded[count] = '\0';
}

/* Index of a spelling among those of a role, or UINT32_MAX; and its unit. */
static uint32_t match_name(const char *name, enum role role, int64_t *ret_unit_ns)
{
    char folded[64];
    fold_name(name, folded, sizeof folded);
    size_t bytes = strlen(folded);
    for (uint32_t i = 0; i < 16 && spellings[role][i]; i++) {
        const char *spelling = spellings[role][i];
        size_t length = strlen(spelling);
        if (strncmp(folded, spelling, length) != 0)
            continue;
        if (bytes == length) {
            *ret_unit_ns = NS_PER_S;
            return i;
        }
        for (size_t u = 0; role <= END && u < sizeof units / sizeof *units; u++)
            if (strcmp(folded + length, units[u].name) == 0) {
                *ret_unit_ns = units[u].ns;
                return i;
            }
    }
    return UINT32_MAX;
}

static char most_frequent(const char *header)
{
    static const char separators[] = ",\t;|";
    char best = ',';
    size_t best_count = 0;
    for (const char *s = separators; *s; s++) {
        size_t count = 0;
        for (const char *p = header; *p; p++)
            count += *p == *s;
        if (count > best_count) {
            best = *s;
            best_count = count;
        }
    }
    return best;
}

/* Give each role the column with its best spelling. */
static void find_roles(struct generic *generic, const struct table_cell *names,
                       uint32_t count)
{
    for (uint32_t role = 0; role < ROLE_COUNT; role++) {
        uint32_t best = UINT32_MAX;
        generic->at[role] = TABLE_NONE;
        for (uint32_t i = 0; i < count; i++) {
            int64_t unit_ns;
            uint32_t place = match_name(names[i].text, (enum role)role, &unit_ns);
            if (place < best) {
                best = place;
                generic->at[role] = i;
                generic->unit_ns[role] = unit_ns;
            }
        }
    }
}

static bool runs_known(const struct generic *generic)
{
    return generic->at[DURATION] != TABLE_NONE ||
           (generic->at[START] != TABLE_NONE && generic->at[END] != TABLE_NONE);
}

static bool generic_sniff(const char *bytes, size_t count)
{
    char line[4096];
    struct table_cell names[TABLE_COLUMNS_MAX];
    struct generic generic;
    format_first_line(bytes, count, line, sizeof line);
    uint32_t n = table_split(line, strlen(line), most_frequent(line), true, names,
                             TABLE_COLUMNS_MAX);
    if (n > TABLE_COLUMNS_MAX)
        return false;
    find_roles(&generic, names, n);
    /* With two of three, the message can name the missing one. */
    return (generic.at[ARRIVAL] != TABLE_NONE) + runs_known(&generic) +
               (generic.at[GPUS] != TABLE_NONE) >=
           2;
}

static bool header_is(const struct table *table, const char *const *names)
{
    uint32_t count = 0;
    for (; names[count]; count++)
        if (table_find(table, names[count]) == TABLE_NONE)
            return false;
    return count == table->name_count;
}

/* Layouts with a unit that only the whole header identifies. */
static void know_units(struct generic *generic, const struct table *table)
{
    static const char *const muri[] = {
        "job_id",          "num_gpu",
        "submit_time",     "iterations",
        "model_name",      "batch_size",
        "duration",        "interval",
        "iteration_time",  "resource_time_0",
        "resource_time_1", "resource_time_2",
        "priority",        NULL,
    };
    static const char *const chronus[] = {
        "job_id",      "user",     "num_gpu",  "submit_time",      "iterations",
        "model_name",  "duration", "interval", "expect_time_list", "expect_value_list",
        "best_effort", "job_type", NULL,
    };
    int64_t unit_ns = header_is(table, muri)      ? NS_PER_S / 1000
                      : header_is(table, chronus) ? NS_PER_S * 60
                                                  : 0;
    if (unit_ns)
        generic->unit_ns[ARRIVAL] = generic->unit_ns[DURATION] = unit_ns;
}

static int generic_open(void *self, struct source *source, struct error *err)
{
    struct generic *generic = self;
    struct table *table = &source->table;
    struct reader *reader = &source->reader;
    int r = reader_peek(reader, READER_LINE_MAX, err);
    if (r < 0)
        return r;
    char line[4096];
    format_first_line(reader->bytes + reader->start, reader->end - reader->start, line,
                      sizeof line);
    table_init(table, reader, most_frequent(line), /* quoted= */ true);
    r = table_header(table, err);
    if (r < 0)
        return r;
    find_roles(generic, table->names, table->name_count);
    if (generic->at[ARRIVAL] == TABLE_NONE)
        return error_set(err, -EINVAL,
                         "%s:1: no column names an arrival, want one such as "
                         "submit_s, arrival_s or submit_time",
                         reader->name);
    if (!runs_known(generic))
        return error_set(err, -EINVAL,
                         "%s:1: no column names a run time, want one such as "
                         "duration_s, or start and end",
                         reader->name);
    if (generic->at[GPUS] == TABLE_NONE)
        return error_set(err, -EINVAL,
                         "%s:1: no column names a GPU count, want one such as "
                         "gpus, num_gpus or gpu_count",
                         reader->name);
    if (generic->at[DURATION] != TABLE_NONE)
        generic->at[START] = generic->at[END] = TABLE_NONE;
    know_units(generic, table);
    return 0;
}

/* Whether times are dates is settled by the first row. */
static void look_at_first(struct generic *generic, const struct table *table)
{
    for (uint32_t role = 0; role <= END; role++) {
        int64_t ns;
        if (generic->at[role] == TABLE_NONE || role == DURATION)
            continue;
        const struct table_cell *field = &table->fields[generic->at[role]];
        generic->dates[role] = number_stamp(field->text, field->bytes, &ns);
    }
    generic->first_seen = true;
}

static int read_time(const struct generic *generic, const struct table *table,
                     enum role role, int64_t *ret_ns, struct error *err)
{
    if (generic->dates[role])
        return table_stamp(table, generic->at[role], ret_ns, err);
    return table_time(table, generic->at[role], generic->unit_ns[role], ret_ns, err);
}

static int read_run(const struct generic *generic, const struct table *table,
                    int64_t *ret_run_ns, bool *ret_started, struct error *err)
{
    *ret_started = true;
    if (generic->at[DURATION] != TABLE_NONE)
        return read_time(generic, table, DURATION, ret_run_ns, err);
    *ret_run_ns = 0;
    *ret_started = log_has_time(table, generic->at[START]) &&
                   log_has_time(table, generic->at[END]);
    if (!*ret_started)
        return 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int r = read_time(generic, table, START, &start_ns, err);
    if (r == 0)
        r = read_time(generic, table, END, &end_ns, err);
    if (r < 0)
        return r;
    if (end_ns < start_ns)
        return table_wrong(table, generic->at[END], "no earlier than the start", err);
    *ret_run_ns = end_ns - start_ns;
    return 0;
}

static int read_texts(const struct generic *generic, const struct table *table,
                      struct job_spec *spec, struct error *err)
{
    const char **const texts[] = { &spec->name, &spec->user, &spec->entity };
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t at = generic->at[ID + i];
        int r = at == TABLE_NONE ? 0 : table_text(table, at, texts[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int generic_next(void *self, struct source *source, struct trace_row *row,
                        struct error *err)
{
    struct generic *generic = self;
    struct table *table = &source->table;
    for (;;) {
        int r = table_row(table, err);
        if (r <= 0)
            return r;
        if (!generic->first_seen)
            look_at_first(generic, table);
        uint64_t gpus;
        uint64_t workers = 1;
        int64_t run_ns = 0;
        bool started;
        uint32_t workers_at = generic->at[WORKERS];
        if ((r = read_time(generic, table, ARRIVAL, &row->spec.submit_ns, err)) < 0 ||
            (r = read_run(generic, table, &run_ns, &started, err)) < 0 ||
            (r = table_count(table, generic->at[GPUS], FORMAT_GPUS_MAX, &gpus, err)) <
                0 ||
            (r = read_texts(generic, table, &row->spec, err)) < 0)
            return r;
        if (workers_at != TABLE_NONE &&
            (r = table_count(table, workers_at, FORMAT_GPUS_MAX, &workers, err)) < 0)
            return r;
        if (gpus * workers > FORMAT_GPUS_MAX)
            return table_wrong(table, workers_at, "at most a million GPUs in all", err);
        row->spec.gpus = (uint32_t)(gpus * workers);
        trace_row_set_run(row, run_ns);
        const char *reason = log_reason(gpus * workers, true, started, run_ns);
        if (!reason)
            return 1;
        source_skip(source, reason);
    }
}

const struct format format_generic = {
    .name = "generic",
    .brief = "any table whose header names arrival, duration and GPUs",
    .unique = true,
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_NAME) | COLUMN_BIT(COLUMN_USER) |
               COLUMN_BIT(COLUMN_ENTITY),
    .self_size = sizeof(struct generic),
    .sniff = generic_sniff,
    .open = generic_open,
    .next = generic_next,
};
