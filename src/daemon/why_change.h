/*
 * why_change.h - the smallest change that would start a waiting job now.
 *
 * Changes are tried, never guessed: each is tried with the policy as it is, in a copy of the engine
 * that is thrown away.  Any thread may do that with a snapshot (engine/engine_copy.h).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"

struct engine;

/* No further change is tried after so long. */
#define WHY_CHANGE_LIMIT_NS INT64_C(2000000000)

struct why_change_setup {
    struct engine *engine; /* what is changed for a trial is put back */
    const char *settings;  /* of its policy, or NULL                   */
    job_id job;
    uint64_t ahead;               /* the first job that waits ahead of it, or 0   */
    int64_t limit_ns;             /* 0: WHY_CHANGE_LIMIT_NS                       */
    const atomic_bool *cancelled; /* or NULL: when it becomes true, no more       */
};

/* As a sentence; "" if no change that was tried would, or none before the time was up. */
void why_change_find(const struct why_change_setup *setup, char *text, size_t size);

/*
 * Is there room for the job now, if it were as 'as' says and 'gone' (or JOB_NONE) had left?  The
 * policy is not asked.
 */
bool why_change_fits(struct engine *engine, job_id id, const struct job *as,
                     job_id gone);
