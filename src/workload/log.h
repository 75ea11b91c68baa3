/* log.h - what logs of jobs have in common: which rows are jobs that ran. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct table;

/* Whether a time is given at all: not empty, None, Unknown, N/A, null or NaN. */
bool log_has_time(const struct table *table, uint32_t column);

/* Whether a job in this state has ended, whichever way; "CANCELLED by 1001" too. */
static inline bool log_has_ended(const char *state)
{
    static const char *const ends[] = {
        "COMPLETED", "CANCELLED", "CANCELED",  "FAILED",    "TIMEOUT", "NODE_FAIL",
        "PREEMPTED", "DEADLINE",  "BOOT_FAIL", "OUT_OF_ME", NULL,
    };
    for (const char *const *e = ends; *e; e++)
        if (strncasecmp(state, *e, strlen(*e)) == 0)
            return true;
    return false;
}

/* Why the row is no job to run, or NULL; 'gpus' and 'run_ns' as read. */
const char *log_reason(uint64_t gpus, bool ended, bool started, int64_t run_ns);
