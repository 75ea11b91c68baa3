/*
 * swf.c - the Standard Workload Format of the Parallel Workloads Archive.
 *
 * Lines that begin with ';' are header comments, the others are 18 numbers between
 * blanks; -1 means unknown.  A processor stands for a GPU.  Processors are field 5, or
 * field 8 where that is unknown; run time is field 4; user and group are numbers.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/number.h"
#include "base/units.h"
#include "workload/csv.h"
#include "workload/format.h"
#include "workload/log.h"

enum {
    ID,
    SUBMIT,
    WAIT,
    RUN,
    PROCS,
    CPU,
    MEMORY,
    PROCS_ASKED,
    TIME_ASKED,
    MEMORY_ASKED,
    STATUS,
    USER,
    GROUP,
    COLUMN_TOTAL = 18
};

static const char *const names[] = {
    "job number",     "submit time",      "wait time", "run time",
    "processors",     "CPU time",         "memory",    "requested processors",
    "requested time", "requested memory", "status",    "user",
    "group"
};

struct swf {
    char user[24];
    char group[24];
    struct map ids;
};

static bool swf_sniff(const char *bytes, size_t count)
{
    if (*bytes == ';')
        return true;
    char line[4096];
    struct table_cell fields[COLUMN_TOTAL];
    format_first_line(bytes, count, line, sizeof line);
    if (table_split(line, strlen(line), ' ', false, fields, COLUMN_TOTAL) !=
        COLUMN_TOTAL)
        return false;
    double number;
    for (uint32_t i = 0; i < COLUMN_TOTAL; i++)
        if (!number_real(fields[i].text, fields[i].bytes, &number))
            return false;
    return true;
}

static int swf_open(void *self, struct source *source, struct error *err)
{
    table_init(&source->table, &source->reader, ' ', /* quoted= */ false);
    return 0;
}

static int field_error(const struct table *table, uint32_t at, const char *want,
                       struct error *err)
{
    return reader_wrong(table->reader, names[at], table->fields[at].text,
                        table->fields[at].bytes, want, err);
}

/* A number in so many parts; -1 where it is -1, unknown. */
static int read_field(const struct table *table, uint32_t at, int64_t parts,
                      int64_t max, int64_t *ret_value, struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    int64_t value;
    if (!number_scaled(field->text, field->bytes, parts, &value))
        return field_error(table, at, "a number", err);
    if (value == -parts)
        value = -1;
    else if (value < 0 || value / parts > max)
        return field_error(table, at,
                           "-1, or a number that is not negative and not absurd", err);
    *ret_value = value;
    return 0;
}

static int read_line(struct table *table, struct error *err)
{
    int r;
    do
        r = table_row(table, err);
    while (r > 0 && (table->field_count == 0 || *table->fields[0].text == ';'));
    if (r <= 0)
        return r;
    if (table->field_count != COLUMN_TOTAL)
        return error_set(err, -EINVAL, "%s:%llu: %u fields, want the %u of SWF",
                         table->reader->name, (unsigned long long)table->reader->line,
                         table->field_count, COLUMN_TOTAL);
    return 1;
}

static int note_id(struct swf *swf, const struct table *table, struct error *err)
{
    uint64_t id;
    if (!number_count(table->fields[ID].text, table->fields[ID].bytes, &id))
        return field_error(table, ID, "a whole number", err);
    if (map_find(&swf->ids, id) != MAP_NONE)
        return field_error(table, ID, "one that no job before has", err);
    map_put(&swf->ids, id, 1);
    return 0;
}

static int swf_next(void *self, struct source *source, struct trace_row *row,
                    struct error *err)
{
    struct swf *swf = self;
    struct table *table = &source->table;
    for (;;) {
        int64_t submit_ns = 0;
        int64_t run_ns = 0;
        int64_t procs = 0;
        int64_t asked = 0;
        int64_t user = 0;
        int64_t group = 0;
        const int64_t seconds_max = TIME_MAX_NS / NS_PER_S;
        int r = read_line(table, err);
        if (r <= 0)
            return r;
        if ((r = note_id(swf, table, err)) < 0 ||
            (r = read_field(table, SUBMIT, NS_PER_S, seconds_max, &submit_ns, err)) <
                0 ||
            (r = read_field(table, RUN, NS_PER_S, seconds_max, &run_ns, err)) < 0 ||
            (r = read_field(table, PROCS, 1, FORMAT_GPUS_MAX, &procs, err)) < 0 ||
            (r = read_field(table, PROCS_ASKED, 1, FORMAT_GPUS_MAX, &asked, err)) < 0 ||
            (r = read_field(table, USER, 1, INT32_MAX, &user, err)) < 0 ||
            (r = read_field(table, GROUP, 1, INT32_MAX, &group, err)) < 0)
            return r;
        if (submit_ns < 0)
            return field_error(table, SUBMIT, "a time that is known and not negative",
                               err);
        if (procs < 0)
            procs = asked;
        const char *reason =
            log_reason(procs > 0 ? (uint64_t)procs : 0, true, run_ns >= 0, run_ns);
        if (reason) {
            source_skip(source, reason);
            continue;
        }
        row->spec.submit_ns = submit_ns;
        row->spec.gpus = (uint32_t)procs;
        row->spec.name = table->fields[ID].text;
        trace_row_set_run(row, run_ns);
        snprintf(swf->user, sizeof swf->user, "u%lld", (long long)user);
        snprintf(swf->group, sizeof swf->group, "g%lld", (long long)group);
        row->spec.user = user >= 0 ? swf->user : NULL;
        row->spec.entity = group >= 0 ? swf->group : NULL;
        return 1;
    }
}

static void swf_close(void *self)
{
    struct swf *swf = self;
    map_release(&swf->ids);
}

const struct format format_swf = {
    .name = "swf",
    .brief = "Standard Workload Format of the Parallel Workloads Archive",
    .sorted = true,
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_NAME) | COLUMN_BIT(COLUMN_USER) |
               COLUMN_BIT(COLUMN_ENTITY),
    .self_size = sizeof(struct swf),
    .sniff = swf_sniff,
    .open = swf_open,
    .next = swf_next,
    .close = swf_close,
};
