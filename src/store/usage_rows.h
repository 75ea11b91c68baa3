/*
 * usage_rows.h - the table of what is kept of each user's jobs, in bytes.
 *
 * Whatever adds, reduces or deletes rows of jobs counts what changes for their user.  The sums
 * are written once for each commit, however many jobs it is about, and belong to it.
 */
#pragma once

#include <stdint.h>

struct db;
struct error;
struct usage_rows;

/* What the records of one job count for, besides its request. */
#define USAGE_RECORD_BYTES 1024

/* 'db' is the store's for writing.  Freed before it is closed. */
struct usage_rows *usage_rows_new(struct db *db);
void usage_rows_free(struct usage_rows *usage);

/* So many bytes are kept of a user's jobs besides: fewer if negative. */
void usage_rows_count(struct usage_rows *usage, uint32_t uid, int64_t bytes);

/* Write what was counted since the last time; or forget it, with what is rolled back. */
int usage_rows_write(struct usage_rows *usage, struct error *err);
void usage_rows_forget(struct usage_rows *usage);

/* Bytes that are kept of a user's jobs; what has not been committed yet is counted. */
int64_t usage_rows_bytes(const struct usage_rows *usage, uint32_t uid);

/*
 * Give up about so many bytes of the requests of a user's ended jobs, the oldest first: their
 * commands, scripts and environments.  The rest stays; some jobs at each call.
 */
int usage_rows_reduce(struct usage_rows *usage, uint32_t uid, int64_t bytes,
                      struct error *err);
