/*
 * stream.h - events to whoever watches, as they happen: server-sent events.
 *
 * The newest lines are kept once, in a ring, however many watch.  A client has a place
 * in it; one that falls behind the ring, or comes back with the number of the last event
 * it saw, is served from the store until it has caught up.  Where there is no store it
 * is told that it lagged and let go, so that it can start over.
 *
 * Of jobs that a client may not see it is told that something happened, not what.
 *
 *   id: 812
 *   data: {"seq":812,"at":1750000000.25,"kind":"started","job":17,"attempt":0}
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_reply;
struct http_request;
struct stream;
struct uv_loop_s;

#define STREAM_EVERYONE UINT32_MAX /* an owner: an event that all may see */
#define STREAM_LINE_MAX 65536      /* bytes of one event                  */

/* Take one event of the past. */
typedef void stream_put(void *sink, uint64_t seq, uint32_t owner, const char *json,
                        size_t count);

struct stream_setup {
    struct uv_loop_s *loop;
    uint64_t last_seq;     /* of the log at the start: what is older is in the store */
    uint32_t lines_max;    /* kept [4096]                                            */
    size_t bytes_max;      /* of them together [2 MiB]                               */
    uint32_t clients_max;  /* [64]: 503                                              */
    uint32_t heartbeat_ms; /* a comment if nothing else was said for so long [15000] */

    /*
     * Optional.  Give at most 'max' events after 'seq', in order, and return how many;
     * negative if they cannot be read.
     */
    int (*older)(void *context, uint64_t seq, uint32_t max, stream_put *put,
                 void *sink);

    /* Optional.  May this user see an event of a job of that one?  NULL: yes. */
    bool (*may_see)(void *context, uint32_t uid, uint32_t owner);
    void *context;
};

void stream_open(struct stream **ret_stream, const struct stream_setup *setup);

/* After http_close(), which sends its clients away.  Freed when the loop has run. */
void stream_close(struct stream *stream);

/*
 * Something happened and is durable: one line of JSON, without a line break.  Numbers
 * grow, not necessarily by one.
 */
void stream_add(struct stream *stream, uint64_t seq, uint32_t owner, const char *json,
                size_t count);

/* Answer GET /v1/events: from ?since=N or Last-Event-ID on, else from now on. */
void stream_reply(struct stream *stream, const struct http_request *request,
                  struct http_reply *reply);

uint32_t stream_clients(const struct stream *stream);
