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

/* The one number that a question has for an answer. */
static int number_of(struct db *db, const char *sql, int *ret_number, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
    int r = sqlite3_step(statement) == SQLITE_ROW ? 0 : failed(db, err);
    *ret_number = r == 0 ? sqlite3_column_int(statement, 0) : 0;
    sqlite3_finalize(statement);
    return r;
}

/*
 * The version is a number that any program may have given its file, so the columns of our
 * tables have to be there too.
 */
static int check_tables(struct db *db, const char *path, const char *schema,
                        struct error *err)
{
    struct db *ours = NULL;
    sqlite3_stmt *want = NULL, *find = NULL;
    int r = open_handle(&ours, ":memory:", SQLITE_OPEN_READWRITE, err);
    if (r == 0)
        r = run_text(ours, schema, err);
    if (r == 0)
        sqlite3_prepare_v2(ours->handle,
                           "SELECT t.name, c.name, c.\"notnull\" FROM sqlite_schema t, "
                           "pragma_table_info(t.name) c WHERE t.type = 'table'",
                           -1, &want, NULL);
    sqlite3_prepare_v2(db->handle,
                       "SELECT 1 FROM pragma_table_info(?) WHERE name = ? AND "
                       "\"notnull\" = ?",
                       -1, &find, NULL);
    while (r == 0 && sqlite3_step(want) == SQLITE_ROW) {
        for (int i = 0; i < 3; i++)
            sqlite3_bind_value(find, i + 1, sqlite3_column_value(want, i));
        if (sqlite3_step(find) != SQLITE_ROW)
            r = error_set(err, -EPROTO,
                          "%s: no store of this berthd: there is no column %s.%s as it "
                          "makes it",
                          path, (const char *)sqlite3_column_text(want, 0),
                          (const char *)sqlite3_column_text(want, 1));
        sqlite3_reset(find);
    }
    sqlite3_finalize(want);
    sqlite3_finalize(find);
    db_close(ours);
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

/* What we open is ours, or nothing yet; nothing is written before that is known. */
static int check_file(struct db *db, const char *path, const char *schema, int version,
                      bool *ret_new, struct error *err)
{
    int found = 0, tables = 0;
    int r = number_of(db, "PRAGMA user_version", &found, err);
    if (r == 0)
        r = number_of(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    *ret_new = found == 0 && tables == 0;
    if (r < 0 || *ret_new)
        return r;
    if (found != version)
        return error_set(err, -EPROTO,
                         "%s: of version %d, this berthd knows version %d", path, found,
                         version);
    return check_tables(db, path, schema, err);
}

int db_open(struct db **ret_db, const char *path, const char *schema, int version,
            struct error *err)
{
    struct db *db = NULL;
    bool new = false;
    int r = open_handle(&db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (r == 0)
        r = check_file(db, path, schema, version, &new, err);
    if (r == 0)
        r = run_text(db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "PRAGMA foreign_keys = ON; PRAGMA cache_size = -4096;"
                     "PRAGMA wal_autocheckpoint = 2000",
                     err);
    if (r == 0 && new)
        r = make_tables(db, schema, version, err);
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
