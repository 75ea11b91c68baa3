/*
 * bulk_cancel.c - many jobs cancelled by one request: by number, user, name and state.
 *
 * All of them become events of one pass, and so one commit.  The last job comes first: a
 * list of start conditions is then shortened from its end.
 */
#include "daemon/routes/bulk_cancel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/json_write.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/scheduler.h"
#include "daemon/submission.h"
#include "daemon/users.h"
#include "http/target.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

#define SQL_MAX 512

static const char *const live_states[] = { "PENDING", "RUNNING", "STOPPING", "HELD" };

#define LIVE_STATES (sizeof live_states / sizeof live_states[0])

/* --- reading a request -------------------------------------------------------------- */

static int add_range(struct cancel_filter *filter, struct arena *arena, uint64_t from,
                     uint64_t to, struct error *err)
{
    if (to < from || to - from >= CANCEL_IDS_MAX - filter->id_count)
        return error_set(err, -EINVAL,
                         "ids: want numbers or ranges such as \"7-9\", %d jobs at most",
                         CANCEL_IDS_MAX);
    if (!filter->ids)
        filter->ids = arena_array(arena, uint64_t, CANCEL_IDS_MAX);
    for (uint64_t id = from; id <= to; id++)
        filter->ids[filter->id_count++] = id;
    return 0;
}

/* 5, or "7-9". */
static int read_id(struct cancel_filter *filter, struct arena *arena,
                   const struct json *value, struct error *err)
{
    int64_t number = 0;
    uint64_t from = 1, to = 0;
    const char *text = json_as_text(value);
    if (json_as_count(value, &number) && number > 0)
        return add_range(filter, arena, (uint64_t)number, (uint64_t)number, err);
    size_t count = text ? strcspn(text, "-") : 0;
    bool good = text && target_id(text, count, &from);
    if (good && text[count])
        good = target_id(text + count + 1, strlen(text + count + 1), &to);
    else
        to = from;
    return add_range(filter, arena, good ? from : 1, good ? to : 0, err);
}

static int compare_ids(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static int read_ids(struct cancel_filter *filter, struct arena *arena,
                    const struct json *list, struct error *err)
{
    int r = json_is_array(list) && json_count(list) > 0
                ? 0
                : error_set(err, -EINVAL, "ids: want a list of numbers and ranges");
    for (size_t i = 0; r == 0 && i < json_count(list); i++)
        r = read_id(filter, arena, json_item(list, i), err);
    if (r < 0)
        return r;
    qsort(filter->ids, filter->id_count, sizeof *filter->ids, compare_ids);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < filter->id_count; i++)
        if (kept == 0 || filter->ids[kept - 1] != filter->ids[i])
            filter->ids[kept++] = filter->ids[i];
    filter->id_count = kept;
    return 0;
}

/* "PENDING,HELD" as bits of 'live_states'. */
static int read_states(struct cancel_filter *filter, const char *text,
                       struct error *err)
{
    while (text && *text) {
        size_t count = strcspn(text, ",");
        uint32_t known = filter->states;
        for (uint32_t i = 0; i < LIVE_STATES; i++)
            if (strlen(live_states[i]) == count &&
                strncmp(live_states[i], text, count) == 0)
                filter->states |= 1u << i;
        if (filter->states == known)
            break;
        text += count + (text[count] == ',');
    }
    if (filter->states && text && !*text)
        return 0;
    return error_set(err, -EINVAL,
                     "state: want PENDING, RUNNING, STOPPING or HELD, or several: "
                     "PENDING,HELD");
}

static int read_text(const char **ret_text, struct arena *arena, const char *key,
                     const struct json *value, struct error *err)
{
    const char *text = json_as_text(value);
    if (!text || !*text)
        return error_set(err, -EINVAL, "%s: want a text", key);
    *ret_text = arena_text(arena, text);
    return 0;
}

static int read_key(struct cancel_filter *filter, struct arena *arena, const char *key,
                    const struct json *value, struct error *err)
{
    if (strcmp(key, "ids") == 0)
        return read_ids(filter, arena, value, err);
    if (strcmp(key, "user") == 0)
        return read_text(&filter->user, arena, key, value, err);
    if (strcmp(key, "name") == 0)
        return read_text(&filter->name, arena, key, value, err);
    if (strcmp(key, "state") == 0)
        return read_states(filter, json_as_text(value), err);
    if (strcmp(key, "all") == 0)
        return json_as_flag(value, &filter->all)
                   ? 0
                   : error_set(err, -EINVAL, "all: want true or false");
    return error_set(
        err, -EINVAL,
        "%.60s: there is no such field; want ids, user, name, state or all", key);
}

int cancel_filter_read(struct cancel_filter *filter, struct arena *arena,
                       const char *text, size_t size, struct error *err)
{
    struct json *json;
    *filter = (struct cancel_filter){ 0 };
    int r = json_parse(text, size, &json, err);
    if (r < 0)
        return r;
    if (!json_is_object(json))
        r = error_set(err, -EINVAL, "want an object");
    const char *key;
    const struct json *value;
    for (void *at = NULL; r == 0 && (at = json_member(json, at, &key, &value));)
        r = read_key(filter, arena, key, value, err);
    json_free(json);
    if (r == 0 && !cancel_filter_selects(filter) && !filter->ids && !filter->all)
        r = error_set(err, -EINVAL,
                      "want ids, user, name or state, or all: true for every job");
    return r;
}

bool cancel_filter_selects(const struct cancel_filter *filter)
{
    return filter->user || filter->name || filter->states;
}

/* --- selecting jobs ----------------------------------------------------------------- */

static void add_states(struct buf *sql, uint32_t states)
{
    const char *before = " AND state IN (";
    for (uint32_t i = 0; i < LIVE_STATES; i++) {
        if (!(states >> i & 1))
            continue;
        buf_print(sql, "%s'%s'", before, live_states[i]);
        before = ",";
    }
    buf_text(sql, ")");
}

/* Live jobs that the filter selects, the last one first; of 'uid' unless it is NULL. */
static struct db_query *select_jobs(struct db *db, const struct cancel_filter *filter,
                                    const uint32_t *uid)
{
    struct buf sql;
    buf_init(&sql, SQL_MAX);
    buf_text(&sql, "SELECT id FROM job WHERE id IN (SELECT id FROM live)");
    if (uid)
        buf_text(&sql, " AND uid = ?1");
    if (filter->user)
        buf_text(&sql, " AND user = ?2");
    if (filter->name)
        buf_text(&sql, " AND name GLOB ?3");
    if (filter->states)
        add_states(&sql, filter->states);
    buf_text(&sql, " ORDER BY id DESC");
    buf_add(&sql, "", 1);
    struct db_query *query = db_prepare(db, sql.bytes);
    buf_release(&sql);
    if (uid)
        db_int(query, 1, *uid);
    if (filter->user)
        db_text(query, 2, filter->user);
    if (filter->name)
        db_text(query, 3, filter->name);
    return query;
}

static bool has_id(const struct cancel_filter *filter, uint64_t id)
{
    return !filter->ids || bsearch(&id, filter->ids, filter->id_count,
                                   sizeof *filter->ids, compare_ids);
}

/* --- cancelling --------------------------------------------------------------------- */

/* What became of one job: its state, or why it was refused. */
struct cancel_outcome {
    uint64_t id;
    const char *state, *refused;
};

/* One request under way. */
struct cancellation {
    struct scheduler *scheduler;
    struct caller caller;
    struct arena *arena;
    struct db_query *ended;          /* the state of a job that has ended */
    struct cancel_outcome *outcomes; /* the last job first                */
    uint32_t outcome_count, outcome_room;
    uint32_t count; /* of jobs that are cancelled */
};

/* The state it will be in when the pass is on disk. */
static const char *next_state(const struct job *job)
{
    if (job->state == JOB_WAITING || job->state == JOB_HELD)
        return "CANCELLED";
    return job_holds_seats(job) ? "STOPPING" : rows_state(job);
}

static struct cancel_outcome *add_outcome(struct cancellation *work, uint64_t id)
{
    work->outcomes = grow_array(work->outcomes, &work->outcome_room,
                                work->outcome_count + 1, sizeof *work->outcomes);
    struct cancel_outcome *outcome = &work->outcomes[work->outcome_count++];
    *outcome = (struct cancel_outcome){ .id = id };
    return outcome;
}

/* Of a job that has ended: say so, rather than that it is unknown. */
static void say_ended(struct cancellation *work, uint64_t id, struct error *err)
{
    db_int(work->ended, 1, (int64_t)id);
    if (db_next(work->ended, NULL) == 1)
        error_set(err, 0, "job %" PRIu64 " has ended: %s", id,
                  db_get_text(work->ended, 0));
    db_reset(work->ended);
}

static void cancel_job(struct cancellation *work, uint64_t id)
{
    struct error err = { "" };
    job_id job = JOB_NONE;
    struct cancel_outcome *outcome = add_outcome(work, id);
    int r = submission_find_job(work->scheduler, &work->caller, id, &job, &err);
    if (r < 0) {
        if (r == -ENOENT)
            say_ended(work, id, &err);
        outcome->refused = arena_text(work->arena, err.text);
        return;
    }
    outcome->state = next_state(&work->scheduler->engine.state.jobs[job]);
    scheduler_add_event(work->scheduler, EVENT_CANCELLED, job)->why =
        submission_cancel_reason(&work->caller, work->scheduler->jobs[job].uid);
    work->count++;
}

static void cancel_selected(struct cancellation *work,
                            const struct cancel_filter *filter)
{
    struct error err;
    bool admin = caller_check_admin(&work->caller, &err) == 0;
    struct db_query *query = select_jobs(store_reader(work->scheduler->store), filter,
                                         admin ? NULL : &work->caller.uid);
    while (db_next(query, NULL) == 1) {
        uint64_t id = (uint64_t)db_get_int(query, 0);
        if (has_id(filter, id) && scheduler_find(work->scheduler, id) != JOB_NONE)
            cancel_job(work, id);
    }
    db_finish(query);
}

/* Only an administrator names another user. */
static int check_user(struct cancellation *work, const struct cancel_filter *filter,
                      struct error *err)
{
    struct user own = users_find(work->scheduler->users, work->caller.uid);
    struct error inner;
    if (!filter->user || strcmp(own.name, filter->user) == 0 ||
        caller_check_admin(&work->caller, &inner) == 0)
        return 0;
    return error_set(err, -EPERM,
                     "user: only an administrator cancels the jobs of another user");
}

/* The jobs that were cancelled, or those that were refused: in the order of their ids. */
static void write_outcomes(const struct cancellation *work, struct buf *body,
                           const char *key, bool refused)
{
    json_write_open(body, key, '[');
    for (uint32_t i = work->outcome_count; i-- > 0;) {
        const struct cancel_outcome *outcome = &work->outcomes[i];
        if ((outcome->refused != NULL) != refused)
            continue;
        json_write_open(body, NULL, '{');
        json_write_count(body, "id", (int64_t)outcome->id);
        json_write_text_if(body, "state", outcome->state);
        json_write_text_if(body, "error", outcome->refused);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
}

static void cancel_matching(struct cancellation *work,
                            const struct cancel_filter *filter,
                            struct http_reply *reply)
{
    work->ended = db_prepare(store_reader(work->scheduler->store),
                             "SELECT state FROM job WHERE id = ?");
    if (filter->ids && !cancel_filter_selects(filter))
        for (uint32_t i = filter->id_count; i-- > 0;)
            cancel_job(work, filter->ids[i]);
    else
        cancel_selected(work, filter);
    json_write_open(&reply->body, NULL, '{');
    json_write_count(&reply->body, "count", work->count);
    write_outcomes(work, &reply->body, "jobs", false);
    write_outcomes(work, &reply->body, "refused", true);
    buf_text(&reply->body, "}\n");
    reply->after_commit = work->count > 0;
    db_finish(work->ended);
    free(work->outcomes);
}

static void cancel_jobs(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_view facts;
    struct cancel_filter filter;
    struct error err = { "" };
    daemon_view_of(routes->daemon, &facts);
    struct cancellation work = { .scheduler = facts.scheduler,
                                 .caller = routes_caller(request),
                                 .arena = request->arena };
    int r = cancel_filter_read(&filter, request->arena, request->body,
                               request->body_size, &err);
    if (r == 0)
        r = scheduler_check_open(work.scheduler, &err);
    if (r == 0)
        r = check_user(&work, &filter, &err);
    if (r == 0)
        cancel_matching(&work, &filter, reply);
    else
        routes_fail(reply, r, &err);
}

const struct route bulk_cancel_routes[] = {
    { "POST", "/v1/jobs/cancel", SCOPES_SUBMIT, "", cancel_jobs },
    { 0 },
};
