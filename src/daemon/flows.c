/* flows.c - whose packets go first, to the agents that mark them. */
#include "daemon/flows.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/buf.h"
#include "http/http.h"

#define GATHER_MS 10 /* changes within that are one event */

struct client {
    struct http_stream http;
    struct flows *flows;
    struct client *next;
    char host[FLOWS_HOST_MAX];
    uint64_t version;   /* that it was given */
    struct buf pending; /* written for it …  */
    size_t sent;        /* … and handed over */
    uint64_t spoke_ms;
    bool beat; /* is to hear it again */
};

struct flows {
    struct flows_setup setup;
    uv_timer_t gather, heartbeat;
    uint32_t handles;
    struct client *clients;
    uint32_t client_count;
    uint64_t version; /* grows with every change */
    struct buf text;  /* as it is written        */
};

/* ---- what a client gets ---- */

/* How things stand now, unless it knows. */
static void fill(struct client *client)
{
    struct flows *flows = client->flows;
    buf_reset(&client->pending);
    client->sent = 0;
    if (client->version == flows->version && !client->beat)
        return;
    buf_reset(&flows->text);
    if (!flows->setup.write(flows->setup.context, client->host, &flows->text))
        return;
    buf_text(&client->pending, "event: flows\ndata: ");
    buf_add(&client->pending, flows->text.bytes, flows->text.count);
    buf_text(&client->pending, "\n\n");
    assert(!flows->text.full && !client->pending.full);
    client->version = flows->version;
    client->beat = false;
}

static ssize_t client_more(void *self, char *room, size_t size)
{
    struct client *client = self;
    if (client->sent == client->pending.count)
        fill(client);
    size_t left = client->pending.count - client->sent;
    size_t count = left < size ? left : size;
    if (count == 0)
        return 0;
    memcpy(room, client->pending.bytes + client->sent, count);
    client->sent += count;
    client->spoke_ms = uv_now(client->flows->setup.loop);
    return (ssize_t)count;
}

static void client_gone(void *self)
{
    struct client *client = self;
    struct flows *flows = client->flows;
    struct client **at = &flows->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    if (--flows->client_count == 0) {
        uv_timer_stop(&flows->heartbeat);
        uv_timer_stop(&flows->gather);
    }
    buf_release(&client->pending);
    free(client);
}

/* ---- when ---- */

static void on_gathered(uv_timer_t *timer)
{
    struct flows *flows = timer->data;
    flows->version++;
    for (struct client *client = flows->clients; client; client = client->next)
        http_stream_wake(&client->http);
}

void flows_changed(struct flows *flows)
{
    if (!flows->clients || uv_is_active((uv_handle_t *)&flows->gather))
        return;
    uv_update_time(flows->setup.loop);
    uv_timer_start(&flows->gather, on_gathered, GATHER_MS, 0);
}

/* Looks three times in a beat, so that nobody waits for longer than one. */
static void on_heartbeat(uv_timer_t *timer)
{
    struct flows *flows = timer->data;
    uint64_t now_ms = uv_now(flows->setup.loop);
    uint64_t soon_ms = (uint64_t)flows->setup.heartbeat_ms * 6 / 10;
    for (struct client *client = flows->clients; client; client = client->next) {
        if (now_ms - client->spoke_ms < soon_ms)
            continue;
        client->beat = true;
        http_stream_wake(&client->http);
    }
}

/* ---- coming and going ---- */

void flows_reply(struct flows *flows, const char *host, struct http_reply *reply)
{
    if (flows->client_count >= flows->setup.clients_max) {
        http_reply_error(reply, 503, NULL, "too many follow already");
        return;
    }
    struct client *client = calloc(1, sizeof *client);
    assert(client);
    *client = (struct client){
        .http = { .more = client_more, .gone = client_gone, .self = client },
        .flows = flows,
        .next = flows->clients,
        .spoke_ms = uv_now(flows->setup.loop),
        .beat = true,
    };
    assert(strlen(host) < sizeof client->host);
    snprintf(client->host, sizeof client->host, "%s", host);
    buf_init(&client->pending, FLOWS_EVENT_MAX + 64);
    flows->clients = client;
    uint64_t look_ms = flows->setup.heartbeat_ms / 3;
    if (flows->client_count++ == 0)
        uv_timer_start(&flows->heartbeat, on_heartbeat, look_ms, look_ms);
    reply->type = "text/event-stream";
    reply->stream = &client->http;
}

uint32_t flows_clients(const struct flows *flows)
{
    return flows->client_count;
}

const char *flows_client_host(const struct flows *flows, uint32_t index)
{
    const struct client *client = flows->clients;
    while (client && index-- > 0)
        client = client->next;
    return client ? client->host : "";
}

void flows_open(struct flows **ret_flows, const struct flows_setup *setup)
{
    struct flows *flows = calloc(1, sizeof *flows);
    assert(flows);
    flows->setup = *setup;
    if (!flows->setup.clients_max)
        flows->setup.clients_max = 64;
    if (!flows->setup.heartbeat_ms)
        flows->setup.heartbeat_ms = FLOWS_HEARTBEAT_MS;
    uv_timer_init(setup->loop, &flows->gather);
    uv_timer_init(setup->loop, &flows->heartbeat);
    flows->gather.data = flows->heartbeat.data = flows;
    flows->handles = 2;
    buf_init(&flows->text, FLOWS_EVENT_MAX);
    *ret_flows = flows;
}

static void on_closed(uv_handle_t *handle)
{
    struct flows *flows = handle->data;
    if (--flows->handles > 0)
        return;
    buf_release(&flows->text);
    free(flows);
}

void flows_close(struct flows *flows)
{
    assert(!flows->clients);
    uv_close((uv_handle_t *)&flows->gather, on_closed);
    uv_close((uv_handle_t *)&flows->heartbeat, on_closed);
}
