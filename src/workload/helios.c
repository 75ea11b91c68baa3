/*
 * helios.c - the Helios traces (Hu et al., SC'21) as published: cluster_log.csv.
 *
 * Times are wall clock without a zone (China, no daylight saving) and are taken as UTC.
 * Run time is end - start; 'duration' and 'queue' repeat the times.  Where jobs
 * ran (node_num) is left out: a replay decides that itself.
 */

#include "workload/csv.h"
#include "workload/format.h"
#include "workload/log.h"

static const char *const names[] = { "job_id",   "user",  "vc",          "gpu_num",
                                     "cpu_num",  "state", "submit_time", "start_time",
                                     "end_time", NULL };

static bool helios_sniff(const char *bytes, size_t count)
{
    return format_has(bytes, count, ',', names);
}

static int helios_open(void *self, struct source *source, struct error *err)
{
    static const struct log_names columns = {
        .id = "job_id",
        .user = "user",
        .entity = "vc",
        .gpus = "gpu_num",
        .cpus = "cpu_num",
        .state = "state",
        .submit = "submit_time",
        .start = "start_time",
        .end = "end_time",
    };
    table_init(&source->table, &source->reader, ',', /* quoted= */ true);
    return log_open(self, &columns, source, err);
}

const struct format format_helios = {
    .name = "helios",
    .brief = "Helios' cluster_log.csv",
    .unique = true,
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_NAME) | COLUMN_BIT(COLUMN_USER) |
               COLUMN_BIT(COLUMN_ENTITY) | COLUMN_BIT(COLUMN_CPUS),
    .self_size = sizeof(struct log),
    .sniff = helios_sniff,
    .open = helios_open,
    .next = log_next,
};
