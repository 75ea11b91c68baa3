/*
 * progress.h - progress reports of jobs on other hosts.
 *
 * A job reports over HTTP with a token, a random word that is good for its number alone and
 * while berthd runs; after a restart it asks for a new one.  Or it appends lines to a file
 * that berthd can read.  However often it reports, the engine is told once a second.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct launcher_client;
struct progress;
struct scheduler;

/* NAN: not reported. */
struct progress_report {
    double step, loss, total, saved;
};

/*
 * 'launcher' opens files of users; NULL: we do.  'munge_socket': of munged; NULL: the usual
 * one.
 */
struct progress *progress_new(struct scheduler *scheduler,
                              struct launcher_client *launcher,
                              const char *munge_socket);
void progress_free(struct progress *progress);

/*
 * Read a running job's reports from a file, "STEP [LOSS [TOTAL]]" per line.  It is read with
 * its owner's rights and by a worker thread: a file system that hangs must not stop berthd.
 */
void progress_follow(struct progress *progress, uint64_t id, const char *path,
                     uint32_t uid);

/*
 * The newest line of such a text that can be read; false: there is none.  The last line
 * counts only if it is complete.
 */
bool progress_read(const char *text, size_t count, struct progress_report *ret_report);

/* For http_setup: anonymous clients may call these routes over TCP. */
bool progress_allows_anonymous(void *context, const char *method, const char *target);
