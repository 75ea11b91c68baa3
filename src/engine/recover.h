/*
 * recover.h - restore the state of the last commit from the store.
 *
 * Live jobs are read from the store and brought back by events, in the order in which
 * they would have happened: submitted, placed, started, recalled.  What no event brings
 * back (times, counts, service received) comes last.  A job that held GPUs which
 * no longer exist, because the machine has changed, goes back to the queue.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"

struct engine;
struct error;
struct stored_job;
struct ledger;
struct store;

struct recover_setup {
    struct engine *engine;
    struct ledger *ledger;
    struct store *store;
    int64_t now_ns;
    const bool *node_down;   /* by node, as it is now; or NULL                        */
    const uint64_t *foreign; /* by node: accelerators that others use now; or NULL    */

    /*
     * What was asked for, as numbers.  Negative: it can never run here any more.  '*ret_tag'
     * is handed to back(), which is called next.
     */
    int (*spec)(void *context, const struct stored_job *kept, struct job *ret_job,
                const void **ret_tag, struct error *err);

    /* The job has this slot; the rest of its state follows.  'kept' is valid for the call only. */
    void (*back)(void *context, const struct stored_job *kept, const void *tag,
                 job_id job);

    /* The job is not restored: it can never run here any more, for this reason. */
    void (*gone)(void *context, const struct stored_job *kept, const char *why);

    /* Optional.  The number of a user for whom the calendar sets something aside. */
    uint32_t (*user)(void *context, const char *name);
    void *context;
};

int recover_state(const struct recover_setup *setup, struct error *err);
