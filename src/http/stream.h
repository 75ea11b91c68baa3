/*
 * stream.h - the event stream: events to clients as they happen, as server-sent events.
 *
 * The newest lines are kept once, in a ring, for all clients.  A client has a position in
 * it; one that falls behind the ring, or reconnects with the number of the last event it
 * saw, is served from the store until it has caught up.  Without a store it is told that
 * it lagged and disconnected, so that it can start over.
 *
 * Of jobs that a client may not see it learns that something happened, not what.
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

#define STREAM_EVERYONE UINT32_MAX /* as an owner: an event that all users may see */
#define STREAM_LINE_MAX 65536      /* bytes of one event                  */

/* Receives one event of the past. */
typedef void stream_put(void *sink, uint64_t seq, uint32_t owner, const char *json,
                        size_t count);

struct stream_setup {
    struct uv_loop_s *loop;
    uint64_t last_seq;  /* of the log at startup: older events are in the store      */
    uint32_t lines_max; /* kept [4096]                                            */
    size_t bytes_max;   /* of all lines [2 MiB]                                   */
    uint32_t clients_max;  /* [HTTP_CONNECTIONS_MAX]; more get a 503                  */
    uint32_t heartbeat_ms; /* a comment after so long without an event [15000]       */

    /*
     * Optional.  Give at most 'max' events after 'seq', in order, and return how many;
     * negative if they cannot be read.
     */
    int (*older)(void *context, uint64_t seq, uint32_t max, stream_put *put,
                 void *sink);

    /* Optional.  May this user see events of the jobs of 'owner'?  NULL: yes. */
    bool (*may_see)(void *context, uint32_t uid, uint32_t owner);
    void *context;
};

void stream_open(struct stream **ret_stream, const struct stream_setup *setup);

/* After http_close(), which disconnects the clients.  Freed when the loop has run. */
void stream_close(struct stream *stream);

/*
 * Add an event that is durable: one line of JSON, without a line break.  Numbers grow, not
 * necessarily by one.
 */
void stream_add(struct stream *stream, uint64_t seq, uint32_t owner, const char *json,
                size_t count);

/*
 * What all clients may know and is of no interest later: only the newest is kept.  It has the
 * name 'event', a constant, and no number; 'json' is one line of at most STREAM_LINE_MAX bytes.
 */
void stream_notice(struct stream *stream, const char *event, const char *json);

/* Answer GET /v1/events: from ?since=N or Last-Event-ID on, else from now on. */
void stream_reply(struct stream *stream, const struct http_request *request,
                  struct http_reply *reply);

uint32_t stream_clients(const struct stream *stream);
