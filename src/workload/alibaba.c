/*
 * alibaba.c - the Alibaba PAI trace of 2020 (Weng et al., NSDI'22): pai_task_table.
 *
 *     job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type
 *
 * The published table has no header line; one is accepted.  A task asks for so many
 * instances, each for plan_gpu percent of a GPU, plan_cpu percent of a CPU and plan_mem
 * GB.  To run, each instance takes whole GPUs; the GPU-hours are of what was asked for.
 * The table has no submission, so a task is submitted when it started.  Times are
 * seconds from a hidden epoch.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/units.h"
#include "workload/csv.h"
#include "workload/format.h"
#include "workload/log.h"

enum { JOB, TASK, INSTANCES, STATUS, START, END, CPU, MEM, GPU, TYPE, COLUMN_TOTAL };

static const char *const names[COLUMN_TOTAL + 1] = {
    "job_name", "task_name", "inst_num", "status",   "start_time", "end_time",
    "plan_cpu", "plan_mem",  "plan_gpu", "gpu_type", NULL,
};

#define JOB_TABLE_FIELDS 6
#define INSTANCES_MAX 100000
#define PERCENT_MAX 10000000
#define MEM_GIB_MAX 100000

struct pai {
    char name[512];
};

static bool is_status(const char *text)
{
    static const char *const states[] = { "Terminated", "Failed",      "Running",
                                          "Waiting",    "Interrupted", NULL };
    for (const char *const *s = states; *s; s++)
        if (strcmp(text, *s) == 0)
            return true;
    return false;
}

static bool pai_sniff(const char *bytes, size_t count)
{
    char line[4096];
    struct table_cell fields[COLUMN_TOTAL];
    format_first_line(bytes, count, line, sizeof line);
    uint32_t n =
        table_split(line, strlen(line), ',', /* quoted= */ false, fields, COLUMN_TOTAL);
    if (n != COLUMN_TOTAL && n != JOB_TABLE_FIELDS)
        return false;
    return is_status(fields[STATUS].text) || format_has(bytes, count, ',', names);
}

static int pai_open(void *self, struct source *source, struct error *err)
{
    table_init(&source->table, &source->reader, ',', /* quoted= */ false);
    return 0;
}

/* Read a line of the table, past a header in the first. */
static int read_line(struct pai *pai, struct table *table, struct error *err)
{
    int r = table_row(table, err);
    if (r > 0 && table->reader->line == 1 && table_is(table, JOB, names[JOB]))
        r = table_row(table, err);
    if (r <= 0)
        return r;
    if (table->field_count == JOB_TABLE_FIELDS && is_status(table->fields[STATUS].text))
        return error_set(err, -EINVAL,
                         "%s:%llu: this is pai_job_table, which has no GPU "
                         "counts, want pai_task_table",
                         table->reader->name, (unsigned long long)table->reader->line);
    if (table->field_count != COLUMN_TOTAL)
        return error_set(err, -EINVAL,
                         "%s:%llu: %u fields, want the %u of pai_task_table",
                         table->reader->name, (unsigned long long)table->reader->line,
                         table->field_count, COLUMN_TOTAL);
    return 1;
}

static int field_error(const struct table *table, uint32_t at, const char *want,
                       struct error *err)
{
    return reader_wrong(table->reader, names[at], table->fields[at].text,
                        table->fields[at].bytes, want, err);
}

/* A number from 0 to 'max' in so many parts; an empty field is 0. */
static int read_parts(const struct table *table, uint32_t at, int64_t parts,
                      int64_t max, int64_t *ret_value, struct error *err)
{
    const struct table_cell *field = &table->fields[at];
    *ret_value = 0;
    if (field->bytes == 0)
        return 0;
    if (!number_scaled(field->text, field->bytes, parts, ret_value) || *ret_value < 0 ||
        *ret_value > max * parts)
        return field_error(table, at, "a number that is not negative and not absurd",
                           err);
    return 0;
}

static int read_run(const struct table *table, struct trace_row *row, struct error *err)
{
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int r = read_parts(table, START, NS_PER_S, TIME_MAX_NS / NS_PER_S, &start_ns, err);
    if (r == 0)
        r = read_parts(table, END, NS_PER_S, TIME_MAX_NS / NS_PER_S, &end_ns, err);
    if (r < 0)
        return r;
    row->spec.submit_ns = start_ns;
    trace_row_set_run(row, 0);
    if (table_empty(table, START) || table_empty(table, END))
        return 0;
    if (end_ns < start_ns)
        return field_error(table, END, "no earlier than start_time", err);
    trace_row_set_run(row, end_ns - start_ns);
    return 0;
}

/* What the instances ask for together. */
static int read_demand(const struct table *table, struct trace_row *row,
                       struct error *err)
{
    uint64_t instances;
    int64_t gpu_milli_percent;
    int64_t cpu_milli_percent;
    int64_t mem_mib;
    int r;
    if ((r = read_parts(table, GPU, 1000, PERCENT_MAX, &gpu_milli_percent, err)) < 0 ||
        (r = read_parts(table, CPU, 1000, PERCENT_MAX, &cpu_milli_percent, err)) < 0 ||
        (r = read_parts(table, MEM, 1024, MEM_GIB_MAX, &mem_mib, err)) < 0)
        return r;
    if (table_count(table, INSTANCES, INSTANCES_MAX, &instances, NULL) < 0)
        return field_error(table, INSTANCES, "a whole number", err);

    uint64_t gpus = instances * (uint64_t)((gpu_milli_percent + 99999) / 100000);
    uint64_t cpu_milli = instances * (uint64_t)cpu_milli_percent / 100;
    uint64_t mem = instances * (uint64_t)mem_mib;
    if (gpus > FORMAT_GPUS_MAX)
        return field_error(table, GPU, "at most a million GPUs in all", err);
    row->gpu_milli = instances * (uint64_t)gpu_milli_percent / 100;
    row->spec.gpus = (uint32_t)gpus;
    row->spec.cpu_milli = cpu_milli < UINT32_MAX ? (uint32_t)cpu_milli : UINT32_MAX;
    row->spec.mem_mib = mem < UINT32_MAX ? (uint32_t)mem : UINT32_MAX;
    return 0;
}

static int pai_next(void *self, struct source *source, struct trace_row *row,
                    struct error *err)
{
    struct pai *pai = self;
    struct table *table = &source->table;
    for (;;) {
        int r = read_line(pai, table, err);
        if (r <= 0)
            return r;
        if (!is_status(table->fields[STATUS].text))
            return field_error(table, STATUS, "Terminated, Failed, Running or Waiting",
                               err);
        const char *job;
        const char *task;
        if ((r = table_text(table, JOB, &job, err)) < 0 ||
            (r = table_text(table, TASK, &task, err)) < 0 ||
            (r = read_demand(table, row, err)) < 0 ||
            (r = read_run(table, row, err)) < 0)
            return r;
        snprintf(pai->name, sizeof pai->name, "%.200s-%.200s", job ? job : "",
                 task ? task : "");
        if (!table_clean(pai->name, strlen(pai->name)))
            return field_error(table, JOB, "a name of at most 200 bytes", err);
        row->spec.name = pai->name;
        bool ended =
            table_is(table, STATUS, "Terminated") || table_is(table, STATUS, "Failed");
        const char *reason =
            log_reason(row->spec.gpus, ended, !table_empty(table, START), row->run_ns);
        if (!reason)
            return 1;
        source_skip(source, reason);
    }
}

const struct format format_pai = {
    .name = "pai",
    .brief = "Alibaba PAI's pai_task_table",
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_NAME) | COLUMN_BIT(COLUMN_CPUS) |
               COLUMN_BIT(COLUMN_MEM),
    .self_size = sizeof(struct pai),
    .sniff = pai_sniff,
    .open = pai_open,
    .next = pai_next,
};
