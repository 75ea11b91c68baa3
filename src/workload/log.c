/*
 * log.c - the logs of Slurm-like clusters: one row per job, with what started and ended it.
 *
 * Helios (Hu et al., SC'21), as published: cluster_log.csv.  Times are wall clock without
 * a zone (China, no daylight saving) and are taken as UTC.  Run time is end - start;
 * 'duration' and 'queue' repeat the times.  Where jobs ran (node_num) is left out: a
 * replay decides that itself.
 *
 * Acme (Hu et al., NSDI'24), as published: trace_seren.csv and trace_kalos.csv.  Their
 * times carry a zone.  Run time is end - start: 'duration' is not used, in Kalos it counts
 * from the submission.  The kind of work ('type': Pretrain, Evaluation, …) becomes the
 * group of the job.
 */
#include "workload/log.h"

#include <string.h>
#include <strings.h>

#include "workload/csv.h"
#include "workload/format.h"

#define CPUS_MAX 1000000

bool log_has_time(const struct table *table, uint32_t column)
{
    static const char *const none[] = { "",     "None", "Unknown", "N/A",
                                        "null", "NaN",  "NaT",     NULL };
    for (const char *const *n = none; *n; n++)
        if (strcasecmp(table->fields[column].text, *n) == 0)
            return false;
    return true;
}

const char *log_reason(uint64_t gpus, bool ended, bool started, int64_t run_ns)
{
    if (gpus == 0)
        return "no GPUs";
    if (!started)
        return "never started";
    if (!ended)
        return "not ended";
    return run_ns == 0 ? "no run time" : NULL;
}

#define COLUMNS 9

/* Where the columns are; lists of their names have the same order. */
struct log {
    uint32_t id, user, entity, gpus, cpus, state, submit, start, end;
};

static const char *const helios_names[COLUMNS + 1] = {
    "job_id", "user",        "vc",         "gpu_num",  "cpu_num",
    "state",  "submit_time", "start_time", "end_time", NULL
};
static const char *const acme_names[COLUMNS + 1] = {
    "job_id", "user",        "type",       "gpu_num",  "cpu_num",
    "state",  "submit_time", "start_time", "end_time", NULL
};

static bool helios_sniff(const char *bytes, size_t count)
{
    return format_has(bytes, count, ',', helios_names);
}

static bool acme_sniff(const char *bytes, size_t count)
{
    return format_has(bytes, count, ',', acme_names);
}

static int open_log(struct log *log, const char *const *names, struct source *source,
                    struct error *err)
{
    uint32_t at[COLUMNS];
    table_init(&source->table, &source->reader, ',', /* quoted= */ true);
    int r = table_columns(&source->table, names, COLUMNS, at, err);
    if (r < 0)
        return r;
    *log =
        (struct log){ at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8] };
    return 0;
}

static int helios_open(void *self, struct source *source, struct error *err)
{
    return open_log(self, helios_names, source, err);
}

static int acme_open(void *self, struct source *source, struct error *err)
{
    return open_log(self, acme_names, source, err);
}

/* Start and end, where both are known. */
static int read_run(const struct log *log, const struct table *table, bool *ret_known,
                    int64_t *ret_run_ns, struct error *err)
{
    *ret_known = log_has_time(table, log->start) && log_has_time(table, log->end);
    *ret_run_ns = 0;
    if (!*ret_known)
        return 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int r = table_stamp(table, log->start, &start_ns, err);
    if (r == 0)
        r = table_stamp(table, log->end, &end_ns, err);
    if (r < 0)
        return r;
    if (end_ns < start_ns)
        return table_wrong(table, log->end, "no earlier than the start", err);
    *ret_run_ns = end_ns - start_ns;
    return 0;
}

/* The next job that had GPUs, started and ended. */
static int log_next(void *self, struct source *source, struct trace_row *row,
                    struct error *err)
{
    const struct log *log = self;
    struct table *table = &source->table;
    struct job_spec *spec = &row->spec;
    for (;;) {
        uint64_t gpus;
        uint64_t cpus = 0;
        bool known;
        int64_t run_ns = 0;
        int r = table_row(table, err);
        if (r <= 0)
            return r;
        if ((r = table_text(table, log->id, &spec->name, err)) < 0 ||
            (r = table_text(table, log->user, &spec->user, err)) < 0 ||
            (r = table_text(table, log->entity, &spec->entity, err)) < 0 ||
            (r = table_count(table, log->gpus, FORMAT_GPUS_MAX, &gpus, err)) < 0 ||
            (r = table_stamp(table, log->submit, &spec->submit_ns, err)) < 0 ||
            (r = read_run(log, table, &known, &run_ns, err)) < 0)
            return r;
        if (!table_empty(table, log->cpus))
            r = table_count(table, log->cpus, CPUS_MAX, &cpus, err);
        if (r < 0)
            return r;
        spec->gpus = (uint32_t)gpus;
        spec->cpu_milli = (uint32_t)cpus * 1000;
        trace_row_set_run(row, run_ns);
        bool ended = log_has_ended(table->fields[log->state].text);
        const char *reason =
            log_reason(gpus, ended, log_has_time(table, log->start), run_ns);
        if (!reason && !known)
            reason = "not ended";
        if (!reason)
            return 1;
        source_skip(source, reason);
    }
}

#define LOG_COLUMNS \
    (COLUMNS_BASIC | COLUMN_BIT(COLUMN_NAME) | COLUMN_BIT(COLUMN_USER) | \
     COLUMN_BIT(COLUMN_ENTITY) | COLUMN_BIT(COLUMN_CPUS))

const struct format format_helios = {
    .name = "helios",
    .brief = "Helios' cluster_log.csv",
    .unique = true,
    .columns = LOG_COLUMNS,
    .self_size = sizeof(struct log),
    .sniff = helios_sniff,
    .open = helios_open,
    .next = log_next,
};

const struct format format_acme = {
    .name = "acme",
    .brief = "Acme's trace_seren.csv and trace_kalos.csv",
    .unique = true,
    .columns = LOG_COLUMNS,
    .self_size = sizeof(struct log),
    .sniff = acme_sniff,
    .open = acme_open,
    .next = log_next,
};
