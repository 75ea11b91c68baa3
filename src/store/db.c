/*
 * db.c - SQLite behind a small interface.
 *
 * The library writes a transaction to its write-ahead log page by page, with two system calls
 * for each.  Here they are joined: what follows in the log is gathered, and written when the
 * log is synchronised or read.
 */
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

#define JOIN_BYTES (64 * 1024) /* of the log, written at once */
#define LOG_PAGES 2000         /* are moved to the file when there is time … */
#define LOG_PAGES_MAX 50000    /* … and these at once                        */
#define BUSY_MS 2000
#define VACUUM_INCREMENTAL 2 /* of PRAGMA auto_vacuum */

struct db {
    sqlite3 *handle;
    sqlite3_stmt *begin, *commit;
    bool open; /* a transaction is open */
    int log_pages;
};

struct db_query {
    sqlite3_stmt *statement;
    struct db *db;
    bool writes;
};

/* SQLite's error as an errno, so that callers can tell a full disk from a broken file. */
static int set_error(struct db *db, struct error *err)
{
    int code = sqlite3_errcode(db->handle) & 0xff;
    int r = code == SQLITE_FULL                               ? -ENOSPC
            : code == SQLITE_READONLY                         ? -EROFS
            : code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? -EBADMSG
                                                              : -EIO;
    return error_set(err, r, "the store: %s", sqlite3_errmsg(db->handle));
}

static int run_sql(struct db *db, const char *sql, struct error *err)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : set_error(db, err);
}

/* --- the write-ahead log ----------------------------------------------------------------- */

/* A log that is open; the file of the library's own follows it in memory. */
struct log_file {
    sqlite3_file file; /* first */
    char *bytes;       /* not written yet */
    int count;
    sqlite3_int64 at; /* where they belong */
};

static sqlite3_file *own_file(sqlite3_file *file)
{
    return (sqlite3_file *)((struct log_file *)file + 1);
}

/* What cannot be written is dropped: the transaction it belongs to fails. */
static int flush_log(sqlite3_file *file)
{
    struct log_file *log = (struct log_file *)file;
    sqlite3_file *own = own_file(file);
    int count = log->count;
    log->count = 0;
    return count ? own->pMethods->xWrite(own, log->bytes, count, log->at) : SQLITE_OK;
}

static int log_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at)
{
    struct log_file *log = (struct log_file *)file;
    sqlite3_file *own = own_file(file);
    bool follows = log->count == 0 || at == log->at + log->count;
    int code = SQLITE_OK;
    if (!follows || count > JOIN_BYTES - log->count)
        code = flush_log(file);
    if (code != SQLITE_OK || count > JOIN_BYTES)
        return code != SQLITE_OK ? code : own->pMethods->xWrite(own, bytes, count, at);
    if (!log->bytes)
        log->bytes = memory_checked(malloc(JOIN_BYTES));
    if (log->count == 0)
        log->at = at;
    memcpy(log->bytes + log->count, bytes, (size_t)count);
    log->count += count;
    return SQLITE_OK;
}

static int log_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 at)
{
    const struct log_file *log = (struct log_file *)file;
    sqlite3_file *own = own_file(file);
    bool written = at + count <= log->at || at >= log->at + log->count;
    int code = written ? SQLITE_OK : flush_log(file);
    return code != SQLITE_OK ? code : own->pMethods->xRead(own, bytes, count, at);
}

static int log_sync(sqlite3_file *file, int flags)
{
    sqlite3_file *own = own_file(file);
    int code = flush_log(file);
    return code != SQLITE_OK ? code : own->pMethods->xSync(own, flags);
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    sqlite3_file *own = own_file(file);
    int code = flush_log(file);
    return code != SQLITE_OK ? code : own->pMethods->xTruncate(own, size);
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    sqlite3_file *own = own_file(file);
    int code = flush_log(file);
    return code != SQLITE_OK ? code : own->pMethods->xFileSize(own, ret_size);
}

static int log_control(sqlite3_file *file, int what, void *argument)
{
    sqlite3_file *own = own_file(file);
    return own->pMethods->xFileControl(own, what, argument);
}

static int log_sector_size(sqlite3_file *file)
{
    sqlite3_file *own = own_file(file);
    return own->pMethods->xSectorSize(own);
}

static int log_characteristics(sqlite3_file *file)
{
    sqlite3_file *own = own_file(file);
    return own->pMethods->xDeviceCharacteristics(own);
}

static int log_close(sqlite3_file *file)
{
    sqlite3_file *own = own_file(file);
    int code = flush_log(file);
    free(((struct log_file *)file)->bytes);
    int closed = own->pMethods->xClose(own);
    return code != SQLITE_OK ? code : closed;
}

/* A log is never locked: the database is. */
static const sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xFileControl = log_control,
    .xSectorSize = log_sector_size,
    .xDeviceCharacteristics = log_characteristics,
};

static sqlite3_vfs *own_files;   /* the library's own */
static sqlite3_vfs joined_files; /* the same, but for logs */

static int open_file(sqlite3_vfs *files, const char *name, sqlite3_file *file,
                     int flags, int *ret_flags)
{
    if (!(flags & SQLITE_OPEN_WAL))
        return own_files->xOpen(own_files, name, file, flags, ret_flags);
    struct log_file *log = (struct log_file *)file;
    *log = (struct log_file){ .file = { NULL } };
    int code = own_files->xOpen(own_files, name, own_file(file), flags, ret_flags);
    if (code == SQLITE_OK)
        log->file.pMethods = &log_methods;
    return code;
}

/* Before the first connection.  Statistics of memory would cost a lock per allocation. */
static const char *prepare_library(void)
{
    if (own_files)
        return joined_files.zName;
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    own_files = sqlite3_vfs_find(NULL);
    joined_files = *own_files;
    joined_files.zName = "berth";
    joined_files.szOsFile += (int)sizeof(struct log_file);
    joined_files.xOpen = open_file;
    sqlite3_vfs_register(&joined_files, 0);
    return joined_files.zName;
}

/* --- connections ---------------------------------------------------------------------------- */

static int open_handle(struct db **ret_db, const char *path, int flags,
                       struct error *err)
{
    struct db *db = memory_checked(calloc(1, sizeof *db));
    flags |= SQLITE_OPEN_NOMUTEX; /* a connection stays in one thread */
    if (sqlite3_open_v2(path, &db->handle, flags, prepare_library()) != SQLITE_OK) {
        int r = error_set(err, -EIO, "%s: %s", path,
                          db->handle ? sqlite3_errmsg(db->handle) : "out of memory");
        db_close(db);
        return r;
    }
    sqlite3_busy_timeout(db->handle, BUSY_MS);
    *ret_db = db;
    return 0;
}

/* The number in the first row of a query. */
static int read_number(struct db *db, const char *sql, int *ret_number,
                       struct error *err)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
    int r = sqlite3_step(statement) == SQLITE_ROW ? 0 : set_error(db, err);
    *ret_number = r == 0 ? sqlite3_column_int(statement, 0) : 0;
    sqlite3_finalize(statement);
    return r;
}

/* The change to 'version' is made whole or not at all. */
static int apply_step(struct db *db, const char *sql, int version, struct error *err)
{
    char mark[64];
    snprintf(mark, sizeof mark, "PRAGMA user_version = %d; COMMIT", version);
    int r = run_sql(db, "BEGIN EXCLUSIVE", err);
    if (r < 0)
        return r;
    r = run_sql(db, sql, err);
    if (r == 0)
        r = run_sql(db, mark, err);
    if (r < 0)
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    return r;
}

/*
 * Any program may have given its file the same version, so the columns of our tables at that
 * version have to be there too.
 */
static int check_tables(struct db *db, const char *path, const char *const *steps,
                        int version, struct error *err)
{
    struct db *ours = NULL;
    sqlite3_stmt *want = NULL, *find = NULL;
    int r = open_handle(&ours, ":memory:", SQLITE_OPEN_READWRITE, err);
    for (int i = 0; i < version && r == 0; i++)
        r = run_sql(ours, steps[i], err);
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
                          "%s: not a store of berthd: column %s.%s is missing or "
                          "differs",
                          path, (const char *)sqlite3_column_text(want, 0),
                          (const char *)sqlite3_column_text(want, 1));
        sqlite3_reset(find);
    }
    sqlite3_finalize(want);
    sqlite3_finalize(find);
    db_close(ours);
    return r;
}

/* Nothing is written before the file is known to be ours, or empty (version 0). */
static int check_file(struct db *db, const char *path, const char *const *steps,
                      int count, int *ret_version, struct error *err)
{
    int tables = 0;
    int r = read_number(db, "PRAGMA user_version", ret_version, err);
    if (r == 0)
        r = read_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (r < 0 || (*ret_version == 0 && tables == 0))
        return r;
    if (*ret_version > count)
        return error_set(err, -EPROTO,
                         "%s: version %d, written by a newer berthd; this one knows "
                         "versions up to %d",
                         path, *ret_version, count);
    if (*ret_version < 1)
        return error_set(err, -EPROTO, "%s: not a store of berthd: version %d", path,
                         *ret_version);
    return check_tables(db, path, steps, *ret_version, err);
}

/* Without a journal: a copy that was cut short is never used. */
static int fill_copy(struct db *db, const char *copy, struct error *err)
{
    struct db *to = NULL;
    int r = open_handle(&to, copy, SQLITE_OPEN_READWRITE, err);
    if (r == 0)
        r = run_sql(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL", err);
    if (r == 0) {
        sqlite3_backup *backup =
            sqlite3_backup_init(to->handle, "main", db->handle, "main");
        if (backup)
            sqlite3_backup_step(backup, -1);
        if (!backup || sqlite3_backup_finish(backup) != SQLITE_OK)
            r = set_error(to, err);
    }
    db_close(to);
    return r;
}

/* Written beside and renamed, so that an earlier copy stays until this one is complete. */
static int make_copy(struct db *db, const char *copy, struct error *err)
{
    struct error inner = { "" };
    char beside[PATH_MAX + sizeof ".new"];
    snprintf(beside, sizeof beside, "%s.new", copy);
    unlink(beside);
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int r = fd < 0 ? error_set(&inner, -errno, "%s", strerror(errno)) : 0;
    if (r == 0)
        r = fill_copy(db, beside, &inner);
    if (r == 0 && fsync(fd) < 0)
        r = error_set(&inner, -errno, "%s", strerror(errno));
    if (r == 0 && rename(beside, copy) < 0)
        r = error_set(&inner, -errno, "%s", strerror(errno));
    if (fd >= 0)
        close(fd);
    if (r == 0)
        return 0;
    unlink(beside);
    return error_set(err, r, "%s: cannot be written: %s", copy, inner.text);
}

/*
 * From the version the file has to the newest.  The copy is named for the version that it
 * comes before: one that was made for an earlier step stays.
 */
static int apply_steps(struct db *db, const char *path, const char *const *steps,
                       int count, int version, struct error *err)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s.before-%d", path, version + 1);
    int r = version > 0 && version < count ? make_copy(db, copy, err) : 0;
    for (; version < count && r == 0; version++) {
        struct error inner = { "" };
        r = apply_step(db, steps[version], version + 1, &inner);
        if (r < 0)
            error_set(err, r, "%s: stays at version %d, the change to %d failed: %s",
                      path, version, version + 1, inner.text);
    }
    return r;
}

/* SQLite does not say that a file cannot be made for want of space. */
static int make_file(const char *path, struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return 0;
}

/* After a commit: so many pages are in the log now. */
static int count_log(void *context, sqlite3 *handle, const char *name, int pages)
{
    struct db *db = context;
    db->log_pages = pages;
    return SQLITE_OK;
}

/*
 * Files that 0.1 made keep their free pages for ever: write such a file anew.  Where that does
 * not work, for lack of room, it stays as it is until the next start.
 */
static void allow_shrinking(struct db *db)
{
    int mode = VACUUM_INCREMENTAL;
    if (read_number(db, "PRAGMA auto_vacuum", &mode, NULL) < 0 ||
        mode == VACUUM_INCREMENTAL)
        return;
    sqlite3_exec(db->handle, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM", NULL, NULL,
                 NULL);
}

int db_open(struct db **ret_db, const char *path, const char *const *steps, int count,
            struct error *err)
{
    struct db *db = NULL;
    int version = 0;
    int r = make_file(path, err);
    if (r == 0)
        r = open_handle(&db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (r == 0)
        r = check_file(db, path, steps, count, &version, err);
    if (r == 0)
        r = run_sql(db,
                    "PRAGMA auto_vacuum = INCREMENTAL;" /* of a new file */
                    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                    "PRAGMA secure_delete = ON; PRAGMA cache_size = -4096",
                    err);
    if (r == 0)
        r = apply_steps(db, path, steps, count, version, err);
    if (r == 0)
        allow_shrinking(db);
    if (r == 0)
        r = run_sql(db, "PRAGMA foreign_keys = ON", err);
    if (r < 0) {
        db_close(db);
        return r;
    }
    sqlite3_wal_hook(db->handle, count_log, db); /* instead of the library's own */
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
    struct db_query *query = memory_checked(calloc(1, sizeof *query));
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

/* A write runs before its texts go; what selects rows is in use for longer. */
static sqlite3_destructor_type lifetime(const struct db_query *query)
{
    return query->writes ? SQLITE_STATIC : SQLITE_TRANSIENT;
}

void db_text(struct db_query *query, int parameter, const char *text)
{
    sqlite3_bind_text(query->statement, parameter, text, -1, lifetime(query));
}

void db_bytes(struct db_query *query, int parameter, const char *text, int64_t count)
{
    sqlite3_bind_text64(query->statement, parameter, text, (uint64_t)count,
                        lifetime(query), SQLITE_UTF8);
}

void db_null(struct db_query *query, int parameter)
{
    sqlite3_bind_null(query->statement, parameter);
}

/* Run a statement that is kept for the next time. */
static int run_kept(struct db *db, sqlite3_stmt **statement, const char *sql,
                    struct error *err)
{
    if (!*statement)
        sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, statement,
                           NULL);
    int r = sqlite3_step(*statement) == SQLITE_DONE ? 0 : set_error(db, err);
    sqlite3_reset(*statement);
    return r;
}

static int begin_transaction(struct db *db, struct error *err)
{
    if (db->open)
        return 0;
    int r = run_kept(db, &db->begin, "BEGIN IMMEDIATE", err);
    db->open = r == 0;
    return r;
}

int db_run(struct db_query *query, struct error *err)
{
    int r = query->writes ? begin_transaction(query->db, err) : 0;
    if (r == 0 && sqlite3_step(query->statement) != SQLITE_DONE)
        r = set_error(query->db, err);
    sqlite3_reset(query->statement);
    return r;
}

int db_next(struct db_query *query, struct error *err)
{
    int code = sqlite3_step(query->statement);
    if (code == SQLITE_ROW)
        return 1;
    int r = code == SQLITE_DONE ? 0 : set_error(query->db, err);
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
    int r = run_kept(db, &db->commit, "COMMIT", err);
    if (r == 0)
        db->open = false;
    if (r == 0 && db->log_pages >= LOG_PAGES_MAX)
        db_move_log(db);
    return r;
}

bool db_has_long_log(const struct db *db)
{
    return db->log_pages >= LOG_PAGES;
}

/* A failure is that of the next commit, if it lasts. */
void db_move_log(struct db *db)
{
    if (!db->open &&
        sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL,
                                  NULL) == SQLITE_OK)
        db->log_pages = 0;
}

void db_rollback(struct db *db)
{
    if (db->open)
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    db->open = false;
}

bool db_is_open(const struct db *db)
{
    return db->open;
}

void db_count_pages(struct db *db, int64_t *ret_pages, int64_t *ret_free)
{
    int pages = 0, unused = 0;
    read_number(db, "PRAGMA page_count", &pages, NULL);
    read_number(db, "PRAGMA freelist_count", &unused, NULL);
    *ret_pages = pages;
    *ret_free = unused;
}

int db_shrink(struct db *db, uint32_t pages, int64_t max_ns, struct error *err)
{
    char sql[64];
    int64_t until_ns = clock_now_ns() + max_ns;
    sqlite3_stmt *statement = NULL;
    snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%u)", pages);
    int r = begin_transaction(db, err);
    if (r < 0)
        return r;
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
    do /* a step is a page */
        code = code == SQLITE_OK || code == SQLITE_ROW ? sqlite3_step(statement) : code;
    while (code == SQLITE_ROW && clock_now_ns() < until_ns);
    r = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : set_error(db, err);
    sqlite3_finalize(statement);
    return r < 0 ? r : db_commit(db, err);
}

int db_checkpoint(struct db *db, struct error *err)
{
    if (db->open)
        return error_set(err, -EBUSY, "the store: a transaction is open");
    sqlite3_busy_timeout(db->handle, 0);
    int code = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                         NULL, NULL);
    sqlite3_busy_timeout(db->handle, BUSY_MS);
    if (code == SQLITE_OK)
        return 0;
    return code == SQLITE_BUSY || code == SQLITE_LOCKED
               ? error_set(err, -EBUSY, "the store: it is being read")
               : set_error(db, err);
}
