/* log.h - what logs of jobs have in common: which rows are jobs that ran. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct table;

/* Whether a time is given at all: not empty, None, Unknown, N/A, null or NaN. */
bool log_has_time(const struct table *table, uint32_t column);

/* Whether a job in this state has ended, whichever way; "CANCELLED by 1001" too. */
bool log_has_ended(const char *state);

/* Why the row is no job to run, or NULL; 'gpus' and 'run_ns' as read. */
const char *log_reason(uint64_t gpus, bool ended, bool started, int64_t run_ns);
