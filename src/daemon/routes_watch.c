/*
 * routes_watch.c - what the dashboard begins with: all there is to see in one reply, with
 * the number of the last event in it, so that the event stream goes on from there.
 */
#include "daemon/routes_internal.h"

#include <stdio.h>

#include "base/json_write.h"
#include "base/units.h"
#include "daemon/records.h"
#include "daemon/users.h"
#include "daemon/trends.h"
#include "daemon/watch.h"
#include "metrics/occupancy.h"
#include "store/store.h"

#define SPANS_MAX 8000
#define SPANS_S (6 * 3600) /* so far back, unless asked otherwise */
#define ENDED_MAX 200      /* jobs */
#define ENTRIES_MAX 1000   /* of the ledger */

static void put_me(struct routes *routes, const struct http_request *request,
                   struct buf *body)
{
    struct caller caller = caller_of(request);
    struct daemon_facts facts;
    daemon_look(routes->daemon, &facts);
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
    const struct occupancy *occupancy = watch_occupancy(routes->watch);
    uint32_t first = occupancy_first(occupancy), at = occupancy->count, shown = 0;
    for (; at > first && shown < SPANS_MAX; at--)
        shown += occupancy_is_current(occupancy_at(occupancy, at - 1), since_ns);
    json_write_open(body, "spans", '[');
    for (; at < occupancy->count; at++)
        if (occupancy_is_current(occupancy_at(occupancy, at), since_ns))
            put_span(body, occupancy_at(occupancy, at));
    json_write_close(body, ']');
}

static void put_jobs(struct routes *routes, const struct http_request *request,
                     struct buf *body)
{
    struct record_filter live = { .since_ns = -1, .until_ns = -1, .limit = 100000 };
    struct record_filter ended = { .states = RECORDS_ENDED,
                                   .ended = true,
                                   .newest_first = true,
                                   .since_ns = -1,
                                   .until_ns = -1,
                                   .limit = ENDED_MAX };
    write_jobs(routes, request, &live, "jobs", body);
    write_jobs(routes, request, &ended, "ended", body);
}

static void show_snapshot(struct routes *routes, const struct http_request *request,
                          uint64_t id, struct http_reply *reply)
{
    (void)id;
    struct daemon_facts facts;
    struct buf *body = &reply->body;
    const struct state *state = living(routes, &facts, reply);
    int64_t since_ns = facts.now_ns - SPANS_S * NS_PER_S;
    if (!state || !read_time(request, "since", &since_ns, reply))
        return;
    json_write_open(body, NULL, '{');
    json_write_count(body, "seq", (int64_t)store_seq(facts.store));
    json_write_time(body, "now", facts.now_ns);
    put_me(routes, request, body);
    write_server(routes, "server", body);
    write_nodes(&facts, "nodes", body);
    put_jobs(routes, request, body);
    put_spans(routes, body, since_ns);
    write_ledger(routes, 0, 0, ENTRIES_MAX, body);
    json_write_close(body, '}');
    buf_text(body, "\n");
}

static void show_trends(struct routes *routes, const struct http_request *request,
                        uint64_t id, struct http_reply *reply)
{
    (void)id;
    int64_t since_ns = 0;
    if (!read_time(request, "since", &since_ns, reply))
        return;
    json_write_open(&reply->body, NULL, '{');
    trends_write(watch_trends(routes->watch), &reply->body, since_ns);
    json_write_close(&reply->body, '}');
    buf_text(&reply->body, "\n");
}

const struct route snapshot_routes[] = {
    { "GET", "/v1/snapshot", "since", show_snapshot },
    { "GET", "/v1/trends", "since", show_trends },
    { 0 },
};
