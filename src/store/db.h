/*
 * db.h - SQLite behind a small door; db.c is the only file that knows the library.
 *
 * One connection writes: every change since the last commit is one transaction, so that
 * what happened together is on disk together or not at all.  A commit returns when the
 * bytes are on disk (write-ahead log, synchronous=FULL).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct db;
struct db_query;
struct error;

/*
 * Open the file, or make it where there is none.  steps[0] is SQL that makes the tables of
 * version 1, steps[i] changes version i into version i + 1: a file of an older version is
 * brought to the newest, one transaction per step, after a copy of it was made
 * (PATH.before-2 before the step to version 2).  A step that fails changes nothing.  Steps
 * that were released are never edited; foreign keys are not enforced while they run.
 *
 * -EPROTO if the version is newer than the steps, or if the tables are not those of the
 * steps; -EBADMSG if the file is no database.
 *
 * Deleted content is overwritten in the file, and a file can give free pages back
 * (db_shrink()): one that could not yet is written anew, once, if there is room for that.
 */
int db_open(struct db **ret_db, const char *path, const char *const *steps, int count,
            struct error *err);
void db_close(struct db *db);

/* A second connection, which reads what is committed. */
int db_open_reader(struct db **ret_db, const char *path, struct error *err);

/* The SQL is part of the program: an error in it aborts.  Freed with the database. */
struct db_query *db_prepare(struct db *db, const char *sql);

/* SQL that was put together for one use: NULL if it is wrong. */
struct db_query *db_prepare_once(struct db *db, const char *sql);
void db_finish(struct db_query *query);

/* Parameters count from 1, columns from 0.  A text stays until a write has run; a query that
 * has rows copies it. */
void db_int(struct db_query *query, int parameter, int64_t value);
void db_real(struct db_query *query, int parameter, double value);     /* NAN: null */
void db_text(struct db_query *query, int parameter, const char *text); /* NULL: null */
void db_bytes(struct db_query *query, int parameter, const char *text, int64_t count);
void db_null(struct db_query *query, int parameter);

/* Run a query that has no rows, and reset it.  A write begins a transaction. */
int db_run(struct db_query *query, struct error *err);

/* The next row: 1; none left: 0, and the query is reset. */
int db_next(struct db_query *query, struct error *err);
void db_reset(struct db_query *query); /* skip the other rows */
int64_t db_get_int(struct db_query *query, int column);
double db_get_real(struct db_query *query, int column);      /* null: NAN */
const char *db_get_text(struct db_query *query, int column); /* null: NULL */
bool db_is_null(struct db_query *query, int column);

int64_t db_changes(struct db *db); /* rows that the last write touched */

int db_commit(struct db *db, struct error *err); /* nothing to do: 0 at once */
void db_rollback(struct db *db);

/*
 * What is committed stands in the log first.  Once that is long it is to be moved to the file,
 * which takes as long as writing it again: when nobody waits for a reply, and not while a
 * transaction is open.
 */
bool db_has_long_log(const struct db *db);
void db_move_log(struct db *db);
bool db_is_open(const struct db *db); /* something was written and not committed */

/* Pages of the file, and those among them that hold nothing. */
void db_count_pages(struct db *db, int64_t *ret_pages, int64_t *ret_free);

/*
 * Give back free pages, up to so many and for about so long, in a transaction of its own: the
 * file gets smaller with the next checkpoint.  A page of a large file takes longer.
 */
int db_shrink(struct db *db, uint32_t pages, int64_t max_ns, struct error *err);

/*
 * Bring the write-ahead log into the file and empty it: what was deleted before is in neither
 * any more.  -EBUSY: a query is being read, or something is not committed; nothing waits.
 */
int db_checkpoint(struct db *db, struct error *err);
