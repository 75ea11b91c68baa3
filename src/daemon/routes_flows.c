/* routes_flows.c - whose packets go first: to people, and to the agents that mark them. */
#include "daemon/routes_internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json_write.h"
#include "base/json.h"
#include "base/map.h"
#include "daemon/flows.h"
#include "daemon/sent.h"
#include "engine/engine.h"
#include "executor/executor.h"
#include "flow/flow.h"
#include "flow/marks.h"
#include "metrics/prometheus.h"
#include "model/cluster.h"

#define CGROUPS "/sys/fs/cgroup/"
#define JOB_BYTES_MAX 1000 /* of one job in an event */

/* Does anybody give out levels? */
static bool has_levels(const struct engine *engine)
{
    return engine->flow && engine->flow->decide;
}

static uint32_t level_count(const struct engine *engine)
{
    return has_levels(engine) ? flow_levels(engine->flow, engine->flow_self)
                              : MARKS_COUNT;
}

static bool is_seated(const struct state *state, job_id id)
{
    return state->jobs[id].state != JOB_FREE && job_seated(&state->jobs[id]);
}

static bool may_mark(const struct http_request *request, struct http_reply *reply)
{
    if (request->uid == 0 || request->uid == geteuid())
        return true;
    http_reply_error(reply, 403, NULL, "only who runs berthd may do that");
    return false;
}

/* What a host may be called; it is printed, and compared. */
static bool is_host_name(const char *name)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-_.";
    size_t count = strlen(name);
    return count > 0 && count < FLOWS_HOST_MAX && strspn(name, fine) == count;
}

/* ---- to agents ---- */

/* Where its processes are, as far as we know. */
static void put_place(struct buf *buf, const struct daemon_facts *facts, job_id id)
{
    struct job_processes place;
    if (!facts->executor_self || !facts->executor->find_processes ||
        !facts->executor->find_processes(facts->executor_self, id, &place))
        return;
    if (strncmp(place.cgroup, CGROUPS, strlen(CGROUPS)) == 0)
        json_write_text(buf, "cgroup", place.cgroup + strlen(CGROUPS));
    if (place.pid > 0)
        json_write_count(buf, "pid", place.pid);
}

static void put_wanted(struct buf *buf, const struct daemon_facts *facts, job_id id)
{
    const struct job *job = &facts->engine->state.jobs[id];
    json_write_open(buf, NULL, '{');
    json_write_count(buf, "id", (int64_t)job->id);
    json_write_count(buf, "level",
                     job->level < level_count(facts->engine)
                         ? job->level
                         : level_count(facts->engine) - 1);
    json_write_count(buf, "attempt", job->attempt);
    put_place(buf, facts, id);
    json_write_text(buf, "executor", facts->engine->executor->name);
    json_write_close(buf, '}');
}

/* The whole truth about a host.  Without levels nobody is marked. */
static bool write_wanted(void *context, const char *host, struct buf *buf)
{
    struct routes *routes = context;
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    if (!facts.engine)
        return false;
    const struct state *state = &facts.engine->state;
    char own[FLOWS_HOST_MAX] = "local";
    gethostname(own, sizeof own - 1);
    json_write_open(buf, NULL, '{');
    json_write_text(buf, "flow",
                    facts.engine->flow ? facts.engine->flow->name : "fair");
    json_write_count(buf, "levels", level_count(facts.engine));
    json_write_text(buf, "host", *host ? host : own);
    json_write_count(buf, "valid_s", FLOWS_VALID_S);
    json_write_open(buf, "jobs", '[');
    uint32_t count = 0;
    for (job_id id = 0; has_levels(facts.engine) && id < state->job_count; id++) {
        if (!is_seated(state, id) ||
            (*host && !daemon_on_host(routes->daemon, id, host)))
            continue;
        if (count++ == FLOWS_JOBS_MAX || buf->count + JOB_BYTES_MAX > FLOWS_EVENT_MAX)
            break; /* more than an agent takes: the others go unmarked */
        put_wanted(buf, &facts, id);
    }
    json_write_close(buf, ']');
    json_write_close(buf, '}');
    return true;
}

void routes_flows_open(struct routes *routes, struct uv_loop_s *loop)
{
    struct flows_setup setup = { .loop = loop,
                                 .write = write_wanted,
                                 .context = routes };
    flows_open(&routes->flows, &setup);
}

/* ---- to people ---- */

static void put_why(struct buf *buf, const struct engine *engine, job_id id)
{
    struct flow_reason reason;
    if (!engine->flow || !engine->flow->explain)
        return;
    engine->flow->explain(engine->flow_self, &engine->state.view, id, &reason);
    if (isfinite(reason.score))
        json_write_number(buf, "score", reason.score);
    json_write_text(buf, "why", reason.text);
}

static void put_flow(struct buf *buf, const struct daemon_facts *facts, job_id id)
{
    const struct state *state = &facts->engine->state;
    const struct job *job = &state->jobs[id];
    const struct seat *seats = view_seats(&state->view, id);
    struct sent_facts sent = sent_look(facts->sent, job->id, facts->now_ns);
    json_write_open(buf, NULL, '{');
    json_write_count(buf, "job", (int64_t)job->id);
    json_write_count(buf, "level", job->level);
    json_write_open(buf, "hosts", '[');
    for (uint32_t i = 0; i < job->seats.count; i++) {
        char name[64];
        json_write_text(
            buf, NULL,
            cluster_node_name(state->view.cluster, seats[i].node, name, sizeof name));
    }
    json_write_close(buf, ']');
    if (sent.counted)
        json_write_number(buf, "bytes", sent.bytes);
    if (isfinite(sent.bytes_per_s))
        json_write_number(buf, "bytes_per_s", sent.bytes_per_s);
    put_why(buf, facts->engine, id);
    json_write_close(buf, '}');
}

static void show_all(struct routes *routes, struct http_reply *reply)
{
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
    if (!facts.engine) {
        struct error err;
        int r = error_set(&err, -EAGAIN, "the store cannot be written just now");
        reply_failure(reply, r, &err);
        return;
    }
    struct buf *body = &reply->body;
    const struct state *state = &facts.engine->state;
    json_write_open(body, NULL, '{');
    json_write_text_if(body, "flow", facts.flow);
    if (has_levels(facts.engine))
        json_write_count(body, "levels", level_count(facts.engine));
    json_write_open(body, "agents", '[');
    for (uint32_t i = 0; i < flows_clients(routes->flows); i++)
        json_write_text(body, NULL, flows_client_host(routes->flows, i));
    json_write_close(body, ']');
    json_write_open(body, "flows", '[');
    for (job_id id = 0; id < state->job_count; id++)
        if (is_seated(state, id))
            put_flow(body, &facts, id);
    json_write_close(body, ']');
    json_write_close(body, '}');
    buf_text(body, "\n");
}

void show_flows(struct routes *routes, const struct http_request *request, uint64_t id,
                struct http_reply *reply)
{
    (void)id;
    bool follow = false;
    const char *host = http_query(request, "host");
    if (!read_flag(request, "follow", &follow, reply))
        return;
    if (host && !is_host_name(host)) {
        http_reply_error(reply, 400, "host", "host: want the name of a host");
        return;
    }
    if (host && !follow) {
        http_reply_error(reply, 400, "host", "host: only with follow=true");
        return;
    }
    if (!follow)
        show_all(routes, reply);
    else if (may_mark(request, reply))
        flows_reply(routes->flows, host ? host : "", reply);
}

/* ---- from agents ---- */

static int read_one(const struct json *item, struct map *seen, struct daemon_bytes *ret,
                    struct error *err)
{
    int64_t id, bytes;
    if (!json_is_object(item))
        return error_set(err, -EINVAL, "jobs: want {\"id\", \"bytes\"}");
    if (!json_as_count(json_get(item, "id"), &id) || id < 1)
        return error_set(err, -EINVAL, "jobs: want a job's number as \"id\"");
    if (!json_as_count(json_get(item, "bytes"), &bytes) || bytes < 0 ||
        bytes > SENT_BYTES_MAX)
        return error_set(err, -EINVAL,
                         "jobs: want a whole number, 0 to 2^60, as \"bytes\"");
    if (map_find(seen, (uint64_t)id) != MAP_NONE)
        return error_set(err, -EINVAL, "jobs: job %lld is there twice", (long long)id);
    map_put(seen, (uint64_t)id, 0);
    *ret = (struct daemon_bytes){ .job = (uint64_t)id, .bytes = bytes };
    return 0;
}

/* All of it is right, or nothing is taken. */
static int read_counts(const struct json *json, const char **ret_host,
                       struct daemon_bytes *list, uint32_t *ret_count,
                       struct error *err)
{
    if (!json_is_object(json))
        return error_set(err, -EINVAL, "want an object");
    const char *host = json_as_text(json_get(json, "host"));
    const struct json *jobs = json_get(json, "jobs");
    if (!host || !is_host_name(host))
        return error_set(err, -EINVAL, "host: want the name of a host");
    if (!json_is_array(jobs))
        return error_set(err, -EINVAL, "jobs: want a list");
    if (json_count(jobs) > FLOWS_JOBS_MAX)
        return error_set(err, -EINVAL, "jobs: want at most %d", FLOWS_JOBS_MAX);
    struct map seen = { 0 };
    int r = 0;
    *ret_host = host;
    *ret_count = (uint32_t)json_count(jobs);
    for (uint32_t i = 0; i < *ret_count && r == 0; i++)
        r = read_one(json_item(jobs, i), &seen, &list[i], err);
    map_release(&seen);
    return r;
}

void count_flows(struct routes *routes, const struct http_request *request, uint64_t id,
                 struct http_reply *reply)
{
    (void)id;
    struct error err = { "" };
    struct json *json = NULL;
    const char *host = NULL;
    uint32_t count = 0;
    struct caller caller = caller_of(request);
    if (!may_mark(request, reply))
        return;
    struct daemon_bytes *list =
        arena_array(request->arena, struct daemon_bytes, FLOWS_JOBS_MAX);
    int r = json_parse(request->body, request->body_size, &json, &err);
    if (r == 0)
        r = read_counts(json, &host, list, &count, &err);
    if (r == 0)
        r = daemon_count(routes->daemon, &caller, host, list, count, &err);
    json_free(json);
    if (r < 0)
        reply_failure(reply, r, &err);
    else
        buf_print(&reply->body, "{\"jobs\":%u}\n", count);
}

/* ---- figures ---- */

void put_flow_figures(struct prometheus *out, const struct routes *routes,
                      const struct engine *engine)
{
    if (has_levels(engine)) {
        uint32_t counts[MARKS_LEVELS_MOST] = { 0 };
        uint32_t levels = level_count(engine);
        for (job_id id = 0; id < engine->state.job_count; id++)
            if (is_seated(&engine->state, id))
                counts[engine->state.jobs[id].level % MARKS_LEVELS_MOST]++;
        prometheus_gauge(out, "berth_flow_jobs", NULL,
                         "Running jobs, by the level of their packets; 0 goes first.");
        for (uint32_t i = 0; i < levels; i++) {
            char level[2] = { (char)('0' + i), '\0' };
            prometheus_count(
                out, (const struct label[]){ { "level", level }, { NULL } }, counts[i]);
        }
    }
    prometheus_counter(out, "berth_flow_changes", NULL,
                       "Times that a job's packets were given another level.");
    prometheus_count(out, NULL, engine->level_count);
    prometheus_gauge(out, "berth_flow_agents", NULL,
                     "Agents on hosts that follow whose packets go first.");
    prometheus_count(out, NULL, flows_clients(routes->flows));
}
