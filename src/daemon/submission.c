/*
 * submission.c - what users ask berthd to do with jobs: accept, cancel, hold, change; and the
 * routes for it.
 */
#include "daemon/submission.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/units.h"
#include "daemon/routes/dry_run.h"
#include "daemon/routes/job_query.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/scheduler.h"
#include "daemon/users.h"
#include "executor/executor.h"
#include "host/job_users.h"
#include "host/pattern.h"
#include "store/db.h"
#include "http/http.h"
#include "model/cluster.h"
#include "store/prune.h"
#include "store/submission_keys.h"
#include "store/store.h"

#define JOBS_AT_ONCE_MAX 10000
#define PATTERNS_AT_ONCE_MAX 64
#define REJECTED_BYTES_MAX 1024 /* of the command of a job that never runs */

/* A copy of what observers of the event need, until the pass is over. */
static struct request *copy_request(struct scheduler *scheduler,
                                    const struct request *request)
{
    struct request *kept = arena_new(&scheduler->pass, struct request);
    *kept = *request;
    if (request->launch.name)
        kept->launch.name = arena_text(&scheduler->pass, request->launch.name);
    if (request->outside)
        kept->outside = arena_text(&scheduler->pass, request->outside);
    kept->dependencies =
        arena_array(&scheduler->pass, struct dependency, request->dependency_count + 1);
    for (uint32_t i = 0; i < request->dependency_count; i++)
        kept->dependencies[i] = request->dependencies[i];
    return kept;
}

/* Of a job that never runs its command is kept, where it is short, and its folder. */
static const char *describe_rejected(struct scheduler *scheduler,
                                     const struct request *request)
{
    struct json *json = json_new_object();
    struct json *command = json_new_array();
    size_t bytes = 0;
    for (const char *const *word = request->launch.argv; word && *word; word++) {
        bytes += strlen(*word);
        json_add_text(command, bytes <= REJECTED_BYTES_MAX ? *word : "…");
        if (bytes > REJECTED_BYTES_MAX)
            break;
    }
    json_put(json, "command", command);
    if (request->launch.cwd)
        json_put_text(json, "cwd", request->launch.cwd);
    char *text = json_text(json);
    const char *kept = arena_text(&scheduler->pass, text);
    free(text);
    json_free(json);
    return kept;
}

/*
 * The user, and the group whose share it counts for: the one it names, else the first of the
 * groups with a weight that the user is in.
 */
static void set_owner(const struct scheduler *scheduler, struct request *request,
                      const char *user)
{
    const struct cluster *cluster = scheduler->cluster;
    request->spec.user = user;
    for (uint32_t i = 0; i < cluster->entity_count && !request->spec.entity; i++)
        if (users_in_group(scheduler->users, request->launch.uid,
                           cluster->entities[i].name))
            request->spec.entity = cluster->entities[i].name;
}

int submission_accept(struct submission *submission, const char *user,
                      struct request *request, const struct request_texts *texts,
                      bool held, struct error *ret_rejected, struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    int64_t at_ns = scheduler_now_ns(scheduler);
    struct job *job = arena_new(&scheduler->pass, struct job);
    request->spec.submit_ns = at_ns;
    ret_rejected->text[0] = '\0';
    users_ready(scheduler->users, request->launch.uid); /* wanted when it starts */
    set_owner(scheduler, request, user);
    bool fits = admission_make_job(&scheduler->admission, &request->spec, job,
                                   ret_rejected) == 0;
    bool waits = fits && (held || conditions_needed(request, at_ns));
    struct store_job row = { .id = request->spec.id,
                             .uid = request->launch.uid,
                             .user = user,
                             .name = request->launch.name,
                             .types = request->spec.types,
                             .entity = request->spec.entity,
                             .class = request->spec.class,
                             .gpus = request->spec.gpus,
                             .array_id = request->launch.array_id,
                             .array_index = request->launch.array_index,
                             .steps = request->spec.steps,
                             .submit_ns = at_ns,
                             .held = request->hold,
                             .waits = waits,
                             .rejected = fits ? NULL : ret_rejected->text,
                             .request = fits ? texts->request
                                             : describe_rejected(scheduler, request),
                             .env = fits ? texts->env : NULL,
                             .script = fits ? texts->script : NULL };
    int r = store_add_job(scheduler->store, &row, err);
    if (r < 0)
        return r;
    if (!fits)
        *job = (struct job){ .id = request->spec.id,
                             .class = request->spec.class,
                             .gpus = request->spec.gpus };
    else if (waits)
        job->state = JOB_HELD;
    struct event *event = scheduler_add_event(
        scheduler, fits ? EVENT_SUBMITTED : EVENT_REJECTED, JOB_NONE);
    event->spec = job;
    event->tag = fits ? copy_request(scheduler, request) : NULL;
    scheduler->coming += fits;
    if (fits)
        limits_expect_job(scheduler->limits, request->launch.uid);
    event->why = fits ? NULL : arena_text(&scheduler->pass, ret_rejected->text);
    return 0;
}

/* A job that never existed cannot be waited for. */
static int check_dependencies(struct scheduler *scheduler,
                              const struct request *request, struct error *err)
{
    for (uint32_t i = 0; i < request->dependency_count; i++) {
        const struct dependency *dependency = &request->dependencies[i];
        if (dependency->kind != DEPENDS_SINGLETON &&
            scheduler_outcome(scheduler, dependency->id) == OUTCOME_UNKNOWN) {
            struct error absent;
            prune_explain_absent(scheduler->store, dependency->id,
                                 /* consecutive= */ true, &absent);
            return error_set(err, -EINVAL, "dependency: %s", absent.text);
        }
    }
    return 0;
}

/* Requests that came together, and as they are kept. */
struct submission_batch {
    struct request *requests;
    struct request_texts *texts;
    uint64_t *ids;
    uint32_t count;
    bool several; /* they came as a list */
};

/* A job that berth-launch would not start is not accepted either. */
static int check_user(const struct submission *submission, uint32_t uid,
                      struct error *err)
{
    bool runs = !submission->users || job_users_check(submission->users, uid, err) == 0;
    return runs ? 0 : -EINVAL;
}

/* May all of these be accepted?  Nothing is recorded. */
static int check_batch(struct submission *submission, const struct caller *caller,
                       const struct submission_batch *batch, struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    int r = scheduler_check_open(scheduler, err);
    if (r < 0)
        return r;
    if (scheduler->executor->submit_command)
        return error_set(err, -EINVAL, "jobs of this cluster are submitted with %s",
                         scheduler->executor->submit_command);
    r = check_user(submission, caller->uid, err);
    if (r < 0)
        return r;
    r = limits_admit(scheduler->limits, caller->uid, batch->requests, batch->texts,
                     batch->count, err);
    if (r < 0)
        return r;
    if (scheduler->engine.state.live_count + scheduler->coming + batch->count >
        limits_slots(scheduler->limits, caller->uid))
        return error_set(err, -ENOBUFS, "%u jobs are waiting or running: no more fit",
                         scheduler->engine.state.live_count);
    for (uint32_t i = 0; i < batch->count && r == 0; i++)
        r = check_dependencies(scheduler, &batch->requests[i], err);
    return r;
}

/*
 * Accept these, which were checked, all or none.  Ids are given at once and are good when the
 * pass has been committed: reply after_commit.  A job that can never run is recorded as rejected,
 * and 'ret_rejected', if it is the only one, says why ("" else).
 */
static int accept_batch(struct submission *submission, const struct caller *caller,
                        const struct submission_batch *batch,
                        struct error *ret_rejected, struct error *err)
{
    struct user user = users_find(submission->scheduler->users, caller->uid);
    uint64_t first = submission->id_next;
    int r = 0;
    for (uint32_t i = 0; i < batch->count && r == 0; i++) {
        struct request *request = &batch->requests[i];
        request->spec.id = submission->id_next++;
        request->launch.id = request->spec.id;
        request->launch.uid = caller->uid;
        request->launch.array_id = request->in_array ? first : 0;
        batch->ids[i] = request->spec.id;
        r = submission_accept(submission, user.name, request, &batch->texts[i], false,
                              ret_rejected, err);
    }
    return r;
}

int submission_find_job(const struct scheduler *scheduler, const struct caller *caller,
                        uint64_t id, job_id *ret_job, struct error *err)
{
    int r = scheduler_check_open(scheduler, err);
    if (r < 0)
        return r;
    job_id job = state_find(&scheduler->engine.state, id);
    if (job == JOB_NONE)
        return prune_explain_absent(scheduler->store, id,
                                    !scheduler->executor->submit_command, err);
    if (!caller_may_change(caller, scheduler->jobs[job].uid))
        return error_set(err, -EPERM, "job %" PRIu64 " is somebody else's", id);
    *ret_job = job;
    return 0;
}

const char *submission_cancel_reason(const struct caller *caller, uint32_t owner)
{
    return caller->uid == owner ? "cancelled" : "cancelled by an administrator";
}

/* -ENOENT: no such live job; -EPERM: another user's; -EALREADY: not in this state. */
static int cancel_one(struct submission *submission, const struct caller *caller,
                      uint64_t id, struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    job_id job = JOB_NONE;
    int r = submission_find_job(scheduler, caller, id, &job, err);
    if (r == 0)
        scheduler_add_event(scheduler, EVENT_CANCELLED, job)->why =
            submission_cancel_reason(caller, scheduler->jobs[job].uid);
    return r;
}

static int hold_one(struct submission *submission, const struct caller *caller,
                    uint64_t id, bool held, struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    job_id job = JOB_NONE;
    int r = submission_find_job(scheduler, caller, id, &job, err);
    if (r < 0)
        return r;
    enum job_state state = scheduler->engine.state.jobs[job].state;
    if (state != JOB_WAITING && state != JOB_HELD)
        return error_set(err, -EALREADY,
                         "job %" PRIu64 " runs: only a waiting job can be %s", id,
                         held ? "held" : "released");
    r = store_hold(scheduler->store, id, held, err);
    if (r < 0)
        return r;
    scheduler_hold(scheduler, job, held);
    return 0;
}

/* What may be changed of a waiting job; NULL or NAN: as it is. */
struct submission_change {
    const char *class; /* "te", "be" */
    double weight, deadline_s, grace_s, steps;
};

static enum job_class change_class(const struct submission_change *change)
{
    return strcmp(change->class, "te") == 0 ? CLASS_TE : CLASS_BE;
}

/* May the caller claim that for a job? */
static int check_claims(const struct limits *limits, uint32_t uid,
                        const struct submission_change *change, struct error *err)
{
    enum job_class class = change->class ? change_class(change) : CLASS_BE;
    struct limits_claims claims = { .class = change->class ? &class : NULL,
                                    .weight = change->weight,
                                    .grace_s = change->grace_s };
    return limits_check_claims(limits, uid, &claims, err);
}

static int change_one(struct submission *submission, const struct caller *caller,
                      uint64_t id, const struct submission_change *change,
                      struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    job_id job = JOB_NONE;
    int r = submission_find_job(scheduler, caller, id, &job, err);
    if (r < 0)
        return r;
    const struct job *now = &scheduler->engine.state.jobs[job];
    if (now->state != JOB_WAITING && now->state != JOB_HELD)
        return error_set(err, -EALREADY,
                         "job %" PRIu64 " runs: only a waiting job can be changed", id);
    r = check_claims(scheduler->limits, caller->uid, change, err);
    if (r < 0)
        return r;
    struct job *spec = arena_new(&scheduler->pass, struct job);
    *spec = *now;
    if (change->class)
        spec->class = change_class(change);
    if (!isnan(change->weight))
        spec->weight = change->weight;
    if (!isnan(change->deadline_s))
        spec->deadline_ns = units_ns(change->deadline_s);
    if (!isnan(change->grace_s))
        spec->grace_ns = units_ns(change->grace_s);
    if (!isnan(change->steps))
        spec->steps_total = change->steps;
    /* A policy keeps its own order: the job leaves the queue, changes and comes back. */
    bool waits = now->state == JOB_WAITING;
    if (waits)
        scheduler_add_event(scheduler, EVENT_HELD, job);
    scheduler_add_event(scheduler, EVENT_CHANGED, job)->spec = spec;
    if (waits)
        scheduler_add_event(scheduler, EVENT_RELEASED, job);
    return 0;
}

/* ---- submissions that are sent again ---- */

/*
 * A client names its submission by the header Idempotency-Key.  The same user, key and body
 * within a day get the reply of the first time, and no second job is made; another body
 * under the same key is refused.
 */
static bool is_key(const char *text)
{
    size_t count = strlen(text);
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    return count > 0 && count <= SUBMISSION_KEY_MAX;
}

/* Read the key of a request; 'keyed->key' is NULL if it has none.  -EINVAL: no such key can be. */
static int read_key(const struct submission *submission,
                    const struct http_request *request, struct keyed_submission *keyed,
                    struct error *err)
{
    const char *key = http_header(request, "Idempotency-Key");
    *keyed = (struct keyed_submission){ .uid = request->uid };
    if (!key)
        return 0;
    if (!is_key(key))
        return error_set(err, -EINVAL,
                         "Idempotency-Key: want 1 to %d visible ASCII characters",
                         SUBMISSION_KEY_MAX);
    keyed->key = key;
    keyed->at_ns = scheduler_now_ns(submission->scheduler);
    keyed->hash = hash_bytes(HASH_BYTES_START, request->body, request->body_size);
    return 0;
}

/* Look for what was submitted under the key.  1: 'keyed' says what; 0: nothing was.  -EBADF:
 * the key was used for another body. */
static int find_keyed(struct submission *submission, struct keyed_submission *keyed,
                      struct error *err)
{
    uint64_t hash = keyed->hash;
    if (!keyed->key)
        return 0;
    int r = submission_keys_find(submission->keys, keyed,
                                 keyed->at_ns - SUBMISSION_KEYS_KEEP_NS, err);
    if (r == 1 && keyed->hash != hash)
        return error_set(err, -EBADF,
                         "Idempotency-Key: %.40s was used for another submission; "
                         "choose a new key",
                         keyed->key);
    return r;
}

/* Remember what is being accepted, if it has a key; durable with its jobs.  1: there was a
 * submission of that key. */
static int add_keyed(struct submission *submission, struct keyed_submission *keyed,
                     struct error *err)
{
    return keyed->key ? submission_keys_add(submission->keys, keyed,
                                            keyed->at_ns - SUBMISSION_KEYS_KEEP_NS, err)
                      : 0;
}

/* ---- routes: submitting ---- */

static struct submission *submission_of(struct routes *routes)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return facts.submission;
}

static void allocate_batch(struct submission_batch *batch, struct arena *arena,
                           uint32_t count)
{
    batch->count = count;
    batch->requests = arena_array(arena, struct request, count);
    batch->texts = arena_array(arena, struct request_texts, count);
    batch->ids = arena_array(arena, uint64_t, count);
}

static int read_job(struct submission_batch *batch, uint32_t i, struct arena *arena,
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
    request_split(&batch->texts[i], arena, written ? written : json);
    json_free(written);
    return 0;
}

static int read_list(struct submission_batch *batch, struct arena *arena,
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
    allocate_batch(batch, arena, (uint32_t)count);
    for (uint32_t i = 0; i < count; i++) {
        int r = read_job(batch, i, arena, json_item(jobs, i), (uint32_t)limit, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A pattern takes milliseconds at worst, a list of jobs mostly has one. */
static int check_patterns(const struct submission_batch *batch, struct error *err)
{
    const char *checked[PATTERNS_AT_ONCE_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        const char *pattern = batch->requests[i].launch.pattern;
        uint32_t at = 0;
        while (pattern && at < count && strcmp(pattern, checked[at]) != 0)
            at++;
        if (!pattern || at < count)
            continue;
        if (count == PATTERNS_AT_ONCE_MAX)
            return error_set(err, -EINVAL, "jobs: want at most %d different patterns",
                             PATTERNS_AT_ONCE_MAX);
        struct error why = { "" };
        int r = pattern_check(pattern, &why);
        if (r < 0 && batch->several)
            return error_set(err, r, "jobs[%u].pattern: %.290s", i, why.text);
        if (r < 0)
            return error_set(err, r, "pattern: %.290s", why.text);
        checked[count++] = pattern;
    }
    return 0;
}

static int read_batch(struct submission_batch *batch,
                      const struct http_request *request, struct error *err)
{
    struct json *json;
    *batch = (struct submission_batch){ 0 };
    if (request->body_size == 0)
        return error_set(err, -EINVAL, "want a job as JSON");
    int r = json_parse(request->body, request->body_size, &json, err);
    if (r < 0)
        return r;
    if (json_get(json, "jobs")) {
        r = read_list(batch, request->arena, json, err);
    } else {
        allocate_batch(batch, request->arena, 1);
        r = request_read(&batch->requests[0], request->arena, json, err);
        if (r == 0)
            request_split_text(&batch->texts[0], request->arena, request->body, json);
    }
    json_free(json);
    return r < 0 ? r : check_patterns(batch, err);
}

/* Which limit was exceeded. */
static const char *find_limit(const struct limits *limits, uint32_t uid)
{
    struct limits_use use = limits_used(limits, uid);
    if ((double)use.jobs + use.coming + 1 > limits_find(limits, uid, LIMIT_JOBS, NULL))
        return limit_fields[LIMIT_JOBS].name;
    if ((double)use.waiting + use.coming + 1 >
        limits_find(limits, uid, LIMIT_WAITING, NULL))
        return limit_fields[LIMIT_WAITING].name;
    return limit_fields[LIMIT_BYTES_STORED].name;
}

int submission_try(struct submission *submission, const struct caller *caller,
                   const struct http_request *http, struct request **ret_request,
                   struct job *ret_job, const char **ret_limit, struct error *err)
{
    struct scheduler *scheduler = submission->scheduler;
    struct submission_batch batch;
    int r = scheduler_check_open(scheduler, err);
    if (r == 0)
        r = read_batch(&batch, http, err);
    if (r == 0 && batch.several)
        r = error_set(err, -EINVAL, "dry_run: want one job, not a list");
    if (r == 0)
        r = check_batch(submission, caller, &batch, err);
    if (r == -EDQUOT)
        *ret_limit = find_limit(scheduler->limits, caller->uid);
    if (r < 0)
        return r;
    struct request *request = *ret_request = &batch.requests[0];
    request->launch.uid = caller->uid;
    request->spec.id = submission->id_next;
    request->spec.submit_ns = scheduler_now_ns(scheduler);
    set_owner(scheduler, request, users_find(scheduler->users, caller->uid).name);
    r = admission_make_job(&scheduler->admission, &request->spec, ret_job, err);
    return r < 0 ? -ERANGE : 0;
}

/* Why a job was rejected; false: it was not. */
static bool find_rejection(struct scheduler *scheduler, uint64_t id,
                           struct error *ret_rejected)
{
    struct db_query *query =
        db_prepare(store_writer(scheduler->store),
                   "SELECT reason FROM job WHERE id = ? AND state = 'REJECTED'");
    db_int(query, 1, (int64_t)id);
    bool found = db_next(query, NULL) == 1;
    if (found)
        error_set(ret_rejected, 0, "%s", db_get_text(query, 0));
    db_finish(query);
    return found;
}

/* Jobs that come together have consecutive ids. */
static void write_submitted(const struct keyed_submission *keyed,
                            const struct error *rejected, struct http_reply *reply)
{
    struct buf *body = &reply->body;
    json_write_open(body, NULL, '{');
    if (keyed->several) {
        json_write_open(body, "ids", '[');
        for (uint32_t i = 0; i < keyed->count; i++)
            json_write_count(body, NULL, (int64_t)(keyed->first_id + i));
        json_write_close(body, ']');
    } else {
        json_write_count(body, "id", (int64_t)keyed->first_id);
    }
    if (*rejected->text)
        json_write_text(body, "rejected", rejected->text);
    buf_text(body, "}\n");
    reply->status = 201;
    reply->after_commit = true;
}

/* 1: there was a submission of this key, and nothing was accepted. */
static int submit_new(struct routes *routes, const struct http_request *request,
                      struct keyed_submission *keyed, struct error *ret_rejected,
                      struct error *err)
{
    struct submission_batch batch;
    struct submission *submission = submission_of(routes);
    struct caller caller = routes_caller(request);
    int r = read_batch(&batch, request, err);
    if (r == 0)
        r = check_batch(submission, &caller, &batch, err);
    if (r < 0)
        return r;
    keyed->first_id = submission->id_next;
    keyed->count = batch.count;
    keyed->several = batch.several;
    r = add_keyed(submission, keyed, err);
    if (r == 0)
        r = accept_batch(submission, &caller, &batch, ret_rejected, err);
    if (r < 0)
        submission->failed(submission->context, err); /* half of it is recorded */
    for (uint32_t i = 0; i < batch.count && r == 0; i++)
        map_put(&routes->owners, batch.ids[i], caller.uid);
    return r;
}

/* What was submitted before is looked for last: it is rare. */
static int submit_once(struct routes *routes, const struct http_request *request,
                       struct keyed_submission *keyed, struct error *ret_rejected,
                       struct error *err)
{
    struct submission *submission = submission_of(routes);
    struct error inner = { "" };
    int r = scheduler_check_open(submission->scheduler, err);
    if (r == 0)
        r = read_key(submission, request, keyed, err);
    if (r < 0)
        return r;
    r = submit_new(routes, request, keyed, ret_rejected, err);
    int found = r == 0 ? 0 : find_keyed(submission, keyed, &inner);
    if (found < 0)
        *err = inner;
    return found ? found : r;
}

static void submit_jobs(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct error err = { "" }, rejected = { "" };
    struct keyed_submission keyed;
    bool dry_run = false;
    if (!routes_read_flag(request, "dry_run", &dry_run, reply))
        return;
    if (dry_run) {
        dry_run_answer(routes, request, reply);
        return;
    }
    struct scheduler *scheduler = submission_of(routes)->scheduler;
    int r = submit_once(routes, request, &keyed, &rejected, &err);
    if (r == 1)
        find_rejection(scheduler, keyed.first_id, &rejected);
    if (r == -EBADF)
        http_reply_error(reply, 422, NULL, err.text);
    else if (r < 0)
        routes_fail(reply, r, &err);
    else
        write_submitted(&keyed, &rejected, reply);
    if (r == 1)
        scheduler_want_pass(scheduler); /* the first one may not be on disk yet */
}

/* ---- routes: changing and cancelling ---- */

/* Of a job that has ended: say so, rather than that it is unknown. */
static int say_ended(struct routes *routes, uint64_t id, int code, struct error *err)
{
    struct daemon_view facts;
    struct job_record record;
    if (code != -ENOENT)
        return code;
    daemon_view_of(routes->daemon, &facts);
    struct db_query *query = job_query_one(store_reader(facts.store), id);
    if (job_query_next(query, &record))
        code = error_set(err, -EALREADY, "job %" PRIu64 " has ended: %s", id,
                         record.words.state);
    db_finish(query);
    return code;
}

static void finish_cancel(void *context, uint64_t id, struct http_reply *reply)
{
    struct routes *routes = context;
    struct daemon_view facts;
    struct job_record record;
    daemon_view_of(routes->daemon, &facts);
    struct db_query *query = job_query_one(store_reader(facts.store), id);
    json_write_open(&reply->body, NULL, '{');
    json_write_count(&reply->body, "id", (int64_t)id);
    if (job_query_next(query, &record))
        json_write_text(&reply->body, "state", record.words.state);
    buf_text(&reply->body, "}\n");
    db_finish(query);
}

static void cancel_job(struct routes *routes, const struct http_request *request,
                       uint64_t id, struct http_reply *reply)
{
    struct error err = { "" };
    struct caller caller = routes_caller(request);
    int r = cancel_one(submission_of(routes), &caller, id, &err);
    if (r < 0) {
        r = say_ended(routes, id, r, &err);
        routes_fail(reply, r, &err);
        return;
    }
    reply->after_commit = true;
    reply->finish = finish_cancel;
    reply->finish_id = id;
}

struct job_patch {
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

static int read_patch_key(struct job_patch *patch, const char *key,
                          const struct json *value, struct error *err)
{
    struct submission_change *change = &patch->change;
    if (strcmp(key, "hold") == 0) {
        patch->says_hold = true;
        return json_as_flag(value, &patch->hold)
                   ? 0
                   : error_set(err, -EINVAL, "hold: want true or false");
    }
    patch->changes = true;
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

static int read_patch(struct job_patch *patch, const struct http_request *request,
                      struct error *err)
{
    struct json *json;
    *patch = (struct job_patch){ .change = { NULL, NAN, NAN, NAN, NAN } };
    int r = json_parse(request->body, request->body_size, &json, err);
    if (r < 0)
        return r;
    if (!json_is_object(json))
        r = error_set(err, -EINVAL, "want an object");
    const char *key;
    const struct json *value;
    for (void *at = NULL; r == 0 && (at = json_member(json, at, &key, &value));)
        r = read_patch_key(patch, key, value, err);
    json_free(json);
    if (r == 0 && !patch->changes && !patch->says_hold)
        r = error_set(err, -EINVAL, "there is nothing to change in it");
    return r;
}

/* The caller was found to be allowed to. */
static void finish_change(void *context, uint64_t id, struct http_reply *reply)
{
    struct caller root = { .uid = 0 };
    job_query_write(context, &root, id, reply);
}

static void change_job(struct routes *routes, const struct http_request *request,
                       uint64_t id, struct http_reply *reply)
{
    struct job_patch patch;
    struct error err = { "" };
    struct caller caller = routes_caller(request);
    struct submission *submission = submission_of(routes);
    int r = read_patch(&patch, request, &err);
    if (r == 0)
        r = limits_admit_change(submission->scheduler->limits, caller.uid, &err);
    if (r == 0 && patch.says_hold)
        r = hold_one(submission, &caller, id, patch.hold, &err);
    if (r == 0 && patch.changes)
        r = change_one(submission, &caller, id, &patch.change, &err);
    if (r < 0) {
        r = say_ended(routes, id, r, &err);
        routes_fail(reply, r, &err);
        return;
    }
    reply->after_commit = true;
    reply->finish = finish_change;
    reply->finish_id = id;
}

const struct route submission_routes[] = {
    { "POST", "/v1/jobs", SCOPES_SUBMIT, "dry_run", submit_jobs },
    { "PATCH", "/v1/jobs/{id}", SCOPES_SUBMIT, "", change_job },
    { "DELETE", "/v1/jobs/{id}", SCOPES_SUBMIT, "", cancel_job },
    { 0 },
};
