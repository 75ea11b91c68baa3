/*
 * http.c - libmicrohttpd on a libuv loop; the only file that knows the library.
 *
 * The library runs without threads of its own: all its sockets hang on one epoll
 * descriptor, which is one more thing our loop polls.  We accept connections ourselves,
 * so that one above a limit, or of a user who has no business here, costs nothing.
 *
 * A connection is a 'guest' and is in one of these phases:
 *
 *        ┌────────────────────────────────────────────────┐
 *        ▼                                                │
 *      IDLE ──headers──► RECEIVING ──all──► handler ──► SENDING
 *                                              │          ▲ │
 *                                 after_commit └► HELD ───┘ └── asleep: a stream
 *                                                              with nothing to say
 *
 * HELD and asleep ones are suspended: the library forgets them until we resume them,
 * and does not even notice when they hang up.  A look once a second does, and cuts off
 * those who take forever to say what they want.
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

#define POOL_BYTES (32 * 1024)   /* the library's memory per connection: headers  */
#define STREAM_BYTES (16 * 1024) /* asked of a stream at a time                   */
#define REPLY_MAX (256u << 20)   /* bytes of a reply                              */
#define ACCEPT_MAX 64            /* connections taken in one go                   */
#define SWEEP_MS 1000

enum phase { IDLE, RECEIVING, HELD, LATER, SENDING };

struct guest {
    struct http *http;
    struct MHD_Connection *connection; /* NULL: not yet, or a free place */
    int fd;                            /* -1: a free place */
    bool local;
    bool stranger; /* has no token, and need not for what he asks */
    uint32_t uid, gid;
    int32_t pid;
    bool trusted; /* by TCP: this request came with a secret */

    enum phase phase;
    uint64_t since_ms; /* it owes us a whole request since then */
    bool deferred;     /* complete, and suspended until a flush is over */
    bool asleep;       /* a stream that is suspended  */
    bool left;         /* and whose client hung up    */
    bool cut;          /* we have shut it down        */
    bool target_long;
    int body_status;   /* the body cannot be taken: what to answer */
    size_t thrown;     /* bytes of it */
    struct buf target; /* as sent */
    struct buf body;
    struct http_reply reply;
};

struct listener {
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
    struct listener listeners[2];
    uint32_t listener_count;
    uv_poll_t poll;   /* the library's epoll */
    uv_timer_t timer; /* the library's wish  */
    uv_timer_t sweep;
    uint32_t handles; /* not yet closed */

    struct guest *guests; /* limits.guests_max of them */
    uint32_t held;
    size_t bodies; /* bytes in all of them */
    bool paused;   /* no descriptors left: not accepting */
    bool inside;   /* the library is running */
    bool flushing; /* and must not call the handler */
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
    reply->later = NULL;
    reply->after_commit = false;
}

/* ---- guests ---- */

static struct guest *guest_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct guest *guest = info->socket_context;
    assert(guest);
    return guest;
}

/* A new reply to fill in. */
static void fresh_reply(struct guest *guest)
{
    buf_release(&guest->reply.body);
    guest->reply = (struct http_reply){ .status = 200, .type = "application/json" };
    buf_init(&guest->reply.body, REPLY_MAX);
}

/* Its request is over, in whatever way: ready for the next. */
static void forget_request(struct guest *guest)
{
    struct http *http = guest->http;
    struct http_stream *stream = guest->reply.stream;
    struct http_later *later = guest->phase == LATER ? guest->reply.later : NULL;
    if (stream && guest->phase == SENDING)
        http->counts.streams--;
    if (guest->phase == HELD)
        http->held--;
    http->bodies -= guest->body.count;
    buf_release(&guest->body);
    buf_reset(&guest->target);
    fresh_reply(guest);
    guest->phase = IDLE;
    guest->asleep = false;
    guest->deferred = false;
    guest->target_long = false;
    guest->body_status = 0;
    guest->thrown = 0;
    guest->since_ms = uv_now(http->setup.loop);
    if (later) {
        later->guest = NULL;
        later->gone(later->self);
    }
    if (stream) {
        stream->guest = NULL;
        stream->gone(stream->self);
    }
}

static void free_guest(struct guest *guest)
{
    struct http *http = guest->http;
    forget_request(guest);
    buf_release(&guest->target);
    guest->connection = NULL;
    guest->fd = -1;
    http->counts.guests--;
}

static struct guest *guest_by_fd(struct http *http, int fd)
{
    for (uint32_t i = 0; i < http->limits.guests_max; i++)
        if (http->guests[i].fd == fd)
            return &http->guests[i];
    return NULL;
}

static uint32_t guests_of(const struct http *http, uint32_t uid, bool local)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < http->limits.guests_max; i++) {
        const struct guest *guest = &http->guests[i];
        if (guest->fd >= 0 && guest->local == local && (!local || guest->uid == uid))
            count++;
    }
    return count;
}

/* ---- replies ---- */

static void on_timer(uv_timer_t *timer);

/* Put a suspended one back; the library does not wake up by itself from that. */
static void resume(struct guest *guest)
{
    struct http *http = guest->http;
    guest->asleep = false;
    guest->deferred = false;
    MHD_resume_connection(guest->connection);
    if (!http->inside)
        uv_timer_start(&http->timer, on_timer, 0, 0);
}

/* The library wants more of a stream. */
static ssize_t more(void *context, uint64_t position, char *room, size_t size)
{
    struct guest *guest = context;
    if (guest->http->closing || guest->left)
        return MHD_CONTENT_READER_END_WITH_ERROR;

    struct http_stream *stream = guest->reply.stream;
    ssize_t count = stream->more(stream->self, room, size);
    assert(count <= (ssize_t)size);
    if (count < 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (count == 0) { /* 0 alone would mean: ask again at once, and again */
        guest->asleep = true;
        MHD_suspend_connection(guest->connection);
    }
    return count;
}

void http_stream_wake(struct http_stream *stream)
{
    if (stream->guest && stream->guest->asleep)
        resume(stream->guest);
}

struct http_reply *http_later_reply(struct http_later *later)
{
    return &later->guest->reply;
}

static enum MHD_Result send_reply(struct guest *guest);

void http_later_send(struct http_later *later)
{
    struct guest *guest = later->guest;
    later->guest = NULL;
    guest->reply.later = NULL;
    guest->phase = SENDING;
    send_reply(guest); /* if that fails on_request() is asked again, and hangs up */
    resume(guest);
}

static struct MHD_Response *make_response(struct guest *guest)
{
    struct http_reply *reply = &guest->reply;
    if (reply->stream)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BYTES, more,
                                                 guest, NULL);

    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->body.count, reply->body.bytes, MHD_RESPMEM_MUST_FREE);
    if (response)
        buf_init(&reply->body, REPLY_MAX); /* its bytes are the library's now */
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
static enum MHD_Result send_reply(struct guest *guest)
{
    struct http *http = guest->http;
    struct http_reply *reply = &guest->reply;
    if (reply->body.full && !reply->stream)
        http_reply_error(reply, 500, NULL, "the reply is larger than can be sent");

    struct MHD_Response *response = make_response(guest);
    if (!response)
        return MHD_NO;
    add_headers(response, reply);
    guest->phase = SENDING;
    if (reply->stream) {
        reply->stream->guest = guest;
        http->counts.streams++;
    }
    http->counts.requests++;
    http->counts.refused += reply->status >= 400;

    enum MHD_Result r =
        MHD_queue_response(guest->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return r;
}

static enum MHD_Result refuse(struct guest *guest, int status, const char *sentence)
{
    http_reply_error(&guest->reply, status, NULL, sentence);
    if (status == 401)
        http_reply_header(&guest->reply, "WWW-Authenticate", "Bearer");
    if (status == 413 || status == 503) /* the rest of its body is not wanted */
        http_reply_header(&guest->reply, "Connection", "close");
    return send_reply(guest);
}

/* ---- requests ---- */

/* The whole request is there: ask the handler. */
static enum MHD_Result handle(struct guest *guest, const char *method)
{
    struct http *http = guest->http;
    if (guest->body_status)
        return refuse(guest, guest->body_status,
                      guest->body_status == 413 ? "the body is too large"
                                                : "too much is arriving at once");

    struct target target;
    struct error err;
    arena_reset(&http->arena);
    if (target_read(&target, &http->arena, guest->target.bytes, &err) < 0)
        return refuse(guest, 400, err.text);

    struct http_request request = {
        .method = strcmp(method, "HEAD") == 0 ? "GET" : method,
        .path = target.path,
        .body = guest->body.bytes ? guest->body.bytes : "",
        .body_size = guest->body.count,
        .local = guest->local,
        .uid = guest->stranger ? HTTP_NOBODY : guest->uid,
        .gid = guest->stranger ? HTTP_NOBODY : guest->gid,
        .pid = guest->pid,
        .trusted = guest->trusted && !guest->stranger,
        .stranger = guest->stranger,
        .arena = &http->arena,
        .target = &target,
        .connection = guest->connection,
    };
    http->setup.handler(http->setup.context, &request, &guest->reply);
    if (guest->reply.later) {
        guest->reply.later->guest = guest;
        guest->phase = LATER;
        MHD_suspend_connection(guest->connection);
        return MHD_YES;
    }
    if (!guest->reply.after_commit)
        return send_reply(guest);

    assert(!guest->reply.stream); /* a promise is kept or not; it does not trickle */
    guest->phase = HELD;
    http->held++;
    MHD_suspend_connection(guest->connection);
    return MHD_YES;
}

static enum MHD_Result count_host(void *context, enum MHD_ValueKind kind,
                                  const char *key, const char *value)
{
    uint32_t *count = context;
    *count += strcasecmp(key, "Host") == 0;
    return MHD_YES;
}

static bool may_be_stranger(const struct guest *guest, const char *method)
{
    const struct http_setup *setup = &guest->http->setup;
    return setup->open_to_strangers && guest->target.bytes &&
           setup->open_to_strangers(setup->context, method, guest->target.bytes);
}

/* By TCP: whose request is it?  0, or the status to refuse with. */
static int identify_bearer(struct guest *guest, const char *method,
                           const char **ret_sentence)
{
    struct http *http = guest->http;
    const struct http_setup *setup = &http->setup;
    const struct http_request request = { .connection = guest->connection };
    const char *bearer = guard_bearer(http_header(&request, "Authorization"));
    guest->trusted = true;
    guest->uid = geteuid();
    guest->gid = getegid();
    if (bearer && guard_token(&http->guard, bearer))
        return 0;
    if (bearer && setup->knows &&
        setup->knows(setup->context, bearer, &guest->uid, &guest->gid))
        return 0;
    guest->trusted = false;
    guest->uid = guest->gid = HTTP_NOBODY;
    if (setup->open && setup->open(setup->context, method, guest->target.bytes))
        return 0;
    *ret_sentence = "the token is missing or wrong: Authorization: Bearer TOKEN";
    return 401;
}

/* May this guest ask at all?  0, or the status to refuse with. */
static int admit(struct guest *guest, const char *method, const char **ret_sentence)
{
    if (guest->target_long) {
        *ret_sentence = "the address is too long";
        return 414;
    }
    if (guest->local)
        return 0;

    uint32_t hosts = 0;
    MHD_get_connection_values(guest->connection, MHD_HEADER_KIND, count_host, &hosts);
    const struct http_request request = { .connection = guest->connection };
    const char *host = hosts == 1 ? http_header(&request, "Host") : NULL;
    int status = guard_address(&guest->http->guard, host,
                               http_header(&request, "Origin"), ret_sentence);
    if (status == 0)
        status = identify_bearer(guest, method, ret_sentence);
    /* A page in a browser has nothing to say here, whatever it pretends to be. */
    guest->stranger = status != 0 && http_header(&request, "Origin") == NULL &&
                      may_be_stranger(guest, method);
    return guest->stranger ? 0 : status;
}

static size_t body_max(const struct guest *guest)
{
    const struct http_limits *limits = &guest->http->limits;
    return guest->stranger ? limits->stranger_max : limits->body_max;
}

/* The headers are there. */
static enum MHD_Result begin(struct guest *guest, const char *method)
{
    guest->phase = RECEIVING;
    guest->stranger = false;
    const char *sentence = NULL;
    int status = admit(guest, method, &sentence);
    if (status)
        return refuse(guest, status, sentence);

    const struct http_request request = { .connection = guest->connection };
    const char *length = http_header(&request, "Content-Length");
    if (length && strtoull(length, NULL, 10) > body_max(guest))
        return refuse(guest, 413, "the body is too large");
    return MHD_YES;
}

/* Some of the body is there.  Once there is too much of it the rest is thrown away, since
 * the library takes no reply before its end; but not for ever. */
static enum MHD_Result receive(struct guest *guest, const char *data, size_t *size)
{
    struct http *http = guest->http;
    size_t room = body_max(guest) - guest->body.count;
    if (*size > room)
        guest->body_status = 413;
    else if (*size > http->limits.bodies_max - http->bodies)
        guest->body_status = 503;
    if (guest->body_status) {
        guest->thrown += *size;
    } else {
        buf_add(&guest->body, data, *size);
        http->bodies += *size;
    }
    *size = 0;
    return guest->thrown > body_max(guest) ? MHD_NO : MHD_YES;
}

static bool is_ready(const struct guest *guest)
{
    const struct http_setup *setup = &guest->http->setup;
    return !setup->ready || guest->stranger || setup->ready(setup->context, guest->uid);
}

/* In the middle of a flush, or its user is not ready: the handler is called later. */
static enum MHD_Result defer(struct guest *guest)
{
    guest->deferred = true;
    MHD_suspend_connection(guest->connection);
    return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *url, const char *method,
                                  const char *version, const char *data, size_t *size,
                                  void **unused)
{
    struct guest *guest = guest_of(connection);
    if (guest->http->closing)
        return MHD_NO;
    if (guest->phase == IDLE)
        return begin(guest, method);
    if (guest->phase == RECEIVING && *size > 0)
        return receive(guest, data, size);
    if (guest->phase == RECEIVING)
        return guest->http->flushing || !is_ready(guest) ? defer(guest)
                                                         : handle(guest, method);
    return MHD_NO; /* its reply could not be queued */
}

/* The first line of a request: keep its address as it was sent. */
static void *on_target(void *context, const char *uri,
                       struct MHD_Connection *connection)
{
    struct guest *guest = guest_of(connection);
    buf_reset(&guest->target);
    size_t count = strlen(uri);
    guest->target_long = count > TARGET_BYTES_MAX;
    buf_add(&guest->target, uri, guest->target_long ? 0 : count);
    return guest;
}

/* We take addresses apart ourselves. */
static size_t leave_escaped(void *context, struct MHD_Connection *connection,
                            char *text)
{
    return strlen(text);
}

static void on_completed(void *context, struct MHD_Connection *connection,
                         void **unused, enum MHD_RequestTerminationCode how)
{
    forget_request(guest_of(connection));
}

static void on_connection(void *context, struct MHD_Connection *connection,
                          void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *http = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        free_guest(*socket_context);
        return;
    }
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
                 ->connect_fd;
    struct guest *guest = guest_by_fd(http, fd);
    assert(guest);
    guest->connection = connection;
    *socket_context = guest;
}

/* ---- the loop ---- */

/* Let the library do what there is to do, and ask when it wants to be called again. */
static void run(struct http *http)
{
    if (http->inside) /* a handler that wakes streams: the outer call sees to them */
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
    run(timer->data);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    run(poll->data);
}

/* One line before we hang up. */
static void turn_away(struct http *http, int fd, const char *status,
                      const char *sentence)
{
    char text[400];
    int body = snprintf(NULL, 0, "{\"error\":\"%s\"}\n", sentence);
    int count = snprintf(text, sizeof text,
                         "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                         "Content-Length: %d\r\nConnection: close\r\n\r\n"
                         "{\"error\":\"%s\"}\n",
                         status, body, sentence);
    http->counts.turned_away++;
    /* If it does not fit into an empty socket, so be it. */
    (void)!send(fd, text, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

/* Who is it?  False if the kernel does not say. */
static bool identify(int fd, struct guest *ret_guest)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return false;
    ret_guest->uid = peer.uid;
    ret_guest->gid = peer.gid;
    ret_guest->pid = peer.pid;
    return true;
}

static void take_in(struct http *http, int fd, bool local)
{
    struct guest who = { .http = http, .fd = fd, .local = local };
    who.uid = geteuid();
    who.gid = getegid();
    if (local && !identify(fd, &who)) {
        close(fd);
        return;
    }
    if (local && !http->setup.everyone && who.uid != geteuid() && who.uid != 0) {
        turn_away(http, fd, "403 Forbidden", "this berthd serves another user");
        return;
    }
    if (guests_of(http, who.uid, local) >= http->limits.per_user_max) {
        turn_away(http, fd, "503 Service Unavailable", "you have too many connections");
        return;
    }
    struct guest *guest = guest_by_fd(http, -1);
    if (!guest) {
        turn_away(http, fd, "503 Service Unavailable", "too many connections");
        return;
    }
    *guest = who;
    fresh_reply(guest);
    buf_init(&guest->target, TARGET_BYTES_MAX);
    buf_init(&guest->body, http->limits.body_max);
    guest->since_ms = uv_now(http->setup.loop);
    http->counts.guests++;
    if (MHD_add_connection(http->library, fd, NULL, 0) != MHD_YES && guest->fd >= 0)
        free_guest(guest); /* the library has closed it */
}

static void on_sweep(uv_timer_t *timer);

/* Out of descriptors: the connection stays readable, so look away for a while. */
static void pause_accepting(struct http *http)
{
    http->paused = true;
    for (uint32_t i = 0; i < http->listener_count; i++)
        uv_poll_stop(&http->listeners[i].poll);
}

static void on_connect(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    struct http *http = listener->http;
    for (int i = 0; i < ACCEPT_MAX; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take_in(http, fd, listener->local);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(http);
        if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
    if (!uv_is_active((uv_handle_t *)&http->sweep))
        uv_timer_start(&http->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    run(http); /* what they sent is mostly there already */
}

static void start_accepting(struct http *http)
{
    http->paused = false;
    for (uint32_t i = 0; i < http->listener_count; i++)
        uv_poll_start(&http->listeners[i].poll, UV_READABLE, on_connect);
}

static bool hung_up(int fd)
{
    char byte;
    ssize_t r = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR);
}

/* Once a second while there are guests: who hung up unnoticed, who takes too long? */
static void on_sweep(uv_timer_t *timer)
{
    struct http *http = timer->data;
    uint64_t now_ms = uv_now(http->setup.loop);
    uint64_t patience_ms = 1000 * (uint64_t)http->limits.request_s;
    for (uint32_t i = 0; i < http->limits.guests_max; i++) {
        struct guest *guest = &http->guests[i];
        if (guest->fd < 0)
            continue;
        if (guest->asleep && hung_up(guest->fd)) {
            guest->left = true;
            resume(guest);
        }
        bool owes = guest->phase == IDLE || guest->phase == RECEIVING;
        if (owes && !guest->cut && now_ms - guest->since_ms >= patience_ms) {
            guest->cut = true;
            shutdown(guest->fd, SHUT_RDWR);
        }
    }
    if (http->paused)
        start_accepting(http);
    if (http->counts.guests == 0)
        uv_timer_stop(timer);
    run(http);
}

void http_flush(struct http *http, bool durable)
{
    if (http->held == 0)
        return;
    for (uint32_t i = 0; i < http->limits.guests_max; i++) {
        struct guest *guest = &http->guests[i];
        if (guest->fd < 0 || guest->phase != HELD)
            continue;
        if (!durable)
            http_reply_error(&guest->reply, 503, NULL,
                             "it could not be written to disk, and is not accepted");
        else if (guest->reply.finish)
            guest->reply.finish(http->setup.context, guest->reply.finish_id,
                                &guest->reply);
        http->held--;
        guest->phase = SENDING;
        send_reply(guest); /* if that fails on_request() is asked again, and hangs up */
        resume(guest);
    }
    assert(http->held == 0);
    http->flushing = true;
    run(http);
    http->flushing = false;
    http_retry(http);
}

void http_retry(struct http *http)
{
    for (uint32_t i = 0; i < http->limits.guests_max; i++)
        if (http->guests[i].fd >= 0 && http->guests[i].deferred)
            resume(&http->guests[i]);
}

bool http_waiting(const struct http *http)
{
    return http->held > 0;
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
    if (!limits->stranger_max)
        limits->stranger_max = 16 << 10;
    if (!limits->guests_max)
        limits->guests_max = 256;
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
        (struct listener){ .http = http, .fd = fd, .local = local };
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
        int fd = listen_unix(setup->socket, setup->everyone, err);
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
        unlink(http->path); /* unless it is somebody else's by now */
}

static int start_library(struct http *http, struct error *err)
{
    http->library = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
        NULL, on_request, http,                                 //
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES, //
        MHD_OPTION_CONNECTION_LIMIT, http->limits.guests_max,   //
        MHD_OPTION_CONNECTION_TIMEOUT, http->limits.idle_s,     //
        MHD_OPTION_STRICT_FOR_CLIENT, 1,                        //
        MHD_OPTION_URI_LOG_CALLBACK, on_target, http,           //
        MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, http,      //
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,        //
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,      //
        MHD_OPTION_END);
    if (!http->library)
        return error_set(err, -ENOMEM, "the HTTP server could not be started");
    return 0;
}

static void watch_listener(struct http *http, struct listener *listener)
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
    for (uint32_t i = 0; i < http->limits.guests_max; i++)
        buf_release(&http->guests[i].reply.body);
    arena_release(&http->arena);
    free(http->guests);
    free(http->path);
    free(http);
}

int http_open(struct http **ret_http, const struct http_setup *setup, struct error *err)
{
    struct http *http = memory_checked(calloc(1, sizeof *http));
    http->setup = *setup;
    fill_limits(&http->limits, &setup->limits);
    arena_init(&http->arena, 64 * 1024);
    http->guests =
        memory_checked(calloc(http->limits.guests_max, sizeof *http->guests));
    for (uint32_t i = 0; i < http->limits.guests_max; i++)
        http->guests[i].fd = -1;

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
    struct listener *listener = &http->listeners[http->listener_count - 1];
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
    for (uint32_t i = 0; i < http->limits.guests_max; i++) {
        struct guest *guest = &http->guests[i];
        if (guest->fd >= 0 && (guest->phase == HELD || guest->phase == LATER ||
                               guest->asleep || guest->deferred))
            resume(guest); /* the library must not be stopped with some suspended */
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
    assert(http->counts.guests == 0);
}
