/* routes_jobs.c - jobs: listed, submitted, shown, changed, cancelled, read. */
#include "daemon/routes_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/request.h"
#include "api/words.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json_write.h"
#include "base/json.h"
#include "daemon/records.h"
#include "daemon/submission.h"
#include "daemon/users.h"
#include "daemon/why.h"
#include "engine/engine.h"
#include "host/output_path.h"
#include "http/tail.h"
#include "http/target.h"
#include "store/db.h"
#include "store/store.h"

#define JOBS_AT_ONCE_MAX 10000
#define LIST_MAX 100000

/* ---- showing ---- */

/* Room for texts that one record points to. */
struct texts {
    struct buf placement, reason;
};

static void texts_init(struct texts *texts)
{
    buf_init(&texts->placement, 1 << 20);
    buf_init(&texts->reason, 4096);
}

static void texts_release(struct texts *texts)
{
    buf_release(&texts->placement);
    buf_release(&texts->reason);
}

/* As it stands now, for whoever asks. */
static void bring_up_to_date(struct routes *routes, const struct daemon_facts *facts,
                             const struct caller *caller, struct record *record,
                             struct texts *texts)
{
    record->words.private = !caller_may(caller, record->uid);
    job_id job = daemon_find(routes->daemon, record->words.id);
    if (job == JOB_NONE)
        return;
    record_enliven(record, facts, job, &texts->placement);
    if (job_holds_seats(&facts->engine->state.jobs[job]) || record->words.private)
        return;
    struct why_scene scene = { .engine = facts->engine,
                               .conditions = facts->conditions,
                               .now_ns = facts->now_ns };
    const char *token;
    char reason[240];
    why_brief(&scene, job, reason, sizeof reason, &token);
    buf_reset(&texts->reason);
    buf_text(&texts->reason, reason);
    record->words.reason = texts->reason.bytes;
}

/* "PENDING,RUNNING" as a set; false with a reply if one of them is no state. */
static bool read_states(const struct http_request *request,
                        struct record_filter *filter, struct http_reply *reply)
{
    const char *text = http_query(request, "state");
    while (text && *text) {
        size_t count = strcspn(text, ",");
        uint32_t state = records_state(text, count);
        if (!state) {
            struct error err;
            error_set(&err, 0, "state: there is no \"%.*s\"",
                      (int)(count < 40 ? count : 40), text);
            http_reply_error(reply, 400, "state", err.text);
            return false;
        }
        filter->states |= state;
        filter->ended = true;
        text += count + (text[count] == ',');
    }
    return true;
}

/* "3,17,4": jobs by their numbers; false with a reply if one of them is none. */
static bool read_ids(const struct http_request *request, struct record_filter *filter,
                     struct http_reply *reply)
{
    const char *text = http_query(request, "ids");
    filter->ids = text;
    filter->ended = filter->ended || text;
    while (text) {
        uint64_t id;
        size_t count = strcspn(text, ",");
        if (!target_id(text, count, &id)) {
            http_reply_error(reply, 400, "ids", "ids: want numbers of jobs, 3,17,4");
            return false;
        }
        text = text[count] ? text + count + 1 : NULL;
    }
    return true;
}

static bool read_filter(const struct http_request *request,
                        struct record_filter *filter, struct http_reply *reply)
{
    int64_t before = 0;
    *filter =
        (struct record_filter){ .since_ns = -1, .until_ns = -1, .limit = LIST_MAX };
    filter->user = http_query(request, "user");
    filter->name = http_query(request, "name");
    bool good = read_states(request, filter, reply) &&
                read_ids(request, filter, reply) &&
                read_flag(request, "history", &filter->newest_first, reply) &&
                read_time(request, "since", &filter->since_ns, reply) &&
                read_time(request, "until", &filter->until_ns, reply) &&
                read_count(request, "before", 1, INT64_MAX, &before, reply);
    if (good && filter->newest_first)
        filter->limit = 1000;
    filter->before = (uint64_t)before;
    filter->ended = filter->ended || filter->newest_first;
    return good && read_count(request, "limit", 1, LIST_MAX, &filter->limit, reply);
}

void write_jobs(struct routes *routes, const struct http_request *request,
                const struct record_filter *filter, const char *key, struct buf *body)
{
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    struct caller caller = caller_of(request);
    struct db_query *query = records_list(store_reader(facts.store), filter);
    struct record record;
    struct texts texts;
    texts_init(&texts);
    json_write_open(body, key, '[');
    while (records_next(query, &record)) {
        bring_up_to_date(routes, &facts, &caller, &record, &texts);
        words_job(body, NULL, &record.words);
        words_end(body);
    }
    json_write_close(body, ']');
    db_finish(query);
    texts_release(&texts);
}

static void list_jobs(struct routes *routes, const struct http_request *request,
                      uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct record_filter filter;
    if (!read_filter(request, &filter, reply))
        return;
    json_write_open(&reply->body, NULL, '{');
    write_jobs(routes, request, &filter, "jobs", &reply->body);
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    json_write_text_if(&reply->body, "trouble", facts.trouble);
    buf_text(&reply->body, "}\n");
}

struct db_query *find_record(struct routes *routes, struct daemon_facts *facts,
                             const struct caller *caller, uint64_t id,
                             struct record *record, struct http_reply *reply)
{
    struct error err;
    daemon_look(routes->daemon, facts);
    struct db_query *query = records_one(store_reader(facts->store), id);
    if (!records_next(query, record)) {
        db_finish(query);
        reply_failure(reply, error_set(&err, -ENOENT, "there is no job %" PRIu64, id),
                      &err);
        return NULL;
    }
    if (!caller_may(caller, record->uid)) {
        db_finish(query);
        reply_failure(reply,
                      error_set(&err, -EPERM, "job %" PRIu64 " is somebody else's", id),
                      &err);
        return NULL;
    }
    return query;
}

/* Where its output goes: our own place, or one of its own. */
struct place {
    char path[PATH_MAX];
    bool ours;
};

static int find_output(const struct daemon_facts *facts, const struct record *record,
                       struct arena *arena, bool errors, struct place *place,
                       struct error *err)
{
    struct request request;
    struct json *json;
    int r = json_parse(record->request, strlen(record->request), &json, err);
    if (r < 0)
        return r;
    r = request_read(&request, arena, json, err);
    json_free(json);
    if (r < 0)
        return r;
    request.launch.id = record->words.id;
    request.launch.array_id = record->words.array_id;
    const char *pattern = errors ? request.launch.err : request.launch.out;
    if (errors && !pattern)
        return error_set(err, -ENOENT, "its errors go where its output goes");
    place->ours = !pattern;
    if (pattern)
        return output_path(place->path, pattern, &request.launch, record->words.user,
                           err);
    snprintf(place->path, sizeof place->path, "%s/log/%" PRIu64 ".out",
             facts->setup->state_dir, record->words.id);
    return 0;
}

static void put_request(struct buf *body, const struct record *record)
{
    struct json *json;
    if (json_parse(record->request, strlen(record->request), &json, NULL) < 0)
        return;
    const struct json *command = json_get(json, "command");
    char *text = command ? json_text(command) : NULL;
    if (text)
        json_write_raw(body, "command", text);
    json_write_text_if(body, "cwd", json_as_text(json_get(json, "cwd")));
    free(text);
    json_free(json);
}

static void put_preemptions(struct buf *body, struct db *db, uint64_t id)
{
    struct db_query *query = records_ledger(db, (int64_t)id, 0, 1000);
    struct words_entry entry;
    bool any = false;
    while (records_next_entry(query, &entry)) {
        if (!any)
            json_write_open(body, "preempted_by", '[');
        any = true;
        words_preempted(body, &entry);
    }
    if (any)
        json_write_close(body, ']');
    db_finish(query);
}

static void write_job(struct routes *routes, const struct caller *caller, uint64_t id,
                      struct http_reply *reply)
{
    struct daemon_facts facts;
    struct record record;
    struct db_query *query = find_record(routes, &facts, caller, id, &record, reply);
    if (!query)
        return;
    struct arena arena;
    struct texts texts;
    struct place place;
    arena_init(&arena, 0);
    texts_init(&texts);
    bring_up_to_date(routes, &facts, caller, &record, &texts);
    if (find_output(&facts, &record, &arena, false, &place, NULL) == 0)
        record.words.output = place.path;
    words_job(&reply->body, NULL, &record.words);
    put_request(&reply->body, &record);
    if (record.words.preemptions > 0)
        put_preemptions(&reply->body, store_reader(facts.store), id);
    words_end(&reply->body);
    buf_text(&reply->body, "\n");
    texts_release(&texts);
    arena_release(&arena);
    db_finish(query);
}

static void show_job(struct routes *routes, const struct http_request *request,
                     uint64_t id, struct http_reply *reply)
{
    struct caller caller = caller_of(request);
    write_job(routes, &caller, id, reply);
}

static void explain_job(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    struct daemon_facts facts;
    struct record record;
    struct caller caller = caller_of(request);
    struct db_query *query = find_record(routes, &facts, &caller, id, &record, reply);
    if (!query)
        return;
    struct json *json = NULL;
    struct error err = { "" };
    int r = why_json(routes->daemon, id, &json, &err);
    if (r < 0)
        reply_failure(reply, r, &err);
    char *text = json ? json_text(json) : NULL;
    if (text) {
        buf_text(&reply->body, text);
        buf_text(&reply->body, "\n");
    }
    free(text);
    json_free(json);
    db_finish(query);
}

/* ---- submitting ---- */

static struct submission *submission_of(struct routes *routes)
{
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    return facts.submission;
}

/* Requests that came together, and as they are kept. */
struct batch {
    struct request *requests;
    const char **texts;
    uint64_t *ids;
    uint32_t count;
    bool several; /* they came as a list */
};

static void make_room(struct batch *batch, struct arena *arena, uint32_t count)
{
    batch->count = count;
    batch->requests = arena_array(arena, struct request, count);
    batch->texts = arena_array(arena, const char *, count);
    batch->ids = arena_array(arena, uint64_t, count);
}

static int read_one(struct batch *batch, uint32_t i, struct arena *arena,
                    const struct json *json, uint32_t limit, struct error *err)
{
    struct error inner = { "" };
    int r = request_read(&batch->requests[i], arena, json, &inner);
    if (r < 0)
        return error_set(err, r, "jobs[%u].%.290s", i, inner.text);
    struct json *written = NULL;
    if (limit > 0) {
        batch->requests[i].array_limit = limit;
        written = request_write(&batch->requests[i]);
    }
    char *text = json_text_exact(written ? written : json);
    batch->texts[i] = arena_text(arena, text);
    free(text);
    json_free(written);
    return 0;
}

static int read_several(struct batch *batch, struct arena *arena,
                        const struct json *json, struct error *err)
{
    const struct json *jobs = json_get(json, "jobs");
    int64_t limit = 0;
    const char *key;
    const struct json *value;
    for (void *at = NULL; (at = json_member(json, at, &key, &value));) {
        if (strcmp(key, "array_limit") == 0 &&
            (!json_as_count(value, &limit) || limit < 0 || limit > 1000000))
            return error_set(err, -EINVAL, "array_limit: want 0 to 1000000");
        if (strcmp(key, "jobs") != 0 && strcmp(key, "array_limit") != 0)
            return error_set(err, -EINVAL, "%.60s: there is no such field beside jobs",
                             key);
    }
    size_t count = json_count(jobs);
    if (!json_is_array(jobs) || count == 0 || count > JOBS_AT_ONCE_MAX)
        return error_set(err, -EINVAL, "jobs: want a list of 1 to %d jobs",
                         JOBS_AT_ONCE_MAX);
    batch->several = true;
    make_room(batch, arena, (uint32_t)count);
    for (uint32_t i = 0; i < count; i++) {
        int r = read_one(batch, i, arena, json_item(jobs, i), (uint32_t)limit, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_batch(struct batch *batch, const struct http_request *request,
                      struct error *err)
{
    struct json *json;
    *batch = (struct batch){ 0 };
    if (request->body_size == 0)
        return error_set(err, -EINVAL, "want a job as JSON");
    int r = json_parse(request->body, request->body_size, &json, err);
    if (r < 0)
        return r;
    if (json_get(json, "jobs")) {
        r = read_several(batch, request->arena, json, err);
    } else {
        make_room(batch, request->arena, 1);
        batch->texts[0] = request->body;
        r = request_read(&batch->requests[0], request->arena, json, err);
    }
    json_free(json);
    return r;
}

static void submit_jobs(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct batch batch;
    struct error err = { "" }, rejected = { "" };
    struct caller caller = caller_of(request);
    int r = read_batch(&batch, request, &err);
    if (r == 0)
        r = submission_submit(submission_of(routes), &caller, batch.requests,
                              batch.texts, batch.count, batch.ids, &rejected, &err);
    if (r < 0) {
        reply_failure(reply, r, &err);
        return;
    }
    for (uint32_t i = 0; i < batch.count; i++)
        map_put(&routes->owners, batch.ids[i], caller.uid);

    struct buf *body = &reply->body;
    json_write_open(body, NULL, '{');
    if (batch.several) {
        json_write_open(body, "ids", '[');
        for (uint32_t i = 0; i < batch.count; i++)
            json_write_count(body, NULL, (int64_t)batch.ids[i]);
        json_write_close(body, ']');
    } else {
        json_write_count(body, "id", (int64_t)batch.ids[0]);
    }
    if (*rejected.text)
        json_write_text(body, "rejected", rejected.text);
    buf_text(body, "}\n");
    reply->status = 201;
    reply->after_commit = true;
}

/* ---- changing and cancelling ---- */

/* Of a job that has ended: say so, rather than that it is unknown. */
static int say_ended(struct routes *routes, uint64_t id, int code, struct error *err)
{
    struct daemon_facts facts;
    struct record record;
    if (code != -ENOENT)
        return code;
    daemon_look(routes->daemon, &facts);
    struct db_query *query = records_one(store_reader(facts.store), id);
    if (records_next(query, &record))
        code = error_set(err, -EALREADY, "job %" PRIu64 " has ended: %s", id,
                         record.words.state);
    db_finish(query);
    return code;
}

static void finish_cancel(void *context, uint64_t id, struct http_reply *reply)
{
    struct routes *routes = context;
    struct daemon_facts facts;
    struct record record;
    daemon_look(routes->daemon, &facts);
    struct db_query *query = records_one(store_reader(facts.store), id);
    json_write_open(&reply->body, NULL, '{');
    json_write_count(&reply->body, "id", (int64_t)id);
    if (records_next(query, &record))
        json_write_text(&reply->body, "state", record.words.state);
    buf_text(&reply->body, "}\n");
    db_finish(query);
}

static void cancel_job(struct routes *routes, const struct http_request *request,
                       uint64_t id, struct http_reply *reply)
{
    struct error err = { "" };
    struct caller caller = caller_of(request);
    int r = submission_cancel(submission_of(routes), &caller, id, &err);
    if (r < 0) {
        r = say_ended(routes, id, r, &err);
        reply_failure(reply, r, &err);
        return;
    }
    reply->after_commit = true;
    reply->finish = finish_cancel;
    reply->finish_id = id;
}

struct wish {
    struct submission_change change;
    bool changes;
    bool says_hold, hold;
};

static int want_number(const char *key, const struct json *value, double min,
                       double max, double *ret_number, struct error *err)
{
    double number;
    if (!json_as_number(value, &number) || !(number >= min && number <= max))
        return error_set(err, -EINVAL, "%s: want a number, %g to %.10g", key, min, max);
    *ret_number = number;
    return 0;
}

static int read_wish_key(struct wish *wish, const char *key, const struct json *value,
                         struct error *err)
{
    struct submission_change *change = &wish->change;
    if (strcmp(key, "hold") == 0) {
        wish->says_hold = true;
        return json_as_flag(value, &wish->hold)
                   ? 0
                   : error_set(err, -EINVAL, "hold: want true or false");
    }
    wish->changes = true;
    if (strcmp(key, "class") == 0) {
        const char *class = json_as_text(value);
        if (!class || (strcmp(class, "te") != 0 && strcmp(class, "be") != 0))
            return error_set(err, -EINVAL, "class: want te or be");
        change->class = strcmp(class, "te") == 0 ? "te" : "be";
        return 0;
    }
    if (strcmp(key, "weight") == 0)
        return want_number(key, value, 1e-6, 1e6, &change->weight, err);
    if (strcmp(key, "deadline") == 0)
        return want_number(key, value, 0, 9e9, &change->deadline_s, err);
    if (strcmp(key, "grace_s") == 0)
        return want_number(key, value, 0, 7 * 86400, &change->grace_s, err);
    if (strcmp(key, "steps") == 0)
        return want_number(key, value, 0, 1e15, &change->steps, err);
    return error_set(err, -EINVAL, "%.60s: there is no such field", key);
}

static int read_wish(struct wish *wish, const struct http_request *request,
                     struct error *err)
{
    struct json *json;
    *wish = (struct wish){ .change = { NULL, NAN, NAN, NAN, NAN } };
    int r = json_parse(request->body, request->body_size, &json, err);
    if (r < 0)
        return r;
    if (!json_is_object(json))
        r = error_set(err, -EINVAL, "want an object");
    const char *key;
    const struct json *value;
    for (void *at = NULL; r == 0 && (at = json_member(json, at, &key, &value));)
        r = read_wish_key(wish, key, value, err);
    json_free(json);
    if (r == 0 && !wish->changes && !wish->says_hold)
        r = error_set(err, -EINVAL, "there is nothing to change in it");
    return r;
}

/* Who asked has been found to be allowed to. */
static void finish_change(void *context, uint64_t id, struct http_reply *reply)
{
    struct caller root = { .uid = 0 };
    write_job(context, &root, id, reply);
}

static void change_job(struct routes *routes, const struct http_request *request,
                       uint64_t id, struct http_reply *reply)
{
    struct wish wish;
    struct error err = { "" };
    struct caller caller = caller_of(request);
    int r = read_wish(&wish, request, &err);
    if (r == 0 && wish.says_hold)
        r = submission_hold(submission_of(routes), &caller, id, wish.hold, &err);
    if (r == 0 && wish.changes)
        r = submission_change(submission_of(routes), &caller, id, &wish.change, &err);
    if (r < 0) {
        r = say_ended(routes, id, r, &err);
        reply_failure(reply, r, &err);
        return;
    }
    reply->after_commit = true;
    reply->finish = finish_change;
    reply->finish_id = id;
}

/* ---- reading its output ---- */

static bool read_which(const struct http_request *request, bool *ret_errors,
                       struct http_reply *reply)
{
    const char *which = http_query(request, "stream");
    *ret_errors = which && strcmp(which, "err") == 0;
    if (!which || *ret_errors || strcmp(which, "out") == 0)
        return true;
    http_reply_error(reply, 400, "stream", "stream: want out or err");
    return false;
}

static void read_log(struct routes *routes, const struct http_request *request,
                     uint64_t id, struct http_reply *reply)
{
    bool errors, follow = false;
    int64_t offset = 0;
    if (!read_which(request, &errors, reply) ||
        !read_flag(request, "follow", &follow, reply) ||
        !read_count(request, "offset", -INT64_MAX, INT64_MAX, &offset, reply))
        return;
    struct daemon_facts facts;
    struct record record;
    struct caller caller = caller_of(request);
    struct db_query *query = find_record(routes, &facts, &caller, id, &record, reply);
    if (!query)
        return;
    struct place place;
    struct error err = { "" };
    users_load(facts.users, record.uid); /* known, unless its job ended long ago */
    int r = find_output(&facts, &record, request->arena, errors, &place, &err);
    if (r == 0) {
        struct tail_setup setup = { .path = place.path,
                                    .uid = record.uid,
                                    .gid = users_find(facts.users, record.uid).gid,
                                    .ours = place.ours,
                                    .job = id,
                                    .offset = offset,
                                    .follow = follow };
        r = tail_reply(routes->tails, &setup, reply, &err);
    }
    if (r < 0)
        reply_failure(reply, r == -EINVAL ? -EACCES : r, &err);
    db_finish(query);
}

const struct route job_routes[] = {
    { "GET", "/v1/jobs", "state user since until name limit before history ids",
      list_jobs },
    { "POST", "/v1/jobs", "", submit_jobs },
    { "GET", "/v1/jobs/{id}", "", show_job },
    { "PATCH", "/v1/jobs/{id}", "", change_job },
    { "DELETE", "/v1/jobs/{id}", "", cancel_job },
    { "GET", "/v1/jobs/{id}/why", "", explain_job },
    { "GET", "/v1/jobs/{id}/log", "stream offset follow", read_log },
    { 0 },
};
