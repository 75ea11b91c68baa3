/*
 * submission.h - what users ask berthd to do with jobs: accept, cancel, hold, change.
 *
 * A request is checked here and becomes an event for the next pass; it is answered when that
 * is durable.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct request;
struct scheduler;

struct submission {
    struct scheduler *scheduler;
    uint64_t id_next;

    /* The store could not be written in the middle of a submission. */
    void (*failed)(void *context, const struct error *err);
    void *context;
};

/*
 * Accept one job as 'request' says; 'text' is kept, to be read after a restart.  'held': not
 * to be placed before something else is known of it.  Negative: the store cannot be written.
 */
int submission_accept(struct submission *submission, const char *user,
                      struct request *request, const char *text, bool held,
                      struct error *ret_rejected, struct error *err);
