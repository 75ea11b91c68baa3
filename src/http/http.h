/*
 * http.h - requests and replies; knows nothing of jobs.
 *
 * A server on a libuv loop: no threads, nothing blocks.  It listens on a UNIX socket,
 * where SO_PEERCRED names the caller, and on request on TCP, where a credential does: plainly
 * on loopback, with TLS where other machines can connect.  A handler is called once per
 * complete request and fills in the reply, which is sent:
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
#include "http/quota.h"

struct arena;
struct error;
struct guard;
struct http;
struct uv_loop_s;

struct http_request {
    const char *method; /* HEAD appears as GET; the library omits the body          */
    const char *path;   /* decoded; no empty, "." or ".." parts (target.h)          */
    const char *body;   /* "" if none; followed by a NUL                            */
    size_t body_size;
    bool local;        /* by the UNIX socket: the kernel names the next three */
    uint32_t uid, gid; /* over TCP: of the credential                           */
    int32_t pid;       /* at the time it connected; 0 over TCP                     */
    bool is_authenticated; /* over TCP: it came with a credential */
    uint32_t scope;      /* of that: as identify() said; the handler has to check it */
    bool is_anonymous;   /* over TCP without one, where allowed: uid HTTP_ANONYMOUS */
    struct arena *arena; /* until the handler returns                               */

    const struct target *target; /* use http_query()  */
    void *connection;            /* use http_header() */
};

#define HTTP_CONNECTIONS_MAX 512 /* of all users, where a server does not say */
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

/* The same for what may succeed a second later: "retry_after_s", and Retry-After. */
void http_reply_retry(struct http_reply *reply, int status, const char *sentence);

typedef void http_handler(void *context, const struct http_request *request,
                          struct http_reply *reply);

/* 0 stands for the figure in brackets. */
struct http_limits {
    size_t body_max;   /* bytes of one body [16 MiB]: 413                         */
    size_t bodies_max; /* of all that arrive at once [128 MiB]: 503               */
    size_t anonymous_body_max; /* bytes of an anonymous client's body [16 KiB]: 413 */
    uint32_t connections_max; /* of all users [HTTP_CONNECTIONS_MAX]: 503             */
    uint32_t anonymous_max;   /* of clients over TCP that are not known, besides [64] */
    uint32_t per_user_max;    /* of one user, where limit_of is NULL [64]: 503        */
    uint32_t request_s; /* from one reply's end to the next request's end [60]        */
    uint32_t idle_s;    /* without a byte in either direction [60]                    */
    uint32_t stall_s;   /* within a body, or before a client over TCP is known [10]   */
};

/* Whom a credential stands for. */
struct http_identity {
    uint32_t uid, gid;
    uint32_t scope;      /* passed on to the handler                    */
    uint64_t credential; /* for is_valid(); 0: it holds until the reply */
};

struct http_setup {
    struct uv_loop_s *loop;
    const char *socket; /* path; NULL: none                                         */
    bool any_user;      /* mode 0666, any user; else 0600, our own user and root    */
    const char *listen; /* "HOST:PORT", port 0: any; NULL: no TCP                   */
    const char *tls_certificate, *tls_key; /* PEM, for a port beyond loopback */
    http_handler *handler;
    void *context;

    /*
     * Optional.  May an anonymous client call this over TCP?  The handler has to check what
     * else the request proves.  'target' is as it was sent.
     */
    bool (*allows_anonymous)(void *context, const char *method, const char *target);
    /* Optional, both for TCP: the user of a secret, and what needs no secret.  'target' is
     * as it was sent.  The context is the handler's. */
    bool (*identify)(void *context, const char *bearer,
                     struct http_identity *ret_identity);
    bool (*is_public)(void *context, const char *method, const char *target);
    /* Optional.  Does that credential still hold?  Asked again for open streams. */
    bool (*is_valid)(void *context, uint64_t credential);
    /* Optional.  Can requests of this user be handled now?  If not, they wait until
     * http_retry() is called, and then it is asked again. */
    bool (*ready)(void *context, uint32_t uid);
    /* Optional.  What this user may have at once (quota.h has the rules beside it). */
    struct quota_limit (*limit_of)(void *context, uint32_t uid);
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

/* Whether replies are on their way, other than streams. */
bool http_is_sending(const struct http *http);

/* Credentials were revoked: end the streams that were opened with them. */
void http_check_credentials(struct http *http);

/* Listen on loopback from now on, "HOST:PORT"; -EALREADY if it does already. */
int http_listen(struct http *http, const char *where, struct error *err);

/*
 * Make the UNIX socket again if its file was deleted.  1: that was done; 0: it is there; else
 * why it cannot be made.
 */
int http_renew_socket(struct http *http, struct error *err);

/* Host and port of TLS, or of plain HTTP on loopback; NULL: it does not listen so. */
const struct guard *http_address(const struct http *http, bool tls);

struct http_counts {
    uint64_t requests;            /* complete ones, answered             */
    uint64_t refused;             /* of these with a status of 400 or more */
    uint64_t connections_refused; /* connections above a limit           */
    uint32_t connections;         /* now                                 */
    uint32_t streams;             /* of these with a stream              */
};

/* What a user has in use now. */
struct quota_limit http_used(const struct http *http, uint32_t uid);

const struct http_counts *http_counts(const struct http *http);
