/*
 * usage_rows.h - the table of what is kept of each user's jobs, in bytes.
 *
 * The database itself keeps it right, by triggers (migrations.c) on the tables of jobs: whatever
 * adds, reduces or deletes rows, and whatever is rolled back.
 */
#pragma once

#include <stdint.h>

struct db_query;
struct error;
struct store;

/* What the records of one job count for, besides its request. */
#define USAGE_RECORD_BYTES 1024

/* Bytes that are kept of a user's jobs; what has not been committed yet is counted.  The query
 * is made once, and finished with db_finish() before the store is closed. */
struct db_query *usage_rows_prepare(struct store *store);
int64_t usage_rows_bytes(struct db_query *query, uint32_t uid);

/*
 * Give up about so many bytes of the requests of a user's ended jobs, the oldest first: their
 * commands, scripts and environments.  The rest stays; some jobs at each call.
 */
int usage_rows_reduce(struct store *store, uint32_t uid, int64_t bytes,
                      struct error *err);
