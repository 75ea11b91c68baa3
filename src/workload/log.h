/* log.h - what the logs of Slurm-like clusters have in common: one row per job. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct trace_row;
struct source;
struct table;

/* Names of the columns in the header; NULL: there is none. */
struct log_names {
    const char *id, *user, *entity, *gpus, *cpus, *state, *submit, *start, *end;
};

struct log {
    uint32_t id, user, entity, gpus, cpus, state, submit, start, end;
};

/* Read the header; every column named must be there. */
int log_open(struct log *log, const struct log_names *names, struct source *source,
             struct error *err);

/* The next job that had GPUs, started and ended: a format's next(). */
int log_next(void *self, struct source *source, struct trace_row *row,
             struct error *err);

/* Whether a time is given at all: not empty, None, Unknown, N/A, null or NaN. */
bool log_has_time(const struct table *table, uint32_t column);

/* Whether a job in this state has ended, whichever way; "CANCELLED by 1001" too. */
bool log_has_ended(const char *state);

/* Why the row is no job to run, or NULL; 'gpus' and 'run_ns' as read. */
const char *log_reason(uint64_t gpus, bool ended, bool started, int64_t run_ns);
