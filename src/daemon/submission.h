/*
 * submission.h - what users ask berthd to do with jobs: accept, cancel, hold, change.
 *
 * A request is checked here and becomes an event for the next pass; it is answered when that
 * is durable.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct caller;
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
 * Accept these, all or none.  'texts' are the requests as JSON.  Ids are given at once and
 * are good when the pass has been committed: reply after_commit.  A job that can never run is
 * recorded as rejected, and 'ret_rejected', if it is the only one, says why ("" else).
 */
int submission_submit(struct submission *submission, const struct caller *caller,
                      struct request *requests, const char *const *texts,
                      uint32_t count, uint64_t *ret_ids, struct error *ret_rejected,
                      struct error *err);

/*
 * Accept one job as 'request' says; 'text' is kept, to be read after a restart.  'held': not
 * to be placed before something else is known of it.  Negative: the store cannot be written.
 */
int submission_accept(struct submission *submission, const char *user,
                      struct request *request, const char *text, bool held,
                      struct error *ret_rejected, struct error *err);

/* -ENOENT: no such live job; -EPERM: another user's; -EALREADY: not in this state. */
int submission_cancel(struct submission *submission, const struct caller *caller,
                      uint64_t id, struct error *err);
int submission_hold(struct submission *submission, const struct caller *caller,
                    uint64_t id, bool held, struct error *err);

/* What may be changed of a waiting job; NULL or NAN: as it is. */
struct submission_change {
    const char *class; /* "te", "be" */
    double weight, deadline_s, grace_s, steps;
};
int submission_change(struct submission *submission, const struct caller *caller,
                      uint64_t id, const struct submission_change *change,
                      struct error *err);
