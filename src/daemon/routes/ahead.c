/*
 * ahead.c - POST /v1/ahead: what the next days would be like under another policy, with more or fewer
 * GPUs, or without some jobs.
 *
 * The present state is played forward as it is and with the change, in the same possible futures,
 * beside the loop (daemon/forecast_worker.h): so figures are compared future by future.
 */
#include "daemon/routes/routes_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/units.h"
#include "daemon/forecast_worker.h"
#include "daemon/forecasts.h"
#include "daemon/scheduler.h"
#include "engine/engine_copy.h"
#include "forecast/history.h"
#include "forecast/replicate.h"
#include "model/cluster.h"
#include "model/cluster_extend.h"
#include "policy/policy.h"

#define FUTURES 16
#define EVENTS_MAX 2000000 /* of one of both */
#define WITHOUT_MAX 1000   /* jobs */
#define REMOVED_MAX 1000   /* nodes */
#define AHEAD_LEAST_S 60
#define AHEAD_MOST_S (30 * 86400.0)
#define TEXT_MAX 512
#define WAIT_MS 60000

/* What is to be different. */
struct ahead_change {
    double ahead_s;
    char policy[TEXT_MAX]; /* "": as it is */
    char add[TEXT_MAX];    /* "": no nodes */
    node_id *removed;
    uint32_t removed_count;
    uint64_t *without;
    uint32_t without_count;
    uint32_t without_user; /* 0: none */
    uint64_t seed;
};

struct ahead {
    struct forecast_task task; /* the first member */
    struct http_delayed delayed;
    uv_timer_t timer;
    bool is_replied; /* or the client has gone */
    struct forecasts *forecasts;
    struct start_releases releases;
    struct ahead_change change;

    int status;
    struct error err;
    double played_s;
    char policies[2][TEXT_MAX];
    struct replicate_figures figures[2][FUTURES]; /* as it is, and with the change */
};

/* --- in the thread: the change ---------------------------------------------------------------- */

/* Events of one step of the engine that is changed. */
struct ahead_events {
    struct engine *engine;
    struct event *list;
    uint32_t count, room;
};

static void add_event(struct ahead_events *events, struct event event)
{
    const struct state *state = &events->engine->state;
    events->list = grow_array(events->list, &events->room, events->count + 1,
                              sizeof *events->list);
    event.at_ns = state->view.now_ns;
    if (event.job != JOB_NONE) {
        event.generation = state->jobs[event.job].generation;
        event.attempt = state->jobs[event.job].attempt;
    }
    events->list[events->count++] = event;
}

static int step(struct ahead_events *events, struct error *err)
{
    struct engine *engine = events->engine;
    int r = engine_step(engine, engine->state.view.now_ns, events->list, events->count,
                        err);
    events->count = 0;
    return r;
}

static bool is_dropped(const struct ahead_change *change, const struct job *job)
{
    if (change->without_user && job->user == change->without_user)
        return true;
    for (uint32_t i = 0; i < change->without_count; i++)
        if (change->without[i] == job->id)
            return true;
    return false;
}

static bool is_on_node(const struct state *state, const struct seat_row *row,
                       node_id node)
{
    for (uint32_t i = 0; i < row->count; i++)
        if (state->seats[row->first + i].node == node)
            return true;
    return false;
}

static bool is_on_removed(const struct ahead_change *change, const struct state *state,
                          const struct job *job)
{
    for (uint32_t i = 0; i < change->removed_count; i++)
        if (is_on_node(state, &job->seats, change->removed[i]) ||
            is_on_node(state, &job->next, change->removed[i]))
            return true;
    return false;
}

/* What it has not saved is lost with its node, where it saves nothing by itself. */
static void lose_job(struct ahead_events *events, job_id id)
{
    const struct state *state = &events->engine->state;
    const struct job *job = &state->jobs[id];
    double steps = job_steps(job, state->view.now_ns);
    add_event(events,
              (struct event){ .kind = EVENT_LOST,
                              .job = id,
                              .steps = job->loses_work ? fmin(job->steps_saved, steps)
                                                       : steps,
                              .steps_reached = steps });
}

/* Jobs that are left out, and those on nodes that go. */
static void end_jobs(struct ahead_events *events, const struct ahead_change *change)
{
    const struct state *state = &events->engine->state;
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state == JOB_FREE)
            continue;
        if (is_dropped(change, job))
            add_event(events, (struct event){ .kind = EVENT_CANCELLED, .job = id });
        else if (job->state >= JOB_PLACED && is_on_removed(change, state, job))
            lose_job(events, id);
    }
}

/* Those that were told to end have done so. */
static void vacate(struct ahead_events *events)
{
    const struct state *state = &events->engine->state;
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state != JOB_FREE && job->leaving && job_holds_seats(job))
            add_event(events, (struct event){ .kind = EVENT_STOPPED,
                                              .job = id,
                                              .steps = job->steps,
                                              .steps_reached = job->steps });
    }
}

static int apply_change(struct engine *engine, const struct ahead_change *change,
                        struct error *err)
{
    struct ahead_events events = { .engine = engine };
    end_jobs(&events, change);
    for (uint32_t i = 0; i < change->removed_count; i++)
        add_event(&events, (struct event){ .kind = EVENT_NODE_DOWN,
                                           .job = JOB_NONE,
                                           .node = change->removed[i] });
    int r = events.count > 0 ? step(&events, err) : 0;
    if (r == 0)
        vacate(&events);
    if (r == 0 && events.count > 0)
        r = step(&events, err);
    engine->wake_ns = engine->state.view.now_ns;
    free(events.list);
    return r;
}

/* --- in the thread: playing -------------------------------------------------------------------- */

/* Returns how far all futures were played, in seconds from now; negative: -errno. */
static double play(struct ahead *ahead, const struct engine *engine,
                   const char *settings, double ahead_s, bool changed)
{
    const struct forecast_history *history = forecasts_history(ahead->forecasts);
    struct start_times times;
    struct start_setup setup = {
        .settings = settings,
        .times = &history->times,
        .arrivals = &history->arrivals,
        .releases = &ahead->releases,
        .horizon_ns = units_ns(ahead_s),
        .replicates = FUTURES,
        .event_max = EVENTS_MAX,
        .seed = ahead->change.seed,
        .cancelled = &ahead->task.cancelled,
        .without_user = changed ? ahead->change.without_user : 0,
        .figures = ahead->figures[changed],
    };
    int r = start_times_make(&setup, engine, NULL, 0, &times, &ahead->err);
    if (r < 0)
        return r;
    double played_s = (double)(times.horizon_ns - times.made_ns) * 1e-9;
    start_times_release(&times);
    return played_s;
}

/* Both as far as the one that comes least far. */
static void play_both(struct ahead *ahead, const struct engine *engine,
                      const char *settings, const struct engine *changed,
                      const char *changed_settings)
{
    double wanted_s = ahead->change.ahead_s;
    double far_s = wanted_s;
    for (uint32_t turn = 0; turn < 3; turn++) {
        double one_s = play(ahead, engine, settings, far_s, false);
        double two_s = one_s < 0 ? one_s
                                 : play(ahead, changed, changed_settings,
                                        fmin(one_s, far_s), true);
        if (two_s < 0) {
            ahead->status = (int)two_s;
            return;
        }
        ahead->played_s = two_s;
        if (two_s >= one_s)
            return;
        far_s = two_s;
    }
}

static int change_engine(struct ahead *ahead, const struct engine *engine,
                         const char *settings, struct engine_snapshot *changed,
                         struct arena *arena, const char **ret_settings)
{
    const struct ahead_change *change = &ahead->change;
    struct engine_copy_setup setup = { .settings = settings };
    struct cluster *cluster = arena_new(arena, struct cluster);
    int r = 0;
    if (change->add[0]) {
        r = cluster_extend(cluster, arena, engine->state.view.cluster, change->add,
                           &ahead->err);
        setup.cluster = cluster;
    }
    if (r == 0 && change->policy[0])
        r = policy_parse(change->policy, &setup.policy, &setup.settings, &ahead->err);
    if (r == 0)
        r = engine_snapshot_take(changed, engine, &setup, &ahead->err);
    *ret_settings = setup.settings;
    return r;
}

static int play_ahead(struct forecast_task *task, struct engine *engine,
                      const char *settings)
{
    struct ahead *ahead = (struct ahead *)task;
    const struct ahead_change *change = &ahead->change;
    struct engine_snapshot changed = { 0 };
    struct arena arena;
    const char *changed_settings;
    const struct forecast_history *history = forecasts_history(ahead->forecasts);
    arena_init(&arena, 0);
    ahead->status = 0;
    if (history->times.count < RUN_TIMES_ENOUGH)
        ahead->status = error_set(&ahead->err, -ENODATA,
                                  "fewer than %d jobs have ended: nothing is known of "
                                  "how long jobs run",
                                  RUN_TIMES_ENOUGH);
    if (ahead->status == 0)
        ahead->status =
            change_engine(ahead, engine, settings, &changed, &arena, &changed_settings);
    if (ahead->status == 0) {
        /* An untouched copy inherits exactly; another policy, or one that sees events, has to know
         * the jobs. */
        if (change->policy[0] || change->removed_count || change->without_count ||
            change->without_user)
            engine_adopt_jobs(&changed.engine);
        ahead->status = apply_change(&changed.engine, change, &ahead->err);
    }
    if (ahead->status == 0) {
        snprintf(ahead->policies[0], TEXT_MAX, "%s%s%s", engine->policy->name,
                 settings ? "," : "", settings ? settings : "");
        snprintf(ahead->policies[1], TEXT_MAX, "%s",
                 change->policy[0] ? change->policy : ahead->policies[0]);
        play_both(ahead, engine, settings, &changed.engine, changed_settings);
    }
    engine_snapshot_release(&changed);
    arena_release(&arena);
    return ahead->status;
}

/* --- the reply ------------------------------------------------------------------------------------ */

/* Figures of one future, and their names. */
enum {
    FIGURE_FINISHED,
    FIGURE_WAIT,
    FIGURE_COMPLETION,
    FIGURE_UTILISATION,
    FIGURE_PREEMPTIONS,
    FIGURE_COUNT
};

static const char *const figure_keys[FIGURE_COUNT] = {
    "jobs_finished",   "mean_wait_s", "mean_completion_s",
    "gpu_utilization", "preemptions",
};

static double figure_of(const struct replicate_figures *figures, int figure)
{
    double jobs = figures->jobs > 0 ? figures->jobs : 1;
    switch (figure) {
    case FIGURE_FINISHED:
        return figures->finished;
    case FIGURE_WAIT:
        return figures->waiting_s / jobs;
    case FIGURE_COMPLETION:
        return figures->live_s / jobs;
    case FIGURE_UTILISATION:
        return figures->gpu_s > 0 ? figures->held_gpu_s / figures->gpu_s : 0;
    default:
        return figures->preemptions;
    }
}

/* The mean of some values, and what lies between the second and the last but one. */
static void write_values(struct buf *body, const char *key, double values[FUTURES],
                         bool interval)
{
    double scratch[FUTURES];
    double sum = 0;
    for (uint32_t k = 0; k < FUTURES; k++)
        sum += values[k];
    if (!interval) {
        json_write_number(body, key, sum / FUTURES);
        return;
    }
    sort_numbers(values, scratch, FUTURES);
    json_write_open(body, key, '{');
    json_write_number(body, "mean", sum / FUTURES);
    json_write_number(body, "low", values[1]);
    json_write_number(body, "high", values[FUTURES - 2]);
    json_write_close(body, '}');
}

static void write_side(struct buf *body, const struct ahead *ahead, uint32_t side)
{
    json_write_open(body, side ? "changed" : "present", '{');
    json_write_text(body, "policy", ahead->policies[side]);
    for (int f = 0; f < FIGURE_COUNT; f++) {
        double values[FUTURES];
        for (uint32_t k = 0; k < FUTURES; k++)
            values[k] = figure_of(&ahead->figures[side][k], f);
        write_values(body, figure_keys[f], values, false);
    }
    json_write_close(body, '}');
}

static void write_result(const struct ahead *ahead, struct buf *body)
{
    json_write_open(body, NULL, '{');
    json_write_number(body, "ahead_s", ahead->played_s);
    json_write_count(body, "futures", FUTURES);
    json_write_time_ns(body, "took_s", ahead->task.took_ns);
    write_side(body, ahead, 0);
    write_side(body, ahead, 1);
    json_write_open(body, "difference", '{');
    for (int f = 0; f < FIGURE_COUNT; f++) {
        double values[FUTURES];
        for (uint32_t k = 0; k < FUTURES; k++)
            values[k] = figure_of(&ahead->figures[1][k], f) -
                        figure_of(&ahead->figures[0][k], f);
        write_values(body, figure_keys[f], values, true);
    }
    json_write_close(body, '}');
    json_write_close(body, '}');
    buf_text(body, "\n");
}

static void free_ahead(struct ahead *ahead)
{
    forecasts_free_releases(&ahead->releases);
    free(ahead->change.removed);
    free(ahead->change.without);
    free(ahead);
}

static void send_result(struct ahead *ahead)
{
    const struct forecast_task *task = &ahead->task;
    if (ahead->is_replied)
        return;
    ahead->is_replied = true;
    struct http_reply *reply = http_delayed_reply(&ahead->delayed);
    if (task->status < 0)
        http_reply_retry(reply, 503, task->why);
    else if (task->dropped)
        http_reply_error(reply, 503, NULL, "playing that forward takes too long");
    else if (ahead->status == -ENODATA)
        http_reply_error(reply, 409, NULL, ahead->err.text);
    else if (ahead->status < 0)
        routes_fail(reply, ahead->status, &ahead->err);
    else
        write_result(ahead, &reply->body);
    http_delayed_send(&ahead->delayed);
}

static void on_closed(uv_handle_t *handle)
{
    free_ahead(handle->data);
}

static void on_played(struct forecast_task *task)
{
    struct ahead *ahead = (struct ahead *)task;
    send_result(ahead);
    uv_close((uv_handle_t *)&ahead->timer, on_closed);
}

static void on_wait_over(uv_timer_t *timer)
{
    struct ahead *ahead = timer->data;
    forecast_task_drop(&ahead->task);
    send_result(ahead);
}

static void on_disconnected(void *self)
{
    struct ahead *ahead = self;
    ahead->is_replied = true;
    forecast_task_drop(&ahead->task);
}

/* --- the request ---------------------------------------------------------------------------------- */

static int read_text(const char *key, const struct json *value, char *text,
                     struct error *err)
{
    const char *said = json_as_text(value);
    if (!said || strlen(said) >= TEXT_MAX)
        return error_set(err, -EINVAL, "%s: want a text of less than %d bytes", key,
                         TEXT_MAX);
    snprintf(text, TEXT_MAX, "%s", said);
    return 0;
}

static int read_removed(struct ahead_change *change, const struct json *value,
                        const struct cluster *cluster, struct error *err)
{
    size_t count = json_count(value);
    if (!json_is_array(value) || count > REMOVED_MAX)
        return error_set(err, -EINVAL, "remove: want a list of up to %d nodes",
                         REMOVED_MAX);
    change->removed = memory_checked(calloc(count + 1, sizeof *change->removed));
    for (size_t i = 0; i < count; i++) {
        const char *name = json_as_text(json_item(value, i));
        node_id node = name ? cluster_find_node(cluster, name) : NODE_NONE;
        if (node == NODE_NONE)
            return error_set(err, -EINVAL, "remove: there is no node %.60s",
                             name ? name : "of that kind");
        change->removed[change->removed_count++] = node;
    }
    return 0;
}

static int read_without(struct ahead_change *change, const struct json *value,
                        struct error *err)
{
    size_t count = json_count(value);
    if (!json_is_array(value) || count > WITHOUT_MAX)
        return error_set(err, -EINVAL, "without: want a list of up to %d jobs",
                         WITHOUT_MAX);
    change->without = memory_checked(calloc(count + 1, sizeof *change->without));
    for (size_t i = 0; i < count; i++) {
        int64_t id;
        if (!json_as_count(json_item(value, i), &id) || id < 1)
            return error_set(err, -EINVAL, "without: want numbers of jobs");
        change->without[change->without_count++] = (uint64_t)id;
    }
    return 0;
}

static int read_user(struct ahead_change *change, const struct json *value,
                     const struct scheduler *scheduler, struct error *err)
{
    const char *name = json_as_text(value);
    if (!name || !*name)
        return error_set(err, -EINVAL, "without_user: want the name of a user");
    change->without_user = admission_find_user(&scheduler->admission, name);
    return change->without_user
               ? 0
               : error_set(err, -EINVAL, "without_user: no job of %.60s is known",
                           name);
}

static int read_key(struct ahead_change *change, const char *key,
                    const struct json *value, const struct daemon_view *facts,
                    struct error *err)
{
    double number;
    int64_t seed;
    if (strcmp(key, "ahead_s") == 0) {
        if (!json_as_number(value, &number) || !(number >= AHEAD_LEAST_S) ||
            !(number <= AHEAD_MOST_S))
            return error_set(err, -EINVAL, "ahead_s: want %d to %.0f seconds",
                             AHEAD_LEAST_S, AHEAD_MOST_S);
        change->ahead_s = number;
        return 0;
    }
    if (strcmp(key, "policy") == 0)
        return read_text(key, value, change->policy, err);
    if (strcmp(key, "add") == 0)
        return read_text(key, value, change->add, err);
    if (strcmp(key, "remove") == 0)
        return read_removed(change, value, facts->engine->state.view.cluster, err);
    if (strcmp(key, "without") == 0)
        return read_without(change, value, err);
    if (strcmp(key, "without_user") == 0)
        return read_user(change, value, facts->scheduler, err);
    if (strcmp(key, "seed") == 0 && json_as_count(value, &seed) && seed >= 0) {
        change->seed = (uint64_t)seed;
        return 0;
    }
    return error_set(err, -EINVAL, "%.60s: there is no such field, or no such value",
                     key);
}

/* What can be checked at once: names of policies and types. */
static int check_change(const struct ahead_change *change,
                        const struct daemon_view *facts, struct arena *arena,
                        struct error *err)
{
    const struct policy *policy;
    const char *settings;
    struct cluster extended;
    int r = 0;
    if (!change->policy[0] && !change->add[0] && change->removed_count == 0 &&
        change->without_count == 0 && change->without_user == 0)
        return error_set(err, -EINVAL, "there is nothing to change in it");
    if (change->policy[0])
        r = policy_parse(change->policy, &policy, &settings, err);
    if (r == 0 && change->add[0])
        r = cluster_extend(&extended, arena, facts->engine->state.view.cluster,
                           change->add, err);
    return r;
}

static int read_change(struct ahead_change *change, const struct http_request *request,
                       const struct daemon_view *facts, struct error *err)
{
    struct json *json;
    const char *key;
    const struct json *value;
    int r = json_parse(request->body, request->body_size, &json, err);
    if (r < 0)
        return r;
    if (!json_is_object(json))
        r = error_set(err, -EINVAL, "want an object");
    for (void *at = NULL; r == 0 && (at = json_member(json, at, &key, &value));)
        r = read_key(change, key, value, facts, err);
    json_free(json);
    return r < 0 ? r : check_change(change, facts, request->arena, err);
}

static void answer_ahead(struct routes *routes, const struct http_request *request,
                         uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_view facts;
    struct error err = { "" };
    if (!routes_need_engine(routes, &facts, reply))
        return;
    struct ahead *ahead = memory_checked(calloc(1, sizeof *ahead));
    *ahead = (struct ahead){ .task = { .work = play_ahead,
                                       .done = on_played,
                                       .owner = routes_caller(request).uid },
                             .delayed = { .closed = on_disconnected, .self = ahead },
                             .forecasts = facts.forecasts,
                             .change = { .ahead_s = 2 * 86400, .seed = 1 } };
    int r = read_change(&ahead->change, request, &facts, &err);
    if (r == 0) {
        forecasts_list_releases(facts.conditions, &ahead->releases);
        r = forecast_worker_add(forecasts_worker(facts.forecasts), &ahead->task, &err);
    }
    if (r < 0) {
        free_ahead(ahead);
        routes_fail(reply, r, &err);
        return;
    }
    uv_timer_init(facts.scheduler->loop, &ahead->timer);
    ahead->timer.data = ahead;
    uv_timer_start(&ahead->timer, on_wait_over, WAIT_MS, 0);
    reply->delayed = &ahead->delayed;
}

const struct route ahead_routes[] = {
    { "POST", "/v1/ahead", SCOPES_READ, "", answer_ahead },
    { 0 },
};
