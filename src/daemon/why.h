/*
 * why.h - what holds a job back: all reasons, and the jobs ahead of it and by which rule.  The
 * smallest change that would start it is another question (why_change.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"
#include "model/reasons.h"

struct db;
struct engine;
struct start_conditions;

/* What an explanation is made from. */
struct why_scene {
    struct engine *engine;
    const struct start_conditions
        *conditions;   /* or NULL                                    */
    struct db *reader; /* for the ledger, or NULL                    */
    int64_t now_ns;
    const char *refusal; /* why the job's last attempt was not begun, or NULL */
};

struct why {
    struct reasons reasons;
    bool can_ever_run;
    char change[240]; /* what would release it, of one that is held; "" of others */
};

/* Explain a live job, in any state. */
void why_find(struct why *why, const struct why_scene *scene, job_id job);

/*
 * The one reason that a list of jobs shows: a few words, and the token.  Looks at no other
 * job; "" for one that runs.
 */
void why_brief(const struct why_scene *scene, job_id job, char *text, size_t size,
               const char **ret_token);
