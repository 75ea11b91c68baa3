/* flows.c - whose packets go first, to the agents that mark them. */
#include "daemon/flows.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/memory.h"
#include "http/audience.h"

#define GATHER_MS 10 /* changes within that are one event */

struct client {
    struct hearer hearer;
    struct flows *flows;
    char host[FLOWS_HOST_MAX];
    uint64_t version; /* that it was given */
};

struct flows {
    struct flows_setup setup;
    struct audience audience;
    uv_timer_t gather;
    uint32_t handles;
    uint64_t version; /* grows with every change */
    struct buf text;  /* as it is written        */
};

/* ---- what a client gets ---- */

/* How things stand now, unless it knows. */
static void fill(struct hearer *hearer)
{
    struct client *client = (struct client *)hearer; /* it begins with it */
    struct flows *flows = client->flows;
    if (client->version == flows->version && !hearer->beat)
        return;
    buf_reset(&flows->text);
    if (!flows->setup.write(flows->setup.context, client->host, &flows->text))
        return;
    buf_text(&hearer->pending, "event: flows\ndata: ");
    buf_add(&hearer->pending, flows->text.bytes, flows->text.count);
    buf_text(&hearer->pending, "\n\n");
    assert(!flows->text.full && !hearer->pending.full);
    client->version = flows->version;
    hearer->beat = false;
}

/* ---- when ---- */

static void on_gathered(uv_timer_t *timer)
{
    struct flows *flows = timer->data;
    flows->version++;
    audience_wake(&flows->audience);
}

void flows_changed(struct flows *flows)
{
    if (!flows->audience.first || uv_is_active((uv_handle_t *)&flows->gather))
        return;
    uv_update_time(flows->setup.loop);
    uv_timer_start(&flows->gather, on_gathered, GATHER_MS, 0);
}

/* ---- coming and going ---- */

void flows_reply(struct flows *flows, const char *host, struct http_reply *reply)
{
    if (!audience_has_room(&flows->audience, "too many follow already", reply))
        return;
    struct client *client = memory_checked(calloc(1, sizeof *client));
    client->flows = flows;
    client->hearer.beat = true;
    assert(strlen(host) < sizeof client->host);
    snprintf(client->host, sizeof client->host, "%s", host);
    audience_join(&flows->audience, &client->hearer, FLOWS_EVENT_MAX + 64, reply);
}

uint32_t flows_clients(const struct flows *flows)
{
    return flows->audience.count;
}

const char *flows_client_host(const struct flows *flows, uint32_t index)
{
    const struct hearer *hearer = flows->audience.first;
    while (hearer && index-- > 0)
        hearer = hearer->next;
    return hearer ? ((const struct client *)hearer)->host : "";
}

void flows_open(struct flows **ret_flows, const struct flows_setup *setup)
{
    struct flows *flows = memory_checked(calloc(1, sizeof *flows));
    flows->setup = *setup;
    if (!flows->setup.clients_max)
        flows->setup.clients_max = 64;
    if (!flows->setup.heartbeat_ms)
        flows->setup.heartbeat_ms = FLOWS_HEARTBEAT_MS;
    uv_timer_init(setup->loop, &flows->gather);
    flows->gather.data = flows;
    /* Looked at three times in a beat, so that nobody waits for longer than one. */
    flows->audience = (struct audience){ .loop = setup->loop,
                                         .count_max = flows->setup.clients_max,
                                         .look_ms = flows->setup.heartbeat_ms / 3,
                                         .quiet_ms = flows->setup.heartbeat_ms * 6 / 10,
                                         .fill = fill };
    audience_open(&flows->audience);
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
    uv_close((uv_handle_t *)&flows->gather, on_closed);
    audience_close(&flows->audience, on_closed, flows);
}
