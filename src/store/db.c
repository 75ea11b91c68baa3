/* db.c - SQLite behind a small door. */
#include "store/db.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "base/error.h"

struct db {
    sqlite3 *handle;
    bool open; /* a transaction is */
};

struct db_query {
    sqlite3_stmt *statement;
    struct db *db;
    bool writes;
};

/* What SQLite says, as an errno: callers tell a full disk from a broken file. */
static int failed(struct db *db, struct error *err)
{
    int code = sqlite3_errcode(db->handle) & 0xff;
    int r = code == SQLITE_FULL                               ? -ENOSPC
            : code == SQLITE_READONLY                         ? -EROFS
            : code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? -EBADMSG
                                                              : -EIO;
    return error_set(err, r, "the store: %s", sqlite3_errmsg(db->handle));
}

static int run_text(struct db *db, const char *sql, struct error *err)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : failed(db, err);
}

static int version_of(struct db *db, int *ret_version, struct error *err)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db->handle, "PRAGMA user_version", -1, &statement, NULL) !=
        SQLITE_OK)
        return failed(db, err);
    int code = sqlite3_step(statement);
    *ret_version = code == SQLITE_ROW ? sqlite3_column_int(statement, 0) : 0;
    int r = code == SQLITE_ROW ? 0 : failed(db, err);
    sqlite3_finalize(statement);
    return r;
}

static int make_tables(struct db *db, const char *schema, int version,
                       struct error *err)
{
    char mark[64];
    snprintf(mark, sizeof mark, "PRAGMA user_version = %d; COMMIT", version);
    int r = run_text(db, "BEGIN EXCLUSIVE", err);
    if (r == 0)
        r = run_text(db, schema, err);
    if (r == 0)
        r = run_text(db, mark, err);
    return r;
}

static int open_handle(struct db **ret_db, const char *path, int flags,
                       struct error *err)
{
    struct db *db = calloc(1, sizeof *db);
    if (!db)
        return error_set(err, -ENOMEM, "out of memory");
    if (sqlite3_open_v2(path, &db->handle, flags, NULL) != SQLITE_OK) {
        int r = error_set(err, -EIO, "%s: %s", path,
                          db->handle ? sqlite3_errmsg(db->handle) : "out of memory");
        db_close(db);
        return r;
    }
    sqlite3_busy_timeout(db->handle, 2000);
    *ret_db = db;
    return 0;
}

int db_open(struct db **ret_db, const char *path, const char *schema, int version,
            struct error *err)
{
    struct db *db = NULL;
    int r = open_handle(&db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (r < 0)
        return r;
    int found = 0;
    r = run_text(db,
                 "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                 "PRAGMA foreign_keys = ON; PRAGMA cache_size = -4096;"
                 "PRAGMA wal_autocheckpoint = 2000",
                 err);
    if (r == 0)
        r = version_of(db, &found, err);
    if (r == 0 && found == 0)
        r = make_tables(db, schema, version, err);
    else if (r == 0 && found != version)
        r = error_set(err, -EPROTO, "%s: of version %d, this berthd knows version %d",
                      path, found, version);
    if (r < 0) {
        db_close(db);
        return r;
    }
    *ret_db = db;
    return 0;
}

int db_open_reader(struct db **ret_db, const char *path, struct error *err)
{
    return open_handle(ret_db, path, SQLITE_OPEN_READONLY, err);
}

void db_close(struct db *db)
{
    if (!db)
        return;
    if (db->open)
        db_rollback(db);
    for (sqlite3_stmt *s; db->handle && (s = sqlite3_next_stmt(db->handle, NULL));)
        sqlite3_finalize(s);
    sqlite3_close(db->handle);
    free(db);
}

struct db_query *db_prepare_once(struct db *db, const char *sql)
{
    struct db_query *query = calloc(1, sizeof *query);
    if (!query)
        return NULL;
    query->db = db;
    if (sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT,
                           &query->statement, NULL) != SQLITE_OK) {
        free(query);
        return NULL;
    }
    query->writes = !sqlite3_stmt_readonly(query->statement);
    return query;
}

struct db_query *db_prepare(struct db *db, const char *sql)
{
    struct db_query *query = db_prepare_once(db, sql);
    if (!query) {
        fprintf(stderr, "berth: %s: %s\n", sqlite3_errmsg(db->handle), sql);
        abort();
    }
    return query;
}

void db_finish(struct db_query *query)
{
    if (!query)
        return;
    sqlite3_finalize(query->statement);
    free(query);
}

void db_int(struct db_query *query, int parameter, int64_t value)
{
    sqlite3_bind_int64(query->statement, parameter, value);
}

void db_real(struct db_query *query, int parameter, double value)
{
    if (isnan(value))
        sqlite3_bind_null(query->statement, parameter);
    else
        sqlite3_bind_double(query->statement, parameter, value);
}

void db_text(struct db_query *query, int parameter, const char *text)
{
    sqlite3_bind_text(query->statement, parameter, text, -1, SQLITE_TRANSIENT);
}

void db_bytes(struct db_query *query, int parameter, const char *text, int64_t count)
{
    sqlite3_bind_text64(query->statement, parameter, text, (uint64_t)count,
                        SQLITE_TRANSIENT, SQLITE_UTF8);
}

void db_null(struct db_query *query, int parameter)
{
    sqlite3_bind_null(query->statement, parameter);
}

static int begin(struct db *db, struct error *err)
{
    if (db->open)
        return 0;
    int r = run_text(db, "BEGIN IMMEDIATE", err);
    db->open = r == 0;
    return r;
}

int db_run(struct db_query *query, struct error *err)
{
    int r = query->writes ? begin(query->db, err) : 0;
    if (r == 0 && sqlite3_step(query->statement) != SQLITE_DONE)
        r = failed(query->db, err);
    sqlite3_reset(query->statement);
    return r;
}

int db_next(struct db_query *query, struct error *err)
{
    int code = sqlite3_step(query->statement);
    if (code == SQLITE_ROW)
        return 1;
    int r = code == SQLITE_DONE ? 0 : failed(query->db, err);
    sqlite3_reset(query->statement);
    return r;
}

void db_reset(struct db_query *query)
{
    sqlite3_reset(query->statement);
}

int64_t db_get_int(struct db_query *query, int column)
{
    return sqlite3_column_int64(query->statement, column);
}

double db_get_real(struct db_query *query, int column)
{
    return db_is_null(query, column) ? (double)NAN
                                     : sqlite3_column_double(query->statement, column);
}

const char *db_get_text(struct db_query *query, int column)
{
    return (const char *)sqlite3_column_text(query->statement, column);
}

bool db_is_null(struct db_query *query, int column)
{
    return sqlite3_column_type(query->statement, column) == SQLITE_NULL;
}

int64_t db_changes(struct db *db)
{
    return sqlite3_changes64(db->handle);
}

int db_commit(struct db *db, struct error *err)
{
    if (!db->open)
        return 0;
    int r = run_text(db, "COMMIT", err);
    if (r == 0)
        db->open = false;
    return r;
}

void db_rollback(struct db *db)
{
    if (db->open)
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    db->open = false;
}
