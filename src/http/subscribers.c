/* subscribers.c - clients that are sent server-sent events as they happen. */
#include "http/subscribers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static ssize_t read_pending(void *self, char *room, size_t size)
{
    struct subscriber *subscriber = self;
    if (subscriber->sent == subscriber->pending.count) {
        if (subscriber->over)
            return -1;
        buf_reset(&subscriber->pending);
        subscriber->sent = 0;
        subscriber->subscribers->fill(subscriber);
    }
    size_t left = subscriber->pending.count - subscriber->sent;
    size_t count = left < size ? left : size;
    if (count == 0)
        return 0;
    memcpy(room, subscriber->pending.bytes + subscriber->sent, count);
    subscriber->sent += count;
    subscriber->spoke_ms = uv_now(subscriber->subscribers->loop);
    return (ssize_t)count;
}

static void close_subscriber(void *self)
{
    struct subscriber *subscriber = self;
    struct subscribers *subscribers = subscriber->subscribers;
    struct subscriber **at = &subscribers->first;
    while (*at != subscriber)
        at = &(*at)->next;
    *at = subscriber->next;
    if (--subscribers->count == 0)
        uv_timer_stop(&subscribers->timer);
    buf_release(&subscriber->pending);
    free(subscriber);
}

static void on_timer(uv_timer_t *timer)
{
    struct subscribers *subscribers = timer->data;
    uint64_t now_ms = uv_now(subscribers->loop);
    for (struct subscriber *subscriber = subscribers->first; subscriber;
         subscriber = subscriber->next) {
        if (now_ms - subscriber->spoke_ms < subscribers->quiet_ms)
            continue;
        subscriber->beat = true;
        http_stream_wake(&subscriber->http);
    }
}

void subscribers_wake(struct subscribers *subscribers)
{
    for (struct subscriber *subscriber = subscribers->first; subscriber;
         subscriber = subscriber->next)
        http_stream_wake(&subscriber->http);
}

bool subscribers_have_room(const struct subscribers *subscribers, const char *sentence,
                           struct http_reply *reply)
{
    if (subscribers->count < subscribers->count_max)
        return true;
    http_reply_error(reply, 503, NULL, sentence);
    return false;
}

void subscribers_join(struct subscribers *subscribers, struct subscriber *subscriber,
                      size_t bytes_max, struct http_reply *reply)
{
    subscriber->http = (struct http_stream){ .read = read_pending,
                                             .closed = close_subscriber,
                                             .self = subscriber };
    subscriber->subscribers = subscribers;
    subscriber->next = subscribers->first;
    subscriber->spoke_ms = uv_now(subscribers->loop);
    buf_init(&subscriber->pending, bytes_max);
    subscribers->first = subscriber;
    if (subscribers->count++ == 0)
        uv_timer_start(&subscribers->timer, on_timer, subscribers->look_ms,
                       subscribers->look_ms);
    reply->type = "text/event-stream";
    reply->stream = &subscriber->http;
}

void subscribers_open(struct subscribers *subscribers)
{
    uv_timer_init(subscribers->loop, &subscribers->timer);
    subscribers->timer.data = subscribers;
}

void subscribers_close(struct subscribers *subscribers, uv_close_cb closed, void *data)
{
    assert(!subscribers->first);
    subscribers->timer.data = data;
    uv_close((uv_handle_t *)&subscribers->timer, closed);
}
