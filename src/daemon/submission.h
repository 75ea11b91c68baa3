/*
 * submission.h - what users ask berthd to do with jobs: accept, cancel, hold, change.
 *
 * A request is checked here and becomes an event for the next pass; it is answered when that
 * is durable.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"

struct caller;
struct error;
struct http_request;
struct job_users;
struct request;
struct request_texts;
struct scheduler;
struct submission_keys;

struct submission {
    struct scheduler *scheduler;
    uint64_t id_next;
    struct submission_keys *keys;  /* of the store's submissions */
    const struct job_users *users; /* whose jobs are accepted; NULL: of all callers */

    /* The store could not be written in the middle of a submission. */
    void (*failed)(void *context, const struct error *err);
    void *context;
};

/*
 * Accept one job as 'request' says; 'texts' are kept, to be read after a restart.  'held': not
 * to be placed before something else is known of it.  Negative: the store cannot be written.
 */
int submission_accept(struct submission *submission, const char *user,
                      struct request *request, const struct request_texts *texts,
                      bool held, struct error *ret_rejected, struct error *err);

/*
 * Read the one job of a request to submit it and check it as if it were accepted; nothing is
 * recorded.  -EDQUOT: the caller has too much, and 'ret_limit' names the limit.  -ERANGE: the job
 * can never run here.  Otherwise 'ret_job' holds a set of nodes, for node_set_drop().
 */
int submission_try(struct submission *submission, const struct caller *caller,
                   const struct http_request *http, struct request **ret_request,
                   struct job *ret_job, const char **ret_limit, struct error *err);

/* Why a job ended that the caller cancelled. */
const char *submission_cancel_reason(const struct caller *caller, uint32_t owner);

/*
 * The live job that the caller may change.  -ENOENT: there is none of that id; -EPERM: it is
 * another user's; -EAGAIN: berthd accepts no changes now.
 */
int submission_find_job(const struct scheduler *scheduler, const struct caller *caller,
                        uint64_t id, job_id *ret_job, struct error *err);
