/*
 * flows.c - the flow policy, what hosts count of each job's traffic, and the routes for both.
 *
 * A live flow policy has as many levels as there are code points, unless its settings say
 * otherwise; agents accept 2 to 8.
 */
#include "daemon/flows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/units.h"
#include "http/flow_stream.h"
#include "daemon/routes/routes_internal.h"
#include "daemon/scheduler.h"
#include "flow/sent_bytes.h"
#include "executor/executor.h"
#include "flow/flow.h"
#include "flow/marks.h"
#include "metrics/prometheus.h"
#include "model/cluster.h"
#include "store/store.h"

#define POLICY_TEXT_MAX 1000
#define QUIET_NS \
    (10 * NS_PER_S) /* a job that was not seen to send for so long does not */
#define CGROUPS "/sys/fs/cgroup/"
#define JOB_BYTES_MAX 1000 /* of one job in an event */

struct flows {
    struct scheduler *scheduler;
    char *policy; /* as it was written, settings included; NULL: none */
    struct sent_bytes *sent;
    struct flow_stream *stream; /* to agents */
};

/* --- which policy ------------------------------------------------------------------- */

/* Does this flow policy have levels, and do the settings not give their number? */
static bool has_default_levels(const struct flow_policy *flow, const char *settings)
{
    bool said = strncmp(settings, "levels=", 7) == 0 || strstr(settings, ",levels=");
    for (const struct field *p = flow->params; p && p->name && !said; p++)
        if (strcmp(p->name, "levels") == 0)
            return true;
    return false;
}

static int check_levels(const struct flow_policy *flow, const char *settings,
                        struct error *err)
{
    void *self = memory_checked(calloc(1, flow->self_size + 1));
    param_defaults(flow->params, self);
    int r = param_parse(flow->params, self, flow->name, settings, err);
    uint32_t levels = flow_levels(flow, self);
    free(self);
    bool fits = levels >= MARKS_LEVELS_LEAST && levels <= MARKS_LEVELS_MOST;
    if (r == 0 && flow->decide && !fits)
        r = error_set(err, -EINVAL, "flow: packets have %d to %d levels, not %u",
                      MARKS_LEVELS_LEAST, MARKS_LEVELS_MOST, levels);
    return r;
}

static int read_policy(const char *text, const struct flow_policy **ret_flow,
                       char settings[FLOWS_SETTINGS_MAX], struct error *err)
{
    const char *said;
    int r = strlen(text) <= POLICY_TEXT_MAX
                ? flow_parse(text, ret_flow, &said, err)
                : error_set(err, -EINVAL, "flow: want NAME[,setting=value…]");
    if (r < 0)
        return r;
    if (has_default_levels(*ret_flow, said))
        snprintf(settings, FLOWS_SETTINGS_MAX, "levels=%d%s%s", MARKS_COUNT,
                 *said ? "," : "", said);
    else
        snprintf(settings, FLOWS_SETTINGS_MAX, "%s", said);
    return check_levels(*ret_flow, settings, err);
}

int flows_check_policy(const char *text, struct error *err)
{
    const struct flow_policy *flow;
    char settings[FLOWS_SETTINGS_MAX];
    return read_policy(text, &flow, settings, err);
}

int flows_policy(const struct flows *flows, const struct flow_policy **ret_policy,
                 char settings[FLOWS_SETTINGS_MAX], struct error *err)
{
    *ret_policy = NULL;
    return flows->policy ? read_policy(flows->policy, ret_policy, settings, err) : 0;
}

const char *flows_policy_text(const struct flows *flows)
{
    return flows->policy;
}

int flows_choose_policy(struct flows *flows, const char *said, struct error *err)
{
    struct store *store = flows->scheduler->store;
    flows->policy = said ? memory_text(said) : store_fact(store, "flow");
    return said ? store_set_fact(store, "flow", said, err) : 0;
}

int flows_set_policy(struct flows *flows, const struct caller *caller, const char *text,
                     struct error *err)
{
    struct scheduler *scheduler = flows->scheduler;
    const struct flow_policy *policy;
    char settings[FLOWS_SETTINGS_MAX];
    int r = caller_check_admin(caller, err);
    if (r == 0)
        r = scheduler_check_open(scheduler, err);
    if (r == 0)
        r = read_policy(text, &policy, settings, err);
    char *copy = r == 0 ? memory_text(text) : NULL;
    if (r == 0)
        r = store_set_fact(scheduler->store, "flow", text, err);
    if (r == 0)
        r = engine_set_flow(&scheduler->engine, policy, settings, err);
    if (r < 0) {
        free(copy);
        return r;
    }
    free(flows->policy);
    flows->policy = copy;
    scheduler_want_pass(scheduler);
    flow_stream_changed(flows->stream);
    return 0;
}

int flows_mark(const struct flows *flows, job_id job)
{
    const struct engine *engine = &flows->scheduler->engine;
    if (!engine->flow || !engine->flow->decide)
        return -1;
    return (int)marks_dscp(engine->state.jobs[job].level,
                           flow_levels(engine->flow, engine->flow_self));
}

/* --- observing the engine --------------------------------------------------------------- */

static void observe_event(void *self, const struct view *view,
                          const struct event *event)
{
    struct flows *flows = self;
    const struct job *job = &view->jobs[event->job];
    if (job->state == JOB_FREE)
        sent_bytes_drop(flows->sent, job->id);
    flow_stream_changed(flows->stream);
}

/* Events after which a host has other jobs, or jobs other levels. */
void flows_observe(struct flows *flows, struct engine *engine)
{
    sent_bytes_clear(flows->sent);
    uint32_t kinds = 1u << EVENT_STARTED | 1u << EVENT_RESIZED | 1u << EVENT_STOPPED |
                     1u << EVENT_FINISHED | 1u << EVENT_FAILED | 1u << EVENT_LOST |
                     1u << EVENT_LEVELLED | 1u << EVENT_CANCELLED | 1u << EVENT_DROPPED;
    engine_add_observer(engine, (struct engine_observer){ .event = observe_event,
                                                          .self = flows,
                                                          .kinds = kinds });
    flow_stream_changed(flows->stream);
}

/* --- what hosts count -------------------------------------------------------------------- */

/* Names of hosts are alike up to the first dot; a node may be a part of its host. */
static bool is_host(const char *node, const char *host)
{
    size_t a = strcspn(node, "./"), b = strcspn(host, "./");
    return a == b && strncasecmp(node, host, a) == 0;
}

/*
 * Is this job on a host of that name?  Jobs that are processes here are on this machine,
 * and so is the agent that asks, by whatever name: a network namespace may have its own.
 */
static bool is_on_host(const struct flows *flows, job_id id, const char *host)
{
    const struct state *state = &flows->scheduler->engine.state;
    if (!flows->scheduler->executor->remote)
        return true;
    const struct seat *seats = view_seats(&state->view, id);
    for (uint32_t i = 0; i < state->jobs[id].seats.count; i++) {
        char name[64];
        if (is_host(cluster_node_name(state->view.cluster, seats[i].node, name,
                                      sizeof name),
                    host))
            return true;
    }
    return false;
}

static void add_sent_event(struct flows *flows, job_id id, double per_s, double bytes)
{
    struct event *event = scheduler_add_event(flows->scheduler, EVENT_SENT, id);
    event->attempt = flows->scheduler->engine.state.jobs[id].attempt;
    event->sends_per_s = per_s;
    event->sent_bytes = bytes;
}

/* A job that has run here for a while and was not seen to send does not. */
static void find_quiet_jobs(struct flows *flows, const char *host, int64_t now_ns)
{
    const struct state *state = &flows->scheduler->engine.state;
    if (now_ns - sent_bytes_since_ns(flows->sent, host) < QUIET_NS)
        return;
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state != JOB_FREE && job_runs(job) && isnan(job->sends_per_s) &&
            now_ns - job->since_ns >= QUIET_NS && is_on_host(flows, id, host) &&
            !sent_bytes_find(flows->sent, job->id, now_ns).counted)
            add_sent_event(flows, id, 0, 0);
    }
}

/* Bytes that a job has sent since it began, as a host counts them. */
struct job_bytes {
    uint64_t job; /* public id */
    int64_t bytes;
};

/* From an agent; jobs that are not known are skipped. */
static int count_bytes(struct flows *flows, const struct caller *caller,
                       const char *host, const struct job_bytes *list, uint32_t count,
                       struct error *err)
{
    int r = caller_check_admin(caller, err);
    if (r == 0)
        r = scheduler_check_open(flows->scheduler, err);
    int64_t now_ns = scheduler_now_ns(flows->scheduler);
    if (r == 0)
        r = sent_bytes_host(flows->sent, host, now_ns, err);
    for (uint32_t i = 0; i < count && r == 0; i++) {
        job_id id = state_find(&flows->scheduler->engine.state, list[i].job);
        struct sent_bytes_total facts;
        if (id == JOB_NONE ||
            !job_holds_seats(&flows->scheduler->engine.state.jobs[id]))
            continue; /* it has ended meanwhile */
        r = sent_bytes_count(flows->sent, list[i].job, host, list[i].bytes, now_ns,
                             err);
        if (r == 0 && sent_bytes_changed(flows->sent, list[i].job, now_ns, &facts))
            add_sent_event(flows, id, facts.bytes_per_s, facts.bytes);
    }
    if (r == 0)
        find_quiet_jobs(flows, host, now_ns);
    return r;
}

/* Does a flow policy assign levels? */
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
    return state->jobs[id].state != JOB_FREE && job_holds_seats(&state->jobs[id]);
}

static bool is_admin(const struct http_request *request, struct http_reply *reply)
{
    if (request->uid == 0 || request->uid == geteuid())
        return true;
    http_reply_error(reply, 403, NULL,
                     "only the user that runs berthd, and root, may do that");
    return false;
}

/* Is this the name of a host?  Names are printed and compared. */
static bool is_host_name(const char *name)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-_.";
    size_t count = strlen(name);
    return count > 0 && count < FLOW_STREAM_HOST_MAX && strspn(name, fine) == count;
}

/* --- to agents -------------------------------------------------------------------------- */

/* Where its processes are, as far as the executor knows. */
static void write_processes(struct buf *buf, const struct scheduler *scheduler,
                            job_id id)
{
    struct job_processes found;
    if (!scheduler->executor_self || !scheduler->executor->find_processes ||
        !scheduler->executor->find_processes(scheduler->executor_self, id, &found))
        return;
    if (strncmp(found.cgroup, CGROUPS, strlen(CGROUPS)) == 0)
        json_write_text(buf, "cgroup", found.cgroup + strlen(CGROUPS));
    if (found.pid > 0)
        json_write_count(buf, "pid", found.pid);
}

static void write_job_level(struct buf *buf, const struct scheduler *scheduler,
                            job_id id)
{
    const struct job *job = &scheduler->engine.state.jobs[id];
    json_write_open(buf, NULL, '{');
    json_write_count(buf, "id", (int64_t)job->id);
    json_write_count(buf, "level",
                     job->level < level_count(&scheduler->engine)
                         ? job->level
                         : level_count(&scheduler->engine) - 1);
    json_write_count(buf, "attempt", job->attempt);
    write_processes(buf, scheduler, id);
    json_write_text(buf, "executor", scheduler->executor->name);
    json_write_close(buf, '}');
}

/* All levels on a host.  Without a flow policy no job is marked. */
static bool write_host(void *context, const char *host, struct buf *buf)
{
    struct flows *flows = context;
    const struct engine *engine = &flows->scheduler->engine;
    if (!flows->scheduler->alive)
        return false;
    const struct state *state = &engine->state;
    char own[FLOW_STREAM_HOST_MAX] = "local";
    gethostname(own, sizeof own - 1);
    json_write_open(buf, NULL, '{');
    json_write_text(buf, "flow", engine->flow ? engine->flow->name : "fair");
    json_write_count(buf, "levels", level_count(engine));
    json_write_text(buf, "host", *host ? host : own);
    json_write_count(buf, "valid_s", FLOW_STREAM_VALID_S);
    json_write_open(buf, "jobs", '[');
    uint32_t count = 0;
    for (job_id id = 0; has_levels(engine) && id < state->job_count; id++) {
        if (!is_seated(state, id) || (*host && !is_on_host(flows, id, host)))
            continue;
        if (count++ == FLOW_STREAM_JOBS_MAX ||
            buf->count + JOB_BYTES_MAX > FLOW_STREAM_EVENT_MAX)
            break; /* more than an agent takes: the others go unmarked */
        write_job_level(buf, flows->scheduler, id);
    }
    json_write_close(buf, ']');
    json_write_close(buf, '}');
    return true;
}

/* --- to users --------------------------------------------------------------------------- */

static void write_reason(struct buf *buf, const struct engine *engine, job_id id)
{
    struct flow_reason reason;
    if (!engine->flow || !engine->flow->explain)
        return;
    engine->flow->explain(engine->flow_self, &engine->state.view, id, &reason);
    if (isfinite(reason.score))
        json_write_number(buf, "score", reason.score);
    json_write_text(buf, "why", reason.text);
}

static void write_flow(struct buf *buf, const struct flows *flows, job_id id)
{
    const struct state *state = &flows->scheduler->engine.state;
    const struct job *job = &state->jobs[id];
    const struct seat *seats = view_seats(&state->view, id);
    struct sent_bytes_total sent =
        sent_bytes_find(flows->sent, job->id, scheduler_now_ns(flows->scheduler));
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
    write_reason(buf, &flows->scheduler->engine, id);
    json_write_close(buf, '}');
}

static void list_flows(struct flows *flows, struct http_reply *reply)
{
    const struct engine *engine = &flows->scheduler->engine;
    if (!flows->scheduler->alive) {
        struct error err;
        int r = error_set(&err, -EAGAIN, "the store cannot be written just now");
        routes_fail(reply, r, &err);
        return;
    }
    struct buf *body = &reply->body;
    const struct state *state = &engine->state;
    json_write_open(body, NULL, '{');
    json_write_text_if(body, "flow", flows->policy);
    if (has_levels(engine))
        json_write_count(body, "levels", level_count(engine));
    json_write_open(body, "agents", '[');
    for (uint32_t i = 0; i < flow_stream_clients(flows->stream); i++)
        json_write_text(body, NULL, flow_stream_client_host(flows->stream, i));
    json_write_close(body, ']');
    json_write_open(body, "flows", '[');
    for (job_id id = 0; id < state->job_count; id++)
        if (is_seated(state, id))
            write_flow(body, flows, id);
    json_write_close(body, ']');
    json_write_close(body, '}');
    buf_text(body, "\n");
}

static struct flows *flows_of(struct routes *routes)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return facts.flows;
}

static void show_flows(struct routes *routes, const struct http_request *request,
                       uint64_t id, struct http_reply *reply)
{
    (void)id;
    bool follow = false;
    const char *host = http_query(request, "host");
    if (!routes_read_flag(request, "follow", &follow, reply))
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
        list_flows(flows_of(routes), reply);
    else if (is_admin(request, reply))
        flow_stream_reply(flows_of(routes)->stream, host ? host : "", reply);
}

/* --- from agents ------------------------------------------------------------------------ */

static int read_bytes(const struct json *item, struct map *seen, struct job_bytes *ret,
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
    *ret = (struct job_bytes){ .job = (uint64_t)id, .bytes = bytes };
    return 0;
}

/* The whole list is valid, or none of it is counted. */
static int read_counts(const struct json *json, const char **ret_host,
                       struct job_bytes *list, uint32_t *ret_count, struct error *err)
{
    if (!json_is_object(json))
        return error_set(err, -EINVAL, "want an object");
    const char *host = json_as_text(json_get(json, "host"));
    const struct json *jobs = json_get(json, "jobs");
    if (!host || !is_host_name(host))
        return error_set(err, -EINVAL, "host: want the name of a host");
    if (!json_is_array(jobs))
        return error_set(err, -EINVAL, "jobs: want a list");
    if (json_count(jobs) > FLOW_STREAM_JOBS_MAX)
        return error_set(err, -EINVAL, "jobs: want at most %d", FLOW_STREAM_JOBS_MAX);
    struct map seen = { 0 };
    int r = 0;
    *ret_host = host;
    *ret_count = (uint32_t)json_count(jobs);
    for (uint32_t i = 0; i < *ret_count && r == 0; i++)
        r = read_bytes(json_item(jobs, i), &seen, &list[i], err);
    map_release(&seen);
    return r;
}

static void count_flows(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct error err = { "" };
    struct json *json = NULL;
    const char *host = NULL;
    uint32_t count = 0;
    struct caller caller = routes_caller(request);
    if (!is_admin(request, reply))
        return;
    struct job_bytes *list =
        arena_array(request->arena, struct job_bytes, FLOW_STREAM_JOBS_MAX);
    int r = json_parse(request->body, request->body_size, &json, &err);
    if (r == 0)
        r = read_counts(json, &host, list, &count, &err);
    if (r == 0)
        r = count_bytes(flows_of(routes), &caller, host, list, count, &err);
    json_free(json);
    if (r < 0)
        routes_fail(reply, r, &err);
    else
        buf_print(&reply->body, "{\"jobs\":%u}\n", count);
}

/* --- metrics ------------------------------------------------------------------------------ */

void flows_write_metrics(const struct flows *flows, struct prometheus *out)
{
    const struct engine *engine = &flows->scheduler->engine;
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
                out, (const struct prometheus_label[]){ { "level", level }, { NULL } },
                counts[i]);
        }
    }
    prometheus_counter(out, "berth_flow_changes", NULL,
                       "Times that a job's packets were given another level.");
    prometheus_count(out, NULL, engine->level_count);
    prometheus_gauge(out, "berth_flow_agents", NULL,
                     "Agents on hosts that follow whose packets go first.");
    prometheus_count(out, NULL, flow_stream_clients(flows->stream));
}

const struct route flow_routes[] = {
    { "GET", "/v1/flows", SCOPES_READ | SCOPE_FLOW, "follow host", show_flows },
    { "POST", "/v1/flows", SCOPES_OWNER | SCOPE_FLOW, "", count_flows },
    { 0 },
};

/* --- beginning and end -------------------------------------------------------------------- */

struct flows *flows_new(struct scheduler *scheduler)
{
    struct flows *flows = memory_checked(calloc(1, sizeof *flows));
    flows->scheduler = scheduler;
    flows->sent = sent_bytes_new();
    struct flow_stream_setup setup = { .loop = scheduler->loop,
                                       .write = write_host,
                                       .context = flows };
    flow_stream_open(&flows->stream, &setup);
    return flows;
}

void flows_free(struct flows *flows)
{
    if (!flows)
        return;
    flow_stream_close(flows->stream);
    sent_bytes_free(flows->sent);
    free(flows->policy);
    free(flows);
}
