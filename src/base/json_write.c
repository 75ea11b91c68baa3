/* json_write.c - JSON written straight into a buffer. */
#include "base/json_write.h"

#include <assert.h>
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
    char last = buf->count > 0 ? buf->bytes[buf->count - 1] : '{';
    if (last != '{' && last != '[' && last != ':')
        buf_add(buf, ",", 1);
    if (key) {
        buf_add(buf, "\"", 1);
        buf_text(buf, key);
        buf_add(buf, "\":", 2);
    }
}

void json_write_open(struct buf *buf, const char *key, char brace)
{
    begin(buf, key);
    buf_add(buf, &brace, 1);
}

void json_write_close(struct buf *buf, char brace)
{
    buf_add(buf, &brace, 1);
}

void json_write_text(struct buf *buf, const char *key, const char *text)
{
    begin(buf, key);
    add_text(buf, text);
}

void json_write_text_if(struct buf *buf, const char *key, const char *text)
{
    if (text)
        json_write_text(buf, key, text);
}

/* At least 'width' digits.  Lists are mostly numbers, and printf takes its time. */
static void add_digits(struct buf *buf, uint64_t number, unsigned width)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 || sizeof digits - at < width);
    buf_add(buf, digits + at, sizeof digits - at);
}

void json_write_count(struct buf *buf, const char *key, int64_t count)
{
    begin(buf, key);
    if (count < 0)
        buf_text(buf, "-");
    add_digits(buf, count < 0 ? 0 - (uint64_t)count : (uint64_t)count, 1);
}

void json_write_number(struct buf *buf, const char *key, double number)
{
    assert(isfinite(number)); /* JSON has no other numbers */
    begin(buf, key);
    buf_print(buf, "%.12g", number);
}

void json_write_flag(struct buf *buf, const char *key, bool flag)
{
    begin(buf, key);
    buf_text(buf, flag ? "true" : "false");
}

void json_write_time(struct buf *buf, const char *key, int64_t ns)
{
    assert(ns >= 0);
    begin(buf, key);
    add_digits(buf, (uint64_t)ns / 1000000000, 1);
    buf_text(buf, ".");
    add_digits(buf, (uint64_t)ns / 1000 % 1000000, 6);
}

void json_write_raw(struct buf *buf, const char *key, const char *json)
{
    begin(buf, key);
    buf_text(buf, json);
}
