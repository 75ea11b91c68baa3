/* outbox.c - events on their way to the engine. */
#include "model/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void outbox_release(struct outbox *outbox)
{
    free(outbox->events);
    *outbox = (struct outbox){ 0 };
}

struct event *outbox_add(struct outbox *outbox)
{
    if (outbox->count == outbox->room) {
        outbox->room = outbox->room ? outbox->room * 2 : 64;
        outbox->events = realloc(outbox->events, outbox->room * sizeof *outbox->events);
        if (!outbox->events) {
            fprintf(stderr, "berth: out of memory (outbox of %u)\n", outbox->room);
            abort();
        }
    }
    struct event *event = &outbox->events[outbox->count++];
    memset(event, 0, sizeof *event);
    return event;
}
