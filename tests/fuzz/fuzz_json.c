/*
 * fuzz_json.c - any bytes for the parts of JSON that are ours: where a document ends, and the
 * writer.
 *
 * The library parses; what it accepts is written again by json_write.h, objects as arrays of
 * their keys and values because keys are not escaped there, and has to be read as the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The end of a document is found wherever the text was cut. */
static void check_scan(const char *text, size_t size, size_t cut)
{
    struct json_scan whole = { 0 }, parts = { 0 };
    size_t end = json_scan(&whole, text, size);
    size_t first = json_scan(&parts, text, cut);
    size_t second = first ? 0 : json_scan(&parts, text + cut, size - cut);
    assert(end == (first ? first : second ? cut + second : 0));
    assert(end <= size);
}

/* Any text, valid UTF-8 or not, becomes a value that can be read. */
static void check_text(struct buf *buf, const char *text)
{
    struct json *json;
    buf_reset(buf);
    json_write_open(buf, NULL, '[');
    json_write_text(buf, NULL, text);
    json_write_close(buf, ']');
    int r = json_parse(buf->bytes, buf->count, &json, NULL);
    assert(r == 0);
    const char *read = json_as_text(json_item(json, 0));
    assert(json_can_say(read));
    assert(!json_can_say(text) || strcmp(read, text) == 0);
    json_free(json);
}

static void write_value(struct buf *buf, const struct json *json)
{
    int64_t count;
    double number;
    bool flag;
    const char *key;
    const struct json *value;
    if (json_is_object(json) || json_is_array(json)) {
        json_write_open(buf, NULL, '[');
        for (size_t i = 0; i < json_count(json); i++)
            write_value(buf, json_item(json, i));
        for (void *at = NULL; (at = json_member(json, at, &key, &value));) {
            json_write_text(buf, NULL, key);
            write_value(buf, value);
        }
        json_write_close(buf, ']');
    } else if (json_as_count(json, &count)) {
        json_write_count(buf, NULL, count);
    } else if (json_as_number(json, &number)) {
        json_write_exact(buf, NULL, number);
    } else if (json_as_flag(json, &flag)) {
        json_write_flag(buf, NULL, flag);
    } else if (json_is_text(json)) {
        json_write_text(buf, NULL, json_as_text(json));
    } else {
        assert(json_is_null(json));
        json_write_raw(buf, NULL, "null");
    }
}

static void compare_value(const struct json *json, const struct json *written)
{
    double number, same;
    bool flag, same_flag;
    const char *key;
    const struct json *value;
    size_t i = 0;
    if (json_is_object(json) || json_is_array(json)) {
        for (; i < json_count(json); i++)
            compare_value(json_item(json, i), json_item(written, i));
        for (void *at = NULL; (at = json_member(json, at, &key, &value)); i += 2) {
            assert(strcmp(key, json_as_text(json_item(written, i))) == 0);
            compare_value(value, json_item(written, i + 1));
        }
        assert(json_count(written) == i);
    } else if (json_as_number(json, &number)) {
        assert(json_as_number(written, &same) && same == number);
    } else if (json_as_flag(json, &flag)) {
        assert(json_as_flag(written, &same_flag) && same_flag == flag);
    } else if (json_is_text(json)) {
        assert(strcmp(json_as_text(json), json_as_text(written)) == 0);
    } else {
        assert(json_is_null(json) && json_is_null(written));
    }
}

static void check_document(struct buf *buf, const char *text, size_t size)
{
    struct json *json, *written;
    struct json_scan scan = { 0 };
    struct error err = { "" };
    if (json_parse_piece(text, size, "input", 1, &json, &err) < 0) {
        assert(err.text[0] != '\0');
        return;
    }
    size_t end = json_scan(&scan, text, size);
    assert(end > 0 && strspn(text + end, " \t\r\n") >= size - end);
    buf_reset(buf);
    write_value(buf, json);
    int r = json_parse(buf->bytes, buf->count, &written, NULL);
    assert(r == 0);
    compare_value(json, written);
    json_free(json);
    json_free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf buf;
    char *text = malloc(size + 1); /* with a NUL, as the writer wants it */
    assert(text);
    memcpy(text, data, size);
    text[size] = '\0';
    buf_init(&buf, 1 << 24);
    check_scan(text, size, size > 0 ? data[0] % (size + 1) : 0);
    check_text(&buf, text);
    check_document(&buf, text, size);
    assert(!buf.full);
    buf_release(&buf);
    free(text);
    return 0;
}
