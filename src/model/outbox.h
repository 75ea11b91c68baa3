/* outbox.h - events on their way to the engine. */
#pragma once

#include <stdint.h>

#include "model/event.h"

/* An array that grows; the caller of engine_step() empties it. */
struct outbox {
    struct event *events;
    uint32_t count;
    uint32_t room;
};

void outbox_release(struct outbox *outbox);
struct event *outbox_add(struct outbox *outbox); /* zeroed; valid until the next call */
