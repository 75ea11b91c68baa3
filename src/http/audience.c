/* audience.c - those who follow something as it happens. */
#include "http/audience.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static ssize_t hearer_more(void *self, char *room, size_t size)
{
    struct hearer *hearer = self;
    if (hearer->sent == hearer->pending.count) {
        if (hearer->over)
            return -1;
        buf_reset(&hearer->pending);
        hearer->sent = 0;
        hearer->audience->fill(hearer);
    }
    size_t left = hearer->pending.count - hearer->sent;
    size_t count = left < size ? left : size;
    if (count == 0)
        return 0;
    memcpy(room, hearer->pending.bytes + hearer->sent, count);
    hearer->sent += count;
    hearer->spoke_ms = uv_now(hearer->audience->loop);
    return (ssize_t)count;
}

static void hearer_gone(void *self)
{
    struct hearer *hearer = self;
    struct audience *audience = hearer->audience;
    struct hearer **at = &audience->first;
    while (*at != hearer)
        at = &(*at)->next;
    *at = hearer->next;
    if (--audience->count == 0)
        uv_timer_stop(&audience->timer);
    buf_release(&hearer->pending);
    free(hearer);
}

static void on_timer(uv_timer_t *timer)
{
    struct audience *audience = timer->data;
    uint64_t now_ms = uv_now(audience->loop);
    for (struct hearer *hearer = audience->first; hearer; hearer = hearer->next) {
        if (now_ms - hearer->spoke_ms < audience->quiet_ms)
            continue;
        hearer->beat = true;
        http_stream_wake(&hearer->http);
    }
}

void audience_wake(struct audience *audience)
{
    for (struct hearer *hearer = audience->first; hearer; hearer = hearer->next)
        http_stream_wake(&hearer->http);
}

bool audience_has_room(const struct audience *audience, const char *sentence,
                       struct http_reply *reply)
{
    if (audience->count < audience->count_max)
        return true;
    http_reply_error(reply, 503, NULL, sentence);
    return false;
}

void audience_join(struct audience *audience, struct hearer *hearer, size_t bytes_max,
                   struct http_reply *reply)
{
    hearer->http = (struct http_stream){ .more = hearer_more,
                                         .gone = hearer_gone,
                                         .self = hearer };
    hearer->audience = audience;
    hearer->next = audience->first;
    hearer->spoke_ms = uv_now(audience->loop);
    buf_init(&hearer->pending, bytes_max);
    audience->first = hearer;
    if (audience->count++ == 0)
        uv_timer_start(&audience->timer, on_timer, audience->look_ms,
                       audience->look_ms);
    reply->type = "text/event-stream";
    reply->stream = &hearer->http;
}

void audience_open(struct audience *audience)
{
    uv_timer_init(audience->loop, &audience->timer);
    audience->timer.data = audience;
}

void audience_close(struct audience *audience, uv_close_cb closed, void *data)
{
    assert(!audience->first);
    audience->timer.data = data;
    uv_close((uv_handle_t *)&audience->timer, closed);
}
