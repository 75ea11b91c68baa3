/*
 * subscribers.h - those who follow something as it happens, each at its own pace: server-sent
 * events.
 *
 * Whoever has something to say wakes the subscribers; a subscriber who has taken all that was
 * written for it is then asked about, and what is new is written.  One who heard nothing
 * for a while is asked about as well, so that both sides notice when the other is gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "http/http.h"

struct subscribers;

/* What a client's own struct begins with: it is allocated by its owner, and freed here. */
struct subscriber {
    struct http_stream http;
    struct subscribers *subscribers;
    struct subscriber *next;
    struct buf pending; /* written for it ...  */
    size_t sent;        /* ... and handed over */
    uint64_t spoke_ms;
    bool beat; /* it heard nothing for a while: the owner puts it out */
    bool over; /* after what is pending there is nothing more         */
};

struct subscribers {
    struct uv_loop_s *loop;
    uint32_t count_max;         /* more are turned away                       */
    uint32_t look_ms, quiet_ms; /* how often to look; who was quiet so long   */

    /* Write what is new to 'pending', which is empty; nothing, if there is nothing. */
    void (*fill)(struct subscriber *subscriber);

    struct subscriber *first;
    uint32_t count;
    uv_timer_t timer;
};

/* 'subscribers' is filled in above; what it follows is its owner's business. */
void subscribers_open(struct subscribers *subscribers);

/* After http_close(), which sends them away.  'closed' is called when the loop has run. */
void subscribers_close(struct subscribers *subscribers, uv_close_cb closed, void *data);

/* False, and a 503 with this sentence in 'reply', if there are as many as can be. */
bool subscribers_have_room(const struct subscribers *subscribers, const char *sentence,
                           struct http_reply *reply);

/* One more, who is written 'bytes_max' at most at a time. */
void subscribers_join(struct subscribers *subscribers, struct subscriber *subscriber,
                      size_t bytes_max, struct http_reply *reply);

/* There is something new. */
void subscribers_wake(struct subscribers *subscribers);
