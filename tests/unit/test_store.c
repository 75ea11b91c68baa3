/* The store: what is committed is there again, what is not is gone, what is foreign is left. */
#include "support/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metrics/ledger.h"
#include "model/event_record.h"
#include "model/state_rates.h"
#include "store/db.h"
#include "store/migrations.h"
#include "store/rate_rows.h"
#include "store/rows.h"
#include "store/store.h"
#include "store/usage_rows.h"

static char folder[64], path[80], other[80];
static struct world w;
static struct store *store;
static struct error err;

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/berth-store-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(other, sizeof other, "%s/other.db", folder);
    world_init_as(&w, "2xv100:4,1xk80:2");
    if (store_open(&store, path, &err) < 0)
        return -1;
    store_attach(store, &w.state);
    return 0;
}

static int teardown(void **state)
{
    static const char *const files[] = { "store.db", "store.db-wal", "store.db-shm",
                                         "other.db", "other.db-wal", "other.db-shm" };
    store_close(store);
    store = NULL;
    world_release(&w);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s/%s", folder, files[i]);
        unlink(name);
    }
    return rmdir(folder);
}

static void works(int r)
{
    if (r < 0)
        fail_msg("%s", err.text);
}

/* As after a restart. */
static void open_again(void)
{
    store_close(store);
    store = NULL;
    works(store_open(&store, path, &err));
    store_attach(store, &w.state);
}

static void accept_job(uint64_t id)
{
    struct store_job job = { .id = id,
                             .user = "ada",
                             .name = "train",
                             .gpus = 1,
                             .submit_ns = SECONDS(1),
                             .request = "{\"gpus\":1}" };
    works(store_add_job(store, &job, &err));
}

/* One value, as text, of what is committed; NULL: there is none. */
static const char *ask(const char *sql)
{
    static char text[512];
    struct db_query *query = db_prepare(store_reader(store), sql);
    const char *found = db_next(query, &err) == 1 ? db_get_text(query, 0) : NULL;
    if (found)
        snprintf(text, sizeof text, "%s", found);
    db_finish(query);
    return found ? text : NULL;
}

/* A database of some version, made with this SQL. */
static struct db *make_other(const char *file, const char *sql, int version)
{
    struct db *db;
    const char *steps[MIGRATIONS_VERSION + 1] = { sql };
    for (int i = 1; i <= MIGRATIONS_VERSION; i++)
        steps[i] = "";
    works(db_open(&db, file, steps, version > 1 ? version : 1, &err));
    if (version < 1) {
        struct db_query *query = db_prepare(db, "PRAGMA user_version = 0");
        works(db_run(query, &err));
        db_finish(query);
    }
    works(db_commit(db, &err));
    return db;
}

/* Another program writes into the file. */
static void meddle(const char *sql)
{
    struct db *db = make_other(path, "", MIGRATIONS_VERSION);
    struct db_query *query = db_prepare(db, sql);
    works(db_run(query, &err));
    works(db_commit(db, &err));
    db_finish(query);
    db_close(db);
}

static void tell(struct event event)
{
    event.at_ns = w.state.view.now_ns;
    store_event(store, &w.state.view, &event);
}

/* A job of the world that the store knows, in its seats. */
static job_id running_job(uint32_t gpus)
{
    accept_job(w.id_next);
    job_id job = world_running(&w, (struct job){ .gpus = gpus });
    tell((struct event){ .kind = EVENT_STARTED, .job = job, .loaded = true });
    works(store_commit(store, &err));
    return job;
}

static void end_job(job_id job, struct event event)
{
    event.job = job;
    assert_true(world_apply(&w, event));
    tell(event);
}

/* --- files ------------------------------------------------------------------------- */

static void what_is_committed_is_there_again(void **state)
{
    accept_job(7);
    works(store_set_fact(store, "policy", "las", &err));
    works(store_commit(store, &err));
    open_again();

    assert_int_equal(store_last_id(store), 7);
    char *text = store_request(store, 7);
    assert_string_equal(text, "{\"gpus\":1}");
    free(text);
    text = store_fact(store, "policy");
    assert_string_equal(text, "las");
    free(text);
    assert_null(store_fact(store, "colour"));
    assert_null(store_request(store, 8));
}

/* All that berthd keeps of a job's request, put together. */
static void assert_request(uint64_t id, const char *want)
{
    char *text = store_request(store, id);
    assert_string_equal(text, want);
    free(text);
}

static void an_environment_is_kept_until_the_job_has_ended(void **state)
{
    uint64_t id = w.id_next;
    struct store_job row = { .id = id,
                             .user = "ada",
                             .gpus = 1,
                             .request = "{\"gpus\":1 }\n",
                             .env = "{\"KEY\":\"se}cret\"}",
                             .script = "\"#!/bin/sh\"" };
    works(store_add_job(store, &row, &err));
    row = (struct store_job){
        .id = id + 1, .user = "ada", .request = "{}", .env = "{\"A\":\"b\"}"
    };
    works(store_add_job(store, &row, &err));
    row.id = id + 2;
    row.rejected = "too large";
    works(store_add_job(store, &row, &err));
    job_id job = world_running(&w, (struct job){ .gpus = 1 });
    works(store_commit(store, &err));
    assert_request(id, "{\"gpus\":1 ,\"env\":{\"KEY\":\"se}cret\"},"
                       "\"script\":\"#!/bin/sh\"}");
    assert_request(id + 1, "{\"env\":{\"A\":\"b\"}}");
    assert_request(id + 2, "{}");

    end_job(job, (struct event){ .kind = EVENT_FINISHED });
    store_fail_job(store, id + 1, SECONDS(9), "it cannot run here");
    works(store_commit(store, &err));
    assert_request(id, "{\"gpus\":1 ,\"script\":\"#!/bin/sh\"}");
    assert_request(id + 1, "{}");
    assert_string_equal(ask("SELECT count(*) FROM launch WHERE env IS NOT NULL"), "0");
}

static void what_is_not_committed_is_gone(void **state)
{
    accept_job(7);
    job_id job = world_running(&w, (struct job){ .id = 7, .gpus = 1 });
    tell((struct event){ .kind = EVENT_STARTED, .job = job });
    assert_int_equal(store_last_seq(store), 1);
    store_rollback(store);
    assert_int_equal(store_last_seq(store), 0);
    assert_int_equal(store_last_id(store), 0);
    works(store_commit(store, &err)); /* nothing to do */
    accept_job(8);
    open_again(); /* closed in the middle of it */
    assert_int_equal(store_last_id(store), 0);
}

static void a_store_of_a_newer_version_is_refused(void **state)
{
    struct store *opened = NULL;
    db_close(make_other(other, "CREATE TABLE event (x)", MIGRATIONS_VERSION + 1));
    assert_int_equal(store_open(&opened, other, &err), -EPROTO);
    char want[120];
    snprintf(want, sizeof want,
             "other.db: version %d, written by a newer berthd; this one knows versions "
             "up to %d",
             MIGRATIONS_VERSION + 1, MIGRATIONS_VERSION);
    assert_non_null(strstr(err.text, want));
    assert_null(opened);
}

/* Any program may call its file's version 1. */
static void a_foreign_database_is_refused(void **state)
{
    static const struct {
        const char *schema;
        int version;
        const char *says;
    } files[] = {
        { "CREATE TABLE photo (id INTEGER)", 1, "column event.seq is missing" },
        { "CREATE TABLE event (seq INTEGER PRIMARY KEY, at_ns TEXT)", 1,
          "column event.at_ns is missing or differs" },
        { "CREATE TABLE photo (id INTEGER)", 0, "not a store of berthd: version 0" },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct db *db;
        struct store *opened = NULL;
        db_close(make_other(other, files[i].schema, files[i].version));
        assert_int_equal(store_open(&opened, other, &err), -EPROTO);
        if (!strstr(err.text, files[i].says) || !strstr(err.text, "other.db: "))
            fail_msg("\"%s\", want \"%s\"", err.text, files[i].says);
        /* And nothing of ours is in it. */
        works(db_open_reader(&db, other, &err));
        struct db_query *query =
            db_prepare(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'job'");
        assert_int_equal(db_next(query, &err), 1);
        assert_int_equal(db_get_int(query, 0), 0);
        db_finish(query);
        db_close(db);
        unlink(other);
    }
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    struct store *opened = NULL;
    FILE *file = fopen(other, "we");
    assert_non_null(file);
    for (int i = 0; i < 500; i++)
        fputs("Dear diary, ", file);
    fclose(file);
    assert_int_equal(store_open(&opened, other, &err), -EBADMSG);
    assert_string_equal(err.text, "the store: file is not a database");
    assert_int_equal(store_open(&opened, folder, &err), -EIO);
    assert_non_null(strstr(err.text, "unable to open database file"));
    assert_null(opened);
    store_close(NULL); /* is nothing */
}

/* --- one database ------------------------------------------------------------------- */

static struct db_query *change_of(struct db *db, const char *sql)
{
    struct db_query *query = db_prepare_once(db, sql);
    assert_non_null(query);
    return query;
}

/* Callers tell a full disk from a broken file by the number. */
static void failures_have_error_numbers(void **state)
{
    struct db *reader;
    struct db *db =
        make_other(other, "CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT)", 1);
    works(db_open_reader(&reader, other, &err));
    assert_null(db_prepare_once(db, "SELECT nonsense"));

    struct db_query *add = change_of(db, "INSERT INTO t VALUES (?, ?)");
    db_int(add, 1, 1);
    db_null(add, 2);
    works(db_run(add, &err));
    assert_int_equal(db_changes(db), 1);
    assert_int_equal(db_run(add, &err), -EIO); /* there is one already */
    assert_non_null(strstr(err.text, "UNIQUE"));
    works(db_commit(db, &err));

    struct db_query *small = change_of(db, "PRAGMA max_page_count = 3");
    assert_int_equal(db_next(small, &err), 1);
    db_reset(small);
    static char large[1 << 16];
    memset(large, 'x', sizeof large - 1);
    db_int(add, 1, 2);
    db_text(add, 2, large);
    assert_int_equal(db_run(add, &err), -ENOSPC);
    assert_string_equal(err.text, "the store: database or disk is full");
    db_rollback(db);

    struct db_query *wrong = change_of(reader, "DELETE FROM t");
    assert_int_equal(db_run(wrong, &err), -EROFS);
    db_finish(small);
    db_finish(wrong);
    db_finish(add);
    db_finish(NULL);
    db_close(reader);
    db_close(db);
}

static void values_and_nulls_are_read_as_written(void **state)
{
    struct db *db = make_other(other, "CREATE TABLE t (a, b, c, d)", 1);
    struct db_query *add = change_of(db, "INSERT INTO t VALUES (?, ?, ?, ?)");
    db_int(add, 1, INT64_MIN);
    db_real(add, 2, 0.1);
    db_real(add, 3, (double)NAN);
    db_bytes(add, 4, "n\xc3\xa4her", 3);
    works(db_run(add, &err));
    works(db_commit(db, &err));
    struct db_query *all = change_of(db, "SELECT * FROM t");
    assert_int_equal(db_next(all, &err), 1);
    assert_true(db_get_int(all, 0) == INT64_MIN);
    assert_true(db_get_real(all, 1) == 0.1);
    assert_true(isnan(db_get_real(all, 2)) && db_is_null(all, 2));
    assert_null(db_get_text(all, 2));
    assert_string_equal(db_get_text(all, 3), "n\xc3\xa4");
    assert_int_equal(db_next(all, &err), 0);
    db_finish(add);
    db_finish(all);
    db_close(db);
}

/* --- jobs --------------------------------------------------------------------------- */

static void a_job_is_stored_as_submitted(void **state)
{
    struct store_job job = { .id = 1,
                             .uid = 1000,
                             .user = "ada",
                             .class = CLASS_TE,
                             .gpus = 2,
                             .array_id = 1,
                             .array_index = 3,
                             .steps = 100,
                             .submit_ns = SECONDS(5),
                             .held = true,
                             .waits = true,
                             .request = "{}" };
    works(store_add_job(store, &job, &err));
    works(store_hold(store, 1, false, &err));
    job = (struct store_job){ .id = 2,
                              .user = "ada",
                              .submit_ns = SECONDS(6),
                              .rejected = "no such GPU",
                              .request = "{}" };
    works(store_add_job(store, &job, &err));
    works(store_commit(store, &err));
    assert_string_equal(
        ask("SELECT state || class || array_id || array_index || steps || "
            "held || (end_ns IS NULL) FROM job WHERE id = 1"),
        "HELDte13100.001");
    assert_string_equal(ask("SELECT state || class || reason || end_ns FROM job "
                            "WHERE id = 2 AND array_id IS NULL AND steps IS NULL"),
                        "REJECTEDbeno such GPU6000000000");
}

static void a_job_ends_in_one_of_four_ways(void **state)
{
    job_id jobs[4];
    for (int i = 0; i < 4; i++)
        jobs[i] = running_job(1);
    world_pass(&w, SECONDS(10));
    end_job(jobs[0], (struct event){ .kind = EVENT_FINISHED, .steps = 9, .loss = NAN });
    end_job(jobs[1], (struct event){
                         .kind = EVENT_FAILED, .exit_code = 3, .why = "it \"broke\"" });
    world_apply(&w, (struct event){ .kind = EVENT_CANCELLED, .job = jobs[2] });
    end_job(jobs[2], (struct event){ .kind = EVENT_STOPPED, .exit_code = 143 });
    works(store_commit(store, &err));
    assert_string_equal(ask("SELECT group_concat(state || ifnull(exit_code, '-'), ' ') "
                            "FROM job"),
                        "COMPLETED0 FAILED3 CANCELLED143 RUNNING-");
    assert_string_equal(ask("SELECT reason FROM job WHERE id = 2"), "it \"broke\"");
    assert_string_equal(ask("SELECT count(*) FROM live"), "1");
    /* What can never run here any more has failed. */
    store_fail_job(store, world_job(&w, jobs[3])->id, SECONDS(20), "its node is gone");
    works(store_commit(store, &err));
    assert_string_equal(ask("SELECT state || reason || end_ns FROM job WHERE id = 4"),
                        "FAILEDits node is gone20000000000");
    assert_string_equal(ask("SELECT count(*) FROM live"), "0");
}

static void the_id_of_an_ended_job_can_be_used_again(void **state)
{
    for (int i = 1; i <= 2; i++) {
        accept_job(5);
        store_fail_job(store, 5, SECONDS(i), "gone");
        works(store_retire(store, 5, &err));
        works(store_commit(store, &err));
    }
    accept_job(5);
    works(store_retire(store, 5, &err)); /* not this one: it has not ended */
    works(store_commit(store, &err));
    assert_string_equal(ask("SELECT group_concat(id, ' ') FROM job"),
                        "5 4294967301 8589934597");
}

/* --- events ------------------------------------------------------------------------- */

struct observed {
    uint64_t seq, job;
    char text[512];
};

static void observe(void *context, const struct event_record *record, const char *line,
                    size_t count)
{
    struct observed *observed = context;
    observed->seq = record->seq;
    observed->job = record->job;
    snprintf(observed->text, sizeof observed->text, "%.*s", (int)count, line);
}

static void every_event_is_a_line_that_is_observed_as_well(void **state)
{
    struct observed observed = { 0 };
    job_id job = running_job(2);
    store_observe(store, observe, &observed);
    world_pass(&w, SECONDS(1.5));
    tell((struct event){ .kind = EVENT_LEVELLED, .job = job, .level = 3 });
    assert_int_equal(observed.seq, 2);
    assert_int_equal(observed.job, 1);
    assert_string_equal(observed.text,
                        "{\"seq\":2,\"at\":1.500000000,\"kind\":\"levelled\","
                        "\"job\":1,\"attempt\":0,\"level\":3}");
    tell(
        (struct event){ .kind = EVENT_FOREIGN, .job = JOB_NONE, .node = 1, .gpus = 5 });
    assert_non_null(
        strstr(observed.text, "\"kind\":\"foreign\",\"node\":1,\"gpus\":[0,2]}"));
    assert_int_equal(observed.job, 0);
    tell((struct event){ .kind = EVENT_NODE_DOWN, .job = JOB_NONE, .node = 2 });
    tell((struct event){ .kind = EVENT_NODE_UP, .job = JOB_NONE, .node = 2 });
    assert_non_null(strstr(observed.text, "\"node\":2}"));
    tell((struct event){ .kind = EVENT_REJECTED,
                         .job = JOB_NONE,
                         .why = "a\ttab, a \\ and \x7f",
                         .spec =
                             &(struct job){ .id = 77, .class = CLASS_TE, .gpus = 9 } });
    assert_int_equal(observed.job, 77);
    assert_non_null(strstr(observed.text,
                           "\"job\":77,\"class\":\"te\",\"gpus\":9,"
                           "\"why\":\"a\\u0009tab, a \\\\ and \\u007f\"}"));
    works(store_commit(store, &err));
    assert_string_equal(ask("SELECT text FROM event WHERE job = 77"), observed.text);
    assert_string_equal(ask("SELECT count(*) FROM event WHERE job IS NULL"), "3");
}

/* They come again in seconds, or are between the engine and a policy. */
static void some_events_are_not_stored(void **state)
{
    job_id job = running_job(1);
    tell((struct event){ .kind = EVENT_SENT, .job = job, .sent_bytes = 1 });
    tell((struct event){ .kind = EVENT_ADOPTED, .job = job });
    tell((struct event){ .kind = EVENT_WAKE, .job = JOB_NONE });
    assert_int_equal(store_last_seq(store), 1);
}

static void the_most_memory_of_a_gpu_is_kept(void **state)
{
    job_id job = running_job(1);
    tell((struct event){ .kind = EVENT_GPU_USE, .job = job, .gpu_mib = 3000 });
    tell((struct event){ .kind = EVENT_GPU_USE, .job = job, .gpu_mib = 2000 });
    works(store_commit(store, &err));
    assert_string_equal(ask("SELECT gpu_mib FROM job"), "3000");
    assert_int_equal(store_last_seq(store), 1); /* not in the log */
}

static void what_kinds_do_is_there_after_a_restart(void **state)
{
    struct rate_table *rates = &w.state.rates;
    state_learn(&w.state, &w.arena);
    job_id job = running_job(1);
    w.state.jobs[job].learned = rate_table_add_kind(rates, "silent", 0) + 1;
    struct rate_kind *kind = &rates->kinds[0];
    kind->gpu_mib = 3000;
    kind->busy[0] = 0.25f;
    tell((struct event){ .kind = EVENT_GPU_USE, .job = job, .gpu_mib = 3000 });
    tell((struct event){ .kind = EVENT_SENT, .job = job, .sent_bytes = 1 });
    works(store_commit(store, &err));
    assert_string_equal(ask("SELECT sent_count FROM kind_use"), "0");
    kind->sent_gpus = 4;
    kind->sent[0] = (struct rate_sent){ .mean = 16, .count = 7 };
    kind->sent_at_ns = w.state.view.now_ns;
    tell((struct event){ .kind = EVENT_SENT, .job = job, .sent_bytes = 1 });
    works(store_commit(store, &err));

    static struct world next;
    world_init_as(&next, "2xv100:4,1xk80:2");
    state_learn(&next.state, &next.arena);
    works(rate_rows_read(store_reader(store), &next.state, &err));

    assert_int_equal(next.state.rates.kind_count, 1);
    kind = &next.state.rates.kinds[0];
    assert_string_equal(kind->name, "silent");
    assert_int_equal(kind->gpu_mib, 3000);
    assert_near(kind->busy[0], 0.25, 1e-6);
    assert_int_equal(kind->sent_gpus, 4);
    assert_int_equal(kind->sent[0].count, 7);
    assert_near(kind->sent[0].mean, 16, 1e-6);
    world_release(&next);
}

/* JSON has no infinities. */
static void numbers_in_a_line_are_numbers(void **state)
{
    struct observed observed = { 0 };
    job_id job = running_job(1);
    store_observe(store, observe, &observed);
    tell((struct event){
        .kind = EVENT_PROGRESS, .job = job, .steps = 0.1, .loss = NAN });
    assert_non_null(strstr(observed.text, "\"step\":0.10000000000000001}"));
    tell((struct event){ .kind = EVENT_LOST, .job = job, .steps = INFINITY });
    assert_non_null(strstr(observed.text, "\"step\":null}"));
}

/* What usage_rows.c says of user 5, and what there is. */
static void assert_usage(void)
{
    char want[40];
    works(store_commit(store, &err));
    snprintf(want, sizeof want, "%lld",
             (long long)usage_rows_bytes(store_usage(store), 5));
    assert_string_equal(ask("SELECT sum(1024 + length(CAST(request AS BLOB)) + "
                            "coalesce(length(CAST(env AS BLOB)), 0) + "
                            "coalesce(length(CAST(script AS BLOB)), 0)) "
                            "FROM job LEFT JOIN launch USING (id) WHERE uid = 5"),
                        want);
    assert_string_equal(ask("SELECT bytes FROM usage WHERE uid = 5"), want);
}

static void bytes_of_a_user_follow_the_rows(void **state)
{
    struct store_job row = { .id = w.id_next,
                             .uid = 5,
                             .user = "ada",
                             .request = "{\"name\":\"é\"}",
                             .env = "{\"KEY\":\"é\"}",
                             .script = "\"#!/bin/sh\"" };
    works(store_add_job(store, &row, &err));
    row = (struct store_job){
        .id = row.id + 1, .uid = 5, .user = "ada", .request = "{}", .env = "{}"
    };
    works(store_add_job(store, &row, &err));
    row.id++;
    row.rejected = "too large";
    works(store_add_job(store, &row, &err));
    assert_usage();
    uint64_t first = w.id_next;
    job_id jobs[] = { world_running(&w, (struct job){ .gpus = 1 }),
                      world_running(&w, (struct job){ .gpus = 1 }) };
    for (size_t i = 0; i < 2; i++) {
        end_job(jobs[i], (struct event){ .kind = EVENT_FINISHED });
        assert_usage(); /* without its environment */
    }
    works(store_retire(store, first, &err));
    assert_usage(); /* without its script */
    works(usage_rows_reduce(store_usage(store), 5, 1, &err));
    assert_usage();
    int64_t bytes = usage_rows_bytes(store_usage(store), 5);
    usage_rows_count(store_usage(store), 5, 7);
    assert_int_equal(usage_rows_bytes(store_usage(store), 5), bytes + 7);
    store_rollback(store);
    assert_usage();
}

/* Many pages, more than are gathered at once, are all there after a start. */
static void a_large_commit_is_read_again(void **state)
{
    char *text = malloc(300001);
    memset(text, 'x', 300000);
    text[300000] = '\0';
    for (uint64_t id = 1; id <= 20; id++) {
        text[0] = (char)('a' + id);
        struct store_job row = { .id = id, .user = "ada", .request = text };
        works(store_add_job(store, &row, &err));
    }
    works(store_commit(store, &err));
    open_again();
    for (uint64_t id = 1; id <= 20; id++) {
        text[0] = (char)('a' + id);
        assert_request(id, text);
    }
    free(text);
}

/* The first trouble is kept, the rest is not tried, and the commit says it. */
static void a_failure_is_returned_by_the_commit(void **state)
{
    struct store *twin = NULL;
    works(store_open(&twin, path, &err));
    store_attach(twin, &w.state);
    job_id job = running_job(1); /* event 1 */
    struct event event = { .kind = EVENT_LEVELLED, .job = job, .level = 1 };
    store_event(twin, &w.state.view, &event); /* event 1 again */
    store_event(twin, &w.state.view, &event);
    err.text[0] = '\0';
    assert_int_equal(store_commit(twin, &err), -EIO);
    assert_non_null(strstr(err.text, "UNIQUE constraint failed: event.seq"));
    assert_int_equal(store_commit(twin, NULL), -EIO);
    store_event(twin, &w.state.view, &event); /* marks the job as changed */
    store_rollback(twin);
    assert_int_equal(store_last_seq(twin), 1);
    store_event(twin, &w.state.view, &event);
    works(store_commit(twin, &err));
    store_close(twin);
    assert_string_equal(ask("SELECT count(*) FROM event"), "2");
}

/* --- live jobs and the ledger, read again ------------------------------------------- */

static int read_live(struct stored_job *kept)
{
    struct db_query *query = rows_select_live(store_reader(store));
    int r = rows_read_live(query, &w.cluster, &w.arena, kept, &err);
    db_finish(query);
    return r;
}

static void a_live_job_is_read_as_it_was_written(void **state)
{
    job_id job = running_job(3);
    world_pass(&w, SECONDS(8));
    tell(
        (struct event){ .kind = EVENT_PROGRESS, .job = job, .steps = 8, .loss = 0.25 });
    tell((struct event){ .kind = EVENT_PROGRESS, .job = job, .steps = 9, .loss = NAN });
    works(store_commit(store, &err));
    struct stored_job kept;
    assert_int_equal(read_live(&kept), 1);
    const struct job *was = world_job(&w, job);
    assert_int_equal(kept.job.state, JOB_RUNNING);
    assert_int_equal(kept.job.id, 1);
    assert_int_equal(kept.seat_count, 1);
    assert_int_equal(kept.seats[0].gpus, w.state.seats[was->seats.first].gpus);
    assert_int_equal(kept.next_count, 0);
    assert_string_equal(kept.user, "ada");
    struct db_query *losses = rows_select_losses(store_reader(store));
    double steps[4], values[4];
    assert_int_equal(rows_read_losses(losses, 1, steps, values, 4), 1);
    assert_true(steps[0] == 8 && values[0] == 0.25);
    db_finish(losses);
}

static void unreadable_rows_are_named_by_job(void **state)
{
    static const struct {
        const char *change, *says;
    } cases[] = {
        { "seats = 'here and there'", "its seats in the store are unreadable" },
        { "seats = '0:1:1:1 0:1'", "its seats in the store are unreadable" },
        { "next = '7'", "its seats in the store are unreadable" },
        { "promises = '1:0:3:4'", "its seats in the store are unreadable" },
        { "phase = 'asleep'", "its phase in the store is unknown" },
        { "phase = 'free'", "its phase in the store is unknown" },
    };
    job_id job = running_job(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sql[200];
        struct stored_job kept;
        snprintf(sql, sizeof sql, "UPDATE live SET %s", cases[i].change);
        meddle(sql);
        assert_int_equal(read_live(&kept), -EILSEQ);
        assert_int_equal(kept.job.id, 1);
        assert_string_equal(err.text, cases[i].says);
        tell((struct event){ .kind = EVENT_LEVELLED, .job = job, .level = 0 });
        works(store_commit(store, &err)); /* writes the row anew */
        assert_int_equal(read_live(&kept), 1);
    }
}

/* Types may go and come with the machine; service on the others stays. */
static void service_is_read_by_the_name_of_its_type(void **state)
{
    running_job(1);
    meddle("UPDATE live SET served = 'a100:5 k80:7 v10:9 nonsense v100:3', seats = ''");
    struct stored_job kept;
    assert_int_equal(read_live(&kept), 1);
    assert_int_equal(kept.served_ns[0], 3);
    assert_int_equal(kept.served_ns[1], 7);
    assert_int_equal(kept.seat_count, 0);
}

static void an_entry_of_the_ledger_is_read_as_it_was_written(void **state)
{
    struct ledger_entry entry = { .at_ns = 5,
                                  .victim = 1,
                                  .number = 2,
                                  .beneficiary_id = 9,
                                  .rule = RULE_TRIAL,
                                  .gpus = 4,
                                  .steps = 1.5,
                                  .rate_per_s = 2,
                                  .started_ns = 7,
                                  .shared_by = 1 };
    store_write_entry(store, &entry, 0, true);
    entry.victim = 2;
    entry.beneficiary_id = 0;
    entry.started_ns = -1;
    store_write_entry(store, &entry, 0, true);
    entry.victim = 3;
    store_write_entry(store, &entry, 12.5, false); /* closed: not to be restored */
    works(store_commit(store, &err));
    meddle("UPDATE ledger SET rule = 'whim' WHERE victim = 2");

    struct db_query *query = rows_select_open(store_reader(store));
    assert_int_equal(rows_read_entry(query, &entry, &err), 1);
    assert_int_equal(entry.beneficiary_id, 9);
    assert_int_equal(entry.rule, RULE_TRIAL);
    assert_int_equal(entry.started_ns, 7);
    assert_int_equal(rows_read_entry(query, &entry, &err), 1);
    assert_int_equal(entry.victim, 2);
    assert_int_equal(entry.beneficiary_id, 0);
    assert_int_equal(entry.rule, RULE_NONE);
    assert_int_equal(entry.started_ns, -1);
    assert_int_equal(rows_read_entry(query, &entry, &err), 0);
    db_finish(query);
    assert_string_equal(ask("SELECT wait_saved_s FROM ledger WHERE victim = 3"),
                        "12.5");
}

RUN_CASES(
    CASE(bytes_of_a_user_follow_the_rows), CASE(a_large_commit_is_read_again),
    CASE(what_is_committed_is_there_again),
    CASE(an_environment_is_kept_until_the_job_has_ended),
    CASE(what_is_not_committed_is_gone), CASE(a_store_of_a_newer_version_is_refused),
    CASE(a_foreign_database_is_refused), CASE(a_file_that_is_no_database_is_refused),
    CASE(failures_have_error_numbers), CASE(values_and_nulls_are_read_as_written),
    CASE(a_job_is_stored_as_submitted), CASE(a_job_ends_in_one_of_four_ways),
    CASE(the_id_of_an_ended_job_can_be_used_again),
    CASE(every_event_is_a_line_that_is_observed_as_well),
    CASE(some_events_are_not_stored), CASE(the_most_memory_of_a_gpu_is_kept),
    CASE(what_kinds_do_is_there_after_a_restart), CASE(numbers_in_a_line_are_numbers),
    CASE(a_failure_is_returned_by_the_commit),
    CASE(a_live_job_is_read_as_it_was_written), CASE(unreadable_rows_are_named_by_job),
    CASE(service_is_read_by_the_name_of_its_type),
    CASE(an_entry_of_the_ledger_is_read_as_it_was_written));
