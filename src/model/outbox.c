/* outbox.c - events on their way to the engine. */
#include "model/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void outbox_release(struct outbox *outbox)
{
    free(outbox->events);
    *outbox = (struct outbox){ 0 };
}

struct event *outbox_add(struct outbox *outbox)
{
    if (outbox->count == outbox->room)
        outbox->events = grow_array(outbox->events, &outbox->room, outbox->count + 1,
                                    sizeof *outbox->events);
    struct event *event = &outbox->events[outbox->count++];
    memset(event, 0, sizeof *event);
    return event;
}
