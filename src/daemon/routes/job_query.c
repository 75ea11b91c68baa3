/*
 * job_query.c - jobs as users see them: listed, shown, explained, their output read.
 *
 * What the store keeps of a job is brought up to date from the engine while it lives.  Queries
 * see what is committed.
 */
#include "daemon/routes/job_query.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/request.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "daemon/rates.h"
#include "daemon/routes/forecast.h"
#include "daemon/routes/pair_figures.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/users.h"
#include "daemon/scheduler.h"
#include "daemon/why.h"
#include "engine/engine.h"
#include "executor/executor.h"
#include "host/output_path.h"
#include "http/tail.h"
#include "http/target.h"
#include "model/state_rates.h"
#include "store/db.h"
#include "store/prune.h"
#include "store/rows.h"
#include "store/store.h"

#define LIST_MAX 100000

static const char *const states[] = { "PENDING",   "RUNNING", "STOPPING",  "HELD",
                                      "COMPLETED", "FAILED",  "CANCELLED", "REJECTED" };

#define STATES (sizeof states / sizeof states[0])
#define LIVE_STATES 4 /* the first so many */

static_assert(JOB_STATES_ENDED == ((1u << STATES) - 1) >> LIVE_STATES << LIVE_STATES,
              "the states that have ended are the rest");

static uint32_t read_state(const char *name, size_t count)
{
    for (uint32_t i = 0; i < STATES; i++)
        if (strlen(states[i]) == count && strncmp(states[i], name, count) == 0)
            return 1u << i;
    return 0;
}

/* ---- jobs ---- */

#define COLUMNS \
    "id, uid, user, name, class, state, reason, gpus, types, entity, array_id, " \
    "array_index, placement, attempt, preemptions, exit_code, submit_ns, start_ns, " \
    "end_ns, waited_ns, served_ns, step, steps, rate_per_s, loss"

/* In the order of COLUMNS. */
enum {
    ID,
    UID,
    USER,
    NAME,
    CLASS,
    STATE,
    REASON,
    GPUS,
    TYPES,
    ENTITY,
    ARRAY_ID,
    ARRAY_INDEX,
    PLACEMENT,
    ATTEMPT,
    PREEMPTIONS,
    EXIT_CODE,
    SUBMIT,
    START,
    END,
    WAITED,
    SERVED,
    STEP,
    STEPS,
    RATE,
    LOSS,
    REQUEST
};

static void add_states(struct buf *sql, uint32_t set)
{
    buf_text(sql, " AND state IN (");
    const char *comma = "";
    for (uint32_t i = 0; i < STATES; i++) {
        if (!(set >> i & 1))
            continue;
        buf_print(sql, "%s'%s'", comma, states[i]);
        comma = ",";
    }
    buf_text(sql, ")");
}

static void write_sql(struct buf *sql, const struct job_filter *filter)
{
    bool live = !filter->ended || (filter->states && !(filter->states >> LIVE_STATES));
    buf_text(sql, "SELECT " COLUMNS ", NULL FROM job WHERE ");
    buf_text(sql, live ? "id IN (SELECT id FROM live)" : "1");
    if (filter->states)
        add_states(sql, filter->states);
    if (filter->user)
        buf_text(sql, " AND user = ?1");
    if (filter->name)
        buf_text(sql, " AND name = ?2");
    if (filter->since_ns >= 0)
        buf_text(sql, " AND submit_ns >= ?3");
    if (filter->until_ns >= 0)
        buf_text(sql, " AND submit_ns <= ?4");
    if (filter->before)
        buf_text(sql, " AND id < ?5");
    if (filter->after)
        buf_text(sql, " AND id > ?7");
    if (filter->ids)
        buf_print(sql, " AND id IN (%s)", filter->ids);
    buf_print(sql, " ORDER BY id %s LIMIT ?6", filter->newest_first ? "DESC" : "ASC");
}

static struct db_query *select_jobs(struct db *db, const struct job_filter *filter)
{
    struct buf sql;
    buf_init(&sql, 4096 + (filter->ids ? strlen(filter->ids) : 0));
    write_sql(&sql, filter);
    struct db_query *query = db_prepare_once(db, sql.bytes);
    buf_release(&sql);
    if (!query)
        return NULL;
    if (filter->user)
        db_text(query, 1, filter->user);
    if (filter->name)
        db_text(query, 2, filter->name);
    if (filter->since_ns >= 0)
        db_int(query, 3, filter->since_ns);
    if (filter->until_ns >= 0)
        db_int(query, 4, filter->until_ns);
    if (filter->before)
        db_int(query, 5, (int64_t)filter->before);
    if (filter->after)
        db_int(query, 7, (int64_t)filter->after);
    db_int(query, 6, filter->limit);
    return query;
}

struct db_query *job_query_one(struct db *db, uint64_t id)
{
    struct db_query *query =
        db_prepare_once(db, "SELECT " COLUMNS ", request FROM job WHERE id = ?");
    if (query)
        db_int(query, 1, (int64_t)id);
    return query;
}

static int64_t int_or(struct db_query *query, int column, int64_t otherwise)
{
    return db_is_null(query, column) ? otherwise : db_get_int(query, column);
}

bool job_query_next(struct db_query *query, struct job_record *record)
{
    if (!query || db_next(query, NULL) != 1)
        return false;
    *record = (struct job_record){
        .uid = (uint32_t)db_get_int(query, UID),
        .request = db_get_text(query, REQUEST),
        .words = { .id = (uint64_t)db_get_int(query, ID),
                   .name = db_get_text(query, NAME),
                   .user = db_get_text(query, USER),
                   .class = db_get_text(query, CLASS),
                   .state = db_get_text(query, STATE),
                   .reason = db_get_text(query, REASON),
                   .types = db_get_text(query, TYPES),
                   .entity = db_get_text(query, ENTITY),
                   .gpus = (uint32_t)db_get_int(query, GPUS),
                   .placement = db_get_text(query, PLACEMENT),
                   .attempt = int_or(query, ATTEMPT, -1),
                   .preemptions = (uint32_t)db_get_int(query, PREEMPTIONS),
                   .has_exit_code = !db_is_null(query, EXIT_CODE),
                   .exit_code = (int)int_or(query, EXIT_CODE, 0),
                   .submit_ns = db_get_int(query, SUBMIT),
                   .start_ns = int_or(query, START, -1),
                   .end_ns = int_or(query, END, -1),
                   .waited_ns = db_get_int(query, WAITED),
                   .served_ns = db_get_int(query, SERVED),
                   .array_id = (uint64_t)int_or(query, ARRAY_ID, 0),
                   .array_index = (uint32_t)int_or(query, ARRAY_INDEX, 0),
                   .step = db_get_real(query, STEP),
                   .steps = db_get_real(query, STEPS),
                   .rate_per_s = db_get_real(query, RATE),
                   .loss = db_get_real(query, LOSS) },
    };
    return true;
}

static void update_from_engine(struct job_record *record,
                               const struct daemon_view *facts, job_id id,
                               struct buf *placement)
{
    const struct view *view = &facts->engine->state.view;
    const struct job *job = &view->jobs[id];
    struct api_job *words = &record->words;
    int64_t now_ns = facts->now_ns > job->since_ns ? facts->now_ns : job->since_ns;

    words->state = rows_state(job);
    words->class = job->class == CLASS_TE ? "te" : "be";
    words->attempt = job->attempt == UINT32_MAX ? -1 : (int64_t)job->attempt;
    words->preemptions = job->preemptions;
    words->start_ns = job->first_start_ns;
    words->waited_ns =
        job->waited_ns + (job_holds_seats(job) ? 0 : now_ns - job->since_ns);
    words->served_ns = job_served_ns(job, now_ns);
    bool paced = state_knows_rate(&facts->engine->state, id);
    words->step = paced ? job_steps(job, now_ns) : job->steps;
    words->steps = job->steps_total;
    words->rate_per_s = job_runs(job) && paced ? job->rate_per_s : NAN;
    if (words->steps > 0 && words->step > words->steps)
        words->step = words->steps; /* it has more to do than was declared */
    words->loss = job->loss;
    pair_figures_set_partner(facts, id, words);
    words->placement = NULL;
    if (job->seats.count > 0) {
        buf_reset(placement);
        rows_placement(placement, view, &job->seats);
        words->placement = placement->bytes;
    }
}

/* ---- the ledger ---- */

/* Preemptions, newest first; of one victim unless 0. */
static struct db_query *select_entries(struct db *db, int64_t victim, int64_t since_ns,
                                       int64_t limit)
{
    struct db_query *query = db_prepare_once(
        db, victim ? "SELECT at_ns, victim, newcomer, rule, gpus, predicted_cost_ns, "
                     "pause_ns, load_ns, redo_ns, wait_saved_s, open FROM ledger "
                     "WHERE at_ns >= ?1 AND victim = ?3 ORDER BY at_ns DESC LIMIT ?2"
                   : "SELECT at_ns, victim, newcomer, rule, gpus, predicted_cost_ns, "
                     "pause_ns, load_ns, redo_ns, wait_saved_s, open FROM ledger "
                     "WHERE at_ns >= ?1 ORDER BY at_ns DESC, victim DESC LIMIT ?2");
    if (!query)
        return NULL;
    db_int(query, 1, since_ns);
    db_int(query, 2, limit);
    if (victim)
        db_int(query, 3, victim);
    return query;
}

static bool next_entry(struct db_query *query, struct api_entry *entry)
{
    if (!query || db_next(query, NULL) != 1)
        return false;
    *entry = (struct api_entry){
        .at_ns = db_get_int(query, 0),
        .victim = (uint64_t)db_get_int(query, 1),
        .beneficiary = (uint64_t)int_or(query, 2, 0),
        .rule = db_get_text(query, 3),
        .gpus = (uint32_t)db_get_int(query, 4),
        .predicted_cost_ns = db_get_int(query, 5),
        .pause_ns = db_get_int(query, 6),
        .load_ns = db_get_int(query, 7),
        .redo_ns = db_get_int(query, 8),
        .wait_saved_s = db_get_real(query, 9),
        .open = db_get_int(query, 10) != 0,
    };
    return true;
}

void job_query_write_ledger(struct routes *routes, int64_t job, int64_t since_ns,
                            int64_t limit, struct buf *body)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    struct db_query *query =
        select_entries(store_reader(facts.store), job, since_ns, limit);
    struct api_entry entry;
    json_write_open(body, "entries", '[');
    while (next_entry(query, &entry))
        api_write_entry(body, &entry);
    db_finish(query);
    json_write_close(body, ']');
    pair_figures_write_totals(&facts, body);
}

static void show_ledger(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    int64_t job = 0, limit = 1000, since_ns = 0;
    if (!routes_read_count(request, "job", 1, INT64_MAX, &job, reply) ||
        !routes_read_count(request, "limit", 1, 100000, &limit, reply) ||
        !routes_read_time(request, "since", &since_ns, reply))
        return;
    json_write_open(&reply->body, NULL, '{');
    job_query_write_ledger(routes, job, since_ns, limit, &reply->body);
    buf_text(&reply->body, "}\n");
}

/* ---- showing ---- */

/* Room for texts that one record points to. */
struct record_texts {
    struct buf placement, reason;
};

static void texts_init(struct record_texts *texts)
{
    buf_init(&texts->placement, 1 << 20);
    buf_init(&texts->reason, 4096);
}

static void texts_release(struct record_texts *texts)
{
    buf_release(&texts->placement);
    buf_release(&texts->reason);
}

/* As the job stands now, as far as the caller may see it. */
static void update_record(struct routes *routes, const struct daemon_view *facts,
                          const struct caller *caller, struct job_record *record,
                          struct record_texts *texts)
{
    record->words.private = !caller_may(caller, record->uid);
    job_id job = daemon_find(routes->daemon, record->words.id);
    if (job == JOB_NONE)
        return;
    update_from_engine(record, facts, job, &texts->placement);
    if (job_holds_seats(&facts->engine->state.jobs[job]) || record->words.private)
        return;
    struct why_scene scene = { .engine = facts->engine,
                               .conditions = facts->conditions,
                               .now_ns = facts->now_ns,
                               .refusal = scheduler_refusal(facts->scheduler, job) };
    const char *token;
    char reason[240];
    why_brief(&scene, job, reason, sizeof reason, &token);
    buf_reset(&texts->reason);
    buf_text(&texts->reason, reason);
    record->words.reason = texts->reason.bytes;
}

/* "PENDING,RUNNING" as a set; false with a reply if one of them is no state. */
static bool read_states(const struct http_request *request, struct job_filter *filter,
                        struct http_reply *reply)
{
    const char *text = http_query(request, "state");
    while (text && *text) {
        size_t count = strcspn(text, ",");
        uint32_t state = read_state(text, count);
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
static bool read_ids(const struct http_request *request, struct job_filter *filter,
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

static bool read_filter(const struct http_request *request, struct job_filter *filter,
                        struct http_reply *reply)
{
    int64_t before = 0, after = 0;
    *filter = (struct job_filter){ .since_ns = -1, .until_ns = -1, .limit = LIST_MAX };
    filter->user = http_query(request, "user");
    filter->name = http_query(request, "name");
    bool good = read_states(request, filter, reply) &&
                read_ids(request, filter, reply) &&
                routes_read_flag(request, "history", &filter->newest_first, reply) &&
                routes_read_time(request, "since", &filter->since_ns, reply) &&
                routes_read_time(request, "until", &filter->until_ns, reply) &&
                routes_read_count(request, "before", 1, INT64_MAX, &before, reply) &&
                routes_read_count(request, "after", 0, INT64_MAX, &after, reply);
    if (good && filter->newest_first)
        filter->limit = 1000;
    filter->before = (uint64_t)before;
    filter->after = (uint64_t)after;
    filter->ended = filter->ended || filter->newest_first;
    return good &&
           routes_read_count(request, "limit", 1, LIST_MAX, &filter->limit, reply);
}

int64_t job_query_write_list(struct routes *routes, const struct http_request *request,
                             const struct job_filter *filter, const char *key,
                             struct buf *body)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    struct caller caller = routes_caller(request);
    struct db_query *query = select_jobs(store_reader(facts.store), filter);
    struct job_record record;
    struct record_texts texts;
    int64_t count = 0;
    texts_init(&texts);
    json_write_open(body, key, '[');
    for (; job_query_next(query, &record); count++) {
        update_record(routes, &facts, &caller, &record, &texts);
        api_write_job(body, NULL, &record.words);
        job_id job = daemon_find(routes->daemon, record.words.id);
        if (job != JOB_NONE)
            forecast_write_job(&facts, job, body);
        api_write_end(body);
    }
    json_write_close(body, ']');
    db_finish(query);
    texts_release(&texts);
    return count;
}

static void list_jobs(struct routes *routes, const struct http_request *request,
                      uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct job_filter filter;
    if (!read_filter(request, &filter, reply))
        return;
    json_write_open(&reply->body, NULL, '{');
    int64_t count =
        job_query_write_list(routes, request, &filter, "jobs", &reply->body);
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    if (count == filter.limit)
        json_write_flag(&reply->body, "limited", true);
    if (filter.ended && prune_history_from(facts.store) >= 0)
        json_write_time(&reply->body, "history_from", prune_history_from(facts.store));
    json_write_text_if(&reply->body, "trouble", facts.trouble);
    buf_text(&reply->body, "}\n");
}

struct db_query *job_query_find(struct routes *routes, struct daemon_view *facts,
                                const struct caller *caller, uint64_t id,
                                struct job_record *record, struct http_reply *reply)
{
    struct error err;
    daemon_view_of(routes->daemon, facts);
    struct db_query *query = job_query_one(store_reader(facts->store), id);
    if (!job_query_next(query, record)) {
        db_finish(query);
        routes_fail(reply,
                    prune_explain_absent(facts->store, id,
                                         !facts->executor->submit_command, &err),
                    &err);
        return NULL;
    }
    if (!caller_may(caller, record->uid)) {
        db_finish(query);
        routes_fail(reply,
                    error_set(&err, -EPERM, "job %" PRIu64 " is somebody else's", id),
                    &err);
        return NULL;
    }
    return query;
}

/* Where a job's output goes: below the state folder, or where its owner said. */
struct job_output {
    char path[PATH_MAX];
    bool ours;
};

static int find_output(const struct daemon_view *facts, const struct job_record *record,
                       struct arena *arena, bool errors, struct job_output *output,
                       struct error *err)
{
    struct request request;
    struct json *json;
    int r = json_parse(record->request, strlen(record->request), &json, err);
    if (r < 0)
        return r;
    r = request_read_kept(&request, arena, json, err);
    json_free(json);
    if (r < 0)
        return r;
    request.launch.id = record->words.id;
    request.launch.array_id = record->words.array_id;
    const char *pattern = errors ? request.launch.err : request.launch.out;
    if (errors && !pattern)
        return error_set(err, -ENOENT, "its errors go where its output goes");
    output->ours = !pattern;
    if (pattern)
        return output_path(output->path, pattern, &request.launch, record->words.user,
                           err);
    snprintf(output->path, sizeof output->path, "%s/log/%" PRIu64 ".out",
             facts->setup->state_dir, record->words.id);
    return 0;
}

static void put_request(struct buf *body, const struct job_record *record)
{
    struct json *json;
    if (json_parse(record->request, strlen(record->request), &json, NULL) < 0)
        return;
    const struct json *command = json_get(json, "command");
    char *text = command ? json_text(command) : NULL;
    if (text)
        json_write_raw(body, "command", text);
    json_write_text_if(body, "cwd", json_as_text(json_get(json, "cwd")));
    double gpu_bytes = json_number_or(json, "gpu_memory_bytes", 0);
    if (gpu_bytes > 0)
        json_write_number(body, "gpu_memory_bytes", gpu_bytes);
    free(text);
    json_free(json);
}

/* The most memory of one GPU that its processes were seen to have. */
static void put_gpu_memory(struct buf *body, struct db *db, uint64_t id)
{
    struct db_query *query = db_prepare(db, "SELECT gpu_mib FROM job WHERE id = ?");
    db_int(query, 1, (int64_t)id);
    int64_t mib = db_next(query, NULL) == 1 ? db_get_int(query, 0) : 0;
    if (mib > 0)
        json_write_number(body, "gpu_memory_used_bytes", (double)mib * 0x1p20);
    db_finish(query);
}

/* What a live job does with its GPUs, and what it is taken to need of them. */
static void put_gpu_use(struct buf *body, const struct daemon_view *facts, job_id id)
{
    const struct job *job = &facts->engine->state.jobs[id];
    const struct scheduler_job *known = &facts->scheduler->jobs[id];
    if (job->gpu_mib_known)
        json_write_number(body, "gpu_memory_expected_bytes",
                          (double)job->gpu_mib * 0x1p20);
    if (known->gpu_looks > 0)
        json_write_number(body, "gpu_busy", known->gpu_busy);
}

static void put_preemptions(struct buf *body, struct db *db, uint64_t id)
{
    struct db_query *query = select_entries(db, (int64_t)id, 0, 1000);
    struct api_entry entry;
    bool any = false;
    while (next_entry(query, &entry)) {
        if (!any)
            json_write_open(body, "preempted_by", '[');
        any = true;
        api_write_preempted(body, &entry);
    }
    if (any)
        json_write_close(body, ']');
    db_finish(query);
}

void job_query_write(struct routes *routes, const struct caller *caller, uint64_t id,
                     struct http_reply *reply)
{
    struct daemon_view facts;
    struct job_record record;
    struct db_query *query = job_query_find(routes, &facts, caller, id, &record, reply);
    if (!query)
        return;
    struct arena arena;
    struct record_texts texts;
    struct job_output output;
    arena_init(&arena, 0);
    texts_init(&texts);
    update_record(routes, &facts, caller, &record, &texts);
    if (find_output(&facts, &record, &arena, false, &output, NULL) == 0)
        record.words.output = output.path;
    api_write_job(&reply->body, NULL, &record.words);
    put_request(&reply->body, &record);
    put_gpu_memory(&reply->body, store_reader(facts.store), id);
    if (record.words.preemptions > 0)
        put_preemptions(&reply->body, store_reader(facts.store), id);
    if (!record.words.private)
        pair_figures_write_job(&facts, id, &reply->body);
    job_id job = daemon_find(routes->daemon, id);
    if (job != JOB_NONE) {
        rates_write_job(&reply->body, &facts.engine->state, job);
        put_gpu_use(&reply->body, &facts, job);
        forecast_write_job(&facts, job, &reply->body);
    }
    api_write_end(&reply->body);
    buf_text(&reply->body, "\n");
    texts_release(&texts);
    arena_release(&arena);
    db_finish(query);
}

static void show_job(struct routes *routes, const struct http_request *request,
                     uint64_t id, struct http_reply *reply)
{
    struct caller caller = routes_caller(request);
    job_query_write(routes, &caller, id, reply);
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
        !routes_read_flag(request, "follow", &follow, reply) ||
        !routes_read_count(request, "offset", -INT64_MAX, INT64_MAX, &offset, reply))
        return;
    struct daemon_view facts;
    struct job_record record;
    struct caller caller = routes_caller(request);
    struct db_query *query =
        job_query_find(routes, &facts, &caller, id, &record, reply);
    if (!query)
        return;
    struct job_output output;
    struct error err = { "" };
    users_load(facts.users, record.uid); /* known, unless its job ended long ago */
    int r = find_output(&facts, &record, request->arena, errors, &output, &err);
    if (r == 0) {
        struct tail_setup setup = { .path = output.path,
                                    .uid = record.uid,
                                    .ours = output.ours,
                                    .job = id,
                                    .offset = offset,
                                    .follow = follow };
        r = tail_reply(routes->tails, &setup, reply, &err);
    }
    if (r < 0)
        routes_fail(reply, r == -EINVAL ? -EACCES : r, &err);
    db_finish(query);
}

const struct route query_routes[] = {
    { "GET", "/v1/jobs", SCOPES_READ,
      "state user since until name limit before after history ids", list_jobs },
    { "GET", "/v1/jobs/{id}", SCOPES_READ, "", show_job },
    { "GET", "/v1/jobs/{id}/log", SCOPES_READ, "stream offset follow", read_log },
    { "GET", "/v1/ledger", SCOPES_READ, "job since limit", show_ledger },
    { 0 },
};
