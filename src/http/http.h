/*
 * http.h - requests and replies; knows nothing of jobs.
 *
 * A server on a libuv loop: no threads, nothing blocks.  It listens on a UNIX socket,
 * where the kernel says who calls, and where asked on TCP, where a token does.  A
 * handler is called once per complete request and fills in the reply:
 *
 *   at once         it goes out when the handler returns
 *   after_commit    it waits for http_flush(): nothing is acknowledged that is not on disk
 *   stream          it comes bit by bit from a source, for as long as both sides like
 *   later           somebody else has to be asked first, and it is filled in then
 *
 * What arrives is limited in every direction (struct http_limits), and what is malformed
 * never reaches the handler.
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
    const char *method; /* HEAD comes as GET; the library leaves the body out       */
    const char *path;   /* decoded; no empty, "." or ".." parts (target.h)          */
    const char *body;   /* "" if none; followed by a NUL                            */
    size_t body_size;
    bool local;        /* by the UNIX socket: the next three are the kernel's word */
    uint32_t uid, gid; /* over TCP whose token it is: ours, or a session's         */
    int32_t pid;       /* at the time it connected; 0 over TCP                     */
    bool trusted;  /* over TCP: it came with a token or a session; if not, nobody's */
    bool stranger; /* over TCP, without it, and he may: 'uid' is HTTP_NOBODY        */
    struct arena *arena; /* until the handler returns                               */

    const struct target *target; /* use http_query()  */
    void *connection;            /* use http_header() */
};

#define HTTP_NOBODY UINT32_MAX

/* NULL if absent; valid until the handler returns. */
const char *http_query(const struct http_request *request, const char *key);
const char *http_header(const struct http_request *request, const char *name);

/*
 * Where the bytes of a long reply come from.  It belongs to the source, which keeps it
 * until 'gone', called once in any case: at the end, when the client went away, or when
 * the server closes.
 */
struct http_stream {
    /* Fill 'room': so many bytes; 0: nothing yet, ask after http_stream_wake(); -1: end. */
    ssize_t (*more)(void *self, char *room, size_t size);
    void (*gone)(void *self);
    void *self;

    struct guest *guest; /* ours */
};

/* There is something to send, or the end has come.  Not from inside its own more(). */
void http_stream_wake(struct http_stream *stream);

/*
 * A reply that is not known yet.  It belongs to whoever finds it out, who keeps it until he
 * calls http_later_send(), or until 'gone': the connection is no more, nobody waits.
 */
struct http_later {
    void (*gone)(void *self);
    void *self;

    struct guest *guest; /* ours */
};

/* The reply to fill in, and that it is complete. */
struct http_reply *http_later_reply(struct http_later *later);
void http_later_send(struct http_later *later);

#define HTTP_HEADERS_MAX 4

struct http_reply {
    int status;       /* 200 unless set                                  */
    const char *type; /* borrowed for good; "application/json" unless set */
    struct buf body;  /* taken                                           */
    bool after_commit;
    /* Optional, with after_commit: write the reply only when all is on disk.  The context
     * is the handler's. */
    void (*finish)(void *context, uint64_t id, struct http_reply *reply);
    uint64_t finish_id;
    struct http_stream *stream; /* instead of a body */
    struct http_later *later;   /* instead of all else */
    const char *policy; /* Content-Security-Policy of a page; borrowed for good */
    struct {
        const char *name; /* borrowed for good             */
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
    size_t body_max;       /* bytes of one body [16 MiB]: 413                         */
    size_t bodies_max;     /* of all that are arriving at once [64 MiB]: 503          */
    size_t stranger_max;   /* bytes of a stranger's body [16 KiB]: 413                */
    uint32_t guests_max;   /* connections [256]: 503                                  */
    uint32_t per_user_max; /* of one user, or of all on TCP [64]: 503                 */
    uint32_t request_s;    /* from one reply's end to the next request's end [60]     */
    uint32_t idle_s;       /* without a byte in either direction [60]                 */
};

struct http_setup {
    struct uv_loop_s *loop;
    const char *socket; /* path; NULL: none                                         */
    bool everyone;      /* mode 0666, any user; else 0600 and only our own user, root */
    const char *listen; /* "HOST:PORT", port 0: any; NULL: no TCP                   */
    const char *token;  /* needed with it, and for http_listen()                    */
    http_handler *handler;
    void *context;

    /*
     * Optional.  May strangers ask for this over TCP?  They may have said in another way who
     * they are, which the handler has to look at.  'target' is as it was sent.
     */
    bool (*open_to_strangers)(void *context, const char *method, const char *target);
    /* Optional, both for TCP.  Whose secret is this, other than the token's?  What may be
     * had without any?  'target' is as it was sent.  The context is the handler's. */
    bool (*knows)(void *context, const char *bearer, uint32_t *ret_uid,
                  uint32_t *ret_gid);
    bool (*open)(void *context, const char *method, const char *target);
    /* Optional.  Can requests of this user be handled now?  If not, they wait until
     * http_retry() is called, and then it is asked again. */
    bool (*ready)(void *context, uint32_t uid);
    struct http_limits limits;
};

/*
 * Listen.  A socket file nobody listens on is replaced; -EADDRINUSE if somebody does.
 * Texts in 'setup' are copied.
 */
int http_open(struct http **ret_http, const struct http_setup *setup,
              struct error *err);

/*
 * Stop: connections are cut, streams gone, the socket file is removed.  The memory goes
 * when the loop has run once more.
 */
void http_close(struct http *http);

/*
 * Replies marked after_commit go out now.  'durable' false: what they promise could not
 * be kept, and they are 503 instead.  No handler is called meanwhile.  To be called
 * before the loop sleeps: handlers run in its timers as well as in its polling.
 */
void http_flush(struct http *http, bool durable);

/* Handle requests whose users were not ready. */
void http_retry(struct http *http);

/* Are there replies that wait for http_flush()? */
bool http_waiting(const struct http *http);

/* Listen on TCP from now on, "HOST:PORT"; -EALREADY if it does already. */
int http_listen(struct http *http, const char *where, struct error *err);

/* The host of TCP as it was given; "" if there is none. */
const char *http_host(const struct http *http);

/* The port of TCP, or 0. */
uint16_t http_port(const struct http *http);

struct http_counts {
    uint64_t requests;    /* complete ones, answered             */
    uint64_t refused;     /* of these with a status of 400 or more */
    uint64_t turned_away; /* connections above a limit           */
    uint32_t guests;      /* connections now                     */
    uint32_t streams;     /* of these with a long reply          */
};

const struct http_counts *http_counts(const struct http *http);
