/*
 * explain.c - GET /v1/jobs/{id}/why: what holds a job back, when it is expected to start, and the
 * smallest change that would start it now.
 *
 * Reasons are known at once.  Changes are tried beside the loop (daemon/forecast_worker.h), and the
 * reply waits for that, WAIT_MS at most: then it is sent without.
 */
#include "daemon/routes/routes_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "daemon/forecast_worker.h"
#include "daemon/forecasts.h"
#include "daemon/routes/forecast.h"
#include "daemon/routes/job_query.h"
#include "daemon/scheduler.h"
#include "daemon/why.h"
#include "daemon/why_change.h"
#include "engine/engine.h"
#include "executor/executor.h"
#include "store/db.h"
#include "store/rows.h"
#include "store/store.h"

#define WAIT_MS 3000

static struct json *new_explanation(uint64_t id, const char *state, bool can_ever_run)
{
    struct json *json = json_new_object();
    json_put_count(json, "id", (int64_t)id);
    json_put_text(json, "state", state);
    json_put_flag(json, "can_ever_run", can_ever_run);
    return json;
}

/* Which jobs could have been preempted for it, and why they were not. */
static void put_considered(struct json *json, const struct reasons *reasons)
{
    struct json *list = json_new_array();
    for (uint32_t i = 0; i < reasons->considered_count; i++) {
        const struct reasons_considered *considered = &reasons->considered[i];
        struct json *item = json_new_object();
        json_put_count(item, "job", (int64_t)considered->id);
        json_put_number(item, "price_gpu_s", considered->price_gpu_s);
        json_put_number(item, "benefit_s", considered->benefit_s);
        json_put_text(item, "verdict", considered->verdict);
        json_add(list, item);
    }
    json_put(json, "considered", list);
}

static void put_reasons(struct json *json, const struct reasons *reasons)
{
    struct json *list = json_new_array();
    struct json *ahead = json_new_array();
    for (uint32_t i = 0; i < reasons->count; i++) {
        struct json *reason = json_new_object();
        json_put_text(reason, "token", reasons->list[i].token);
        json_put_text(reason, "text", reasons->list[i].text);
        json_add(list, reason);
    }
    for (uint32_t i = 0; i < reasons->ahead_count; i++)
        json_add_count(ahead, (int64_t)reasons->ahead[i].id);
    json_put(json, "reasons", list);
    json_put(json, "ahead", ahead);
    if (reasons->ahead_more > 0)
        json_put_count(json, "ahead_more", reasons->ahead_more);
    if (reasons->considered_count > 0)
        put_considered(json, reasons);
}

/* A job that has ended, from the store. */
static int explain_ended(struct db *reader, uint64_t id, struct json **ret_json,
                         struct error *err)
{
    struct reasons reasons;
    struct db_query *query =
        db_prepare(reader, "SELECT state, reason FROM job WHERE id = ?");
    db_int(query, 1, (int64_t)id);
    if (db_next(query, NULL) != 1) {
        db_finish(query);
        return error_set(err, -ENOENT, "no job %" PRIu64, id);
    }
    const char *state = db_get_text(query, 0);
    const char *reason = db_get_text(query, 1);
    bool never = strcmp(state, "REJECTED") == 0;
    reasons_reset(&reasons);
    if (never)
        reasons_add(&reasons, "never", "it can never run: %s", reason ? reason : "");
    else
        reasons_add(&reasons, "ended", "it has ended%s%s", reason ? ": " : "",
                    reason ? reason : "");
    *ret_json = new_explanation(id, state, !never);
    put_reasons(*ret_json, &reasons);
    db_finish(query);
    return 0;
}

/* Slurm's own reason, where there is one. */
static void add_slurm_reason(const struct daemon_view *facts, const struct job *job,
                             struct reasons *reasons)
{
    if (facts->trouble)
        reasons_add(reasons, "slurm_away",
                    "Slurm does not answer, and nothing starts until it does: %s",
                    facts->trouble);
    if (facts->trouble || !facts->executor_self || !facts->executor->job_reason ||
        job->state != JOB_PLACED)
        return;
    const char *reason = facts->executor->job_reason(facts->executor_self, job->id);
    if (*reason)
        reasons_add(reasons, "slurm", "Slurm was asked to start it, and says: %s",
                    reason);
}

static void explain_live(const struct daemon_view *facts, uint64_t id, job_id job,
                         uint64_t *ret_ahead, struct json **ret_json)
{
    struct why_scene scene = { .engine = facts->engine,
                               .conditions = facts->conditions,
                               .reader = store_reader(facts->store),
                               .now_ns = facts->now_ns,
                               .refusal = scheduler_refusal(facts->scheduler, job) };
    const struct job *known = &facts->engine->state.jobs[job];
    struct why why;
    why_find(&why, &scene, job);
    add_slurm_reason(facts, known, &why.reasons);
    *ret_json = new_explanation(id, rows_state(known), why.can_ever_run);
    put_reasons(*ret_json, &why.reasons);
    if (why.change[0])
        json_put_text(*ret_json, "smallest_change", why.change);
    if (why.reasons.ahead_count > 0)
        *ret_ahead = why.reasons.ahead[0].id;
}

/* --- the smallest change ---------------------------------------------------------------------- */

/* A reply that waits for a change to be found: an object without its closing brace so far. */
struct explanation {
    struct forecast_task task; /* the first member */
    struct http_delayed delayed;
    uv_timer_t timer;
    uint64_t id, ahead;
    char change[240];
    bool is_replied; /* or the client has gone */
};

static int find_change(struct forecast_task *task, struct engine *engine,
                       const char *settings)
{
    struct explanation *explanation = (struct explanation *)task;
    job_id job = state_find(&engine->state, explanation->id);
    struct why_change_setup setup = { .engine = engine,
                                      .settings = settings,
                                      .job = job,
                                      .ahead = explanation->ahead,
                                      .cancelled = &task->cancelled };
    if (job != JOB_NONE && engine->state.jobs[job].state == JOB_WAITING)
        why_change_find(&setup, explanation->change, sizeof explanation->change);
    return 0;
}

static void finish_body(struct buf *body, const char *change)
{
    if (*change)
        json_write_text(body, "smallest_change", change);
    json_write_close(body, '}');
    buf_text(body, "\n");
}

static void send_explanation(struct explanation *explanation, const char *change)
{
    if (explanation->is_replied)
        return;
    explanation->is_replied = true;
    struct http_reply *reply = http_delayed_reply(&explanation->delayed);
    finish_body(&reply->body, change);
    http_delayed_send(&explanation->delayed);
}

static void free_explanation(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_change_found(struct forecast_task *task)
{
    struct explanation *explanation = (struct explanation *)task;
    send_explanation(explanation, explanation->change);
    uv_close((uv_handle_t *)&explanation->timer, free_explanation);
}

static void on_wait_over(uv_timer_t *timer)
{
    struct explanation *explanation = timer->data;
    forecast_task_drop(&explanation->task);
    send_explanation(explanation, ""); /* the thread may be writing one just now */
}

static void on_disconnected(void *self)
{
    struct explanation *explanation = self;
    explanation->is_replied = true;
    forecast_task_drop(&explanation->task);
}

/* False: too many ask, and the reply is sent as it is. */
static bool begin_search(const struct daemon_view *facts, uint32_t owner, uint64_t id,
                         uint64_t ahead, struct http_reply *reply)
{
    struct error err;
    struct explanation *explanation = memory_checked(calloc(1, sizeof *explanation));
    *explanation = (struct explanation){ .task = { .work = find_change,
                                                   .done = on_change_found,
                                                   .urgent = true,
                                                   .owner = owner },
                                         .delayed = { .closed = on_disconnected,
                                                      .self = explanation },
                                         .id = id,
                                         .ahead = ahead };
    if (forecast_worker_add(forecasts_worker(facts->forecasts), &explanation->task,
                            &err) < 0) {
        free(explanation);
        return false;
    }
    uv_timer_init(facts->scheduler->loop, &explanation->timer);
    explanation->timer.data = explanation;
    uv_timer_start(&explanation->timer, on_wait_over, WAIT_MS, 0);
    reply->delayed = &explanation->delayed;
    return true;
}

/* --- the route --------------------------------------------------------------------------------- */

/* An object as far as it is known at once; the first job that waits ahead, or 0. */
static int begin_body(const struct daemon_view *facts, uint64_t id, job_id job,
                      uint64_t *ret_ahead, struct buf *body, struct error *err)
{
    struct json *json = NULL;
    *ret_ahead = 0;
    if (!facts->engine)
        return error_set(err, -EAGAIN, "the store cannot be written just now");
    int r = 0;
    if (job == JOB_NONE)
        r = explain_ended(store_reader(facts->store), id, &json, err);
    else
        explain_live(facts, id, job, ret_ahead, &json);
    if (r < 0)
        return r;
    char *text = json_text(json);
    if (text)
        buf_add(body, text, strlen(text) - 1);
    free(text);
    json_free(json);
    if (job != JOB_NONE)
        forecast_write_job(facts, job, body);
    return 0;
}

static void explain_job(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    struct daemon_view facts;
    struct job_record record;
    struct caller caller = routes_caller(request);
    struct db_query *query =
        job_query_find(routes, &facts, &caller, id, &record, reply);
    if (!query)
        return;
    struct error err = { "" };
    uint64_t ahead;
    job_id job = daemon_find(routes->daemon, id);
    int r = begin_body(&facts, id, job, &ahead, &reply->body, &err);
    db_finish(query);
    if (r < 0) {
        routes_fail(reply, r, &err);
        return;
    }
    bool waits = job != JOB_NONE &&
                 facts.engine->state.jobs[job].state == JOB_WAITING &&
                 !eligibility_entry(facts.engine, job);
    if (!waits || !begin_search(&facts, caller.uid, id, ahead, reply))
        finish_body(&reply->body, "");
}

const struct route explain_routes[] = {
    { "GET", "/v1/jobs/{id}/why", SCOPES_READ, "", explain_job },
    { 0 },
};
