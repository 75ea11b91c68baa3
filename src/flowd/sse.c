/* sse.c - server-sent events, from bytes as they come. */
#include "flowd/sse.h"

#include <stdio.h>
#include <string.h>

void sse_init(struct sse_parser *events)
{
    *events = (struct sse_parser){ .name = "" };
    buf_init(&events->line, SSE_LINE_MAX);
    buf_init(&events->data, SSE_LINE_MAX);
}

void sse_release(struct sse_parser *events)
{
    buf_release(&events->line);
    buf_release(&events->data);
}

static void begin_event(struct sse_parser *events)
{
    buf_reset(&events->data);
    events->name[0] = '\0';
    events->has_data = false;
    events->too_long = false;
}

void sse_reset(struct sse_parser *events)
{
    buf_reset(&events->line);
    events->after_cr = false;
    begin_event(events);
}

static void end_event(struct sse_parser *events, const struct sse_handler *ears)
{
    if (events->too_long || events->data.full)
        ears->refuse(ears->context, "an event of more than 1 MB");
    else if (events->has_data)
        ears->take(ears->context, events->name[0] ? events->name : "message",
                   events->data.bytes ? events->data.bytes : "", events->data.count);
    begin_event(events);
}

/* "FIELD: VALUE"; what is no field of ours is passed over. */
static void take_field(struct sse_parser *events, const char *line, size_t count)
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
        if (events->has_data)
            buf_add(&events->data, "\n", 1);
        buf_add(&events->data, value, rest);
        events->has_data = true;
    } else if (length == 5 && memcmp(line, "event", 5) == 0) {
        /* A name that is longer than any of ours is cut, and still none of ours. */
        snprintf(events->name, sizeof events->name, "%.*s", (int)rest, value);
    }
}

static void end_line(struct sse_parser *events, const struct sse_handler *ears)
{
    if (events->line.full)
        events->too_long = true;
    else if (events->line.count == 0)
        end_event(events, ears);
    else if (!events->too_long)
        take_field(events, events->line.bytes, events->line.count);
    buf_reset(&events->line);
}

void sse_add(struct sse_parser *events, const char *bytes, size_t count,
             const struct sse_handler *ears)
{
    for (const char *end = bytes + count; bytes < end;) {
        if (events->after_cr && *bytes == '\n') {
            events->after_cr = false;
            bytes++;
            continue;
        }
        events->after_cr = false;
        const char *stop = bytes;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        buf_add(&events->line, bytes, (size_t)(stop - bytes));
        if (stop == end)
            return;
        events->after_cr = *stop == '\r';
        end_line(events, ears);
        bytes = stop + 1;
    }
}
