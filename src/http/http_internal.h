/*
 * http_internal.h - the server and its connections, for http.c and connections.c.
 *
 * connections.c knows nothing of libmicrohttpd: what it has of it is a pointer.
 */
#pragma once

#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "http/http.h"
#include "http/listeners.h"

struct MHD_Connection;
struct MHD_Daemon;

#define REPLY_MAX (256u << 20) /* bytes of a reply                              */
enum http_phase { IDLE, RECEIVING, UNCOMMITTED, DELAYED, SENDING };

struct http_connection {
    struct http *http;
    struct MHD_Connection *mhd; /* NULL: not yet, or unused */
    int fd;                     /* -1: unused */
    const struct listener *listener;
    uint64_t address; /* over TCP: of the client, peer_address() */
    bool local;
    bool is_anonymous; /* has no credential, and needs none for this request */
    uint32_t uid, gid;
    int32_t pid;
    bool is_authenticated;         /* over TCP: this request came with a credential */
    struct http_identity identity; /* of which this is */

    uint32_t
        account; /* of the quota that it counts for: a user's, or QUOTA_ANONYMOUS */

    enum http_phase phase;
    uint64_t since_ms; /* when we began to wait for a whole request */
    uint64_t moved_ms; /* when the last byte of it came */
    bool deferred;     /* complete, and suspended until the handler may be called */
    bool asleep;       /* a stream that is suspended  */
    bool has_left;     /* its client has hung up      */
    bool cut;          /* we have shut it down        */
    bool uncounted;    /* cut to make room: it counts for nobody, and is soon closed */
    bool target_long;
    int body_status;         /* status to refuse the body with, or 0 */
    struct error body_error; /* why, with 503 */
    size_t dropped;          /* bytes of the body that were dropped */
    uint64_t turn, spent_ns; /* by the handler in that turn         */
    struct buf target, body; /* as sent */
    size_t reply_bytes;      /* of a reply that is being sent */
    struct http_reply reply;
};

/* libmicrohttpd, once for plain HTTP and once for TLS: all its connections speak the same. */
struct http_library {
    struct http *http;
    struct MHD_Daemon *mhd; /* NULL: not started */
    uv_poll_t poll;         /* its epoll */
};

struct http {
    struct http_setup setup;
    struct http_limits limits;
    struct listeners listeners;
    struct http_library plain, tls;
    uv_timer_t timer; /* when one of them wants to run */
    uv_timer_t sweep;
    uint32_t handles; /* not yet closed */
    uint32_t spins;   /* runs since something came, or a request was handled */

    struct http_connection *connections;
    uint32_t room;      /* for so many connections                         */
    uint32_t top_ever;  /* those that were ever used: the others take no memory    */
    uint32_t top;       /* those that are open stand before this one       */
    struct quota quota; /* connections and bytes of bodies, by user        */
    uint32_t uncounted_count; /* connections that were cut to make room      */
    uint32_t uncommitted;     /* replies                                         */
    uint64_t turn;            /* runs of the library                             */
    bool postponed;           /* requests are deferred until the next turn       */
    bool inside;              /* the library is running                          */
    bool flushing;            /* it runs, and must not call the handler          */
    bool closing;
    struct arena arena;
    struct http_counts counts;
};

/* A new reply to fill in. */
void http_connection_reset_reply(struct http_connection *connection);

/* A request has ended, in whatever way: get ready for the next one. */
void http_connection_end_request(struct http_connection *connection);

/* The connection has been closed. */
void http_connection_release(struct http_connection *connection);

/* The connection with this descriptor; NULL: there is none. */
struct http_connection *http_find_connection(struct http *http, int fd);

/* A place for one more; the quota has found that there is room. */
struct http_connection *http_add_connection(struct http *http);

/* Over TCP a client is known when its headers are: count the connection for its user. */
int http_connection_charge(struct http_connection *connection, struct error *err);

/*
 * A whole request has to arrive within a time, the next part of a body within a shorter one,
 * and so do the headers of a client that may be anybody.
 */
bool http_connection_is_slow(const struct http_connection *connection, uint64_t now_ms);

/*
 * Make room for one more client that has not authenticated: cut the one that was waited for
 * longest, of the host that has the most of them.  So one host cannot drive another out; clients
 * that mean well send their headers as soon as they have connected.  A connection that was cut
 * counts no longer, as the library may take several turns to close it.  False: there is none, or
 * too many are yet to be closed.
 */
bool http_make_anonymous_room(struct http *http);

/* Settle the limits, and make the table of connections and what is counted by user. */
void http_open_quota(struct http *http);
