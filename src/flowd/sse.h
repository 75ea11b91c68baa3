/* sse.h - server-sent events, from bytes as they come. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define SSE_LINE_MAX (1 << 20) /* bytes; and of all data lines of one event */

struct sse_parser {
    struct buf line; /* the one that is being read */
    struct buf data; /* of the event that is being read */
    char name[32];
    bool after_cr; /* a line feed that follows belongs to it */
    bool has_data;
    bool too_long; /* this event is refused; go on at the next */
};

void sse_init(struct sse_parser *events);
void sse_release(struct sse_parser *events);

/* Forget what has come of an event: the connection is another one. */
void sse_reset(struct sse_parser *events);

/*
 * Who hears of them: 'take' of each event that is whole, by its name ("message" where
 * it has none); 'refuse', instead, of one that is longer than an event may be.
 */
struct sse_handler {
    void (*take)(void *context, const char *name, const char *data, size_t count);
    void (*refuse)(void *context, const char *why);
    void *context;
};

void sse_add(struct sse_parser *events, const char *bytes, size_t count,
             const struct sse_handler *ears);
