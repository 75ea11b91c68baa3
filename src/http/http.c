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
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>
#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "http/http_internal.h"
#include "http/listeners.h"
#include "http/quota.h"
#include "http/target.h"

#define POOL_BYTES (32 * 1024)   /* the library's memory per connection: headers  */
#define STREAM_BYTES (16 * 1024) /* asked of a stream at a time                   */
#define SWEEP_MS 1000

/* What TLS may be spoken: nothing that is known to be weak. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/* Runs of the library in a row, and a pause; and while clients are not known yet. */
#define SPINS_MAX 64
#define PAUSE_MS 1
#define TURN_NS 5000000 /* of the handler's time, for one user in one turn */
#define SPINS_STALLED_MAX 4
#define PAUSE_STALLED_MS 5

/* ---- the other end of a connection ---- */

struct peer_user {
    uint32_t uid, gid;
    int32_t pid;
};

/* The user and process at the other end of a UNIX socket; false if unknown. */
static bool peer_read(int fd, struct peer_user *ret_peer)
{
    struct ucred cred;
    socklen_t size = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return false;
    *ret_peer = (struct peer_user){ .uid = cred.uid, .gid = cred.gid, .pid = cred.pid };
    return true;
}

/* What tells hosts apart: an IPv4 address, or the network part of an IPv6 one. */
static uint64_t peer_address(int fd)
{
    struct sockaddr_storage peer = { 0 };
    socklen_t size = sizeof peer;
    uint64_t address = 0;
    if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0)
        return 0;
    if (peer.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&peer)->sin_addr.s_addr;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)&peer)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(six))
        memcpy(&address, six->s6_addr + 12, 4);
    else
        memcpy(&address, six->s6_addr, sizeof address); /* one host has all the rest */
    return address;
}

/* Not by reading: over TLS a farewell comes before the end, and bytes are to be read. */
static bool peer_has_left(int fd)
{
    struct pollfd wait = { .fd = fd, .events = POLLRDHUP };
    return poll(&wait, 1, 0) > 0;
}

/*
 * Send one error, without waiting, and close.  'status' is the rest of the status line;
 * 'retry': the same request may succeed a little later.
 */
static void peer_refuse(int fd, const char *status, const char *sentence, bool retry)
{
    char body[300], text[600];
    int size = snprintf(body, sizeof body, "{\"error\":\"%.200s\"%s}\n", sentence,
                        retry ? ",\"retry_after_s\":1" : "");
    int count = snprintf(text, sizeof text,
                         "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                         "Content-Length: %d\r\nConnection: close\r\n%s\r\n%s",
                         status, size, retry ? "Retry-After: 1\r\n" : "", body);
    /* An empty socket has room for it; otherwise the client gets no reason. */
    (void)!send(fd, text, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

/* ---- what handlers use ---- */

const char *http_query(const struct http_request *request, const char *key)
{
    return target_query(request->target, key);
}

const char *http_header(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
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

    connection->reply_bytes = reply->stream ? 0 : reply->body.count;
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
    if (status == 503)
        http_reply_retry(&connection->reply, status, sentence);
    else
        http_reply_error(&connection->reply, status, NULL, sentence);
    if (status == 401)
        http_reply_header(&connection->reply, "WWW-Authenticate", "Bearer");
    if (status == 413 || status == 503) /* the rest of the body is not read */
        http_reply_header(&connection->reply, "Connection", "close");
    return send_reply(connection);
}

/* ---- requests ---- */

static const char wrong_credential[] =
    "the token is missing, wrong, expired or revoked: Authorization: Bearer TOKEN";

/* Is the credential of the request still good?  Without one there is nothing to end. */
static bool is_still_valid(const struct http_connection *connection)
{
    const struct http_setup *setup = &connection->http->setup;
    uint64_t credential = connection->identity.credential;
    return !credential || !setup->is_valid ||
           setup->is_valid(setup->context, credential);
}

/* Replies that a user does not read are in memory. */
static int check_unread(const struct http_connection *connection, struct error *err)
{
    const struct http *http = connection->http;
    uint64_t bytes = 0, most = quota_limit_of(&http->quota, connection->account).bytes;
    for (uint32_t i = 0; i < http->top; i++)
        if (http->connections[i].account == connection->account)
            bytes += http->connections[i].reply_bytes;
    if (bytes < most || connection->account == QUOTA_ANONYMOUS) /* may ask for little */
        return 0;
    return error_set(err, -EDQUOT,
                     "you have not read %llu bytes of replies, your limit is %llu",
                     (unsigned long long)bytes, (unsigned long long)most);
}

/*
 * Where a server is for all users, one that has had much of the handler's time in a turn waits
 * for the next: requests that take long, however many, delay others by one of them at most.
 */
static void note_work(struct http_connection *connection, uint64_t ns)
{
    bool again = connection->turn == connection->http->turn;
    connection->turn = connection->http->turn;
    connection->spent_ns = (again ? connection->spent_ns : 0) + ns;
}

static bool had_turn(const struct http_connection *connection)
{
    const struct http *http = connection->http;
    uint64_t spent_ns = 0;
    for (uint32_t i = 0; http->setup.any_user && i < http->top; i++)
        if (http->connections[i].account == connection->account &&
            http->connections[i].turn == http->turn)
            spent_ns += http->connections[i].spent_ns;
    return spent_ns >= TURN_NS;
}

/* The whole request has arrived. */
static enum MHD_Result call_handler(struct http_connection *connection,
                                    const char *method)
{
    struct http *http = connection->http;
    if (connection->body_status)
        return refuse_request(connection, connection->body_status,
                              connection->body_status == 413
                                  ? "the body is too large"
                                  : connection->body_error.text);

    if (!is_still_valid(connection)) /* it was revoked while the body arrived */
        return refuse_request(connection, 401, wrong_credential);
    struct target target;
    struct error err;
    if (check_unread(connection, &err) < 0)
        return refuse_request(connection, 503, err.text);
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
        .scope = connection->identity.scope,
        .is_anonymous = connection->is_anonymous,
        .arena = &http->arena,
        .target = &target,
        .connection = connection->mhd,
    };
    uint64_t since_ns = uv_hrtime();
    http->setup.handler(http->setup.context, &request, &connection->reply);
    note_work(connection, uv_hrtime() - since_ns);
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
    const struct http_setup *setup = &connection->http->setup;
    const struct http_request request = { .connection = connection->mhd };
    const char *bearer = guard_find_bearer(http_header(&request, "Authorization"));
    struct http_identity *identity = &connection->identity;
    *identity = (struct http_identity){ .uid = HTTP_ANONYMOUS, .gid = HTTP_ANONYMOUS };
    connection->is_authenticated =
        bearer && setup->identify && setup->identify(setup->context, bearer, identity);
    connection->uid = identity->uid;
    connection->gid = identity->gid;
    if (connection->is_authenticated)
        return 0;
    if (setup->is_public &&
        setup->is_public(setup->context, method, connection->target.bytes))
        return 0;
    *ret_sentence = wrong_credential;
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
    int status = guard_check_address(&connection->listener->guard, host,
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
    return connection->account == QUOTA_ANONYMOUS ? limits->anonymous_body_max
                                                  : limits->body_max;
}

/* The headers have arrived. */
static enum MHD_Result begin_request(struct http_connection *connection,
                                     const char *method)
{
    connection->phase = RECEIVING;
    connection->moved_ms = uv_now(connection->http->setup.loop);
    connection->is_anonymous = false;
    const char *sentence = NULL;
    int status = check_access(connection, method, &sentence);
    if (status)
        return refuse_request(connection, status, sentence);

    struct error err;
    if (http_connection_charge(connection, &err) < 0)
        return refuse_request(connection, 503, err.text);

    const struct http_request request = { .connection = connection->mhd };
    const char *length = http_header(&request, "Content-Length");
    uint64_t size = length ? strtoull(length, NULL, 10) : 0;
    if (size > body_max(connection))
        return refuse_request(connection, 413, "the body is too large");
    if (quota_check_bytes(&connection->http->quota, connection->account, size, &err) <
        0)
        return refuse_request(connection, 503, err.text);
    return MHD_YES;
}

/* A part of the body has arrived.  If it is too large the rest is read and dropped, since
 * the library sends no reply before its end; but only up to the same size again. */
static enum MHD_Result receive_body(struct http_connection *connection,
                                    const char *data, size_t *size)
{
    struct http *http = connection->http;
    size_t room = body_max(connection) - connection->body.count;
    connection->moved_ms = uv_now(http->setup.loop);
    if (*size > room)
        connection->body_status = 413;
    else if (!connection->body_status &&
             quota_add_bytes(&http->quota, connection->account, *size,
                             &connection->body_error) < 0)
        connection->body_status = 503;
    if (connection->body_status)
        connection->dropped += *size;
    else
        buf_add(&connection->body, data, *size);
    *size = 0;
    return connection->dropped > body_max(connection) ? MHD_NO : MHD_YES;
}

static bool is_ready(const struct http_connection *connection)
{
    const struct http_setup *setup = &connection->http->setup;
    return !setup->ready || connection->is_anonymous ||
           setup->ready(setup->context, connection->uid);
}

/* During a flush, while the user is not ready, or after its turn: call the handler later. */
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
    connection->http->spins = 0;
    if (connection->phase == IDLE)
        return begin_request(connection, method);
    if (connection->phase == RECEIVING && *size > 0)
        return receive_body(connection, data, size);
    if (connection->phase != RECEIVING)
        return MHD_NO; /* its reply could not be queued */
    bool waits = had_turn(connection);
    connection->http->postponed = connection->http->postponed || waits;
    return waits || connection->http->flushing || !is_ready(connection)
               ? defer_request(connection)
               : call_handler(connection, method);
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
    http_connection_end_request(connection_of(mhd));
}

static void on_connection(void *context, struct MHD_Connection *mhd,
                          void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *http = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        http_connection_release(*socket_context);
        return;
    }
    int fd =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct http_connection *connection = http_find_connection(http, fd);
    assert(connection);
    connection->mhd = mhd;
    *socket_context = connection;
}

/* ---- the loop ---- */

/* Milliseconds until a library wants to run again, but no more than 'most'. */
static uint64_t wait_of(const struct http_library *library, uint64_t most)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    if (!library->mhd || MHD_get_timeout(library->mhd, &wait_ms) != MHD_YES)
        return most;
    return wait_ms < most ? wait_ms : most;
}

/*
 * Milliseconds to wait where the library wants to run again at once.  It says that of every
 * connection whose handshake has stalled in the middle, until that ends; so after some runs
 * in a row it has to wait.  Bytes that come wake it in any case.
 */
static uint64_t choose_pause(struct http *http)
{
    bool is_stalled = http->quota.anonymous.connections > 0;
    if (++http->spins < (is_stalled ? SPINS_STALLED_MAX : SPINS_MAX))
        return 0;
    if (!is_stalled)
        http->spins = 0; /* much to send: the loop has to do other things too */
    return is_stalled ? PAUSE_STALLED_MS : PAUSE_MS;
}

/* Let the library do its work, and set the timer for its next call. */
static void run_library(struct http *http)
{
    if (http->inside) /* a handler woke a stream: the outer call sends it */
        return;
    http->inside = true;
    http->turn++;
    MHD_run(http->plain.mhd);
    if (http->tls.mhd)
        MHD_run(http->tls.mhd);
    http->inside = false;

    uint64_t tls_ms = wait_of(&http->tls, UINT64_MAX);
    if (tls_ms == 0) /* a stalled handshake makes it say so for ever */
        tls_ms = choose_pause(http);
    /* Not 0: libuv would call the timer again before it looks for other clients. */
    uint64_t wait_ms = http->postponed ? PAUSE_MS : wait_of(&http->plain, tls_ms);
    if (wait_ms != UINT64_MAX)
        uv_timer_start(&http->timer, on_timer, wait_ms, 0);
    else
        uv_timer_stop(&http->timer);
}

static void on_timer(uv_timer_t *timer)
{
    struct http *http = timer->data;
    if (http->postponed) {
        http->postponed = false;
        http_retry(http);
    }
    run_library(http);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct http *http = ((const struct http_library *)poll->data)->http;
    http->spins = 0;
    run_library(http);
}

/* A client of TLS could not read why. */
static void refuse_connection(struct http *http, int fd, const struct listener *at,
                              const char *status, const char *sentence, bool retry)
{
    http->counts.connections_refused++;
    if (at->kind == LISTENER_TLS)
        close(fd);
    else
        peer_refuse(fd, status, sentence, retry);
}

static int count_new_connection(struct http *http, uint32_t account, struct error *err)
{
    int r = quota_add_connection(&http->quota, account, err);
    if (r == 0 || account != QUOTA_ANONYMOUS)
        return r;
    return http_make_anonymous_room(http)
               ? quota_add_connection(&http->quota, account, err)
               : r;
}

/* For struct listeners. */
static void accept_connection(void *context, int fd, const struct listener *at)
{
    struct http *http = context;
    bool local = at->kind == LISTENER_UNIX;
    struct peer_user peer = { .uid = HTTP_ANONYMOUS, .gid = HTTP_ANONYMOUS };
    struct error err;
    if (local && !peer_read(fd, &peer)) {
        close(fd);
        return;
    }
    if (local && !http->setup.any_user && peer.uid != geteuid() && peer.uid != 0) {
        refuse_connection(http, fd, at, "403 Forbidden",
                          "this berthd serves another user", false);
        return;
    }
    uint32_t account = local ? peer.uid : QUOTA_ANONYMOUS;
    if (count_new_connection(http, account, &err) < 0) {
        refuse_connection(http, fd, at, "503 Service Unavailable", err.text, true);
        return;
    }
    struct http_connection *connection = http_add_connection(http);
    *connection = (struct http_connection){ .http = http,
                                            .fd = fd,
                                            .listener = at,
                                            .address = local ? 0 : peer_address(fd),
                                            .local = local,
                                            .uid = peer.uid,
                                            .gid = peer.gid,
                                            .pid = peer.pid,
                                            .account = account };
    http_connection_reset_reply(connection);
    buf_init(&connection->target, TARGET_BYTES_MAX);
    buf_init(&connection->body, http->limits.body_max);
    connection->since_ms = connection->moved_ms = uv_now(http->setup.loop);
    http->counts.connections++;
    struct MHD_Daemon *mhd = at->kind == LISTENER_TLS ? http->tls.mhd : http->plain.mhd;
    if (MHD_add_connection(mhd, fd, NULL, 0) != MHD_YES && connection->fd >= 0)
        http_connection_release(connection); /* the library has closed it */
}

static void finish_accepting(void *context)
{
    struct http *http = context;
    if (!uv_is_active((uv_handle_t *)&http->sweep))
        uv_timer_start(&http->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    run_library(http); /* requests have mostly arrived already */
}

/* End a stream: its client is gone, or may not read on. */
static void end_stream(struct http_connection *connection)
{
    connection->has_left = true;
    if (connection->asleep)
        resume_connection(connection);
}

/* Once a second while there are connections: find clients that hung up or are too slow. */
static void on_sweep(uv_timer_t *timer)
{
    struct http *http = timer->data;
    uint64_t now_ms = uv_now(http->setup.loop);
    for (uint32_t i = 0; i < http->top; i++) {
        struct http_connection *connection = &http->connections[i];
        if (connection->fd < 0)
            continue;
        if (connection->asleep && peer_has_left(connection->fd))
            end_stream(connection);
        if (!connection->cut && http_connection_is_slow(connection, now_ms)) {
            connection->cut = true;
            shutdown(connection->fd, SHUT_RDWR);
        }
    }
    http_check_credentials(http);
    if (http->listeners.paused)
        listeners_resume(&http->listeners);
    if (http->counts.connections == 0)
        uv_timer_stop(timer);
    run_library(http);
}

void http_check_credentials(struct http *http)
{
    for (uint32_t i = 0; i < http->top; i++) {
        struct http_connection *connection = &http->connections[i];
        if (connection->fd >= 0 && connection->phase == SENDING &&
            connection->reply.stream && !is_still_valid(connection))
            end_stream(connection);
    }
}

void http_flush(struct http *http, bool durable)
{
    if (http->uncommitted == 0)
        return;
    for (uint32_t i = 0; i < http->top; i++) {
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
    for (uint32_t i = 0; i < http->top; i++)
        if (http->connections[i].fd >= 0 && http->connections[i].deferred)
            resume_connection(&http->connections[i]);
}

bool http_has_uncommitted(const struct http *http)
{
    return http->uncommitted > 0;
}

bool http_is_sending(const struct http *http)
{
    for (uint32_t i = 0; i < http->top; i++) {
        const struct http_connection *connection = &http->connections[i];
        if (connection->fd >= 0 && connection->phase == SENDING &&
            !connection->reply.stream)
            return true;
    }
    return false;
}

const struct guard *http_address(const struct http *http, bool tls)
{
    const struct listener *listener =
        listeners_find(&http->listeners, tls ? LISTENER_TLS : LISTENER_PLAIN);
    return listener ? &listener->guard : NULL;
}

struct quota_limit http_used(const struct http *http, uint32_t uid)
{
    return quota_used(&http->quota, uid);
}

const struct http_counts *http_counts(const struct http *http)
{
    return &http->counts;
}

/* ---- opening and closing ---- */

/* The options that both libraries have are those of 'more' and these. */
static struct MHD_Daemon *start_mhd(struct http *http, unsigned flags,
                                    const struct MHD_OptionItem *more)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
                                MHD_ALLOW_SUSPEND_RESUME | flags,
                            0, NULL, NULL, on_request, http,                        //
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES, //
                            MHD_OPTION_CONNECTION_LIMIT, http->room,                //
                            MHD_OPTION_CONNECTION_TIMEOUT, http->limits.idle_s,     //
                            MHD_OPTION_STRICT_FOR_CLIENT, 1,                        //
                            MHD_OPTION_URI_LOG_CALLBACK, on_target, http,           //
                            MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, http,      //
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,        //
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,      //
                            MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

int http_renew_socket(struct http *http, struct error *err)
{
    return listeners_renew_unix(&http->listeners, http->setup.any_user, err);
}

static int start_plain(struct http *http, struct error *err)
{
    static const struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
    http->plain.mhd = start_mhd(http, 0, none);
    if (!http->plain.mhd)
        return error_set(err, -ENOMEM, "the HTTP server could not be started");
    return 0;
}

/* Only for a port that other machines can reach.  The library copies the texts. */
static int start_tls(struct http *http, struct error *err)
{
    const struct http_setup *setup = &http->setup;
    const struct MHD_OptionItem more[] = {
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)setup->tls_key },
        { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)setup->tls_certificate },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
        { MHD_OPTION_END, 0, NULL },
    };
    if (!listeners_find(&http->listeners, LISTENER_TLS))
        return 0;
    if (setup->tls_key && setup->tls_certificate)
        http->tls.mhd = start_mhd(http, MHD_USE_TLS, more);
    if (!http->tls.mhd)
        return error_set(err, -EINVAL,
                         "TLS could not be started with this certificate and key");
    return 0;
}

static void poll_library(struct http *http, struct http_library *library)
{
    library->http = http;
    if (!library->mhd)
        return;
    int fd = MHD_get_daemon_info(library->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    uv_poll_init(http->setup.loop, &library->poll, fd);
    library->poll.data = library;
    uv_poll_start(&library->poll, UV_READABLE, on_ready);
    http->handles++;
}

static void start_polling(struct http *http)
{
    struct uv_loop_s *loop = http->setup.loop;
    uv_timer_init(loop, &http->timer);
    uv_timer_init(loop, &http->sweep);
    http->timer.data = http->sweep.data = http;
    http->handles = 2;
    poll_library(http, &http->plain);
    poll_library(http, &http->tls);
    listeners_resume(&http->listeners);
}

static void free_http(struct http *http)
{
    for (uint32_t i = 0; i < http->top_ever; i++)
        buf_release(&http->connections[i].reply.body);
    quota_release(&http->quota);
    arena_release(&http->arena);
    free(http->connections);
    free(http);
}

static struct http *make_http(const struct http_setup *setup)
{
    struct http *http = memory_checked(calloc(1, sizeof *http));
    http->setup = *setup;
    http->listeners = (struct listeners){ .loop = setup->loop,
                                          .accepted = accept_connection,
                                          .finished = finish_accepting,
                                          .context = http };
    arena_init(&http->arena, 64 * 1024);
    http_open_quota(http);
    return http;
}

int http_open(struct http **ret_http, const struct http_setup *setup, struct error *err)
{
    struct http *http = make_http(setup);
    int r = setup->socket ? listeners_open_unix(&http->listeners, setup->socket,
                                                setup->any_user, err)
                          : 0;
    if (r == 0 && setup->listen)
        r = listeners_open_tcp(&http->listeners, setup->listen, err);
    if (r == 0)
        r = start_plain(http, err);
    if (r == 0)
        r = start_tls(http, err);
    if (r < 0) {
        if (http->plain.mhd)
            MHD_stop_daemon(http->plain.mhd);
        listeners_drop(&http->listeners);
        free_http(http);
        return r;
    }
    start_polling(http);
    *ret_http = http;
    return 0;
}

int http_listen(struct http *http, const char *where, struct error *err)
{
    int r = listeners_open_tcp(&http->listeners, where, err);
    assert(http->tls.mhd || !listeners_find(&http->listeners, LISTENER_TLS));
    if (r == 0 && !http->listeners.paused)
        listeners_resume(&http->listeners);
    return r;
}

static void release_handle(void *context)
{
    struct http *http = context;
    if (--http->handles == 0)
        free_http(http);
}

static void on_closed(uv_handle_t *handle)
{
    release_handle(handle->data);
}

static void close_library(struct http *http, struct http_library *library)
{
    if (!library->mhd)
        return;
    library->poll.data = http;
    uv_close((uv_handle_t *)&library->poll, on_closed);
    MHD_stop_daemon(library->mhd);
}

void http_close(struct http *http)
{
    http->closing = true;
    for (uint32_t i = 0; i < http->top; i++) {
        struct http_connection *connection = &http->connections[i];
        if (connection->fd >= 0 &&
            (connection->phase == UNCOMMITTED || connection->phase == DELAYED ||
             connection->asleep || connection->deferred))
            resume_connection(
                connection); /* the library must not stop with suspended connections */
    }
    MHD_run(http->plain.mhd);
    if (http->tls.mhd)
        MHD_run(http->tls.mhd);

    if (http->listeners.count > 0) {
        http->handles++;
        listeners_close(&http->listeners, release_handle);
    }
    uv_close((uv_handle_t *)&http->timer, on_closed);
    uv_close((uv_handle_t *)&http->sweep, on_closed);
    close_library(http, &http->plain);
    close_library(http, &http->tls);
    assert(http->counts.connections == 0);
}
