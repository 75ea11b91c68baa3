/*
 * why.h - what holds a job back: all reasons, the jobs ahead of it and by which rule, and the
 * smallest change that would start it now.
 *
 * Changes are tried, never guessed: each is tried with the policy as it is, in a copy of
 * everything that is thrown away.
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

/* Trying changes keeps the loop waiting: no longer than this. */
#define WHY_LIMIT_NS INT64_C(2000000000)

/* What an explanation is made from. */
struct why_scene {
    struct engine *engine;
    const struct start_conditions
        *conditions;   /* or NULL                                    */
    struct db *reader; /* for the ledger, or NULL                    */
    int64_t now_ns;
    int64_t limit_ns;    /* time for trying changes; 0: WHY_LIMIT_NS           */
    const char *refusal; /* why the job's last attempt was not begun, or NULL */
};

struct why {
    struct reasons reasons;
    bool can_ever_run;
    char change[240]; /* the smallest that would start it now; "" if none was found */
};

/* Explain a live job, in any state. */
void why_find(struct why *why, const struct why_scene *scene, job_id job);

/*
 * The one reason that a list of jobs shows: a few words, and the token.  Looks at no other
 * job; "" for one that runs.
 */
void why_brief(const struct why_scene *scene, job_id job, char *text, size_t size,
               const char **ret_token);
