/*
 * trace_gavel.c - the trace format of Gavel (Narayanan et al., OSDI'20) and its descendants.
 *
 * Fields between tabs, no header, jobs in order of arrival.  The number of fields identifies
 * the dialect; those that matter are at
 *
 *               7 fields (oldest)   10 fields   12 fields (Shockwave)
 *     type            0                 0              0
 *     steps           4                 5              5
 *     GPUs            6                 6              6
 *     weight          -                 7              8
 *     deadline        -                 8              9     seconds after arrival
 *     run time        -                 -             10     seconds on a V100
 *     arrival         5                 9             11
 *
 * A table with a header (job_type, scale_factor, total_steps, arrival_s) is read too.
 * The type is the row of the throughput table; how long a job runs follows from there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/units.h"
#include "workload/csv.h"
#include "workload/format.h"

#define NONE TABLE_NONE
#define STEPS_MAX 1e18
#define WEIGHT_MAX 1e9

struct dialect {
    uint32_t field_count;
    uint32_t type, steps, gpus, weight, deadline, run, arrival;
};

static const struct dialect dialects[] = {
    { 7, 0, 4, 6, NONE, NONE, NONE, 5 },
    { 10, 0, 5, 6, 7, 8, NONE, 9 },
    { 12, 0, 5, 6, 8, 9, 10, 11 },
};

static const char *const names[] = { "job_type", "scale_factor", "total_steps",
                                     "arrival_s", NULL };

struct trace_gavel {
    struct dialect dialect; /* of the file; field_count 0: not known yet */
};

static const struct dialect *find_dialect(uint32_t field_count)
{
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
        if (dialects[i].field_count == field_count)
            return &dialects[i];
    return NULL;
}

static bool gavel_sniff(const char *bytes, size_t count)
{
    if (format_has(bytes, count, ',', names))
        return true;
    char line[4096];
    struct table_cell fields[16];
    format_first_line(bytes, count, line, sizeof line);
    uint32_t n = table_split(line, strlen(line), '\t', false, fields, 16);
    const struct dialect *dialect = find_dialect(n);
    double number;
    return dialect &&
           number_real(fields[dialect->steps].text, fields[dialect->steps].bytes,
                       &number) &&
           number_real(fields[dialect->arrival].text, fields[dialect->arrival].bytes,
                       &number);
}

static int gavel_open(void *self, struct source *source, struct error *err)
{
    struct trace_gavel *gavel = self;
    struct table *table = &source->table;
    struct reader *reader = &source->reader;
    int r = reader_peek(reader, 4096, err);
    if (r < 0)
        return r;
    if (!format_has(reader->bytes + reader->start, reader->end - reader->start, ',',
                    names)) {
        table_init(table, reader, '\t', /* quoted= */ false);
        return 0;
    }
    uint32_t at[4];
    table_init(table, reader, ',', /* quoted= */ true);
    r = table_columns(table, names, 4, at, err);
    if (r < 0)
        return r;
    gavel->dialect = (struct dialect){ table->name_count,
                                       at[0],
                                       at[2],
                                       at[1],
                                       table_find(table, "priority_weight"),
                                       NONE,
                                       NONE,
                                       at[3] };
    return 0;
}

static int field_error(const struct table *table, uint32_t at, const char *field,
                       const char *want, struct error *err)
{
    return reader_wrong(table->reader, field, table->fields[at].text,
                        table->fields[at].bytes, want, err);
}

static int read_time(const struct table *table, uint32_t at, const char *name,
                     int64_t *ret_ns, struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    int64_t ns;
    if (!number_scaled(field->text, field->bytes, NS_PER_S, &ns) || ns < 0 ||
        ns > TIME_MAX_NS)
        return field_error(table, at, name, "seconds, not negative, at most 100 years",
                           err);
    *ret_ns = ns;
    return 0;
}

static int read_number(const struct table *table, uint32_t at, const char *name,
                       double max, double *ret_number, struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    if (!number_real(field->text, field->bytes, ret_number) || *ret_number < 0 ||
        *ret_number > max)
        return field_error(table, at, name, "a number, not negative and not absurd",
                           err);
    return 0;
}

/* Fields that only some dialects have. */
static int read_more(const struct dialect *d, const struct table *table,
                     struct trace_row *row, struct error *err)
{
    int r = 0;
    row->run_ns = -1;
    if (d->weight != NONE)
        r = read_number(table, d->weight, "priority weight", WEIGHT_MAX,
                        &row->spec.weight, err);
    if (r == 0 && d->run != NONE)
        r = read_time(table, d->run, "duration", &row->run_ns, err);
    if (r < 0 || d->deadline == NONE || *table->fields[d->deadline].text == '-')
        return r; /* -1: none */
    r = read_time(table, d->deadline, "SLO", &row->spec.deadline_ns, err);
    if (r == 0 && row->spec.deadline_ns > 0)
        row->spec.deadline_ns += row->spec.submit_ns;
    return r;
}

static int read_line(struct trace_gavel *gavel, struct table *table, struct error *err)
{
    int r = table_row(table, err);
    if (r <= 0)
        return r;
    const struct dialect *found = find_dialect(table->field_count);
    if (gavel->dialect.field_count == 0 && found)
        gavel->dialect = *found;
    if (table->field_count != gavel->dialect.field_count)
        return error_set(err, -EINVAL, "%s:%llu: %u fields between tabs, want %s",
                         table->reader->name, (unsigned long long)table->reader->line,
                         table->field_count,
                         gavel->dialect.field_count ? "as many as in the lines above"
                                                    : "7, 10 or 12");
    return 1;
}

static int gavel_next(void *self, struct source *source, struct trace_row *row,
                      struct error *err)
{
    struct trace_gavel *gavel = self;
    struct table *table = &source->table;
    const struct dialect *d = &gavel->dialect;
    for (;;) {
        int r = read_line(gavel, table, err);
        if (r <= 0)
            return r;
        uint64_t gpus;
        if ((r = table_text(table, d->type, &row->spec.kind, err)) < 0 ||
            (r = read_number(table, d->steps, "total steps", STEPS_MAX,
                             &row->spec.steps, err)) < 0 ||
            (r = read_time(table, d->arrival, "arrival", &row->spec.submit_ns, err)) <
                0 ||
            (r = read_more(d, table, row, err)) < 0)
            return r;
        if (table_count(table, d->gpus, FORMAT_GPUS_MAX, &gpus, NULL) < 0)
            return field_error(table, d->gpus, "scale factor", "a whole number of GPUs",
                               err);
        if (!row->spec.kind)
            return field_error(table, d->type, "job type", "a name", err);
        row->spec.gpus = (uint32_t)gpus;
        if (gpus > 0 && row->spec.steps > 0)
            return 1;
        source_skip(source, gpus == 0 ? "no GPUs" : "no run time");
    }
}

const struct format format_gavel = {
    .name = "gavel",
    .brief = "traces of Gavel and Shockwave",
    .sorted = true,
    .columns = COLUMN_BIT(COLUMN_SUBMIT) | COLUMN_BIT(COLUMN_GPUS) |
               COLUMN_BIT(COLUMN_KIND) | COLUMN_BIT(COLUMN_STEPS) |
               COLUMN_BIT(COLUMN_WEIGHT) | COLUMN_BIT(COLUMN_DEADLINE),
    .self_size = sizeof(struct trace_gavel),
    .sniff = gavel_sniff,
    .open = gavel_open,
    .next = gavel_next,
};
