/*
 * acme.c - the Acme traces (Hu et al., NSDI'24) as published: trace_seren.csv and
 * trace_kalos.csv.
 *
 * Their times carry a zone.  Run time is end - start: 'duration' is not used, in Kalos
 * it counts from the submission.  The kind of work ('type': Pretrain, Evaluation, …)
 * becomes the group of the job.
 */

#include "workload/csv.h"
#include "workload/format.h"
#include "workload/log.h"

static const char *const names[] = { "job_id",   "user",  "gpu_num",     "cpu_num",
                                     "type",     "state", "submit_time", "start_time",
                                     "end_time", NULL };

static bool acme_sniff(const char *bytes, size_t count)
{
    return format_has(bytes, count, ',', names);
}

static int acme_open(void *self, struct source *source, struct error *err)
{
    static const struct log_names columns = {
        .id = "job_id",
        .user = "user",
        .entity = "type",
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

const struct format format_acme = {
    .name = "acme",
    .brief = "Acme's trace_seren.csv and trace_kalos.csv",
    .unique = true,
    .columns = COLUMNS_BASIC | COLUMN_BIT(COLUMN_NAME) | COLUMN_BIT(COLUMN_USER) |
               COLUMN_BIT(COLUMN_ENTITY) | COLUMN_BIT(COLUMN_CPUS),
    .self_size = sizeof(struct log),
    .sniff = acme_sniff,
    .open = acme_open,
    .next = log_next,
};
