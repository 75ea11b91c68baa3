/* routes_own.h - what the files of the routes share. */
#pragma once

#include <stdint.h>

#include "base/map.h"
#include "daemon/daemon.h"
#include "daemon/http.h"
#include "daemon/sessions.h"
#include "daemon/token.h"
#include "model/event.h"

struct error;
struct stream;
struct tails;

/* An event that is written and not yet known to be on disk. */
struct told {
    uint64_t seq, job;
    uint32_t owner;
    size_t at, count; /* its text in 'told_text' */
};

struct routes {
    struct daemon *daemon;
    char token[TOKEN_CHARS + 1];
    struct stream *stream;
    struct tails *tails;
    struct sessions sessions;

    struct buf told_text;
    struct told *told;
    uint32_t told_count, told_room;
    struct map
        owners; /* public id to user, of jobs that were submitted here and live */
    uint64_t kinds[EVENT_KIND_COUNT]; /* events since the start, for /metrics */
};

/* Answer one request; 'id' is the job in the path, or 0. */
typedef void route_fn(struct routes *routes, const struct http_request *request,
                      uint64_t id, struct http_reply *reply);

route_fn list_jobs, submit_jobs, show_job, change_job, cancel_job, explain_job,
    read_log;
route_fn show_nodes, show_ledger, show_flows, show_server, change_server, stop_server,
    show_metrics;
route_fn open_page, begin_session, end_session;

/* Answer with one of the page's own files; false if it is none. */
bool show_page(const struct http_request *request, struct http_reply *reply);

static inline struct caller caller_of(const struct http_request *request)
{
    return (struct caller){ .uid = request->uid, .gid = request->gid };
}

/* A negative errno and its sentence as a reply; "field: …" names the field. */
void reply_failure(struct http_reply *reply, int code, const struct error *err);

/* "true", "1", "false", "0" of a key; false with a reply if it is something else. */
bool read_flag(const struct http_request *request, const char *key, bool *ret_flag,
               struct http_reply *reply);

/* A whole number of a key within bounds; left as it is where the key is absent. */
bool read_count(const struct http_request *request, const char *key, int64_t min,
                int64_t max, int64_t *ret_count, struct http_reply *reply);

/* Seconds since 1970 of a key, in nanoseconds; left as it is where it is absent. */
bool read_time(const struct http_request *request, const char *key, int64_t *ret_ns,
               struct http_reply *reply);
