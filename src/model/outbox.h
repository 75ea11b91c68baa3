/* outbox.h - events on their way to the engine. */
#pragma once

#include <stdint.h>

#include "model/event.h"

/* A row that grows; emptied by whoever feeds the engine. */
struct outbox {
    struct event *events;
    uint32_t count;
    uint32_t room;
};

void outbox_release(struct outbox *outbox);
struct event *outbox_add(struct outbox *outbox); /* zeroed; valid until the next call */
