/*
 * csv.h - Berth's own format for jobs.
 *
 *     #berth-jobs 1
 *     submit_s,gpus,work_s,class
 *     0,1,3600,be
 *     12.5,8,90.25,te
 *
 * The first line names the format and its version, the second the columns, in any
 * order.  Every line ends with a newline, so that a file cut short is noticed.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "model/job.h"

struct error;
struct workload;

enum csv_column {
    COLUMN_ID,
    COLUMN_NAME,
    COLUMN_USER,
    COLUMN_ENTITY,
    COLUMN_CLASS,
    COLUMN_SUBMIT,
    COLUMN_GPUS,
    COLUMN_GPUS_MIN,
    COLUMN_GPUS_MAX,
    COLUMN_NODES,
    COLUMN_SPREAD,
    COLUMN_TYPES,
    COLUMN_CPUS,
    COLUMN_MEM,
    COLUMN_WORK,
    COLUMN_KIND,
    COLUMN_STEPS,
    COLUMN_GRACE,
    COLUMN_PAUSE,
    COLUMN_LOAD,
    COLUMN_CKPT,
    COLUMN_WEIGHT,
    COLUMN_DEADLINE,
    COLUMN_STEP,
    COLUMN_FIXED,
    COLUMN_BYTES,
    COLUMN_SYNC,
    COLUMN_OVERLAP,
    COLUMN_CURVE,
    COLUMN_FAILS,
    COLUMN_NODELIST,
    COLUMN_EXCLUDE,
    COLUMN_DECLARED,
    COLUMN_SHARED,
    COLUMN_DECLARED_WORK,
    COLUMN_ELIGIBLE,
    COLUMN_CANCEL,
    COLUMN_AFTER,
    COLUMN_KEEPS,
    COLUMN_SAVES,
    COLUMN_DECLARED_PAUSE,
    COLUMN_DECLARED_LOAD,

    /* what became of it where it was recorded */
    COLUMN_START,
    COLUMN_END,
    COLUMN_STATE,
    COLUMN_CANCELLED_BY,
    COLUMN_ATTEMPTS,
    COLUMN_PREEMPTIONS,
    COLUMN_LIMIT,
    COLUMN_WAITED,
    COLUMN_REDONE,
    COLUMN_SAME_AS,
    COLUMN_COUNT, /* at most 64: a set of them is one word */
};

#define COLUMN_BIT(column) (UINT64_C(1) << (column))

/* What nearly every trace has. */
#define COLUMNS_BASIC \
    (COLUMN_BIT(COLUMN_SUBMIT) | COLUMN_BIT(COLUMN_GPUS) | COLUMN_BIT(COLUMN_WORK))

/* The two lines before the jobs, and a job's line; 'columns' are bits of enum csv_column. */
void csv_write_header(FILE *file, uint64_t columns);
void csv_write_job(FILE *file, uint64_t columns, const struct job_spec *job);

/*
 * Write what is left of a workload, with the columns its facts name.  Reading it again
 * gives the same jobs to the last bit.
 */
int workload_write(struct workload *workload, FILE *file, struct error *err);
