/* What is old is deleted, a piece at a time; what live jobs need stays; secrets leave no trace. */
#include "support/cases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/db.h"
#include "store/prune.h"
#include "store/store.h"
#include "store/usage_rows.h"
#include "support/store_file.h"

#define SECONDS(n) ((int64_t)((n)*INT64_C(1000000000)))

static char folder[64], path[80];
static struct store *store;
static struct prune *prune;
static struct error err;
static uint64_t seq;

static void works(int64_t r)
{
    if (r < 0)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/berth-prune-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/store.db", folder);
    works(store_open(&store, path, &err));
    prune = prune_new(store);
    seq = 0;
    return 0;
}

static void close_store(void)
{
    prune_free(prune);
    store_close(store);
    prune = NULL;
    store = NULL;
}

static int teardown(void **state)
{
    close_store();
    store_file_remove(path);
    return rmdir(folder);
}

/* As after a restart. */
static void open_again(void)
{
    close_store();
    works(store_open(&store, path, &err));
    prune = prune_new(store);
}

static void commit(void)
{
    works(store_commit(store, &err));
}

static void run(const char *sql)
{
    struct db_query *query = db_prepare(store_writer(store), sql);
    works(db_run(query, &err));
    db_finish(query);
}

/* One number of what is committed. */
static int64_t number(const char *sql)
{
    struct db_query *query = db_prepare(store_reader(store), sql);
    int64_t found = db_next(query, &err) == 1 ? db_get_int(query, 0) : -1;
    db_finish(query);
    return found;
}

static void add_events(const char *kind, uint64_t job, int64_t at_ns, int count)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE "
             "i < %d) INSERT INTO event SELECT %llu + i, %lld, '%s', nullif(%llu, 0), "
             "'{}' FROM n",
             count, (unsigned long long)seq, (long long)at_ns, kind,
             (unsigned long long)job);
    run(sql);
    seq += (uint64_t)count;
}

/* A live job with what is kept of one. */
static void add_job(uint64_t id, uint64_t array_id, const char *env)
{
    struct store_job job = { .id = id,
                             .uid = 7,
                             .user = "ada",
                             .gpus = 1,
                             .array_id = array_id,
                             .submit_ns = SECONDS(1),
                             .request = "{\"gpus\":1}",
                             .env = env,
                             .script = "\"#!/bin/sh\"" };
    works(store_add_job(store, &job, &err));
    add_events("submitted", id, SECONDS(1), 1);
}

static void end_job(uint64_t id, int64_t end_ns)
{
    char sql[200];
    store_fail_job(store, id, end_ns, "over");
    add_events("failed", id, end_ns, 1);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO ledger (at_ns, victim, number, rule, gpus, predicted_cost_ns, "
        "predicted_wait_ns, steps, rate_per_s, open) VALUES (%lld, %llu, 1, 'order', "
        "1, 0, 0, 0, 0, 0)",
        (long long)end_ns - 1, (unsigned long long)id);
    run(sql);
    snprintf(sql, sizeof sql,
             "INSERT INTO shared VALUES (%llu, %llu, 1, %lld, 1, 0, 0, 0, 0, -1, 0, 0, "
             "1, 1)",
             (unsigned long long)id, (unsigned long long)id + 1, (long long)end_ns);
    run(sql);
}

/* Delete every job that ended before, but for 'spared': how many there were. */
static uint32_t prune_all(int64_t before_ns)
{
    struct prune_job jobs[PRUNE_JOBS_MAX];
    uint32_t count, total = 0;
    prune_restart(prune);
    while (prune_find_jobs(prune, before_ns, jobs, &count))
        for (uint32_t i = 0; i < count; i++, total++) {
            int64_t rows;
            while ((rows = prune_delete_job(prune, &jobs[i], before_ns, 100, &err)) ==
                   100)
                commit();
            works(rows);
        }
    commit();
    return total;
}

/* --- reports --------------------------------------------------------------------------- */

static void reports_and_scripts_of_ended_jobs_go_in_pieces(void **state)
{
    add_job(1, 0, NULL);
    add_job(2, 0, NULL);
    add_events("progress", 1, SECONDS(5), 1200);
    add_events("progress", 2, SECONDS(5), 10);
    end_job(1, SECONDS(10));
    commit();
    assert_int_equal(prune_reports(prune, SECONDS(10), 500, &err), 0); /* not before */
    assert_int_equal(prune_reports(prune, SECONDS(11), 500, &err), 500);
    commit();
    assert_int_equal(number("SELECT count(*) FROM event WHERE kind = 'progress'"), 710);
    assert_int_equal(prune_reports(prune, SECONDS(11), 500, &err), 500);
    works(prune_reports(prune, SECONDS(11), 500, &err));
    commit();
    assert_int_equal(prune_reports(prune, SECONDS(11), 500, &err), 0);
    /* The live job's reports stay: a restart reads its losses from them. */
    assert_int_equal(number("SELECT count(*) FROM event WHERE kind = 'progress'"), 10);
    assert_int_equal(number("SELECT count(*) FROM event WHERE job = 1"), 2);
    assert_int_equal(number("SELECT count(*) FROM launch"), 1);
    assert_int_equal(number("SELECT count(*) FROM job"), 2);
    /* How far this has come is known after a restart. */
    open_again();
    assert_int_equal(prune_reports(prune, SECONDS(11), 500, &err), 0);
}

/* Ten thousand jobs that ended long ago cost nothing when one more has ended. */
static void what_was_looked_at_is_not_looked_at_again(void **state)
{
    for (uint64_t id = 1; id <= 300; id++) {
        add_job(id, 0, NULL);
        end_job(id, SECONDS(10)); /* all in one instant */
    }
    commit();
    int calls = 0;
    while (prune_reports(prune, SECONDS(11), 500, &err) > 0)
        calls++;
    assert_int_equal(calls, (300 + PRUNE_JOBS_MAX - 1) / PRUNE_JOBS_MAX);
    add_job(301, 0, NULL);
    end_job(301, SECONDS(10));
    assert_int_equal(prune_reports(prune, SECONDS(11), 500, &err), 1);
    assert_int_equal(prune_reports(prune, SECONDS(11), 500, &err), 0);
    commit();
    assert_int_equal(number("SELECT count(*) FROM launch"), 0);
}

/* --- jobs --------------------------------------------------------------------------------- */

static void of_a_pruned_job_nothing_is_left_and_nothing_is_counted(void **state)
{
    struct usage_rows *usage = store_usage(store);
    add_job(1, 0, "{\"A\":\"b\"}");
    int64_t one = usage_rows_bytes(usage, 7);
    assert_true(one > USAGE_RECORD_BYTES);
    for (uint64_t id = 2; id <= 100; id++)
        add_job(id, 0, "{\"A\":\"b\"}");
    add_events("progress", 50, SECONDS(5), 250);
    for (uint64_t id = 2; id <= 100; id++)
        end_job(id, SECONDS(id));
    commit();
    assert_int_equal(prune_all(SECONDS(61)), 59);
    static const char *const tables[] = {
        "job WHERE id",    "event WHERE job",  "ledger WHERE victim",
        "launch WHERE id", "shared WHERE job", "shared WHERE beside"
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s BETWEEN 2 AND 60",
                 tables[i]);
        assert_int_equal(number(sql), 0);
    }
    assert_int_equal(number("SELECT count(*) FROM job"), 41);
    assert_int_equal(number("SELECT count(*) FROM event WHERE job = 61"), 2);
    assert_int_equal(prune_all(SECONDS(1000)), 40);
    assert_int_equal(usage_rows_bytes(usage, 7), one);
}

static void no_number_is_used_twice(void **state)
{
    for (uint64_t id = 1; id <= 9; id++) {
        add_job(id, 0, NULL);
        end_job(id, SECONDS(2));
    }
    commit();
    open_again(); /* it counts events by itself */
    uint64_t last = store_last_seq(store);
    assert_int_equal(last, seq);
    assert_int_equal(prune_all(SECONDS(3)), 9);
    assert_int_equal(number("SELECT count(*) FROM event"), 0);
    open_again();
    assert_int_equal(store_last_id(store), 9);
    assert_int_equal(store_last_seq(store), last);
    store_rollback(store);
    assert_int_equal(store_last_seq(store), last);
}

static void an_array_stays_while_one_of_its_tasks_lives(void **state)
{
    add_job(1, 1, NULL);
    add_job(2, 1, NULL);
    add_job(3, 0, NULL);
    end_job(1, SECONDS(2));
    end_job(3, SECONDS(2));
    commit();
    assert_int_equal(prune_all(SECONDS(9)), 1);
    assert_int_equal(number("SELECT id FROM job"), 1);
    end_job(2, SECONDS(4));
    commit();
    assert_int_equal(prune_all(SECONDS(9)), 2);
}

/* Slurm uses numbers again: events of the job that has the number now stay. */
static void of_a_number_that_is_used_again_the_older_job_goes(void **state)
{
    struct usage_rows *usage = store_usage(store);
    add_job(5, 0, NULL);
    end_job(5, SECONDS(2));
    works(store_retire(store, 5, &err));
    run("DELETE FROM ledger"); /* one key, one entry */
    struct store_job job = { .id = 5, .uid = 7, .user = "ada", .request = "{}" };
    works(store_add_job(store, &job, &err));
    add_events("submitted", 5, SECONDS(6), 1);
    commit();
    assert_int_equal(prune_all(SECONDS(9)), 1);
    assert_int_equal(number("SELECT count(*) FROM job"), 1);
    assert_int_equal(number("SELECT count(*) FROM event WHERE job = 5"), 1);
    assert_int_equal(usage_rows_bytes(usage, 7), USAGE_RECORD_BYTES + 2);
}

static void events_of_no_job_go_by_their_age(void **state)
{
    add_events("node_down", 0, SECONDS(5), 30);
    add_events("node_up", 0, SECONDS(8), 1);
    commit();
    assert_int_equal(prune_events(prune, SECONDS(8), 20, &err), 20);
    assert_int_equal(prune_events(prune, SECONDS(8), 20, &err), 10);
    assert_int_equal(prune_events(prune, SECONDS(8), 20, &err), 0);
    commit();
    assert_int_equal(number("SELECT count(*) FROM event"), 1);
}

static void a_job_that_is_no_longer_kept_is_told_from_one_that_never_was(void **state)
{
    add_job(1, 0, NULL);
    add_job(2, 0, NULL);
    end_job(1, SECONDS(2));
    commit();
    assert_int_equal(prune_history_from(store), -1);
    assert_int_equal(prune_explain_absent(store, 9, true, &err), -ENOENT);
    assert_string_equal(err.text, "there is no job 9");
    assert_int_equal(prune_all(SECONDS(86400)), 1);
    assert_int_equal(prune_history_from(store), SECONDS(86400));
    assert_int_equal(prune_explain_absent(store, 1, true, &err), -ENOENT);
    assert_non_null(strstr(err.text, "job 1 ended and is no longer kept; history goes "
                                     "back to 1970-01-0"));
    prune_explain_absent(store, 1, false, &err);
    assert_non_null(strstr(err.text, "there is no job 1; history goes back to 1970"));
    prune_explain_absent(store, 9, true, &err);
    assert_string_equal(err.text, "there is no job 9");
}

/* --- secrets and space ---------------------------------------------------------------------- */

static bool file_has(const char *suffix, const char *text)
{
    char name[100];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    FILE *file = fopen(name, "re");
    if (!file)
        return false;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    char *bytes = malloc(size + 1);
    rewind(file);
    assert_int_equal(fread(bytes, 1, size, file), size);
    fclose(file);
    bool found = memmem(bytes, size, text, strlen(text)) != NULL;
    free(bytes);
    return found;
}

static bool is_on_disk(const char *text)
{
    return file_has("", text) || file_has("-wal", text);
}

/* An environment that says its job's number every few bytes: no piece of it is unmarked. */
static const char *make_env(uint64_t id, size_t size)
{
    static struct buf env;
    if (!env.bytes)
        buf_init(&env, 1 << 20);
    buf_reset(&env);
    buf_text(&env, "{\"K\":\"");
    while (env.count < size)
        buf_print(&env, "secret-%04llu ", (unsigned long long)id);
    buf_text(&env, "\"}");
    return env.bytes;
}

/* Small ones that share pages, and large ones in pages of their own, among jobs that live. */
static void environments_are_in_no_file_after_a_checkpoint(void **state)
{
    for (uint64_t id = 1; id <= 400; id++) {
        add_job(id, 0, make_env(id, id % 7 == 0 ? 20000 : id % 3 == 0 ? 1500 : 40));
        if (id % 50 == 0)
            commit();
    }
    for (uint64_t id = 1; id <= 400; id++) {
        if (id % 4 == 0)
            continue; /* it lives */
        end_job(id, SECONDS(id));
        if (id % 60 == 1)
            commit();
    }
    commit();
    assert_true(store_has_remains(store));
    assert_true(
        is_on_disk("secret-0001")); /* the log still has it: this test can fail */
    works(store_checkpoint(store, &err));
    assert_false(store_has_remains(store));
    for (uint64_t id = 1; id <= 400; id++) {
        char mark[32];
        snprintf(mark, sizeof mark, "secret-%04llu", (unsigned long long)id);
        if (is_on_disk(mark) != (id % 4 == 0))
            fail_msg("%s is %s", mark, id % 4 ? "still there" : "gone");
    }
}

static void a_checkpoint_does_not_wait_for_readers(void **state)
{
    add_job(1, 0, NULL);
    commit();
    struct db_query *query = db_prepare(store_reader(store), "SELECT id FROM job");
    assert_int_equal(db_next(query, &err), 1);
    add_job(2, 0, NULL);
    assert_int_equal(store_checkpoint(store, &err), -EBUSY); /* not committed */
    commit();
    assert_int_equal(store_checkpoint(store, &err), -EBUSY);
    assert_true(store_has_remains(store));
    db_finish(query);
    works(store_checkpoint(store, &err));
}

static int64_t file_size(void)
{
    struct stat file;
    return stat(path, &file) < 0 ? -1 : file.st_size;
}

static void the_file_gets_smaller(void **state)
{
    int64_t pages, unused;
    struct db *db = store_writer(store);
    for (uint64_t id = 1; id <= 300; id++)
        add_job(id, 0, make_env(id, 8000));
    for (uint64_t id = 1; id <= 299; id++)
        end_job(id, SECONDS(id));
    commit();
    works(store_checkpoint(store, &err));
    int64_t before = file_size();
    assert_int_equal(prune_all(SECONDS(1000)), 299);
    db_count_pages(db, &pages, &unused);
    assert_true(unused > pages / 2);
    int64_t all = unused;
    works(db_shrink(db, 64, 0, &err)); /* no time: one page, and what told of it */
    db_count_pages(db, &pages, &unused);
    assert_in_range(all - unused, 1, 2);
    while (unused > 0) {
        int64_t left = unused;
        works(db_shrink(db, 64, SECONDS(60), &err));
        db_count_pages(db, &pages, &unused);
        assert_true(left - unused <=
                    64 + 1); /* and pages that told what the others were */
        assert_true(unused < left);
    }
    works(store_checkpoint(store, &err));
    assert_true(file_size() < before / 4);
    assert_int_equal(number("SELECT count(*) FROM pragma_integrity_check WHERE "
                            "integrity_check = 'ok'"),
                     1);
}

RUN_CASES(CASE(reports_and_scripts_of_ended_jobs_go_in_pieces),
          CASE(what_was_looked_at_is_not_looked_at_again),
          CASE(of_a_pruned_job_nothing_is_left_and_nothing_is_counted),
          CASE(no_number_is_used_twice),
          CASE(an_array_stays_while_one_of_its_tasks_lives),
          CASE(of_a_number_that_is_used_again_the_older_job_goes),
          CASE(events_of_no_job_go_by_their_age),
          CASE(a_job_that_is_no_longer_kept_is_told_from_one_that_never_was),
          CASE(environments_are_in_no_file_after_a_checkpoint),
          CASE(a_checkpoint_does_not_wait_for_readers), CASE(the_file_gets_smaller));
