/*
 * philly_csv.c - the Philly trace as one line per job (conversion by Pollux' authors).
 *
 *     timestamp,duration,num_gpus,gpu_time,cluster
 *
 * No ids, not in order.  gpu_time is redundant and guards against damaged lines.
 */
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "workload/csv.h"
#include "workload/format.h"

enum { STAMP, DURATION, GPUS, GPU_TIME, CLUSTER, NAME_COUNT };

static const char *const names[NAME_COUNT + 1] = { "timestamp", "duration", "num_gpus",
                                                   "gpu_time",  "cluster",  NULL };

struct philly_csv {
    uint32_t at[NAME_COUNT];
};

static bool philly_csv_sniff(const char *bytes, size_t count)
{
    return format_has(bytes, count, ',', names);
}

static int philly_csv_open(void *self, struct source *source, struct error *err)
{
    struct philly_csv *philly = self;
    table_init(&source->table, &source->reader, ',', /* quoted= */ false);
    return table_columns(&source->table, names, NAME_COUNT, philly->at, err);
}

static int philly_csv_next(void *self, struct source *source, struct trace_row *row,
                           struct error *err)
{
    const struct philly_csv *philly = self;
    struct table *table = &source->table;
    for (;;) {
        int64_t run_ns;
        int64_t gpu_ns;
        uint64_t gpus;
        int r = table_row(table, err);
        if (r <= 0)
            return r;
        if ((r = table_stamp(table, philly->at[STAMP], &row->spec.submit_ns, err)) <
                0 ||
            (r = table_time(table, philly->at[DURATION], NS_PER_S, &run_ns, err)) < 0 ||
            (r = table_count(table, philly->at[GPUS], FORMAT_GPUS_MAX, &gpus, err)) <
                0 ||
            (r = table_time(table, philly->at[GPU_TIME], NS_PER_S, &gpu_ns, err)) < 0 ||
            (r = table_text(table, philly->at[CLUSTER], &row->spec.entity, err)) < 0)
            return r;
        if (fabs((double)run_ns * (double)gpus - (double)gpu_ns) > 0.5e9)
            return table_wrong(table, philly->at[GPU_TIME], "duration times num_gpus",
                               err);
        row->spec.gpus = (uint32_t)gpus;
        trace_row_set_run(row, run_ns);
        if (gpus > 0 && run_ns > 0)
            return 1;
        source_skip(source, gpus == 0 ? "no GPUs" : "no run time");
    }
}

const struct format format_philly_csv = {
    .name = "philly-csv",
    .brief = "the Philly trace as one line per job",
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_ENTITY),
    .self_size = sizeof(struct philly_csv),
    .sniff = philly_csv_sniff,
    .open = philly_csv_open,
    .next = philly_csv_next,
};
