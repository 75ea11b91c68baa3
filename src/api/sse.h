/* sse.h - parse server-sent events from bytes as they arrive. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define SSE_LINE_MAX (1 << 20) /* bytes of a line, and of all data lines of one event */

struct sse_parser {
    struct buf line; /* the current line */
    struct buf data; /* of the current event */
    char name[32];
    bool after_cr; /* a line feed that follows belongs to the same line end */
    bool has_data;
    bool too_long; /* the current event is refused; the next one is read again */
};

void sse_init(struct sse_parser *parser);
void sse_release(struct sse_parser *parser);

/* Drop an event that arrived in part: the connection is a new one. */
void sse_reset(struct sse_parser *parser);

/*
 * 'event' is called with each whole event and its name ("message" where it has none),
 * 'refuse' instead where an event is too long.
 */
struct sse_handler {
    void (*event)(void *context, const char *name, const char *data, size_t count);
    void (*refuse)(void *context, const char *why);
    void *context;
};

void sse_add(struct sse_parser *parser, const char *bytes, size_t count,
             const struct sse_handler *handler);
