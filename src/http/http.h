/*
 * http.h - requests and replies; knows nothing of jobs.
 *
 * A server on a libuv loop: no threads, nothing blocks.  It listens on a UNIX socket,
 * where SO_PEERCRED names the caller, and on request on TCP, where a token does.  A handler
 * is called once per complete request and fills in the reply, which is sent:
 *
 *   at once         when the handler returns
 *   after_commit    by http_flush(): nothing is acknowledged before it is on disk
 *   stream          piece by piece from a source, until either side ends it
 *   delayed         when another program has answered
 *
 * Every input is limited (struct http_limits), and malformed requests never reach the
 * handler.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct arena;
struct error;
struct http;
struct uv_loop_s;

struct http_request {
    const char *method; /* HEAD appears as GET; the library omits the body          */
    const char *path;   /* decoded; no empty, "." or ".." parts (target.h)          */
    const char *body;   /* "" if none; followed by a NUL                            */
    size_t body_size;
    bool local;        /* by the UNIX socket: the kernel names the next three */
    uint32_t uid, gid; /* over TCP: of the token or the session                 */
    int32_t pid;       /* at the time it connected; 0 over TCP                     */
    bool is_authenticated; /* over TCP: it came with a token or a session */
    bool is_anonymous;     /* over TCP without one, where allowed: uid HTTP_ANONYMOUS */
    struct arena *arena;   /* until the handler returns                               */

    const struct target *target; /* use http_query()  */
    void *connection;            /* use http_header() */
};

#define HTTP_ANONYMOUS UINT32_MAX

/* NULL if absent; valid until the handler returns. */
const char *http_query(const struct http_request *request, const char *key);
const char *http_header(const struct http_request *request, const char *name);

/*
 * The source of a long reply.  The source owns it and keeps it until 'closed', which is
 * called once in any case: at the end, when the client disconnects, or when the server
 * closes.
 */
struct http_stream {
    /* Fill 'room', return the bytes; 0: none until http_stream_wake(); -1: end. */
    ssize_t (*read)(void *self, char *room, size_t size);
    void (*closed)(void *self);
    void *self;

    struct http_connection *connection; /* set by http.c */
};

/* There is something to send, or the end has come.  Not from inside its own read(). */
void http_stream_wake(struct http_stream *stream);

/*
 * A reply that is not known yet.  Its owner keeps it until it calls http_delayed_send(), or
 * until 'closed': the client has disconnected.
 */
struct http_delayed {
    void (*closed)(void *self);
    void *self;

    struct http_connection *connection; /* set by http.c */
};

/* The reply to fill in; send it once it is complete. */
struct http_reply *http_delayed_reply(struct http_delayed *later);
void http_delayed_send(struct http_delayed *later);

#define HTTP_HEADERS_MAX 4

struct http_reply {
    int status;       /* 200 unless set                                  */
    const char *type; /* a constant; "application/json" unless set */
    struct buf body;  /* owned                                           */
    bool after_commit;
    /* Optional, with after_commit: write the reply once all is on disk.  The context is
     * the handler's. */
    void (*finish)(void *context, uint64_t id, struct http_reply *reply);
    uint64_t finish_id;
    struct http_stream *stream;   /* instead of a body */
    struct http_delayed *delayed; /* instead of all else */
    const char *policy;           /* Content-Security-Policy of a page; a constant */
    struct {
        const char *name; /* a constant                    */
        char value[64];   /* cut if longer: keep it short  */
    } headers[HTTP_HEADERS_MAX];
    uint32_t header_count;
};

void http_reply_header(struct http_reply *reply, const char *name, const char *value);

/* {"error": sentence}, and "field" unless NULL; replaces what was in the reply. */
void http_reply_error(struct http_reply *reply, int status, const char *field,
                      const char *sentence);

typedef void http_handler(void *context, const struct http_request *request,
                          struct http_reply *reply);

/* 0 stands for the figure in brackets. */
struct http_limits {
    size_t body_max;   /* bytes of one body [16 MiB]: 413                         */
    size_t bodies_max; /* of all that arrive at once [64 MiB]: 503                */
    size_t anonymous_body_max; /* bytes of an anonymous client's body [16 KiB]: 413 */
    uint32_t
        connections_max;   /* connections [256]: 503                                  */
    uint32_t per_user_max; /* of one user, or of all on TCP [64]: 503                 */
    uint32_t request_s;    /* from one reply's end to the next request's end [60]     */
    uint32_t idle_s;       /* without a byte in either direction [60]                 */
};

struct http_setup {
    struct uv_loop_s *loop;
    const char *socket; /* path; NULL: none                                         */
    bool any_user;      /* mode 0666, any user; else 0600, our own user and root    */
    const char *listen; /* "HOST:PORT", port 0: any; NULL: no TCP                   */
    const char *token;  /* needed with it, and for http_listen()                    */
    http_handler *handler;
    void *context;

    /*
     * Optional.  May an anonymous client call this over TCP?  The handler has to check what
     * else the request proves.  'target' is as it was sent.
     */
    bool (*allows_anonymous)(void *context, const char *method, const char *target);
    /* Optional, both for TCP: the user of a secret other than the token, and what needs no
     * secret.  'target' is as it was sent.  The context is the handler's. */
    bool (*find_session)(void *context, const char *bearer, uint32_t *ret_uid,
                         uint32_t *ret_gid);
    bool (*is_public)(void *context, const char *method, const char *target);
    /* Optional.  Can requests of this user be handled now?  If not, they wait until
     * http_retry() is called, and then it is asked again. */
    bool (*ready)(void *context, uint32_t uid);
    struct http_limits limits;
};

/*
 * Listen.  A socket file without a listener is replaced; -EADDRINUSE if it has one.
 * Texts in 'setup' are copied.
 */
int http_open(struct http **ret_http, const struct http_setup *setup,
              struct error *err);

/*
 * Stop: connections and streams are closed, the socket file is removed.  The memory is
 * freed when the loop has run once more.
 */
void http_close(struct http *http);

/*
 * Send replies marked after_commit.  'durable' false: the commit failed, send 503 instead.
 * No handler is called meanwhile.  Call it before the loop sleeps: handlers run in its
 * timers as well as in its polling.
 */
void http_flush(struct http *http, bool durable);

/* Handle requests that waited for their users to be ready. */
void http_retry(struct http *http);

/* Are there replies that wait for http_flush()? */
bool http_has_uncommitted(const struct http *http);

/* Listen on TCP from now on, "HOST:PORT"; -EALREADY if it does already. */
int http_listen(struct http *http, const char *where, struct error *err);

/* The host of TCP as it was given; "" if there is none. */
const char *http_host(const struct http *http);

/* The port of TCP, or 0. */
uint16_t http_port(const struct http *http);

struct http_counts {
    uint64_t requests;            /* complete ones, answered             */
    uint64_t refused;             /* of these with a status of 400 or more */
    uint64_t connections_refused; /* connections above a limit           */
    uint32_t connections;         /* now                                 */
    uint32_t streams;             /* of these with a stream              */
};

const struct http_counts *http_counts(const struct http *http);
