/* sse.c - parse server-sent events from bytes as they arrive. */
#include "api/sse.h"

#include <stdio.h>
#include <string.h>

void sse_init(struct sse_parser *parser)
{
    *parser = (struct sse_parser){ .name = "" };
    buf_init(&parser->line, SSE_LINE_MAX);
    buf_init(&parser->data, SSE_LINE_MAX);
}

void sse_release(struct sse_parser *parser)
{
    buf_release(&parser->line);
    buf_release(&parser->data);
}

static void begin_event(struct sse_parser *parser)
{
    buf_reset(&parser->data);
    parser->name[0] = '\0';
    parser->has_data = false;
    parser->too_long = false;
}

void sse_reset(struct sse_parser *parser)
{
    buf_reset(&parser->line);
    parser->after_cr = false;
    begin_event(parser);
}

static void end_event(struct sse_parser *parser, const struct sse_handler *handler)
{
    if (parser->too_long || parser->data.full)
        handler->refuse(handler->context, "an event of more than 1 MB");
    else if (parser->has_data)
        handler->event(handler->context, parser->name[0] ? parser->name : "message",
                       parser->data.bytes ? parser->data.bytes : "",
                       parser->data.count);
    begin_event(parser);
}

/* Read a line "FIELD: VALUE"; fields other than data and event are ignored. */
static void read_field(struct sse_parser *parser, const char *line, size_t count)
{
    const char *colon = memchr(line, ':', count);
    size_t length = colon ? (size_t)(colon - line) : count;
    const char *value = line + length + (colon != NULL);
    size_t rest = count - (size_t)(value - line);
    if (rest > 0 && *value == ' ') {
        value++;
        rest--;
    }
    if (length == 4 && memcmp(line, "data", 4) == 0) {
        if (parser->has_data)
            buf_add(&parser->data, "\n", 1);
        buf_add(&parser->data, value, rest);
        parser->has_data = true;
    } else if (length == 5 && memcmp(line, "event", 5) == 0) {
        /* A name longer than any that we know is cut, and is still none that we know. */
        snprintf(parser->name, sizeof parser->name, "%.*s", (int)rest, value);
    }
}

static void end_line(struct sse_parser *parser, const struct sse_handler *handler)
{
    if (parser->line.full)
        parser->too_long = true;
    else if (parser->line.count == 0)
        end_event(parser, handler);
    else if (!parser->too_long)
        read_field(parser, parser->line.bytes, parser->line.count);
    buf_reset(&parser->line);
}

void sse_add(struct sse_parser *parser, const char *bytes, size_t count,
             const struct sse_handler *handler)
{
    for (const char *end = bytes + count; bytes < end;) {
        if (parser->after_cr && *bytes == '\n') {
            parser->after_cr = false;
            bytes++;
            continue;
        }
        parser->after_cr = false;
        const char *stop = bytes;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        buf_add(&parser->line, bytes, (size_t)(stop - bytes));
        if (stop == end)
            return;
        parser->after_cr = *stop == '\r';
        end_line(parser, handler);
        bytes = stop + 1;
    }
}
