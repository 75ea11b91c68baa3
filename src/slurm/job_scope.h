/*
 * job_scope.h - which jobs a request may be about: those of the managed partitions.
 *
 * berthd may have been taken over, and berth-slurm has rights over all jobs of the cluster.
 * In Slurm a number alone means all tasks of an array, and a task may have been moved to
 * another partition, so arrays and tasks are recorded besides numbers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct slurm_job;

enum job_scope_answer {
    SCOPE_UNKNOWN, /* no poll has reported such a job */
    SCOPE_FOREIGN, /* in another partition, or partly */
    SCOPE_MANAGED,
};

struct job_scope {
    struct map jobs;   /* number of a record               */
    struct map arrays; /* number of an array: all its tasks */
    struct map tasks;  /* array and task                   */
};

void job_scope_release(struct job_scope *scope); /* empty, and may be used again */

/* Add a record of a poll. */
void job_scope_add(struct job_scope *scope, const struct slurm_job *job, bool managed);

/* Take over what an earlier poll reported of a job whose record cannot be read now. */
void job_scope_keep(struct job_scope *scope, const struct job_scope *earlier,
                    uint32_t id);

/* 'job' is "123" or "123_4". */
enum job_scope_answer job_scope_find(const struct job_scope *scope, const char *job);
