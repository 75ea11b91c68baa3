/*
 * flow_stream.h - which packets go first, for the agents that mark them: server-sent events.
 *
 * Each event is the complete state of a host, so an agent that missed some needs none of
 * them.  One is sent soon after a change, one for changes that come together, and one as a
 * heartbeat: an agent that gets no more events removes its marks.
 *
 *   event: flows
 *   data: {"flow":"jpas","levels":6,"host":"a","valid_s":45,"jobs":[{"id":12,"level":0,…}]}
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct flow_stream;
struct http_reply;
struct uv_loop_s;

#define FLOW_STREAM_JOBS_MAX 4096      /* in one event */
#define FLOW_STREAM_EVENT_MAX 1000000  /* bytes        */
#define FLOW_STREAM_HOST_MAX 256       /* of a name, with its \0  */
#define FLOW_STREAM_HEARTBEAT_MS 15000 /* an event at least so often         */
#define FLOW_STREAM_VALID_S 45         /* and it is valid for so long        */

struct flow_stream_setup {
    struct uv_loop_s *loop;
    uint32_t clients_max;  /* [64]: 503                           */
    uint32_t heartbeat_ms; /* [FLOW_STREAM_HEARTBEAT_MS]                */

    /* Write the state of a host ("": of all); false: it is not known just now. */
    bool (*write)(void *context, const char *host, struct buf *buf);
    void *context;
};

void flow_stream_open(struct flow_stream **ret_stream,
                      const struct flow_stream_setup *setup);

/* After http_close(), which ends its clients.  Freed when the loop has run. */
void flow_stream_close(struct flow_stream *stream);

/* Something may have changed: clients are sent it within milliseconds. */
void flow_stream_changed(struct flow_stream *stream);

/* Answer GET /v1/flows?follow=true. */
void flow_stream_reply(struct flow_stream *stream, const char *host,
                       struct http_reply *reply);

/* Agents that are connected, and the host of one of them ("": it did not say). */
uint32_t flow_stream_clients(const struct flow_stream *stream);
const char *flow_stream_client_host(const struct flow_stream *stream, uint32_t index);
