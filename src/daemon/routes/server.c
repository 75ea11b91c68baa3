/* server.c - nodes, the server itself, and metrics. */
#include "daemon/routes/pair_figures.h"
#include "daemon/routes/routes_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api_json.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/json_write.h"
#include "base/json.h"
#include "daemon/flows.h"
#include "daemon/forecasts.h"
#include "daemon/gpu_watch.h"
#include "engine/engine.h"
#include "daemon/scheduler.h"
#include "executor/executor.h"
#include "http/guard.h"
#include "metrics/prometheus.h"
#include "host/cgroup.h"
#include "model/cluster.h"
#include "version.h"

static void close_object(struct http_reply *reply)
{
    json_write_close(&reply->body, '}');
    buf_text(&reply->body, "\n");
}

static const char *node_reason(const void *context, node_id node)
{
    const struct daemon_view *facts = context;
    bool known = facts->executor_self && facts->executor->node_reason;
    return known ? facts->executor->node_reason(facts->executor_self, node) : "";
}

static int gpu_busy(const void *context, node_id node, uint32_t gpu)
{
    const struct daemon_view *facts = context;
    return gpu_watch_busy(facts->gpu_watch, node, gpu);
}

void routes_write_nodes(const struct daemon_view *facts, const char *key,
                        struct buf *body)
{
    const struct api_node_source asked = { .reason = node_reason,
                                           .busy = gpu_busy,
                                           .context = facts };
    api_write_nodes(body, key, &facts->engine->state, &asked);
}

static void show_nodes(struct routes *routes, const struct http_request *request,
                       uint64_t id, struct http_reply *reply)
{
    (void)request;
    (void)id;
    struct daemon_view facts;
    const struct state *state = routes_need_engine(routes, &facts, reply);
    if (!state)
        return;
    json_write_open(&reply->body, NULL, '{');
    routes_write_nodes(&facts, "nodes", &reply->body);
    close_object(reply);
}

/* ---- the server ---- */

struct server_counts {
    uint32_t held, waiting, running, stopping; /* jobs         */
    uint32_t gpus, gpus_held, gpus_foreign;    /* GPUs         */
};

static void count_jobs_and_gpus(const struct state *state, struct server_counts *counts)
{
    *counts = (struct server_counts){ .waiting = state->waiting_count,
                                      .gpus = state->view.cluster->gpu_count };
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        counts->held += job->state == JOB_HELD;
        counts->waiting += job->state == JOB_PLACED;
        counts->running += job_runs(job);
        counts->stopping += job->state == JOB_STOPPING;
    }
    for (node_id node = 0; node < state->view.cluster->node_count; node++) {
        uint64_t foreign = state->foreign[node];
        uint32_t count = state->view.cluster->nodes[node].gpu_count;
        uint64_t all = count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
        uint64_t taken = all & ~state->free.rooms[node].gpus;
        counts->gpus_foreign += bits_count(foreign);
        counts->gpus_held += bits_count(taken & ~foreign);
    }
}

/* What the kernel enforces for each job. */
static void write_enforced(const struct daemon_view *facts, struct buf *body)
{
    static const struct {
        uint32_t feature;
        const char *name;
    } names[] = { { CGROUP_KILL, "processes" },
                  { CGROUP_MEMORY, "memory" },
                  { CGROUP_PIDS, "pids" },
                  { CGROUP_CPU, "cpu" },
                  { CGROUP_DEVICES, "devices" } };
    if (!facts->executor_self || !facts->executor->enforced)
        return;
    const char *why = "";
    uint32_t features = facts->executor->enforced(facts->executor_self, &why);
    json_write_open(body, "enforced", '[');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (features & names[i].feature)
            json_write_text(body, NULL, names[i].name);
    json_write_close(body, ']');
    json_write_text_if(body, "not_enforced_because", *why ? why : NULL);
}

void routes_write_server(struct routes *routes, const char *key, struct buf *body)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    json_write_open(body, key, '{');
    json_write_text(body, "version", BERTH_VERSION);
    json_write_count(body, "pid", getpid());
    json_write_text(body, "policy", facts.policy);
    json_write_text_if(body, "flow", facts.flow);
    json_write_text(body, "executor",
                    facts.setup->executor ? facts.setup->executor : "local");
    json_write_text_if(body, "trouble", facts.trouble);
    json_write_text_if(body, "store_trouble", facts.store_trouble);
    json_write_text_if(body, "start_trouble",
                       facts.engine ? scheduler_refuses_starts(facts.scheduler) : NULL);
    json_write_flag(body, "system", facts.setup->system);
    write_enforced(&facts, body);
    json_write_text_if(body, "mps", facts.setup->sharing.mps);
    json_write_text(body, "state_dir", facts.setup->state_dir);
    json_write_time(body, "started", facts.started_ns);
    const struct guard *tls = facts.http ? http_address(facts.http, true) : NULL;
    if (tls) {
        json_write_count(body, "tls_port", tls->port);
        json_write_text(body, "fingerprint", routes->identity.fingerprint);
    }
    if (facts.engine) {
        struct server_counts counts;
        count_jobs_and_gpus(&facts.engine->state, &counts);
        json_write_open(body, "jobs", '{');
        json_write_count(body, "pending", counts.waiting);
        json_write_count(body, "running", counts.running + counts.stopping);
        json_write_count(body, "held", counts.held);
        json_write_close(body, '}');
        json_write_open(body, "gpus", '{');
        json_write_count(body, "total", counts.gpus);
        json_write_count(body, "held", counts.gpus_held);
        json_write_count(body, "foreign", counts.gpus_foreign);
        json_write_close(body, '}');
    }
    json_write_close(body, '}');
}

static void show_server(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)request;
    (void)id;
    routes_write_server(routes, NULL, &reply->body);
    buf_text(&reply->body, "\n");
}

static void finish_server(void *context, uint64_t id, struct http_reply *reply)
{
    (void)id;
    routes_write_server(context, NULL, &reply->body);
    buf_text(&reply->body, "\n");
}

/* The policies to switch to: borrowed from 'json', or NULL. */
static int read_policies(const struct json *json, const char **ret_policy,
                         const char **ret_flow, struct error *err)
{
    const char *key;
    const struct json *value;
    *ret_policy = *ret_flow = NULL;
    if (!json_is_object(json))
        return error_set(err, -EINVAL, "want an object");
    for (void *at = NULL; (at = json_member(json, at, &key, &value));) {
        bool flow = strcmp(key, "flow") == 0;
        if (!flow && strcmp(key, "policy") != 0)
            return error_set(err, -EINVAL, "%.60s: there is no such field", key);
        const char *text = json_as_text(value);
        if (!text || strlen(text) > 1000)
            return error_set(err, -EINVAL, "%s: want NAME[,setting=value…]", key);
        *(flow ? ret_flow : ret_policy) = text;
    }
    return *ret_policy || *ret_flow ? 0 : error_set(err, -EINVAL, "policy: is missing");
}

static int set_flow_policy(struct routes *routes, const struct caller *caller,
                           const char *text, struct error *err)
{
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    return flows_set_policy(facts.flows, caller, text, err);
}

static void change_server(struct routes *routes, const struct http_request *request,
                          uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct error err = { "" };
    struct json *json = NULL;
    const char *policy, *flow;
    struct caller caller = routes_caller(request);
    int r = json_parse(request->body, request->body_size, &json, &err);
    if (r == 0)
        r = read_policies(json, &policy, &flow, &err);
    if (r == 0 && flow)
        r = flows_check_policy(flow, &err); /* both are switched, or none */
    if (r == 0 && policy)
        r = daemon_set_policy(routes->daemon, &caller, policy, &err);
    if (r == 0 && flow)
        r = set_flow_policy(routes, &caller, flow, &err);
    json_free(json);
    if (r < 0) {
        routes_fail(reply, r, &err);
        return;
    }
    reply->after_commit = true;
    reply->finish = finish_server;
}

static void stop_server(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    bool kill = false;
    struct error err = { "" };
    struct caller caller = routes_caller(request);
    if (!routes_read_flag(request, "kill", &kill, reply))
        return;
    int r = daemon_stop(routes->daemon, &caller, kill, &err);
    if (r < 0) {
        routes_fail(reply, r, &err);
        return;
    }
    reply->status = 202;
    buf_print(&reply->body, "{\"pid\":%d}\n", (int)getpid());
}

/* ---- metrics ---- */

static void write_jobs_metrics(struct prometheus *out,
                               const struct server_counts *counts)
{
    const struct {
        const char *state;
        uint32_t count;
    } rows[] = { { "held", counts->held },
                 { "pending", counts->waiting },
                 { "running", counts->running },
                 { "stopping", counts->stopping } };
    prometheus_gauge(out, "berth_jobs", NULL, "Jobs that have not ended, by state.");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        prometheus_count(
            out,
            (const struct prometheus_label[]){ { "state", rows[i].state }, { NULL } },
            rows[i].count);
    prometheus_gauge(out, "berth_gpus", NULL, "Accelerators, by what they do.");
    prometheus_count(out,
                     (const struct prometheus_label[]){ { "use", "held" }, { NULL } },
                     counts->gpus_held);
    prometheus_count(
        out, (const struct prometheus_label[]){ { "use", "foreign" }, { NULL } },
        counts->gpus_foreign);
    prometheus_count(out,
                     (const struct prometheus_label[]){ { "use", "free" }, { NULL } },
                     counts->gpus - counts->gpus_held - counts->gpus_foreign);
}

static void write_decisions_metrics(struct prometheus *out,
                                    const struct histogram *decide_ns)
{
    static const struct {
        const char *name;
        double share;
    } rows[] = { { "0.5", 0.5 }, { "0.99", 0.99 }, { "1", 1 } };
    prometheus_gauge(out, "berth_decision_seconds", "seconds",
                     "How long the given share of decisions took at most.");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        prometheus_value(
            out,
            (const struct prometheus_label[]){ { "share", rows[i].name }, { NULL } },
            (double)histogram_quantile(decide_ns, rows[i].share) * 1e-9);
}

static void write_engine_metrics(struct prometheus *out, const struct engine *engine)
{
    struct server_counts counts;
    count_jobs_and_gpus(&engine->state, &counts);
    write_jobs_metrics(out, &counts);
    prometheus_counter(out, "berth_decisions", NULL, "Times the policy was asked.");
    prometheus_count(out, NULL, engine->decision_count);
    prometheus_counter(out, "berth_plans_refused", NULL,
                       "Plans of the policy that broke the rules.");
    prometheus_count(out, NULL, engine->refused_count);
    write_decisions_metrics(out, &engine->decide_ns);
}

static void write_events_metrics(struct prometheus *out, const struct routes *routes)
{
    prometheus_counter(out, "berth_events", NULL, "What happened, by kind.");
    for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
        if (routes->kinds[kind])
            prometheus_count(out,
                             (const struct prometheus_label[]){
                                 { "kind", event_name(kind) }, { NULL } },
                             routes->kinds[kind]);
}

static void write_http_metrics(struct prometheus *out, const struct http_counts *counts)
{
    prometheus_counter(out, "berth_http_requests", NULL, "Requests answered.");
    prometheus_count(out, NULL, counts->requests);
    prometheus_counter(out, "berth_http_refusals", NULL,
                       "Requests answered with a status of 400 or more.");
    prometheus_count(out, NULL, counts->refused);
    prometheus_counter(out, "berth_http_turned_away", NULL,
                       "Connections above a limit.");
    prometheus_count(out, NULL, counts->connections_refused);
    prometheus_gauge(out, "berth_http_connections", NULL, "Connections that are open.");
    prometheus_count(out, NULL, counts->connections);
}

static uint64_t resident_bytes(void)
{
    unsigned long long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_daemon_metrics(struct prometheus *out,
                                 const struct daemon_view *facts)
{
    prometheus_gauge(out, "berth_build_info", NULL, "What runs; always 1.");
    prometheus_count(out,
                     (const struct prometheus_label[]){ { "version", BERTH_VERSION },
                                                        { "policy", facts->policy },
                                                        { NULL } },
                     1);
    prometheus_gauge(out, "berth_start_time_seconds", "seconds",
                     "When berthd was started, since 1970.");
    prometheus_value(out, NULL, (double)facts->started_ns * 1e-9);
    prometheus_gauge(out, "berth_resident_memory_bytes", "bytes",
                     "Memory of berthd itself.");
    prometheus_count(out, NULL, resident_bytes());
    prometheus_gauge(out, "berth_attempts", NULL, "Attempts of jobs under way.");
    prometheus_count(out, NULL, facts->attempts);
    prometheus_counter(out, "berth_passes", NULL, "Batches of events dealt with.");
    prometheus_count(out, NULL, facts->pass_count);
    prometheus_counter(out, "berth_store_failures", NULL,
                       "Batches that could not be written to disk.");
    prometheus_count(out, NULL, facts->failures);
}

static void show_metrics(struct routes *routes, const struct http_request *request,
                         uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_view facts;
    daemon_view_of(routes->daemon, &facts);
    bool open = prometheus_accepts_open(http_header(request, "Accept"));
    struct prometheus out;
    prometheus_begin(&out, &reply->body, open);
    write_daemon_metrics(&out, &facts);
    if (facts.engine) {
        write_engine_metrics(&out, facts.engine);
        pair_figures_write_metrics(&facts, &out);
        flows_write_metrics(facts.flows, &out);
        forecasts_write_metrics(facts.forecasts, &out);
    }
    if (facts.executor_self && facts.executor->trouble) {
        prometheus_gauge(&out, "berth_slurm_up", NULL,
                         "1 while Slurm answers; 0: nothing starts.");
        prometheus_count(&out, NULL, facts.trouble ? 0 : 1);
    }
    write_events_metrics(&out, routes);
    write_http_metrics(&out, http_counts(facts.http));
    prometheus_end(&out);
    reply->type = open ? PROMETHEUS_OPEN_TYPE : PROMETHEUS_TYPE;
}

const struct route server_routes[] = {
    { "GET", "/v1/nodes", SCOPES_READ, "", show_nodes },
    { "GET", "/v1/server", SCOPES_READ, "", show_server },
    { "PATCH", "/v1/server", SCOPES_USER, "", change_server },
    { "DELETE", "/v1/server", SCOPES_USER, "kill", stop_server },
    { "GET", "/metrics", SCOPES_READ, "", show_metrics },
    { 0 },
};
