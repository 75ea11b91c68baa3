/*
 * subscribers.h - clients that are sent server-sent events as they happen, each at its own
 * pace.
 *
 * The owner wakes the subscribers when there is something new.  For each that has taken
 * everything written so far, fill() then writes what is new.  It is also called for a
 * subscriber that was sent nothing for a while, so that both sides notice a lost connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "http/http.h"

struct subscribers;

/* First member of a client's own struct, which its owner allocates and which is freed here. */
struct subscriber {
    struct http_stream http;
    struct subscribers *subscribers;
    struct subscriber *next;
    struct buf pending; /* written for it ...  */
    size_t sent;        /* ... and sent      */
    uint64_t spoke_ms;
    bool beat; /* a heartbeat is due: fill() clears it */
    bool over; /* end the stream after what is pending */
};

struct subscribers {
    struct uv_loop_s *loop;
    uint32_t count_max;         /* more are refused                           */
    uint32_t look_ms, quiet_ms; /* how often to check; heartbeat after so long */

    /* Write what is new to 'pending', which is empty; nothing if there is nothing. */
    void (*fill)(struct subscriber *subscriber);

    struct subscriber *first;
    uint32_t count;
    uv_timer_t timer;
};

/* The first four members of 'subscribers' and 'fill' are set by the caller. */
void subscribers_open(struct subscribers *subscribers);

/* After http_close(), which disconnects them.  'closed' is called when the loop has run. */
void subscribers_close(struct subscribers *subscribers, uv_close_cb closed, void *data);

/* False, and a 503 with this sentence in 'reply', if there are count_max already. */
bool subscribers_have_room(const struct subscribers *subscribers, const char *sentence,
                           struct http_reply *reply);

/* Add one; at most 'bytes_max' bytes are pending for it. */
void subscribers_join(struct subscribers *subscribers, struct subscriber *subscriber,
                      size_t bytes_max, struct http_reply *reply);

/* There is something new. */
void subscribers_wake(struct subscribers *subscribers);
