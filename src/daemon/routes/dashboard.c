/*
 * dashboard.c - the last hours for the dashboard, and what it begins with: everything in one
 * reply, with the number of the last event in it, so that the event stream goes on from there.
 */
#include "daemon/routes/dashboard.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/buf.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/routes/job_query.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/users.h"
#include "daemon/why.h"
#include "engine/engine.h"
#include "metrics/occupancy.h"
#include "model/cluster.h"
#include "model/event_record.h"
#include "store/db.h"
#include "store/store.h"

#define SPANS_MAX 8000
#define SPANS_S (6 * 3600) /* so far back, unless asked otherwise */
#define ENDED_MAX 200      /* jobs */
#define ENTRIES_MAX 1000   /* of the ledger */
#define SAMPLE_MS 5000
#define SPANS_KEPT 16384
#define EVENTS_READ 50000 /* the newest of the log, after a restart */

struct dashboard {
    struct daemon *daemon;
    uv_timer_t timer;
    struct occupancy occupancy;
    struct trends trends;
};

/* ---- trends ---- */

/* Drop every second sample of the older three quarters; the newest stay as they are. */
static void thin_out_samples(struct trends *trends)
{
    uint32_t old = trends->count / 4 * 3, kept = 0;
    for (uint32_t i = 0; i < trends->count; i++)
        if (i >= old || i % 2 == 0)
            trends->samples[kept++] = trends->samples[i];
    trends->count = kept;
}

struct trends_sample *trends_add(struct trends *trends, int64_t at_ns)
{
    if (trends->count == TRENDS_SAMPLES)
        thin_out_samples(trends);
    struct trends_sample *sample = &trends->samples[trends->count++];
    *sample = (struct trends_sample){ .at_ns = at_ns };
    return sample;
}

uint32_t trends_find_reason(struct trends *trends, const char *token)
{
    for (uint32_t i = 0; i < trends->token_count; i++)
        if (strcmp(trends->tokens[i], token) == 0)
            return i;
    if (trends->token_count == TRENDS_REASONS)
        return TRENDS_REASONS - 1;
    trends->tokens[trends->token_count] = token;
    return trends->token_count++;
}

uint32_t trends_find_group(struct trends *trends, uint64_t key, bool *ret_new)
{
    *ret_new = false;
    for (uint32_t i = 0; i < trends->group_count; i++)
        if (trends->groups[i].key == key)
            return i;
    if (trends->group_count == TRENDS_GROUPS) {
        struct trends_group *last = &trends->groups[TRENDS_GROUPS - 1];
        snprintf(last->name, sizeof last->name, "all others");
        return TRENDS_GROUPS - 1;
    }
    *ret_new = true;
    trends->groups[trends->group_count] = (struct trends_group){ .key = key };
    return trends->group_count++;
}

void trends_fair_shares(const double *wanted, const double *weight, uint32_t count,
                        double gpus, double *due)
{
    bool full[TRENDS_GROUPS] = { false };
    assert(count <= TRENDS_GROUPS);
    for (uint32_t i = 0; i < count; i++)
        due[i] = 0;
    /* Each round satisfies a group, or divides all that is left. */
    for (uint32_t round = 0; round < count && gpus > 0; round++) {
        double weights = 0, given = 0;
        bool enough = false;
        for (uint32_t i = 0; i < count; i++)
            weights += full[i] || !(wanted[i] > 0) ? 0 : weight[i];
        if (!(weights > 0))
            return;
        for (uint32_t i = 0; i < count; i++) {
            if (full[i] || !(wanted[i] > 0) || wanted[i] > gpus * weight[i] / weights)
                continue;
            full[i] = enough = true;
            due[i] = wanted[i];
            given += wanted[i];
        }
        for (uint32_t i = 0; !enough && i < count; i++)
            if (!full[i] && wanted[i] > 0)
                due[i] = gpus * weight[i] / weights;
        if (!enough)
            return;
        gpus -= given;
    }
}

/* ---- groups: entities, and the users of jobs without an entity ---- */

#define USERS (UINT64_C(1) << 32) /* keys from here on are users */

static uint64_t group_key(const struct dashboard *dashboard, job_id id,
                          const struct job *job)
{
    return job->entity ? job->entity : USERS + daemon_owner(dashboard->daemon, id);
}

/* The name of a group is in the store. */
static void name_group(struct dashboard *dashboard, struct db *db, uint32_t group,
                       const struct job *job)
{
    struct trends_group *one = &dashboard->trends.groups[group];
    struct db_query *query =
        db_prepare_once(db, job->entity ? "SELECT entity FROM job WHERE id = ?"
                                        : "SELECT user FROM job WHERE id = ?");
    const char *name = NULL;
    if (query) {
        db_int(query, 1, (int64_t)job->id);
        name = db_next(query, NULL) == 1 ? db_get_text(query, 0) : NULL;
    }
    snprintf(one->name, sizeof one->name, "%.60s", name ? name : "?");
    db_finish(query);
}

static double find_weight(const struct cluster *cluster, uint64_t key)
{
    return key >= 1 && key <= cluster->entity_count ? cluster->entities[key - 1].weight
                                                    : 1;
}

/* ---- a sample ---- */

/* A sample being taken. */
struct dashboard_sampling {
    struct dashboard *dashboard;
    struct daemon_view facts;
    struct trends_sample *sample;
    double wanted[TRENDS_GROUPS];
};

static void count_gpus(struct dashboard_sampling *sampling)
{
    const struct state *state = &sampling->facts.engine->state;
    const struct cluster *cluster = state->view.cluster;
    sampling->sample->gpus = cluster->gpu_count;
    for (node_id node = 0; node < cluster->node_count; node++) {
        uint32_t count = cluster->nodes[node].gpu_count;
        uint64_t all = count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
        uint64_t taken = all & ~state->free.rooms[node].gpus;
        sampling->sample->foreign += bits_count(state->foreign[node]);
        sampling->sample->held += bits_count(taken & ~state->foreign[node]);
    }
}

static void count_waiting_job(struct dashboard_sampling *sampling, job_id id)
{
    struct why_scene scene = { .engine = sampling->facts.engine,
                               .conditions = sampling->facts.conditions,
                               .now_ns = sampling->facts.now_ns };
    const char *token = "";
    char text[240];
    why_brief(&scene, id, text, sizeof text, &token);
    sampling->sample->waiting++;
    sampling->sample
        ->reasons[trends_find_reason(&sampling->dashboard->trends, token)]++;
}

static void count_job(struct dashboard_sampling *sampling, job_id id)
{
    struct dashboard *dashboard = sampling->dashboard;
    const struct job *job = &sampling->facts.engine->state.jobs[id];
    bool is_new;
    uint32_t group =
        trends_find_group(&dashboard->trends, group_key(dashboard, id, job), &is_new);
    if (is_new)
        name_group(dashboard, store_reader(sampling->facts.store), group, job);
    if (job_holds_seats(job)) {
        sampling->sample->running++;
        sampling->sample->got[group] += (float)job->gpus_now;
        sampling->wanted[group] += job->gpus_now;
    } else {
        count_waiting_job(sampling, id);
        sampling->wanted[group] += job->state == JOB_HELD ? 0 : job->gpus;
    }
}

static void set_fair_shares(struct dashboard_sampling *sampling)
{
    const struct trends *trends = &sampling->dashboard->trends;
    const struct cluster *cluster = sampling->facts.engine->state.view.cluster;
    double weight[TRENDS_GROUPS] = { 0 }, due[TRENDS_GROUPS];
    for (uint32_t i = 0; i < trends->group_count; i++)
        weight[i] = find_weight(cluster, trends->groups[i].key);
    trends_fair_shares(sampling->wanted, weight, trends->group_count,
                       sampling->sample->gpus - sampling->sample->foreign, due);
    for (uint32_t i = 0; i < trends->group_count; i++)
        sampling->sample->due[i] = (float)due[i];
}

static void on_timer(uv_timer_t *timer)
{
    struct dashboard *dashboard = timer->data;
    struct dashboard_sampling sampling = { .dashboard = dashboard };
    daemon_view_of(dashboard->daemon, &sampling.facts);
    if (!sampling.facts.engine)
        return;
    const struct state *state = &sampling.facts.engine->state;
    sampling.sample = trends_add(&dashboard->trends, sampling.facts.now_ns);
    count_gpus(&sampling);
    for (job_id id = 0; id < state->job_count; id++)
        if (state->jobs[id].state != JOB_FREE)
            count_job(&sampling, id);
    set_fair_shares(&sampling);
}

void dashboard_event(struct dashboard *dashboard, const struct event_record *record)
{
    occupancy_apply(&dashboard->occupancy, record);
    if (!uv_is_active((uv_handle_t *)&dashboard->timer))
        uv_timer_start(&dashboard->timer, on_timer, SAMPLE_MS, 0);
}

/* ---- startup and shutdown ---- */

/* Which job held which GPUs before the restart, from the newest events of the log. */
static void replay_events(struct occupancy *occupancy, struct db *db)
{
    struct arena arena;
    struct event_record record;
    struct db_query *query = db_prepare_once(
        db, "SELECT text, (SELECT class FROM job WHERE job.id = event.job) FROM event "
            "WHERE seq > (SELECT max(seq) FROM event) - ? AND kind != 'progress' "
            "ORDER BY seq");
    if (!query)
        return;
    arena_init(&arena, 0);
    db_int(query, 1, EVENTS_READ);
    while (db_next(query, NULL) == 1) {
        const char *line = db_get_text(query, 0), *class = db_get_text(query, 1);
        arena_reset(&arena);
        if (event_record_read(line, strlen(line), &arena, &record) < 0)
            continue;
        record.class = class && strcmp(class, "te") == 0 ? CLASS_TE : CLASS_BE;
        occupancy_apply(occupancy, &record);
    }
    db_finish(query);
    arena_release(&arena);
}

void dashboard_open(struct dashboard **ret_dashboard, struct daemon *daemon,
                    struct uv_loop_s *loop)
{
    struct dashboard *dashboard = memory_checked(calloc(1, sizeof *dashboard));
    struct daemon_view facts;
    daemon_view_of(daemon, &facts);
    dashboard->daemon = daemon;
    occupancy_init(&dashboard->occupancy, SPANS_KEPT);
    replay_events(&dashboard->occupancy, store_reader(facts.store));
    uv_timer_init(loop, &dashboard->timer);
    dashboard->timer.data = dashboard;
    uv_timer_start(&dashboard->timer, on_timer, SAMPLE_MS, 0);
    *ret_dashboard = dashboard;
}

static void on_closed(uv_handle_t *handle)
{
    struct dashboard *dashboard = handle->data;
    occupancy_release(&dashboard->occupancy);
    free(dashboard);
}

void dashboard_close(struct dashboard *dashboard)
{
    uv_close((uv_handle_t *)&dashboard->timer, on_closed);
}

/* ---- routes ---- */

struct trends_column {
    struct buf *buf;
    const struct trends *trends;
    uint32_t from;
};

static void write_counts(const struct trends_column *c, const char *key, size_t offset)
{
    json_write_open(c->buf, key, '[');
    for (uint32_t i = c->from; i < c->trends->count; i++) {
        uint32_t count;
        memcpy(&count, (const char *)&c->trends->samples[i] + offset, sizeof count);
        json_write_count(c->buf, NULL, count);
    }
    json_write_close(c->buf, ']');
}

static void write_shares(const struct trends_column *c, const char *key, uint32_t group,
                         bool due)
{
    json_write_open(c->buf, key, '[');
    for (uint32_t i = c->from; i < c->trends->count; i++) {
        const struct trends_sample *sample = &c->trends->samples[i];
        json_write_number(c->buf, NULL, due ? sample->due[group] : sample->got[group]);
    }
    json_write_close(c->buf, ']');
}

static void write_reasons(const struct trends_column *c)
{
    json_write_open(c->buf, "reasons", '[');
    for (uint32_t i = 0; i < c->trends->token_count; i++) {
        json_write_open(c->buf, NULL, '{');
        json_write_text(c->buf, "token", c->trends->tokens[i]);
        write_counts(c, "jobs",
                     offsetof(struct trends_sample, reasons) + i * sizeof(uint32_t));
        json_write_close(c->buf, '}');
    }
    json_write_close(c->buf, ']');
}

static void write_groups(const struct trends_column *c)
{
    json_write_open(c->buf, "entities", '[');
    for (uint32_t i = 0; i < c->trends->group_count; i++) {
        json_write_open(c->buf, NULL, '{');
        json_write_text(c->buf, "name", c->trends->groups[i].name);
        write_shares(c, "due", i, true);
        write_shares(c, "got", i, false);
        json_write_close(c->buf, '}');
    }
    json_write_close(c->buf, ']');
}

void trends_write(const struct trends *trends, struct buf *buf, int64_t since_ns)
{
    struct trends_column c = { .buf = buf, .trends = trends };
    while (c.from < trends->count && trends->samples[c.from].at_ns <= since_ns)
        c.from++;
    json_write_open(buf, "t", '[');
    for (uint32_t i = c.from; i < trends->count; i++)
        json_write_time(buf, NULL, trends->samples[i].at_ns);
    json_write_close(buf, ']');
    write_counts(&c, "gpus", offsetof(struct trends_sample, gpus));
    write_counts(&c, "held", offsetof(struct trends_sample, held));
    write_counts(&c, "foreign", offsetof(struct trends_sample, foreign));
    write_counts(&c, "running", offsetof(struct trends_sample, running));
    write_counts(&c, "waiting", offsetof(struct trends_sample, waiting));
    write_reasons(&c);
    write_groups(&c);
}

static void put_caller(struct routes *routes, const struct http_request *request,
                       struct buf *body)
{
    struct caller caller = routes_caller(request);
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    struct user user = users_find(facts.users, request->uid);
    json_write_open(body, "me", '{');
    if (user.named)
        json_write_text(body, "user", user.name);
    json_write_flag(body, "all", caller_may(&caller, UINT32_MAX - 1));
    json_write_close(body, '}');
}

static void put_span(struct buf *body, const struct occupancy_span *span)
{
    json_write_open(body, NULL, '{');
    json_write_count(body, "job", (int64_t)span->job);
    json_write_count(body, "attempt", span->attempt);
    json_write_text(body, "class", span->class == CLASS_TE ? "te" : "be");
    json_write_count(body, "node", span->node);
    json_write_bits(body, "gpus", span->gpus);
    if (span->start_ns >= 0)
        json_write_time(body, "start", span->start_ns);
    if (span->end_ns >= 0)
        json_write_time(body, "end", span->end_ns);
    json_write_text_if(body, "how", occupancy_end_name(span->end));
    json_write_close(body, '}');
}

/* The newest SPANS_MAX of what is pending or was held after 'since_ns'. */
static void put_spans(struct routes *routes, struct buf *body, int64_t since_ns)
{
    const struct occupancy *occupancy = &routes->dashboard->occupancy;
    uint32_t first = occupancy_first(occupancy), at = occupancy->count, shown = 0;
    for (; at > first && shown < SPANS_MAX; at--)
        shown += occupancy_is_current(occupancy_at(occupancy, at - 1), since_ns);
    json_write_open(body, "spans", '[');
    for (; at < occupancy->count; at++)
        if (occupancy_is_current(occupancy_at(occupancy, at), since_ns))
            put_span(body, occupancy_at(occupancy, at));
    json_write_close(body, ']');
}

static void put_all_jobs(struct routes *routes, const struct http_request *request,
                         struct buf *body)
{
    struct job_filter live = { .since_ns = -1, .until_ns = -1, .limit = 100000 };
    struct job_filter ended = { .states = JOB_STATES_ENDED,
                                .ended = true,
                                .newest_first = true,
                                .since_ns = -1,
                                .until_ns = -1,
                                .limit = ENDED_MAX };
    job_query_write_list(routes, request, &live, "jobs", body);
    job_query_write_list(routes, request, &ended, "ended", body);
}

static void show_snapshot(struct routes *routes, const struct http_request *request,
                          uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_view facts;
    struct buf *body = &reply->body;
    const struct state *state = routes_need_engine(routes, &facts, reply);
    int64_t since_ns = facts.now_ns - SPANS_S * NS_PER_S;
    if (!state || !routes_read_time(request, "since", &since_ns, reply))
        return;
    json_write_open(body, NULL, '{');
    json_write_count(body, "seq", (int64_t)store_last_seq(facts.store));
    json_write_time(body, "now", facts.now_ns);
    put_caller(routes, request, body);
    routes_write_server(routes, "server", body);
    routes_write_nodes(&facts, "nodes", body);
    put_all_jobs(routes, request, body);
    put_spans(routes, body, since_ns);
    job_query_write_ledger(routes, 0, 0, ENTRIES_MAX, body);
    json_write_close(body, '}');
    buf_text(body, "\n");
}

static void show_trends(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    int64_t since_ns = 0;
    if (!routes_read_time(request, "since", &since_ns, reply))
        return;
    json_write_open(&reply->body, NULL, '{');
    trends_write(&routes->dashboard->trends, &reply->body, since_ns);
    json_write_close(&reply->body, '}');
    buf_text(&reply->body, "\n");
}

const struct route dashboard_routes[] = {
    { "GET", "/v1/snapshot", SCOPES_READ, "since", show_snapshot },
    { "GET", "/v1/trends", SCOPES_READ, "since", show_trends },
    { 0 },
};
