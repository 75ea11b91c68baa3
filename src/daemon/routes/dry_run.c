/*
 * dry_run.c - POST /v1/jobs?dry_run=true: where and when a job would start, and whom it would
 * preempt at what price.
 *
 * The job is added to a snapshot of the engine, beside the loop (daemon/forecast_worker.h).  A copy
 * of that makes one decision, and others are played forward.
 */
#include "daemon/routes/dry_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "api/request.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/forecast_worker.h"
#include "daemon/forecasts.h"
#include "daemon/routes/forecast.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/scheduler.h"
#include "daemon/submission.h"
#include "daemon/why.h"
#include "engine/engine_copy.h"
#include "forecast/history.h"
#include "metrics/ledger.h"
#include "model/node_set.h"
#include "store/rows.h"

#define WAIT_MS 10000
#define HORIZON_NS (4 * INT64_C(86400) * NS_PER_S)
#define VICTIMS_MAX 64 /* that are named */

struct dry_run_victim {
    uint64_t id;
    int64_t price_ns;
};

struct dry_run {
    struct forecast_task task; /* the first member */
    struct http_delayed delayed;
    uv_timer_t timer;
    struct forecasts *forecasts;
    struct scheduler *scheduler;
    struct job job;
    struct node_set set;   /* its nodes, as the thread sees them */
    struct node_set *held; /* the same in the loop; or NULL      */
    job_id slot;           /* in the snapshot                    */
    bool is_replied;

    /* what the thread found out */
    bool starts;
    struct buf placement; /* JSON */
    struct dry_run_victim victims[VICTIMS_MAX];
    uint32_t victim_count;
    char reason[240];
    struct start_times times;
};

/* --- in the thread ------------------------------------------------------------------------- */

/* The job comes; its policy has not decided yet. */
static void submit_job(struct forecast_task *task, struct engine *engine)
{
    struct dry_run *dry_run = (struct dry_run *)task;
    struct event event = { .at_ns = engine->state.view.now_ns,
                           .kind = EVENT_SUBMITTED,
                           .job = JOB_NONE,
                           .spec = &dry_run->job };
    engine_replay(engine, &event);
    engine->wake_ns = engine->state.view.now_ns;
    dry_run->slot = event.job;
}

static void note_victim(void *context, const struct ledger_entry *entry,
                        double wait_saved_s, bool open)
{
    struct dry_run *dry_run = context;
    if (dry_run->victim_count < VICTIMS_MAX && entry->beneficiary_id == dry_run->job.id)
        dry_run->victims[dry_run->victim_count++] =
            (struct dry_run_victim){ entry->victim, entry->predicted_cost_ns };
}

/* What the policy decided. */
static void read_decision(struct dry_run *dry_run, struct engine *copy)
{
    const struct job *job = &copy->state.jobs[dry_run->slot];
    const char *token;
    struct why_scene scene = { .engine = copy, .now_ns = copy->state.view.now_ns };
    dry_run->starts = job->state >= JOB_PLACED;
    if (dry_run->starts)
        rows_placement(&dry_run->placement, &copy->state.view,
                       job->seats.count ? &job->seats : &job->next);
    else
        why_brief(&scene, dry_run->slot, dry_run->reason, sizeof dry_run->reason,
                  &token);
}

static void decide_once(struct dry_run *dry_run, const struct engine *engine,
                        const char *settings)
{
    struct engine copy;
    struct arena arena;
    struct ledger ledger;
    struct error err;
    struct engine_copy_setup setup = { .settings = settings,
                                       .executor = &engine_copy_nothing };
    arena_init(&arena, 0);
    if (engine_copy_init(&copy, &arena, engine, &setup, &err) == 0) {
        ledger_init(&ledger, &arena, &copy.state.view, NULL);
        ledger.observe = note_victim;
        ledger.context = dry_run;
        engine_add_observer(
            &copy, (struct engine_observer){ .event = ledger_event, .self = &ledger });
        if (engine_copy_renew(&copy, &arena, engine, settings, engine->seed, &err) ==
                0 &&
            engine_step(&copy, engine->state.view.now_ns, NULL, 0, &err) == 0)
            read_decision(dry_run, &copy);
        ledger_release(&ledger);
        engine_release(&copy);
    }
    arena_release(&arena);
}

static int try_job(struct forecast_task *task, struct engine *engine,
                   const char *settings)
{
    struct dry_run *dry_run = (struct dry_run *)task;
    const struct forecast_history *history = forecasts_history(dry_run->forecasts);
    struct error err;
    struct start_setup setup = { .settings = settings,
                                 .times = &history->times,
                                 .arrivals = &history->arrivals,
                                 .horizon_ns = HORIZON_NS,
                                 .seed = dry_run->job.id,
                                 .starts_only = true,
                                 .cancelled = &task->cancelled };
    if (engine->state.jobs[dry_run->slot].state != JOB_WAITING)
        return 0;
    decide_once(dry_run, engine, settings);
    start_times_make(&setup, engine, &dry_run->slot, 1, &dry_run->times, &err);
    return 0;
}

/* --- the reply ------------------------------------------------------------------------------ */

static void write_victims(const struct dry_run *dry_run, struct buf *body)
{
    json_write_open(body, "preempts", '[');
    for (uint32_t i = 0; i < dry_run->victim_count; i++) {
        json_write_open(body, NULL, '{');
        json_write_count(body, "job", (int64_t)dry_run->victims[i].id);
        json_write_number(body, "price_gpu_s",
                          (double)dry_run->victims[i].price_ns * 1e-9);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
}

static void write_result(struct dry_run *dry_run, struct buf *body)
{
    struct expected_time start = { 0 };
    if (dry_run->times.count > 0)
        forecasts_correct_start(dry_run->forecasts, &dry_run->times.jobs[0],
                                &dry_run->times, dry_run->job.gpus, &start);
    json_write_open(body, NULL, '{');
    json_write_flag(body, "can_ever_run", true);
    json_write_flag(body, "now", dry_run->starts);
    if (dry_run->starts && dry_run->placement.count > 0)
        json_write_raw(body, "placement", dry_run->placement.bytes);
    if (!dry_run->starts)
        forecast_write_time(body, "start", &start);
    json_write_text_if(body, "reason", dry_run->reason[0] ? dry_run->reason : NULL);
    write_victims(dry_run, body);
    json_write_open(body, "limits", '[');
    json_write_close(body, ']');
    json_write_close(body, '}');
    buf_text(body, "\n");
}

static void send_result(struct dry_run *dry_run)
{
    if (dry_run->is_replied)
        return;
    dry_run->is_replied = true;
    struct http_reply *reply = http_delayed_reply(&dry_run->delayed);
    if (dry_run->task.status < 0)
        http_reply_retry(reply, 503, dry_run->task.why);
    else if (dry_run->task.cancelled)
        http_reply_retry(reply, 503, "trying it took too long");
    else
        write_result(dry_run, &reply->body);
    http_delayed_send(&dry_run->delayed);
}

static void free_dry_run(uv_handle_t *handle)
{
    struct dry_run *dry_run = handle->data;
    start_times_release(&dry_run->times);
    buf_release(&dry_run->placement);
    free(dry_run);
}

static void on_tried(struct forecast_task *task)
{
    struct dry_run *dry_run = (struct dry_run *)task;
    send_result(dry_run);
    node_set_drop(dry_run->held);
    uv_close((uv_handle_t *)&dry_run->timer, free_dry_run);
}

static void on_wait_over(uv_timer_t *timer)
{
    struct dry_run *dry_run = timer->data;
    forecast_task_drop(&dry_run->task);
    send_result(dry_run);
}

static void on_disconnected(void *self)
{
    struct dry_run *dry_run = self;
    dry_run->is_replied = true;
    forecast_task_drop(&dry_run->task);
}

static int begin(const struct daemon_view *facts, uint32_t owner, const struct job *job,
                 struct http_reply *reply, struct error *err)
{
    struct dry_run *dry_run = memory_checked(calloc(1, sizeof *dry_run));
    *dry_run =
        (struct dry_run){ .task = { .prepare = submit_job,
                                    .work = try_job,
                                    .done = on_tried,
                                    .urgent = true,
                                    .owner = owner,
                                    .more_jobs = 1 },
                          .delayed = { .closed = on_disconnected, .self = dry_run },
                          .forecasts = facts->forecasts,
                          .scheduler = facts->scheduler,
                          .job = *job,
                          .held = job->set };
    if (job->set) { /* how many jobs hold it changes in the loop */
        dry_run->set = *job->set;
        dry_run->job.set = &dry_run->set;
    }
    int r =
        forecast_worker_add(forecasts_worker(facts->forecasts), &dry_run->task, err);
    if (r < 0) {
        free(dry_run);
        return r;
    }
    buf_init(&dry_run->placement, 1 << 20);
    uv_timer_init(facts->scheduler->loop, &dry_run->timer);
    dry_run->timer.data = dry_run;
    uv_timer_start(&dry_run->timer, on_wait_over, WAIT_MS, 0);
    reply->delayed = &dry_run->delayed;
    return 0;
}

/* What is known without trying. */
static void answer_at_once(struct buf *body, bool can_ever_run, const char *limit,
                           const char *reason)
{
    json_write_open(body, NULL, '{');
    json_write_flag(body, "can_ever_run", can_ever_run);
    if (can_ever_run)
        json_write_flag(body, "now", false);
    json_write_text(body, "reason", reason);
    json_write_open(body, "preempts", '[');
    json_write_close(body, ']');
    json_write_open(body, "limits", '[');
    if (limit) {
        json_write_open(body, NULL, '{');
        json_write_text(body, "key", limit);
        json_write_text(body, "text", reason);
        json_write_close(body, '}');
    }
    json_write_close(body, ']');
    json_write_close(body, '}');
    buf_text(body, "\n");
}

void dry_run_answer(struct routes *routes, const struct http_request *http,
                    struct http_reply *reply)
{
    struct daemon_view facts;
    struct caller caller = routes_caller(http);
    struct request *request;
    struct job job;
    const char *limit = NULL;
    struct error err = { "" };
    daemon_view_of(routes->daemon, &facts);
    int r =
        submission_try(facts.submission, &caller, http, &request, &job, &limit, &err);
    if (r == -EDQUOT || r == -ERANGE) {
        answer_at_once(&reply->body, r == -EDQUOT, limit, err.text);
        return;
    }
    if (r == 0 && (request->hold || conditions_needed(request, facts.now_ns))) {
        node_set_drop(job.set);
        answer_at_once(&reply->body, true, NULL,
                       "it would wait for its owner, a time or another job first");
        return;
    }
    if (r == 0) {
        r = begin(&facts, caller.uid, &job, reply, &err);
        if (r < 0)
            node_set_drop(job.set);
    }
    if (r < 0)
        routes_fail(reply, r, &err);
}
