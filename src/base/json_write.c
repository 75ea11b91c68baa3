/* json_write.c - the streaming JSON writer. */
#include "base/json_write.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

static void write_quoted(struct buf *buf, const char *text)
{
    buf_text(buf, "\"");
    for (const char *plain = text;; text++) {
        unsigned char c = (unsigned char)*text;
        bool is_control = c < 0x20 || c == 0x7f;
        size_t length = c < 0x80 ? 1 : utf8_length(text);
        if (!is_control && c != '"' && c != '\\' && length > 0) {
            text += length - 1;
            continue;
        }
        buf_add(buf, plain, (size_t)(text - plain));
        if (c == '\0')
            break;
        if (length == 0)
            buf_text(buf, UTF8_REPLACEMENT);
        else if (is_control)
            buf_print(buf, "\\u%04x", c);
        else
            buf_print(buf, "\\%c", c);
        plain = text + 1;
    }
    buf_text(buf, "\"");
}

static void write_key(struct buf *buf, const char *key)
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
    write_key(buf, key);
    buf_add(buf, &brace, 1);
}

void json_write_close(struct buf *buf, char brace)
{
    buf_add(buf, &brace, 1);
}

void json_write_text(struct buf *buf, const char *key, const char *text)
{
    write_key(buf, key);
    write_quoted(buf, text);
}

void json_write_text_if(struct buf *buf, const char *key, const char *text)
{
    if (text)
        json_write_text(buf, key, text);
}

/* At least 'width' digits.  Long lists are mostly numbers, and printf is slow. */
static void write_digits(struct buf *buf, uint64_t number, unsigned width)
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
    write_key(buf, key);
    if (count < 0)
        buf_text(buf, "-");
    write_digits(buf, count < 0 ? 0 - (uint64_t)count : (uint64_t)count, 1);
}

void json_write_number(struct buf *buf, const char *key, double number)
{
    assert(isfinite(number)); /* JSON has no other numbers */
    write_key(buf, key);
    buf_print(buf, "%.12g", number);
}

void json_write_fixed(struct buf *buf, const char *key, double number, int digits)
{
    assert(isfinite(number));
    write_key(buf, key);
    buf_print(buf, "%.*f", digits, number);
}

void json_write_exact(struct buf *buf, const char *key, double number)
{
    write_key(buf, key);
    if (isfinite(number))
        buf_print(buf, "%.17g", number);
    else
        buf_text(buf, "null");
}

void json_write_flag(struct buf *buf, const char *key, bool flag)
{
    write_key(buf, key);
    buf_text(buf, flag ? "true" : "false");
}

static void write_seconds(struct buf *buf, const char *key, int64_t ns,
                          uint32_t unit_ns, unsigned width)
{
    assert(ns >= 0);
    write_key(buf, key);
    write_digits(buf, (uint64_t)ns / 1000000000, 1);
    buf_text(buf, ".");
    write_digits(buf, (uint64_t)ns % 1000000000 / unit_ns, width);
}

void json_write_time(struct buf *buf, const char *key, int64_t ns)
{
    write_seconds(buf, key, ns, 1000, 6);
}

void json_write_time_ns(struct buf *buf, const char *key, int64_t ns)
{
    write_seconds(buf, key, ns, 1, 9);
}

void json_write_bits(struct buf *buf, const char *key, uint64_t bits)
{
    json_write_open(buf, key, '[');
    for (; bits; bits &= bits - 1)
        json_write_count(buf, NULL, __builtin_ctzll(bits));
    json_write_close(buf, ']');
}

void json_write_raw(struct buf *buf, const char *key, const char *json)
{
    write_key(buf, key);
    buf_text(buf, json);
}
