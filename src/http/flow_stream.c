/* flow_stream.c - which packets go first, for the agents that mark them. */
#include "http/flow_stream.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/memory.h"
#include "http/subscribers.h"

#define GATHER_MS 10 /* changes within that are one event */

struct flow_client {
    struct subscriber subscriber;
    struct flow_stream *stream;
    char host[FLOW_STREAM_HOST_MAX];
    uint64_t version; /* that it was sent */
};

struct flow_stream {
    struct flow_stream_setup setup;
    struct subscribers subscribers;
    uv_timer_t gather;
    uint32_t handles;
    uint64_t version; /* grows with every change */
    struct buf text;  /* as it is written        */
};

/* ---- what a client gets ---- */

/* Write the present state, unless the client has it. */
static void write_client(struct subscriber *subscriber)
{
    struct flow_client *client =
        (struct flow_client *)subscriber; /* its first member */
    struct flow_stream *stream = client->stream;
    if (client->version == stream->version && !subscriber->beat)
        return;
    buf_reset(&stream->text);
    if (!stream->setup.write(stream->setup.context, client->host, &stream->text))
        return;
    buf_text(&subscriber->pending, "event: flows\ndata: ");
    buf_add(&subscriber->pending, stream->text.bytes, stream->text.count);
    buf_text(&subscriber->pending, "\n\n");
    assert(!stream->text.full && !subscriber->pending.full);
    client->version = stream->version;
    subscriber->beat = false;
}

/* ---- changes ---- */

static void on_gathered(uv_timer_t *timer)
{
    struct flow_stream *stream = timer->data;
    stream->version++;
    subscribers_wake(&stream->subscribers);
}

void flow_stream_changed(struct flow_stream *stream)
{
    if (!stream->subscribers.first || uv_is_active((uv_handle_t *)&stream->gather))
        return;
    uv_update_time(stream->setup.loop);
    uv_timer_start(&stream->gather, on_gathered, GATHER_MS, 0);
}

/* ---- clients ---- */

void flow_stream_reply(struct flow_stream *stream, const char *host,
                       struct http_reply *reply)
{
    if (!subscribers_have_room(&stream->subscribers, "too many follow already", reply))
        return;
    struct flow_client *client = memory_checked(calloc(1, sizeof *client));
    client->stream = stream;
    client->subscriber.beat = true;
    assert(strlen(host) < sizeof client->host);
    snprintf(client->host, sizeof client->host, "%s", host);
    subscribers_join(&stream->subscribers, &client->subscriber,
                     FLOW_STREAM_EVENT_MAX + 64, reply);
}

uint32_t flow_stream_clients(const struct flow_stream *stream)
{
    return stream->subscribers.count;
}

const char *flow_stream_client_host(const struct flow_stream *stream, uint32_t index)
{
    const struct subscriber *subscriber = stream->subscribers.first;
    while (subscriber && index-- > 0)
        subscriber = subscriber->next;
    return subscriber ? ((const struct flow_client *)subscriber)->host : "";
}

void flow_stream_open(struct flow_stream **ret_stream,
                      const struct flow_stream_setup *setup)
{
    struct flow_stream *stream = memory_checked(calloc(1, sizeof *stream));
    stream->setup = *setup;
    if (!stream->setup.clients_max)
        stream->setup.clients_max = 64;
    if (!stream->setup.heartbeat_ms)
        stream->setup.heartbeat_ms = FLOW_STREAM_HEARTBEAT_MS;
    uv_timer_init(setup->loop, &stream->gather);
    stream->gather.data = stream;
    /* Checked three times per heartbeat, so that no client waits for longer than one. */
    stream->subscribers =
        (struct subscribers){ .loop = setup->loop,
                              .count_max = stream->setup.clients_max,
                              .look_ms = stream->setup.heartbeat_ms / 3,
                              .quiet_ms = stream->setup.heartbeat_ms * 6 / 10,
                              .fill = write_client };
    subscribers_open(&stream->subscribers);
    stream->handles = 2;
    buf_init(&stream->text, FLOW_STREAM_EVENT_MAX);
    *ret_stream = stream;
}

static void on_closed(uv_handle_t *handle)
{
    struct flow_stream *stream = handle->data;
    if (--stream->handles > 0)
        return;
    buf_release(&stream->text);
    free(stream);
}

void flow_stream_close(struct flow_stream *stream)
{
    uv_close((uv_handle_t *)&stream->gather, on_closed);
    subscribers_close(&stream->subscribers, on_closed, stream);
}
