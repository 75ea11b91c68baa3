/* jot.c - JSON written straight into a buffer. */
#include "base/jot.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"

static void add_text(struct buf *buf, const char *text)
{
    buf_text(buf, "\"");
    for (const char *plain = text;; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_add(buf, plain, (size_t)(text - plain));
        if (c == '\0')
            break;
        if (c < 0x20)
            buf_print(buf, "\\u%04x", c);
        else
            buf_print(buf, "\\%c", c);
        plain = text + 1;
    }
    buf_text(buf, "\"");
}

static void begin(struct buf *buf, const char *key)
{
    if (buf->count > 0 && !strchr("{[:", buf->bytes[buf->count - 1]))
        buf_text(buf, ",");
    if (key) {
        add_text(buf, key);
        buf_text(buf, ":");
    }
}

void jot_open(struct buf *buf, const char *key, char brace)
{
    begin(buf, key);
    buf_add(buf, &brace, 1);
}

void jot_close(struct buf *buf, char brace)
{
    buf_add(buf, &brace, 1);
}

void jot_text(struct buf *buf, const char *key, const char *text)
{
    begin(buf, key);
    add_text(buf, text);
}

void jot_text_if(struct buf *buf, const char *key, const char *text)
{
    if (text)
        jot_text(buf, key, text);
}

void jot_count(struct buf *buf, const char *key, int64_t count)
{
    begin(buf, key);
    buf_print(buf, "%" PRId64, count);
}

void jot_number(struct buf *buf, const char *key, double number)
{
    assert(isfinite(number)); /* JSON has no other numbers */
    begin(buf, key);
    buf_print(buf, "%.12g", number);
}

void jot_flag(struct buf *buf, const char *key, bool flag)
{
    begin(buf, key);
    buf_text(buf, flag ? "true" : "false");
}

void jot_time(struct buf *buf, const char *key, int64_t ns)
{
    assert(ns >= 0);
    begin(buf, key);
    buf_print(buf, "%" PRId64 ".%06" PRId64, ns / 1000000000, ns / 1000 % 1000000);
}

void jot_json(struct buf *buf, const char *key, const char *json)
{
    begin(buf, key);
    buf_text(buf, json);
}
