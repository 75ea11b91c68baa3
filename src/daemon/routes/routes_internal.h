/* routes_internal.h - what files that handle requests share. */
#pragma once

#include <stdint.h>

#include "base/keyed_hash.h"
#include "base/map.h"
#include "daemon/daemon.h"
#include "daemon/scopes.h"
#include "http/crypto.h"
#include "http/http.h"
#include "http/sessions.h"
#include "http/token.h"
#include "model/event_record.h"

struct error;
struct limits;
struct stream;
struct tails;
struct tokens;
struct state;
struct dashboard;
struct users;

/* An event that is written and not yet known to be on disk. */
struct uncommitted_event {
    struct event_record record; /* borrows nothing but its seats                     */
    uint32_t first_seat;        /* of them in 'uncommitted_seats'                    */
    uint32_t owner;
    size_t at, count; /* its line in 'uncommitted_lines'                   */
};

struct routes {
    struct daemon *daemon;
    struct http *http;
    char token[TOKEN_CHARS + 1]; /* 0.1's: of the file in the state folder */
    struct tokens *tokens;
    struct crypto_identity identity; /* by routes_load_identity() */
    struct stream *stream;
    struct tails *tails;
    struct sessions sessions;
    struct dashboard *dashboard;
    struct limits *limits;
    struct users *users;
    struct keyed_hash commands; /* under which export.c tells equal commands */

    struct uncommitted_event *uncommitted;
    uint32_t uncommitted_count, uncommitted_room;
    struct buf uncommitted_lines;
    struct seat *uncommitted_seats;
    uint32_t seat_count, seat_room;
    struct map
        owners; /* public id to user, of jobs that were submitted here and live */
    uint64_t kinds[EVENT_KIND_COUNT]; /* events since the start, for /metrics */
};

/* Answer one request; 'id' is the job in the path, or 0. */
typedef void route_fn(struct routes *routes, const struct http_request *request,
                      uint64_t id, struct http_reply *reply);

/* One operation of docs/api/openapi.yaml: which scopes may use it (scopes.h), and the keys
 * that its query may have. */
struct route {
    const char *method, *path;
    uint32_t scopes;
    const char *keys;
    route_fn *answer;
};

/* The routes of each file, up to a row without a path. */
extern const struct route submission_routes[], query_routes[], server_routes[],
    job_history_routes[], dashboard_routes[], flow_routes[], progress_routes[],
    limit_routes[], bulk_cancel_routes[], token_routes[], rate_routes[],
    export_routes[], forecast_routes[], explain_routes[], ahead_routes[],
    export_cluster_routes[];

static inline struct caller routes_caller(const struct http_request *request)
{
    return (struct caller){ .uid = request->uid,
                            .gid = request->gid,
                            .own_jobs = request->scope == SCOPE_SUBMIT };
}

/* The token in 'bearer', if it is one that is valid; and whether one still is. */
bool token_routes_identify(struct routes *routes, const char *bearer,
                           struct http_identity *ret_identity);
bool token_routes_is_valid(void *context, uint64_t id);

/* See that 'identity' is there: made, or read, when somebody first asks for it. */
int routes_load_identity(struct routes *routes, struct error *err);

/* A negative errno and its sentence as a reply; "field: …" names the field. */
void routes_fail(struct http_reply *reply, int code, const struct error *err);

/* "true", "1", "false", "0" of a key; false with a reply if it is something else. */
bool routes_read_flag(const struct http_request *request, const char *key,
                      bool *ret_flag, struct http_reply *reply);

/* A whole number of a key within bounds; left as it is where the key is absent. */
bool routes_read_count(const struct http_request *request, const char *key, int64_t min,
                       int64_t max, int64_t *ret_count, struct http_reply *reply);

/* Seconds since 1970 of a key, in nanoseconds; left as it is where it is absent. */
bool routes_read_time(const struct http_request *request, const char *key,
                      int64_t *ret_ns, struct http_reply *reply);

/* The state, or NULL with a reply: the store cannot be written and the engine is being rebuilt. */
const struct state *routes_need_engine(struct routes *routes, struct daemon_view *facts,
                                       struct http_reply *reply);

/* The nodes, and the server itself, as members of an object (server.c). */
void routes_write_nodes(const struct daemon_view *facts, const char *key,
                        struct buf *body);
void routes_write_server(struct routes *routes, const char *key, struct buf *body);
