/*
 * desk_flows.c - whose packets go first: what is in office, and what hosts count.
 *
 * A flow policy has as many levels live as there are code points, unless it is told
 * otherwise; agents accept 2 to 8.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/daemon_internal.h"
#include "daemon/routes.h"
#include "daemon/sent.h"
#include "executor/executor.h"
#include "flow/flow.h"
#include "flow/marks.h"
#include "model/cluster.h"
#include "store/store.h"

#define QUIET_NS (10 * NS_PER_S) /* who was not heard to send for so long does not */

/* --- which policy ------------------------------------------------------------------- */

/* Does a flow policy of that name have levels that nothing is said of? */
static bool leaves_levels(const struct flow_policy *flow, const char *settings)
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

int desk_read_flow(const char *text, const struct flow_policy **ret_flow,
                   char settings[DESK_FLOW_MAX], struct error *err)
{
    const char *said;
    int r = strlen(text) <= DESK_FLOW_TEXT_MAX
                ? flow_parse(text, ret_flow, &said, err)
                : error_set(err, -EINVAL, "flow: want NAME[,setting=value…]");
    if (r < 0)
        return r;
    if (leaves_levels(*ret_flow, said))
        snprintf(settings, DESK_FLOW_MAX, "levels=%d%s%s", MARKS_COUNT,
                 *said ? "," : "", said);
    else
        snprintf(settings, DESK_FLOW_MAX, "%s", said);
    return check_levels(*ret_flow, settings, err);
}

int daemon_check_flow(const char *text, struct error *err)
{
    const struct flow_policy *flow;
    char settings[DESK_FLOW_MAX];
    return desk_read_flow(text, &flow, settings, err);
}

int desk_choose_flow(struct daemon *daemon, struct error *err)
{
    const char *said = daemon->setup.flow;
    daemon->sent = sent_new();
    daemon->flow_text = said ? memory_text(said) : store_fact(daemon->store, "flow");
    return said ? store_set_fact(daemon->store, "flow", said, err) : 0;
}

int daemon_set_flow(struct daemon *daemon, const struct caller *caller,
                    const char *text, struct error *err)
{
    const struct flow_policy *flow;
    char settings[DESK_FLOW_MAX];
    int r = desk_need_rights(caller, err);
    if (r == 0)
        r = desk_need_life(daemon, err);
    if (r == 0)
        r = desk_read_flow(text, &flow, settings, err);
    char *copy = r == 0 ? memory_text(text) : NULL;
    if (r == 0)
        r = store_set_fact(daemon->store, "flow", text, err);
    if (r == 0)
        r = engine_set_flow(&daemon->engine, flow, settings, err);
    if (r < 0) {
        free(copy);
        return r;
    }
    free(daemon->flow_text);
    daemon->flow_text = copy;
    daemon_want_pass(daemon);
    routes_flows_changed(daemon->routes);
    return 0;
}

/* --- what has to be marked when it starts --------------------------------------------- */

int desk_mark(void *context, job_id job)
{
    const struct daemon *daemon = context;
    const struct engine *engine = &daemon->engine;
    if (!engine->flow || !engine->flow->decide)
        return -1;
    return (int)marks_dscp(engine->state.jobs[job].level,
                           flow_levels(engine->flow, engine->flow_self));
}

/* --- listening -------------------------------------------------------------------------- */

static void hear(void *self, const struct view *view, const struct event *event)
{
    struct daemon *daemon = self;
    const struct job *job = &view->jobs[event->job];
    if (job->state == JOB_FREE)
        sent_drop(daemon->sent, job->id);
    routes_flows_changed(daemon->routes);
}

/* Events after which a host has other jobs, or jobs other levels. */
void desk_flows_begin(struct daemon *daemon)
{
    sent_clear(daemon->sent);
    uint32_t kinds = 1u << EVENT_STARTED | 1u << EVENT_RESIZED | 1u << EVENT_STOPPED |
                     1u << EVENT_FINISHED | 1u << EVENT_FAILED | 1u << EVENT_LOST |
                     1u << EVENT_LEVELLED | 1u << EVENT_CANCELLED | 1u << EVENT_DROPPED;
    engine_listen(&daemon->engine,
                  (struct listener){ .event = hear, .self = daemon, .kinds = kinds });
    routes_flows_changed(daemon->routes);
}

/* --- what hosts count -------------------------------------------------------------------- */

/* Names of hosts are alike up to the first dot; a node may be a part of its host. */
static bool is_host(const char *node, const char *host)
{
    size_t a = strcspn(node, "./"), b = strcspn(host, "./");
    return a == b && strncasecmp(node, host, a) == 0;
}

bool daemon_on_host(const struct daemon *daemon, job_id id, const char *host)
{
    const struct state *state = &daemon->engine.state;
    if (!daemon->backend->executor->remote)
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

static void tell(struct daemon *daemon, job_id id, double per_s, double bytes)
{
    struct event *event = daemon_add_event(daemon, EVENT_SENT, id);
    event->attempt = daemon->engine.state.jobs[id].attempt;
    event->sends_per_s = per_s;
    event->sent_bytes = bytes;
}

/* Who has run here for a while, and was not heard to send, does not. */
static void find_quiet(struct daemon *daemon, const char *host, int64_t now_ns)
{
    const struct state *state = &daemon->engine.state;
    if (now_ns - sent_since_ns(daemon->sent, host) < QUIET_NS)
        return;
    for (job_id id = 0; id < state->job_count; id++) {
        const struct job *job = &state->jobs[id];
        if (job->state != JOB_FREE && job_runs(job) && isnan(job->sends_per_s) &&
            now_ns - job->since_ns >= QUIET_NS && daemon_on_host(daemon, id, host) &&
            !sent_look(daemon->sent, job->id, now_ns).counted)
            tell(daemon, id, 0, 0);
    }
}

int daemon_count(struct daemon *daemon, const struct caller *caller, const char *host,
                 const struct daemon_bytes *list, uint32_t count, struct error *err)
{
    int r = desk_need_rights(caller, err);
    if (r == 0)
        r = desk_need_life(daemon, err);
    int64_t now_ns = daemon_now_ns(daemon);
    if (r == 0)
        r = sent_host(daemon->sent, host, now_ns, err);
    for (uint32_t i = 0; i < count && r == 0; i++) {
        job_id id = state_find(&daemon->engine.state, list[i].job);
        struct sent_facts facts;
        if (id == JOB_NONE || !job_seated(&daemon->engine.state.jobs[id]))
            continue; /* it has ended meanwhile */
        r = sent_count(daemon->sent, list[i].job, host, list[i].bytes, now_ns, err);
        if (r == 0 && sent_news(daemon->sent, list[i].job, now_ns, &facts))
            tell(daemon, id, facts.bytes_per_s, facts.bytes);
    }
    if (r == 0)
        find_quiet(daemon, host, now_ns);
    return r;
}
