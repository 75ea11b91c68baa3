/* Migrations of the store: made whole, or the file stays as it was. */
#include "support/cases.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "store/db.h"
#include "store/migrations.h"
#include "store/schema.h"

/* 4 MiB of new pages: more than SQLite keeps in memory before it writes to the log. */
#define MUCH "CREATE TABLE big AS SELECT zeroblob(8388608) x;"
#define FOR_EVER \
    "CREATE TABLE late AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 " \
    "FROM n) SELECT count(*) FROM n;"

static const char *const first[] = { "CREATE TABLE job (id INTEGER PRIMARY KEY)" };
static const char *const three[] = {
    "CREATE TABLE job (id INTEGER PRIMARY KEY)",
    "ALTER TABLE job ADD COLUMN note TEXT; UPDATE job SET note = 'old'",
    "CREATE TABLE host AS SELECT id FROM job",
};
static const char *const wrong[] = {
    "CREATE TABLE job (id INTEGER PRIMARY KEY)",
    "ALTER TABLE job ADD COLUMN note TEXT; INSERT INTO nowhere VALUES (1)",
};
static const char *const large[] = { "CREATE TABLE job (id INTEGER PRIMARY KEY)",
                                     MUCH };
static const char *const endless[] = {
    "CREATE TABLE job (id INTEGER PRIMARY KEY)",
    "ALTER TABLE job ADD COLUMN note TEXT;" MUCH FOR_EVER,
};

static char folder[64], path[80], copy[100];
static struct error err;

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/berth-migration-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/x.db", folder);
    snprintf(copy, sizeof copy, "%s.before-2", path);
    return 0;
}

static int teardown(void **state)
{
    static const char *const ends[] = { "",
                                        "-wal",
                                        "-shm",
                                        ".before-2",
                                        ".before-2-wal",
                                        ".before-2-shm",
                                        ".before-2.new" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        remove(name);
    }
    return rmdir(folder);
}

/* One number that a file has for an answer; -1: it has none. */
static int64_t number_in(const char *file, const char *sql)
{
    struct db *db = NULL;
    assert_int_equal(db_open_reader(&db, file, &err), 0);
    struct db_query *query = db_prepare_once(db, sql);
    int64_t number =
        query && db_next(query, &err) == 1 ? db_get_int(query, 0) : (int64_t)-1;
    db_finish(query);
    db_close(db);
    return number;
}

static void run_sql(struct db *db, const char *sql)
{
    struct db_query *query = db_prepare(db, sql);
    assert_true(db_run(query, &err) == 0);
    assert_int_equal(db_commit(db, &err), 0);
    db_finish(query);
}

static void make_first_version(void)
{
    struct db *db = NULL;
    assert_int_equal(db_open(&db, path, first, 1, &err), 0);
    run_sql(db, "INSERT INTO job VALUES (7)");
    db_close(db);
}

static void assert_first_version(const char *file)
{
    assert_int_equal(number_in(file, "PRAGMA user_version"), 1);
    assert_int_equal(number_in(file, "SELECT count(*) FROM sqlite_schema"), 1);
    assert_int_equal(number_in(file, "SELECT count(*) FROM pragma_table_info('job')"),
                     1);
    assert_int_equal(number_in(file, "SELECT id FROM job"), 7);
    assert_int_equal(number_in(file, "SELECT count(*) FROM pragma_integrity_check "
                                     "WHERE integrity_check = 'ok'"),
                     1);
}

static bool exists(const char *file)
{
    return access(file, F_OK) == 0;
}

static void an_old_file_is_brought_to_the_newest_version(void **state)
{
    struct db *db = NULL;
    make_first_version();
    assert_int_equal(db_open(&db, path, three, 3, &err), 0);
    db_close(db);
    assert_int_equal(number_in(path, "PRAGMA user_version"), 3);
    assert_int_equal(number_in(path, "SELECT id FROM host"), 7);
    assert_int_equal(number_in(path, "SELECT count(*) FROM job WHERE note = 'old'"), 1);
    /* The copy is the file as it was, for the owner alone; there is one per start. */
    assert_first_version(copy);
    struct stat st;
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    copy[strlen(copy) - 1] = '3';
    assert_false(exists(copy));
}

static void a_new_file_has_the_newest_version_and_no_copy(void **state)
{
    struct db *db = NULL;
    assert_int_equal(db_open(&db, path, three, 3, &err), 0);
    db_close(db);
    assert_int_equal(number_in(path, "PRAGMA user_version"), 3);
    assert_false(exists(copy));
    assert_int_equal(db_open(&db, path, three, 3, &err), 0);
    db_close(db);
    assert_false(exists(copy));
}

static void an_earlier_copy_is_replaced(void **state)
{
    struct db *db = NULL;
    FILE *file = fopen(copy, "we");
    assert_non_null(file);
    fputs("not a database", file);
    fclose(file);
    make_first_version();
    assert_int_equal(db_open(&db, path, three, 2, &err), 0);
    db_close(db);
    assert_first_version(copy);
}

static void a_migration_that_fails_changes_nothing(void **state)
{
    struct db *db = NULL;
    make_first_version();
    assert_int_equal(db_open(&db, path, wrong, 2, &err), -EIO);
    assert_non_null(strstr(err.text,
                           "x.db: stays at version 1, the change to 2 failed: "
                           "the store: no such table: nowhere"));
    assert_first_version(path);
    assert_first_version(copy);
    assert_int_equal(db_open(&db, path, three, 3, &err), 0);
    db_close(db);
}

static void a_newer_file_is_refused(void **state)
{
    struct db *db = NULL;
    assert_int_equal(db_open(&db, path, three, 3, &err), 0);
    db_close(db);
    assert_int_equal(db_open(&db, path, three, 2, &err), -EPROTO);
    assert_non_null(strstr(err.text, "x.db: version 3, written by a newer berthd; this "
                                     "one knows versions up to 2"));
    assert_int_equal(number_in(path, "PRAGMA user_version"), 3);
}

static void a_foreign_database_of_an_old_version_is_not_migrated(void **state)
{
    static const char *const photos[] = { "CREATE TABLE photo (id INTEGER)" };
    struct db *db = NULL;
    assert_int_equal(db_open(&db, path, photos, 1, &err), 0);
    db_close(db);
    assert_int_equal(db_open(&db, path, three, 3, &err), -EPROTO);
    assert_non_null(
        strstr(err.text, "not a store of berthd: column job.id is missing"));
    assert_int_equal(number_in(path, "PRAGMA user_version"), 1);
    assert_false(exists(copy));
}

static void no_migration_without_a_copy(void **state)
{
    struct db *db = NULL;
    char beside[110];
    make_first_version();
    snprintf(beside, sizeof beside, "%s.new", copy);
    assert_int_equal(mkdir(beside, 0700), 0);
    assert_int_equal(db_open(&db, path, three, 3, &err), -EEXIST);
    assert_non_null(strstr(err.text, "x.db.before-2: cannot be written: File exists"));
    assert_first_version(path);
}

static void a_folder_that_cannot_be_written_stops_it(void **state)
{
    struct db *db = NULL;
    bool root = geteuid() == 0;
    make_first_version();
    if (root && chown(path, 65534, (gid_t)-1) < 0)
        skip();
    assert_int_equal(chmod(folder, 0555), 0);
    if (root && seteuid(65534) < 0)
        skip();
    int r = db_open(&db, path, three, 3, &err);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_true(r < 0);
    assert_first_version(path);
    assert_false(exists(copy));
}

/* What a child comes to that opens the file: its wait status. */
static int status_of_opening(const char *const *steps, void (*prepare)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct db *db = NULL;
        prepare();
        _exit(db_open(&db, path, steps, 2, NULL) < 0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void limit_files(void)
{
    struct rlimit limit = { 256 << 10, 256 << 10 };
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void limit_files_and_die(void)
{
    limit_files();
    signal(SIGXFSZ, SIG_DFL);
}

static void end_soon(void)
{
    struct itimerval soon = { .it_value = { .tv_usec = 300000 } };
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void a_disk_that_is_full_changes_nothing(void **state)
{
    make_first_version();
    int status = status_of_opening(large, limit_files);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_first_version(path);
    assert_first_version(copy);
}

/* In the middle of a write to the log, and between two statements. */
static void a_crash_in_a_migration_changes_nothing(void **state)
{
    struct db *db = NULL;
    make_first_version();
    int status = status_of_opening(large, limit_files_and_die);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    assert_first_version(path);
    status = status_of_opening(endless, end_soon);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    assert_first_version(path);
    assert_first_version(copy);
    assert_int_equal(db_open(&db, path, three, 3, &err), 0);
    db_close(db);
    assert_int_equal(number_in(path, "SELECT id FROM host"), 7);
}

#define OF_A_JOB \
    "SELECT seq FROM event WHERE job = 7 AND job IS NOT NULL AND kind <> 'progress' " \
    "ORDER BY seq"

/* What happened to a job is found without its reports, also in a file of version 11. */
static void events_of_a_job_are_found_beside_its_reports(void **state)
{
    const char *steps[MIGRATIONS_VERSION];
    struct db *db = NULL;
    size_t count;
    steps[0] = store_schema(&count);
    for (int i = 0; i < MIGRATIONS_COUNT; i++)
        steps[i + 1] = migrations[i];
    assert_int_equal(db_open(&db, path, steps, 11, &err), 0);
    run_sql(db, "INSERT INTO event (at_ns, kind, job, text) VALUES (1, 'started', 7, "
                "'{}'), (2, 'progress', 7, '{}'), (3, 'finished', 7, '{}'), "
                "(4, 'started', 8, '{}')");
    db_close(db);
    snprintf(copy, sizeof copy, "%s.before-12", path);
    assert_int_equal(db_open(&db, path, steps, MIGRATIONS_VERSION, &err), 0);
    db_close(db);
    assert_true(exists(copy));
    remove(copy);
    assert_int_equal(number_in(path, "SELECT count(*) FROM (" OF_A_JOB ")"), 2);
    struct db_query *query;
    assert_int_equal(db_open_reader(&db, path, &err), 0);
    query = db_prepare_once(db, "EXPLAIN QUERY PLAN " OF_A_JOB);
    assert_int_equal(db_next(query, &err), 1);
    assert_non_null(strstr(db_get_text(query, 3), "event_of_job"));
    db_finish(query);
    db_close(db);
}

RUN_CASES(CASE(events_of_a_job_are_found_beside_its_reports),
          CASE(an_old_file_is_brought_to_the_newest_version),
          CASE(a_new_file_has_the_newest_version_and_no_copy),
          CASE(an_earlier_copy_is_replaced),
          CASE(a_migration_that_fails_changes_nothing), CASE(a_newer_file_is_refused),
          CASE(a_foreign_database_of_an_old_version_is_not_migrated),
          CASE(no_migration_without_a_copy),
          CASE(a_folder_that_cannot_be_written_stops_it),
          CASE(a_disk_that_is_full_changes_nothing),
          CASE(a_crash_in_a_migration_changes_nothing));
