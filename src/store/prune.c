/* prune.c - deleting what is old. */
#include "store/prune.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "store/db.h"
#include "store/store.h"
#include "store/usage_rows.h"

/* A job whose id was used again has another one, and its events have the old one
 * (store_retire()). */
#define ID_SPAN (INT64_C(1) << 32)

struct prune {
    struct store *store;
    struct db *db;
    struct db_query *find, *find_live, *script_bytes, *job_bytes, *drop_reports,
        *drop_script, *drop_others, *drop_events, *drop_ledger, *drop_pairs, *drop_job;
    struct prune_job last_job;  /* that prune_find_jobs() has found            */
    uint64_t last_id;           /* of all jobs, when it did                    */
    uint64_t kept_seq, kept_id; /* facts as they were written last; 0: not yet */
    int64_t history_from_ns;    /* likewise                                    */
};

/* --- beginning and end ----------------------------------------------------------------- */

struct prune *prune_new(struct store *store)
{
    struct prune *prune = memory_checked(calloc(1, sizeof *prune));
    struct db *db = store_writer(store);
    prune->store = store;
    prune->db = db;
    prune->find = db_prepare(db, "SELECT id, end_ns FROM job WHERE end_ns IS NOT NULL "
                                 "AND (end_ns, id) > (?1, ?2) AND end_ns < ?3 "
                                 "ORDER BY end_ns, id LIMIT ?4");
    prune->find_live = db_prepare(
        db,
        "SELECT 1 FROM job WHERE array_id = (SELECT array_id FROM job WHERE id = ?) "
        "AND array_id IS NOT NULL AND end_ns IS NULL LIMIT 1");
    prune->script_bytes =
        db_prepare(db, "SELECT uid, coalesce(length(CAST(env AS BLOB)), 0) + "
                       "coalesce(length(CAST(script AS BLOB)), 0) "
                       "FROM launch JOIN job USING (id) WHERE id = ?");
    prune->job_bytes = db_prepare(
        db, "SELECT uid, length(CAST(request AS BLOB)) FROM job WHERE id = ?");
    prune->drop_reports = db_prepare(
        db, "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE job = ?1 AND "
            "at_ns <= ?2 AND kind = 'progress' ORDER BY seq LIMIT ?3)");
    prune->drop_script = db_prepare(db, "DELETE FROM launch WHERE id = ?");
    prune->drop_others = db_prepare(
        db, "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE job IS NULL "
            "AND at_ns < ? ORDER BY at_ns LIMIT ?)");
    prune->drop_events = db_prepare(
        db, "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE job = ?1 AND "
            "at_ns <= ?2 ORDER BY seq LIMIT ?3)");
    prune->drop_ledger =
        db_prepare(db, "DELETE FROM ledger WHERE victim = ?1 AND at_ns <= ?2");
    prune->drop_pairs = db_prepare(
        db, "DELETE FROM shared WHERE (job = ?1 OR beside = ?1) AND from_ns <= ?2 AND "
            "to_ns >= 0");
    prune->drop_job =
        db_prepare(db, "DELETE FROM job WHERE id = ? AND end_ns IS NOT NULL");
    return prune;
}

void prune_free(struct prune *prune)
{
    if (!prune)
        return;
    struct db_query *all[] = { prune->find,         prune->find_live,
                               prune->script_bytes, prune->job_bytes,
                               prune->drop_reports, prune->drop_script,
                               prune->drop_others,  prune->drop_events,
                               prune->drop_ledger,  prune->drop_pairs,
                               prune->drop_job };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        db_finish(all[i]);
    free(prune);
}

/* --- pieces ------------------------------------------------------------------------------ */

/* Run a statement that deletes: how many rows it did. */
static int64_t delete_rows(struct prune *prune, struct db_query *query,
                           struct error *err)
{
    int r = db_run(query, err);
    return r < 0 ? r : db_changes(prune->db);
}

/* The user of a job that is to be deleted has so many bytes fewer: those of the query. */
static void count_bytes(struct prune *prune, struct db_query *query, uint64_t id,
                        int64_t besides)
{
    db_int(query, 1, (int64_t)id);
    if (db_next(query, NULL) == 1)
        usage_rows_count(store_usage(prune->store), (uint32_t)db_get_int(query, 0),
                         -(db_get_int(query, 1) + besides));
    db_reset(query);
}

static int64_t delete_script(struct prune *prune, uint64_t id, struct error *err)
{
    count_bytes(prune, prune->script_bytes, id, 0);
    db_int(prune->drop_script, 1, (int64_t)id);
    return delete_rows(prune, prune->drop_script, err);
}

static int64_t delete_row(struct prune *prune, uint64_t id, struct error *err)
{
    count_bytes(prune, prune->job_bytes, id, USAGE_RECORD_BYTES);
    db_int(prune->drop_job, 1, (int64_t)id);
    return delete_rows(prune, prune->drop_job, err);
}

/* The same for rows by a job's number, up to its end if another job has that number now. */
static int64_t delete_by_job(struct prune *prune, struct db_query *query,
                             const struct prune_job *job, uint32_t rows_max,
                             struct error *err)
{
    bool retired = (int64_t)job->id >= ID_SPAN;
    db_int(query, 1, (int64_t)job->id % ID_SPAN);
    db_int(query, 2, retired ? job->end_ns : INT64_MAX);
    if (rows_max)
        db_int(query, 3, rows_max);
    return delete_rows(prune, query, err);
}

/* The next PRUNE_JOBS_MAX at most; how many. */
static uint32_t find_ended(struct prune *prune, const struct prune_job *after,
                           int64_t before_ns, struct prune_job *ret_jobs)
{
    struct db_query *query = prune->find;
    uint32_t count = 0;
    db_int(query, 1, after->end_ns);
    db_int(query, 2, (int64_t)after->id);
    db_int(query, 3, before_ns);
    db_int(query, 4, PRUNE_JOBS_MAX);
    while (db_next(query, NULL) == 1)
        ret_jobs[count++] = (struct prune_job){ .id = (uint64_t)db_get_int(query, 0),
                                                .end_ns = db_get_int(query, 1) };
    return count;
}

static int set_number(struct store *store, const char *name, int64_t number,
                      struct error *err)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    return store_set_fact(store, name, text, err);
}

static int64_t read_number(struct store *store, const char *name, int64_t otherwise)
{
    char *text = store_fact(store, name);
    int64_t number = text ? strtoll(text, NULL, 10) : otherwise;
    free(text);
    return number;
}

/* --- reports and scripts ----------------------------------------------------------------- */

/* Up to which job this was done is kept in the database. */
static struct prune_job read_reports_done(struct prune *prune)
{
    struct prune_job job = { 0 };
    char *text = store_fact(prune->store, "reports_pruned");
    if (text)
        sscanf(text, "%" SCNd64 " %" SCNu64, &job.end_ns, &job.id);
    free(text);
    return job;
}

static int write_reports_done(struct prune *prune, const struct prune_job *job,
                              struct error *err)
{
    char text[48];
    snprintf(text, sizeof text, "%" PRId64 " %" PRIu64, job->end_ns, job->id);
    return store_set_fact(prune->store, "reports_pruned", text, err);
}

/* Of one job: how many, with one for having looked; 'ret_done': there are no more. */
static int64_t drop_reports_of(struct prune *prune, const struct prune_job *job,
                               uint32_t rows_max, bool *ret_done, struct error *err)
{
    int64_t count = delete_by_job(prune, prune->drop_reports, job, rows_max, err);
    *ret_done = count >= 0 && count < rows_max;
    if (!*ret_done)
        return count;
    int64_t scripts = delete_script(prune, job->id, err);
    return scripts < 0 ? scripts : count + 1;
}

int64_t prune_reports(struct prune *prune, int64_t before_ns, uint32_t rows_max,
                      struct error *err)
{
    struct prune_job jobs[PRUNE_JOBS_MAX];
    struct prune_job last = read_reports_done(prune);
    uint32_t found = find_ended(prune, &last, before_ns, jobs);
    int64_t count = 0;
    if (found == 0)
        return 0;
    store_note_remains(prune->store);
    for (uint32_t i = 0; i < found && count < rows_max; i++) {
        bool done = false;
        int64_t more =
            drop_reports_of(prune, &jobs[i], rows_max - (uint32_t)count, &done, err);
        if (more < 0)
            return more;
        count += more;
        if (done)
            last = jobs[i];
    }
    int r = write_reports_done(prune, &last, err);
    return r < 0 ? r : count;
}

/* --- jobs, and all that is left of them --------------------------------------------------- */

/* No number is used twice, also if the newest rows are deleted. */
static int keep_number(struct prune *prune, const char *name, uint64_t number,
                       uint64_t *kept, struct error *err)
{
    if (number == *kept)
        return 0;
    int r = set_number(prune->store, name, (int64_t)number, err);
    if (r == 0)
        *kept = number;
    return r;
}

static int keep_seq(struct prune *prune, struct error *err)
{
    return keep_number(prune, "last_seq", store_last_seq(prune->store),
                       &prune->kept_seq, err);
}

int64_t prune_events(struct prune *prune, int64_t before_ns, uint32_t rows_max,
                     struct error *err)
{
    db_int(prune->drop_others, 1, before_ns);
    db_int(prune->drop_others, 2, rows_max);
    int64_t count = delete_rows(prune, prune->drop_others, err);
    int r = count > 0 ? keep_seq(prune, err) : 0;
    return r < 0 ? r : count;
}

void prune_restart(struct prune *prune)
{
    prune->last_job = (struct prune_job){ 0 };
    prune->kept_seq = prune->kept_id = 0;
    prune->history_from_ns = 0;
}

/* Whether it is of an array of which a task lives. */
static bool has_live_task(struct prune *prune, uint64_t id)
{
    db_int(prune->find_live, 1, (int64_t)id);
    bool found = db_next(prune->find_live, NULL) == 1;
    db_reset(prune->find_live);
    return found;
}

bool prune_find_jobs(struct prune *prune, int64_t before_ns, struct prune_job *ret_jobs,
                     uint32_t *ret_count)
{
    uint32_t found = find_ended(prune, &prune->last_job, before_ns, ret_jobs);
    *ret_count = 0;
    if (found == 0)
        return false;
    prune->last_job = ret_jobs[found - 1];
    prune->last_id = store_last_id(prune->store);
    for (uint32_t i = 0; i < found; i++)
        if (!has_live_task(prune, ret_jobs[i].id))
            ret_jobs[(*ret_count)++] = ret_jobs[i];
    return true;
}

/* Its row and what is kept beside it, when its events are gone. */
static int64_t drop_job(struct prune *prune, const struct prune_job *job,
                        int64_t before_ns, struct error *err)
{
    int r = keep_seq(prune, err);
    if (r == 0)
        r = keep_number(prune, "last_id", prune->last_id, &prune->kept_id, err);
    if (r == 0 && before_ns != prune->history_from_ns)
        r = set_number(prune->store, "history_from_ns", before_ns, err);
    if (r < 0)
        return r;
    prune->history_from_ns = before_ns;
    int64_t entries = delete_by_job(prune, prune->drop_ledger, job, 0, err);
    int64_t pairs =
        entries < 0 ? entries : delete_by_job(prune, prune->drop_pairs, job, 0, err);
    int64_t scripts = pairs < 0 ? pairs : delete_script(prune, job->id, err);
    int64_t rows = scripts < 0 ? scripts : delete_row(prune, job->id, err);
    return rows < 0 ? rows : entries + pairs + scripts + rows;
}

int64_t prune_delete_job(struct prune *prune, const struct prune_job *job,
                         int64_t before_ns, uint32_t rows_max, struct error *err)
{
    store_note_remains(prune->store);
    int64_t count = delete_by_job(prune, prune->drop_events, job, rows_max, err);
    if (count < 0 || count == rows_max)
        return count;
    int64_t more = drop_job(prune, job, before_ns, err);
    return more < 0 ? more : count;
}

/* --- what is said of them ----------------------------------------------------------------- */

int64_t prune_history_from(struct store *store)
{
    return read_number(store, "history_from_ns", -1);
}

static bool is_kept(struct store *store, uint64_t id)
{
    struct db_query *query =
        db_prepare(store_writer(store), "SELECT 1 FROM job WHERE id = ?");
    db_int(query, 1, (int64_t)id);
    bool kept = db_next(query, NULL) == 1;
    db_finish(query);
    return kept;
}

int prune_explain_absent(struct store *store, uint64_t id, bool consecutive,
                         struct error *err)
{
    char day[40] = "";
    int64_t from_ns = prune_history_from(store);
    time_t from = (time_t)(from_ns / NS_PER_S);
    struct tm parts;
    if (is_kept(store, id))
        return error_set(err, -ENOENT, "job %" PRIu64 " has ended", id);
    if (from_ns < 0 || id == 0 || id > store_last_id(store))
        return error_set(err, -ENOENT, "there is no job %" PRIu64, id);
    strftime(day, sizeof day, "%Y-%m-%d %H:%M", localtime_r(&from, &parts));
    return error_set(err, -ENOENT,
                     consecutive
                         ? "job %" PRIu64 " ended and is no longer kept; history goes "
                           "back to %s"
                         : "there is no job %" PRIu64 "; history goes back to %s",
                     id, day);
}
