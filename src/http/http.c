/*
 * http.c - libmicrohttpd on a libuv loop; the only file that knows the library.
 *
 * The library runs without threads of its own: all its sockets are in one epoll set, which
 * is one more descriptor that our loop polls.  We accept connections ourselves, so that
 * one above a limit, or of a user without access, costs nothing.
 *
 * A connection is in one of these phases:
 *
 *        ┌────────────────────────────────────────────────┐
 *        ▼                                                │
 *      IDLE ──headers──► RECEIVING ──all──► handler ──► SENDING
 *                                            │  │        ▲ ▲ │
 *                              after_commit  │  └DELAYED─┘ │ └── asleep: a stream
 *                                            └─UNCOMMITTED─┘     with nothing to send
 *
 * UNCOMMITTED, DELAYED and sleeping connections are suspended: the library ignores them
 * until we resume them, and does not notice when the client hangs up.  A check once a
 * second does, and closes connections that take too long to send a request.
 */
#include "http/http.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <microhttpd.h>
#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "http/guard.h"
#include "http/listen.h"
#include "http/target.h"
#include "http/token.h"

#define POOL_BYTES (32 * 1024)   /* the library's memory per connection: headers  */
#define STREAM_BYTES (16 * 1024) /* asked of a stream at a time                   */
#define REPLY_MAX (256u << 20)   /* bytes of a reply                              */
#define ACCEPT_MAX 64            /* connections taken in one go                   */
#define SWEEP_MS 1000

enum http_phase { IDLE, RECEIVING, UNCOMMITTED, DELAYED, SENDING };

struct http_connection {
    struct http *http;
    struct MHD_Connection *mhd; /* NULL: not yet, or unused */
    int fd;                     /* -1: unused */
    bool local;
    bool is_anonymous; /* has no token, and needs none for this request */
    uint32_t uid, gid;
    int32_t pid;
    bool is_authenticated; /* over TCP: this request came with a token or a session */

    enum http_phase phase;
    uint64_t since_ms; /* when we began to wait for a whole request */
    bool deferred;     /* complete, and suspended until a flush is over */
    bool asleep;       /* a stream that is suspended  */
    bool has_left;     /* its client has hung up      */
    bool cut;          /* we have shut it down        */
    bool target_long;
    int body_status;         /* status to refuse the body with, or 0 */
    size_t dropped;          /* bytes of the body that were dropped */
    struct buf target, body; /* as sent */
    struct http_reply reply;
};

struct http_listener {
    struct http *http;
    uv_poll_t poll;
    int fd;
    bool local;
};

struct http {
    struct http_setup setup;
    struct http_limits limits;
    struct guard guard;
    char *path; /* of the UNIX socket */
    struct stat socket_file;

    struct MHD_Daemon *library;
    struct http_listener listeners[2];
    uint32_t listener_count;
    uv_poll_t poll;   /* the library's epoll */
    uv_timer_t timer; /* when it wants to run */
    uv_timer_t sweep;
    uint32_t handles; /* not yet closed */

    struct http_connection *connections; /* limits.connections_max of them */
    uint32_t uncommitted;                /* replies */
    size_t bodies;                       /* bytes in all of them */
    bool paused;                         /* no descriptors left: not accepting */
    bool inside;                         /* the library is running */
    bool flushing;                       /* it runs, and must not call the handler */
    bool closing;
    struct arena arena;
    struct http_counts counts;
};

/* ---- what handlers use ---- */

const char *http_query(const struct http_request *request, const char *key)
{
    return target_query(request->target, key);
}

const char *http_header(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

void http_reply_header(struct http_reply *reply, const char *name, const char *value)
{
    assert(reply->header_count < HTTP_HEADERS_MAX);
    reply->headers[reply->header_count].name = name;
    snprintf(reply->headers[reply->header_count].value, sizeof reply->headers[0].value,
             "%s", value);
    reply->header_count++;
}

void http_reply_error(struct http_reply *reply, int status, const char *field,
                      const char *sentence)
{
    struct json *json = json_new_object();
    json_put_text(json, "error", sentence);
    if (field)
        json_put_text(json, "field", field);
    char *text = json_text(json);
    json_free(json);

    buf_reset(&reply->body);
    buf_text(&reply->body, text);
    buf_text(&reply->body, "\n");
    free(text);
    reply->status = status;
    reply->type = "application/json";
    reply->stream = NULL;
    reply->delayed = NULL;
    reply->after_commit = false;
}

/* ---- connections ---- */

static struct http_connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_connection *connection = info->socket_context;
    assert(connection);
    return connection;
}

/* A new reply to fill in. */
static void reset_reply(struct http_connection *connection)
{
    buf_release(&connection->reply.body);
    connection->reply =
        (struct http_reply){ .status = 200, .type = "application/json" };
    buf_init(&connection->reply.body, REPLY_MAX);
}

/* A request has ended, in whatever way: get ready for the next one. */
static void end_request(struct http_connection *connection)
{
    struct http *http = connection->http;
    struct http_stream *stream = connection->reply.stream;
    struct http_delayed *delayed =
        connection->phase == DELAYED ? connection->reply.delayed : NULL;
    if (stream && connection->phase == SENDING)
        http->counts.streams--;
    if (connection->phase == UNCOMMITTED)
        http->uncommitted--;
    http->bodies -= connection->body.count;
    buf_release(&connection->body);
    buf_reset(&connection->target);
    reset_reply(connection);
    connection->phase = IDLE;
    connection->asleep = false;
    connection->deferred = false;
    connection->target_long = false;
    connection->body_status = 0;
    connection->dropped = 0;
    connection->since_ms = uv_now(http->setup.loop);
    if (delayed) {
        delayed->connection = NULL;
        delayed->closed(delayed->self);
    }
    if (stream) {
        stream->connection = NULL;
        stream->closed(stream->self);
    }
}

static void release_connection(struct http_connection *connection)
{
    struct http *http = connection->http;
    end_request(connection);
    buf_release(&connection->target);
    connection->mhd = NULL;
    connection->fd = -1;
    http->counts.connections--;
}

static struct http_connection *find_connection(struct http *http, int fd)
{
    for (uint32_t i = 0; i < http->limits.connections_max; i++)
        if (http->connections[i].fd == fd)
            return &http->connections[i];
    return NULL;
}

static uint32_t count_connections(const struct http *http, uint32_t uid, bool local)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < http->limits.connections_max; i++) {
        const struct http_connection *connection = &http->connections[i];
        if (connection->fd >= 0 && connection->local == local &&
            (!local || connection->uid == uid))
            count++;
    }
    return count;
}

/* ---- replies ---- */

static void on_timer(uv_timer_t *timer);
static void on_sweep(uv_timer_t *timer);

/* Resume a suspended connection; the library does not wake up by itself from that. */
static void resume_connection(struct http_connection *connection)
{
    struct http *http = connection->http;
    connection->asleep = false;
    connection->deferred = false;
    MHD_resume_connection(connection->mhd);
    if (!http->inside)
        uv_timer_start(&http->timer, on_timer, 0, 0);
}

/* The library asks for more bytes of a stream. */
static ssize_t read_stream(void *context, uint64_t position, char *room, size_t size)
{
    struct http_connection *connection = context;
    if (connection->http->closing || connection->has_left)
        return MHD_CONTENT_READER_END_WITH_ERROR;

    struct http_stream *stream = connection->reply.stream;
    ssize_t count = stream->read(stream->self, room, size);
    assert(count <= (ssize_t)size);
    if (count < 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (count == 0) { /* 0 alone would make the library ask again at once */
        connection->asleep = true;
        MHD_suspend_connection(connection->mhd);
    }
    return count;
}

void http_stream_wake(struct http_stream *stream)
{
    if (stream->connection && stream->connection->asleep)
        resume_connection(stream->connection);
}

static struct MHD_Response *make_response(struct http_connection *connection)
{
    struct http_reply *reply = &connection->reply;
    if (reply->stream)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BYTES,
                                                 read_stream, connection, NULL);

    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->body.count, reply->body.bytes, MHD_RESPMEM_MUST_FREE);
    if (response)
        buf_init(&reply->body, REPLY_MAX); /* the library owns its bytes now */
    return response;
}

static void add_headers(struct MHD_Response *response, const struct http_reply *reply)
{
    MHD_add_response_header(response, "Content-Type", reply->type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (reply->policy) {
        MHD_add_response_header(response, "Content-Security-Policy", reply->policy);
        MHD_add_response_header(response, "X-Frame-Options", "DENY");
        MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
        MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
        MHD_add_response_header(response, "Cross-Origin-Resource-Policy",
                                "same-origin");
    }
    for (uint32_t i = 0; i < reply->header_count; i++)
        MHD_add_response_header(response, reply->headers[i].name,
                                reply->headers[i].value);
}

/* Give the reply to the library; it goes out as soon as that runs. */
static enum MHD_Result send_reply(struct http_connection *connection)
{
    struct http *http = connection->http;
    struct http_reply *reply = &connection->reply;
    if (reply->body.full && !reply->stream)
        http_reply_error(reply, 500, NULL, "the reply is larger than can be sent");

    struct MHD_Response *response = make_response(connection);
    if (!response)
        return MHD_NO;
    add_headers(response, reply);
    connection->phase = SENDING;
    if (reply->stream) {
        reply->stream->connection = connection;
        http->counts.streams++;
    }
    http->counts.requests++;
    http->counts.refused += reply->status >= 400;

    enum MHD_Result r =
        MHD_queue_response(connection->mhd, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return r;
}

struct http_reply *http_delayed_reply(struct http_delayed *delayed)
{
    return &delayed->connection->reply;
}

void http_delayed_send(struct http_delayed *delayed)
{
    struct http_connection *connection = delayed->connection;
    delayed->connection = NULL;
    connection->reply.delayed = NULL;
    connection->phase = SENDING;
    send_reply(
        connection); /* if it fails, on_request() is called again and closes it */
    resume_connection(connection);
}

static enum MHD_Result refuse_request(struct http_connection *connection, int status,
                                      const char *sentence)
{
    http_reply_error(&connection->reply, status, NULL, sentence);
    if (status == 401)
        http_reply_header(&connection->reply, "WWW-Authenticate", "Bearer");
    if (status == 413 || status == 503) /* the rest of the body is not read */
        http_reply_header(&connection->reply, "Connection", "close");
    return send_reply(connection);
}

/* ---- requests ---- */

/* The whole request has arrived. */
static enum MHD_Result call_handler(struct http_connection *connection,
                                    const char *method)
{
    struct http *http = connection->http;
    if (connection->body_status)
        return refuse_request(connection, connection->body_status,
                              connection->body_status == 413
                                  ? "the body is too large"
                                  : "too much is arriving at once");

    struct target target;
    struct error err;
    arena_reset(&http->arena);
    if (target_read(&target, &http->arena, connection->target.bytes, &err) < 0)
        return refuse_request(connection, 400, err.text);

    struct http_request request = {
        .method = strcmp(method, "HEAD") == 0 ? "GET" : method,
        .path = target.path,
        .body = connection->body.bytes ? connection->body.bytes : "",
        .body_size = connection->body.count,
        .local = connection->local,
        .uid = connection->is_anonymous ? HTTP_ANONYMOUS : connection->uid,
        .gid = connection->is_anonymous ? HTTP_ANONYMOUS : connection->gid,
        .pid = connection->pid,
        .is_authenticated = connection->is_authenticated && !connection->is_anonymous,
        .is_anonymous = connection->is_anonymous,
        .arena = &http->arena,
        .target = &target,
        .connection = connection->mhd,
    };
    http->setup.handler(http->setup.context, &request, &connection->reply);
    if (connection->reply.delayed) {
        connection->reply.delayed->connection = connection;
        connection->phase = DELAYED;
        MHD_suspend_connection(connection->mhd);
        return MHD_YES;
    }
    if (!connection->reply.after_commit)
        return send_reply(connection);

    assert(!connection->reply.stream); /* a reply is committed as a whole */
    connection->phase = UNCOMMITTED;
    http->uncommitted++;
    MHD_suspend_connection(connection->mhd);
    return MHD_YES;
}

static enum MHD_Result count_host(void *context, enum MHD_ValueKind kind,
                                  const char *key, const char *value)
{
    uint32_t *count = context;
    *count += strcasecmp(key, "Host") == 0;
    return MHD_YES;
}

static bool allows_anonymous(const struct http_connection *connection,
                             const char *method)
{
    const struct http_setup *setup = &connection->http->setup;
    return setup->allows_anonymous && connection->target.bytes &&
           setup->allows_anonymous(setup->context, method, connection->target.bytes);
}

/* Over TCP: find the user of a request.  0, or the status to refuse with. */
static int identify_bearer(struct http_connection *connection, const char *method,
                           const char **ret_sentence)
{
    struct http *http = connection->http;
    const struct http_setup *setup = &http->setup;
    const struct http_request request = { .connection = connection->mhd };
    const char *bearer = guard_find_bearer(http_header(&request, "Authorization"));
    connection->is_authenticated = true;
    connection->uid = geteuid();
    connection->gid = getegid();
    if (bearer && token_equals(bearer, http->guard.token))
        return 0;
    if (bearer && setup->find_session &&
        setup->find_session(setup->context, bearer, &connection->uid, &connection->gid))
        return 0;
    connection->is_authenticated = false;
    connection->uid = connection->gid = HTTP_ANONYMOUS;
    if (setup->is_public &&
        setup->is_public(setup->context, method, connection->target.bytes))
        return 0;
    *ret_sentence = "the token is missing or wrong: Authorization: Bearer TOKEN";
    return 401;
}

/* May this request be handled at all?  0, or the status to refuse with. */
static int check_access(struct http_connection *connection, const char *method,
                        const char **ret_sentence)
{
    if (connection->target_long) {
        *ret_sentence = "the address is too long";
        return 414;
    }
    if (connection->local)
        return 0;

    uint32_t hosts = 0;
    MHD_get_connection_values(connection->mhd, MHD_HEADER_KIND, count_host, &hosts);
    const struct http_request request = { .connection = connection->mhd };
    const char *host = hosts == 1 ? http_header(&request, "Host") : NULL;
    int status = guard_check_address(&connection->http->guard, host,
                                     http_header(&request, "Origin"), ret_sentence);
    if (status == 0)
        status = identify_bearer(connection, method, ret_sentence);
    /* A web page is never an anonymous client, whatever it sends. */
    connection->is_anonymous = status != 0 && http_header(&request, "Origin") == NULL &&
                               allows_anonymous(connection, method);
    return connection->is_anonymous ? 0 : status;
}

static size_t body_max(const struct http_connection *connection)
{
    const struct http_limits *limits = &connection->http->limits;
    return connection->is_anonymous ? limits->anonymous_body_max : limits->body_max;
}

/* The headers have arrived. */
static enum MHD_Result begin_request(struct http_connection *connection,
                                     const char *method)
{
    connection->phase = RECEIVING;
    connection->is_anonymous = false;
    const char *sentence = NULL;
    int status = check_access(connection, method, &sentence);
    if (status)
        return refuse_request(connection, status, sentence);

    const struct http_request request = { .connection = connection->mhd };
    const char *length = http_header(&request, "Content-Length");
    if (length && strtoull(length, NULL, 10) > body_max(connection))
        return refuse_request(connection, 413, "the body is too large");
    return MHD_YES;
}

/* A part of the body has arrived.  If it is too large the rest is read and dropped, since
 * the library sends no reply before its end; but only up to the same size again. */
static enum MHD_Result receive_body(struct http_connection *connection,
                                    const char *data, size_t *size)
{
    struct http *http = connection->http;
    size_t room = body_max(connection) - connection->body.count;
    if (*size > room)
        connection->body_status = 413;
    else if (*size > http->limits.bodies_max - http->bodies)
        connection->body_status = 503;
    if (connection->body_status) {
        connection->dropped += *size;
    } else {
        buf_add(&connection->body, data, *size);
        http->bodies += *size;
    }
    *size = 0;
    return connection->dropped > body_max(connection) ? MHD_NO : MHD_YES;
}

static bool is_ready(const struct http_connection *connection)
{
    const struct http_setup *setup = &connection->http->setup;
    return !setup->ready || connection->is_anonymous ||
           setup->ready(setup->context, connection->uid);
}

/* During a flush, or while the user is not ready: call the handler afterwards. */
static enum MHD_Result defer_request(struct http_connection *connection)
{
    connection->deferred = true;
    MHD_suspend_connection(connection->mhd);
    return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd,
                                  const char *url, const char *method,
                                  const char *version, const char *data, size_t *size,
                                  void **unused)
{
    struct http_connection *connection = connection_of(mhd);
    if (connection->http->closing)
        return MHD_NO;
    if (connection->phase == IDLE)
        return begin_request(connection, method);
    if (connection->phase == RECEIVING && *size > 0)
        return receive_body(connection, data, size);
    if (connection->phase == RECEIVING)
        return connection->http->flushing || !is_ready(connection)
                   ? defer_request(connection)
                   : call_handler(connection, method);
    return MHD_NO; /* its reply could not be queued */
}

/* The first line of a request: keep its target as it was sent. */
static void *on_target(void *context, const char *uri, struct MHD_Connection *mhd)
{
    struct http_connection *connection = connection_of(mhd);
    buf_reset(&connection->target);
    size_t count = strlen(uri);
    connection->target_long = count > TARGET_BYTES_MAX;
    buf_add(&connection->target, uri, connection->target_long ? 0 : count);
    return connection;
}

/* Targets are decoded in target.c. */
static size_t leave_escaped(void *context, struct MHD_Connection *mhd, char *text)
{
    return strlen(text);
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **unused,
                         enum MHD_RequestTerminationCode how)
{
    end_request(connection_of(mhd));
}

static void on_connection(void *context, struct MHD_Connection *mhd,
                          void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *http = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        release_connection(*socket_context);
        return;
    }
    int fd =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct http_connection *connection = find_connection(http, fd);
    assert(connection);
    connection->mhd = mhd;
    *socket_context = connection;
}

/* ---- the loop ---- */

/* Let the library do its work, and set the timer for its next call. */
static void run_library(struct http *http)
{
    if (http->inside) /* a handler woke a stream: the outer call sends it */
        return;
    http->inside = true;
    MHD_run(http->library);
    http->inside = false;

    MHD_UNSIGNED_LONG_LONG wait_ms;
    if (MHD_get_timeout(http->library, &wait_ms) == MHD_YES)
        uv_timer_start(&http->timer, on_timer, wait_ms, 0);
    else
        uv_timer_stop(&http->timer);
}

static void on_timer(uv_timer_t *timer)
{
    run_library(timer->data);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    run_library(poll->data);
}

/* Send one error and close. */
static void refuse_connection(struct http *http, int fd, const char *status,
                              const char *sentence)
{
    char text[400];
    int body = snprintf(NULL, 0, "{\"error\":\"%s\"}\n", sentence);
    int count = snprintf(text, sizeof text,
                         "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                         "Content-Length: %d\r\nConnection: close\r\n\r\n"
                         "{\"error\":\"%s\"}\n",
                         status, body, sentence);
    http->counts.connections_refused++;
    /* An empty socket has room for it; otherwise the client gets no reason. */
    (void)!send(fd, text, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

/* The user and process at the other end of a UNIX socket; false if unknown. */
static bool read_peer(int fd, struct http_connection *ret_peer)
{
    struct ucred cred;
    socklen_t size = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return false;
    ret_peer->uid = cred.uid;
    ret_peer->gid = cred.gid;
    ret_peer->pid = cred.pid;
    return true;
}

static void accept_connection(struct http *http, int fd, bool local)
{
    struct http_connection peer = { .http = http, .fd = fd, .local = local };
    peer.uid = geteuid();
    peer.gid = getegid();
    if (local && !read_peer(fd, &peer)) {
        close(fd);
        return;
    }
    if (local && !http->setup.any_user && peer.uid != geteuid() && peer.uid != 0) {
        refuse_connection(http, fd, "403 Forbidden", "this berthd serves another user");
        return;
    }
    if (count_connections(http, peer.uid, local) >= http->limits.per_user_max) {
        refuse_connection(http, fd, "503 Service Unavailable",
                          "you have too many connections");
        return;
    }
    struct http_connection *connection = find_connection(http, -1);
    if (!connection) {
        refuse_connection(http, fd, "503 Service Unavailable", "too many connections");
        return;
    }
    *connection = peer;
    reset_reply(connection);
    buf_init(&connection->target, TARGET_BYTES_MAX);
    buf_init(&connection->body, http->limits.body_max);
    connection->since_ms = uv_now(http->setup.loop);
    http->counts.connections++;
    if (MHD_add_connection(http->library, fd, NULL, 0) != MHD_YES &&
        connection->fd >= 0)
        release_connection(connection); /* the library has closed it */
}

/* Out of descriptors: the socket stays readable, so stop polling it for a while. */
static void pause_accepting(struct http *http)
{
    http->paused = true;
    for (uint32_t i = 0; i < http->listener_count; i++)
        uv_poll_stop(&http->listeners[i].poll);
}

static void on_connect(uv_poll_t *poll, int status, int events)
{
    struct http_listener *listener = poll->data;
    struct http *http = listener->http;
    for (int i = 0; i < ACCEPT_MAX; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accept_connection(http, fd, listener->local);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(http);
        if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
    if (!uv_is_active((uv_handle_t *)&http->sweep))
        uv_timer_start(&http->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    run_library(http); /* requests have mostly arrived already */
}

static void start_accepting(struct http *http)
{
    http->paused = false;
    for (uint32_t i = 0; i < http->listener_count; i++)
        uv_poll_start(&http->listeners[i].poll, UV_READABLE, on_connect);
}

static bool has_hung_up(int fd)
{
    char byte;
    ssize_t r = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR);
}

/* Once a second while there are connections: find clients that hung up or are too slow. */
static void on_sweep(uv_timer_t *timer)
{
    struct http *http = timer->data;
    uint64_t now_ms = uv_now(http->setup.loop);
    uint64_t limit_ms = 1000 * (uint64_t)http->limits.request_s;
    for (uint32_t i = 0; i < http->limits.connections_max; i++) {
        struct http_connection *connection = &http->connections[i];
        if (connection->fd < 0)
            continue;
        if (connection->asleep && has_hung_up(connection->fd)) {
            connection->has_left = true;
            resume_connection(connection);
        }
        bool is_waiting = connection->phase == IDLE || connection->phase == RECEIVING;
        if (is_waiting && !connection->cut &&
            now_ms - connection->since_ms >= limit_ms) {
            connection->cut = true;
            shutdown(connection->fd, SHUT_RDWR);
        }
    }
    if (http->paused)
        start_accepting(http);
    if (http->counts.connections == 0)
        uv_timer_stop(timer);
    run_library(http);
}

void http_flush(struct http *http, bool durable)
{
    if (http->uncommitted == 0)
        return;
    for (uint32_t i = 0; i < http->limits.connections_max; i++) {
        struct http_connection *connection = &http->connections[i];
        if (connection->fd < 0 || connection->phase != UNCOMMITTED)
            continue;
        if (!durable)
            http_reply_error(&connection->reply, 503, NULL,
                             "it could not be written to disk, and is not accepted");
        else if (connection->reply.finish)
            connection->reply.finish(http->setup.context, connection->reply.finish_id,
                                     &connection->reply);
        http->uncommitted--;
        connection->phase = SENDING;
        send_reply(
            connection); /* if that fails, on_request() is called again and closes it */
        resume_connection(connection);
    }
    assert(http->uncommitted == 0);
    http->flushing = true;
    run_library(http);
    http->flushing = false;
    http_retry(http);
}

void http_retry(struct http *http)
{
    for (uint32_t i = 0; i < http->limits.connections_max; i++)
        if (http->connections[i].fd >= 0 && http->connections[i].deferred)
            resume_connection(&http->connections[i]);
}

bool http_has_uncommitted(const struct http *http)
{
    return http->uncommitted > 0;
}

const char *http_host(const struct http *http)
{
    return http->guard.host;
}

uint16_t http_port(const struct http *http)
{
    return http->guard.port;
}

const struct http_counts *http_counts(const struct http *http)
{
    return &http->counts;
}

/* ---- opening and closing ---- */

static void fill_limits(struct http_limits *limits, const struct http_limits *asked)
{
    *limits = *asked;
    if (!limits->body_max)
        limits->body_max = 16u << 20;
    if (!limits->bodies_max)
        limits->bodies_max = 64u << 20;
    if (!limits->anonymous_body_max)
        limits->anonymous_body_max = 16 << 10;
    if (!limits->connections_max)
        limits->connections_max = 256;
    if (!limits->per_user_max)
        limits->per_user_max = 64;
    if (!limits->request_s)
        limits->request_s = 60;
    if (!limits->idle_s)
        limits->idle_s = 60;
}

static void add_listener(struct http *http, int fd, bool local)
{
    http->listeners[http->listener_count++] =
        (struct http_listener){ .http = http, .fd = fd, .local = local };
}

static int open_tcp(struct http *http, const char *where, struct error *err)
{
    assert(http->guard.token[0]);
    int fd = listen_tcp(where, http->guard.host, sizeof http->guard.host,
                        &http->guard.port, err);
    if (fd < 0) {
        http->guard.host[0] = '\0';
        return fd;
    }
    add_listener(http, fd, false);
    return 0;
}

static int open_listeners(struct http *http, const struct http_setup *setup,
                          struct error *err)
{
    if (setup->socket) {
        int fd = listen_unix(setup->socket, setup->any_user, err);
        if (fd < 0)
            return fd;
        add_listener(http, fd, true);
        http->path = memory_text(setup->socket);
        lstat(setup->socket, &http->socket_file);
    }
    if (setup->token)
        snprintf(http->guard.token, sizeof http->guard.token, "%s", setup->token);
    return setup->listen ? open_tcp(http, setup->listen, err) : 0;
}

static void close_listeners(struct http *http)
{
    for (uint32_t i = 0; i < http->listener_count; i++)
        close(http->listeners[i].fd);
    struct stat there;
    if (http->path && lstat(http->path, &there) == 0 &&
        there.st_ino == http->socket_file.st_ino &&
        there.st_dev == http->socket_file.st_dev)
        unlink(http->path); /* unless another process has replaced it */
}

static int start_library(struct http *http, struct error *err)
{
    http->library = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
        NULL, on_request, http,                                    //
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES,    //
        MHD_OPTION_CONNECTION_LIMIT, http->limits.connections_max, //
        MHD_OPTION_CONNECTION_TIMEOUT, http->limits.idle_s,        //
        MHD_OPTION_STRICT_FOR_CLIENT, 1,                           //
        MHD_OPTION_URI_LOG_CALLBACK, on_target, http,              //
        MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, http,         //
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,           //
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,         //
        MHD_OPTION_END);
    if (!http->library)
        return error_set(err, -ENOMEM, "the HTTP server could not be started");
    return 0;
}

static void watch_listener(struct http *http, struct http_listener *listener)
{
    uv_poll_init(http->setup.loop, &listener->poll, listener->fd);
    listener->poll.data = listener;
    http->handles++;
}

static void start_polling(struct http *http)
{
    struct uv_loop_s *loop = http->setup.loop;
    int epoll_fd =
        MHD_get_daemon_info(http->library, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    uv_poll_init(loop, &http->poll, epoll_fd);
    uv_timer_init(loop, &http->timer);
    uv_timer_init(loop, &http->sweep);
    http->poll.data = http->timer.data = http->sweep.data = http;
    http->handles = 3;
    for (uint32_t i = 0; i < http->listener_count; i++)
        watch_listener(http, &http->listeners[i]);
    uv_poll_start(&http->poll, UV_READABLE, on_ready);
    start_accepting(http);
}

static void free_http(struct http *http)
{
    for (uint32_t i = 0; i < http->limits.connections_max; i++)
        buf_release(&http->connections[i].reply.body);
    arena_release(&http->arena);
    free(http->connections);
    free(http->path);
    free(http);
}

int http_open(struct http **ret_http, const struct http_setup *setup, struct error *err)
{
    struct http *http = memory_checked(calloc(1, sizeof *http));
    http->setup = *setup;
    fill_limits(&http->limits, &setup->limits);
    arena_init(&http->arena, 64 * 1024);
    http->connections =
        memory_checked(calloc(http->limits.connections_max, sizeof *http->connections));
    for (uint32_t i = 0; i < http->limits.connections_max; i++)
        http->connections[i].fd = -1;

    int r = open_listeners(http, setup, err);
    if (r == 0)
        r = start_library(http, err);
    if (r < 0) {
        close_listeners(http);
        free_http(http);
        return r;
    }
    start_polling(http);
    *ret_http = http;
    return 0;
}

int http_listen(struct http *http, const char *where, struct error *err)
{
    if (http->guard.port)
        return error_set(err, -EALREADY, "it listens on port %u already",
                         http->guard.port);
    int r = open_tcp(http, where, err);
    if (r < 0)
        return r;
    struct http_listener *listener = &http->listeners[http->listener_count - 1];
    watch_listener(http, listener);
    if (!http->paused)
        uv_poll_start(&listener->poll, UV_READABLE, on_connect);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct http *http = handle->data;
    if (--http->handles == 0)
        free_http(http);
}

void http_close(struct http *http)
{
    http->closing = true;
    for (uint32_t i = 0; i < http->limits.connections_max; i++) {
        struct http_connection *connection = &http->connections[i];
        if (connection->fd >= 0 &&
            (connection->phase == UNCOMMITTED || connection->phase == DELAYED ||
             connection->asleep || connection->deferred))
            resume_connection(
                connection); /* the library must not stop with suspended connections */
    }
    MHD_run(http->library);

    for (uint32_t i = 0; i < http->listener_count; i++) {
        http->listeners[i].poll.data = http;
        uv_close((uv_handle_t *)&http->listeners[i].poll, on_closed);
    }
    uv_close((uv_handle_t *)&http->poll, on_closed);
    uv_close((uv_handle_t *)&http->timer, on_closed);
    uv_close((uv_handle_t *)&http->sweep, on_closed);
    close_listeners(http);
    MHD_stop_daemon(http->library);
    assert(http->counts.connections == 0);
}
