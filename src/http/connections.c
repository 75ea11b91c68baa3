/*
 * connections.c - the table of connections: who they count for, what ends with a request, and
 * which clients are too slow.
 */
#include "http/http_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"

void http_connection_reset_reply(struct http_connection *connection)
{
    buf_release(&connection->reply.body);
    connection->reply =
        (struct http_reply){ .status = 200, .type = "application/json" };
    buf_init(&connection->reply.body, REPLY_MAX);
}

void http_connection_end_request(struct http_connection *connection)
{
    struct http *http = connection->http;
    struct http_stream *stream = connection->reply.stream;
    struct http_delayed *delayed =
        connection->phase == DELAYED ? connection->reply.delayed : NULL;
    if (stream && connection->phase == SENDING)
        http->counts.streams--;
    if (connection->phase == UNCOMMITTED)
        http->uncommitted--;
    quota_drop_bytes(&http->quota, connection->account, connection->body.count);
    buf_release(&connection->body);
    buf_reset(&connection->target);
    http_connection_reset_reply(connection);
    connection->phase = IDLE;
    connection->asleep = false;
    connection->deferred = false;
    connection->target_long = false;
    connection->body_status = 0;
    connection->dropped = 0;
    connection->reply_bytes = 0;
    connection->since_ms = connection->moved_ms = uv_now(http->setup.loop);
    if (delayed) {
        delayed->connection = NULL;
        delayed->closed(delayed->self);
    }
    if (stream) {
        stream->connection = NULL;
        stream->closed(stream->self);
    }
}

/* A connection that was cut to make room has been taken from its account before. */
static void drop_from_account(struct http_connection *connection)
{
    struct http *http = connection->http;
    if (connection->uncounted)
        http->uncounted_count--;
    else
        quota_drop_connection(&http->quota, connection->account);
    connection->uncounted = false;
}

void http_connection_release(struct http_connection *connection)
{
    struct http *http = connection->http;
    http_connection_end_request(connection);
    buf_release(&connection->target);
    drop_from_account(connection);
    connection->mhd = NULL;
    connection->fd = -1;
    http->counts.connections--;
    while (http->top > 0 && http->connections[http->top - 1].fd < 0)
        http->top--;
}

struct http_connection *http_find_connection(struct http *http, int fd)
{
    for (uint32_t i = 0; i < http->top; i++)
        if (http->connections[i].fd == fd)
            return &http->connections[i];
    return NULL;
}

struct http_connection *http_add_connection(struct http *http)
{
    struct http_connection *connection = http_find_connection(http, -1);
    if (connection)
        return connection;
    assert(http->top < http->room);
    connection = &http->connections[http->top++];
    if (http->top_ever < http->top)
        http->top_ever = http->top;
    return connection;
}

int http_connection_charge(struct http_connection *connection, struct error *err)
{
    struct quota *quota = &connection->http->quota;
    bool known = connection->local || connection->is_authenticated;
    uint32_t account = known ? connection->uid : QUOTA_ANONYMOUS;
    if (account == connection->account)
        return 0;
    int r = quota_add_connection(quota, account, err);
    if (r < 0)
        return r;
    drop_from_account(connection);
    connection->account = account;
    return 0;
}

bool http_connection_is_slow(const struct http_connection *connection, uint64_t now_ms)
{
    const struct http_limits *limits = &connection->http->limits;
    uint64_t waited_ms = now_ms - connection->since_ms;
    uint64_t stalled_ms = now_ms - connection->moved_ms;
    if (connection->phase == IDLE && connection->account == QUOTA_ANONYMOUS)
        return waited_ms >= UINT64_C(1000) * limits->stall_s;
    if (connection->phase == RECEIVING && !connection->deferred &&
        stalled_ms >= UINT64_C(1000) * limits->stall_s)
        return true;
    return (connection->phase == IDLE || connection->phase == RECEIVING) &&
           waited_ms >= UINT64_C(1000) * limits->request_s;
}

/* Has the client said nothing of who it is yet, and is it waited for? */
static bool is_unknown(const struct http_connection *connection)
{
    bool is_waiting = connection->phase == IDLE || connection->phase == RECEIVING;
    return connection->fd >= 0 && connection->account == QUOTA_ANONYMOUS &&
           is_waiting && !connection->cut && !connection->deferred;
}

static uint32_t count_unknown(const struct http *http, uint64_t address)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < http->top; i++)
        count += is_unknown(&http->connections[i]) &&
                 http->connections[i].address == address;
    return count;
}

static struct http_connection *find_oldest_anonymous(struct http *http)
{
    struct http_connection *oldest = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < http->top; i++) {
        struct http_connection *connection = &http->connections[i];
        if (!is_unknown(connection))
            continue;
        uint32_t count = count_unknown(http, connection->address);
        if (count < most ||
            (count == most && oldest && connection->since_ms >= oldest->since_ms))
            continue;
        most = count;
        oldest = connection;
    }
    return oldest;
}

bool http_make_anonymous_room(struct http *http)
{
    struct http_connection *oldest = find_oldest_anonymous(http);
    if (!oldest || http->uncounted_count >= http->limits.anonymous_max)
        return false;
    oldest->cut = true;
    shutdown(oldest->fd, SHUT_RDWR);
    drop_from_account(oldest);
    oldest->uncounted = true;
    http->uncounted_count++;
    return true;
}

static void fill_limits(struct http_limits *limits, const struct http_limits *asked)
{
    *limits = *asked;
    if (!limits->body_max)
        limits->body_max = 16u << 20;
    if (!limits->bodies_max)
        limits->bodies_max = 128u << 20;
    if (!limits->anonymous_body_max)
        limits->anonymous_body_max = 16 << 10;
    if (!limits->connections_max)
        limits->connections_max = HTTP_CONNECTIONS_MAX;
    if (!limits->anonymous_max)
        limits->anonymous_max = 64;
    if (!limits->per_user_max)
        limits->per_user_max = 64;
    if (!limits->request_s)
        limits->request_s = 60;
    if (!limits->idle_s)
        limits->idle_s = 60;
    if (!limits->stall_s)
        limits->stall_s = 10;
}

/* A sixteenth of the connections, and a body as large as one may be, are kept for root. */
void http_open_quota(struct http *http)
{
    const struct http_setup *setup = &http->setup;
    struct http_limits *limits = &http->limits;
    fill_limits(limits, &setup->limits);
    bool has_root =
        setup->any_user || geteuid() != 0; /* besides the server's own user */
    struct quota_setup quota = {
        .all = { limits->connections_max, limits->bodies_max },
        .root = { has_root ? limits->connections_max / 16 : 0,
                  has_root ? limits->body_max : 0 },
        .anonymous = { limits->anonymous_max,
                       limits->anonymous_max * limits->anonymous_body_max },
        .user = { limits->per_user_max, limits->bodies_max },
        .is_shared = setup->any_user,
        .own_uid = geteuid(),
        .limit_of = setup->limit_of,
        .context = setup->context,
    };
    quota_init(&http->quota, &quota);
    /* and anonymous ones that were cut and are not closed yet */
    http->room = limits->connections_max + 2 * limits->anonymous_max;
    http->connections = memory_checked(calloc(http->room, sizeof *http->connections));
}
