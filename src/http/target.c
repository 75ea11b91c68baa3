/* target.c - a request's path and query. */
#include "http/target.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Bytes of the UTF-8 character at 'at'; 0 if it is malformed or a control character. */
static size_t count_utf8_bytes(const unsigned char *at, size_t left)
{
    static const struct {
        unsigned char first, last, low, high; /* first byte; range of the second */
        size_t count;
    } shapes[] = {
        { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
        { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
        { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };

    if (at[0] < 0x80)
        return at[0] >= 0x20 && at[0] != 0x7f; /* no control character */
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (at[0] < shapes[i].first || at[0] > shapes[i].last)
            continue;
        if (left < shapes[i].count || at[1] < shapes[i].low || at[1] > shapes[i].high)
            return 0;
        for (size_t k = 2; k < shapes[i].count; k++)
            if (at[k] < 0x80 || at[k] > 0xbf)
                return 0;
        return shapes[i].count;
    }
    return 0;
}

static bool is_printable_utf8(const char *text, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t at = 0; at < count;) {
        size_t step = count_utf8_bytes(bytes + at, count - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

/* Decode percent-encoding; in a query a plus is a blank.  NULL if it is malformed. */
static char *decode_percent(struct arena *arena, const char *raw, size_t count,
                            bool query, struct error *err)
{
    char *text = arena_array(arena, char, count + 1);
    size_t used = 0;
    for (size_t at = 0; at < count; at++) {
        char c = raw[at];
        if (c == '+' && query)
            c = ' ';
        if (c == '%') {
            int high = at + 2 < count ? hex_digit(raw[at + 1]) : -1;
            int low = at + 2 < count ? hex_digit(raw[at + 2]) : -1;
            if (high < 0 || low < 0) {
                error_set(err, -EINVAL, "the address has a bad percent-encoding");
                return NULL;
            }
            c = (char)(high * 16 + low);
            at += 2;
            if (c == '/' && !query) {
                error_set(err, -EINVAL, "the address has an encoded slash in its path");
                return NULL;
            }
        }
        text[used++] = c;
    }
    if (!is_printable_utf8(text, used)) {
        error_set(err, -EINVAL, "the address is not printable UTF-8");
        return NULL;
    }
    return text;
}

/* No part of a path is empty, "." or "..", so it never leads out of a folder. */
static bool has_plain_parts(const char *path)
{
    while (*path == '/') {
        path++;
        size_t count = strcspn(path, "/");
        if (count == 0 && *path == '/')
            return false;
        if ((count == 1 && path[0] == '.') ||
            (count == 2 && memcmp(path, "..", 2) == 0))
            return false;
        path += count;
    }
    return true;
}

static int add_pair(struct target *target, struct arena *arena, const char *raw,
                    size_t count, struct error *err)
{
    const char *equals = memchr(raw, '=', count);
    size_t key_count = equals ? (size_t)(equals - raw) : count;
    size_t value_at = equals ? key_count + 1 : count;

    char *key = decode_percent(arena, raw, key_count, true, err);
    char *value = decode_percent(arena, raw + value_at, count - value_at, true, err);
    if (!key || !value)
        return -EINVAL;
    if (target_query(target, key))
        return error_set(err, -EINVAL, "%.64s: given twice", key);
    if (target->count == TARGET_QUERY_MAX)
        return error_set(err, -EINVAL, "more than %d keys in the address",
                         TARGET_QUERY_MAX);
    target->keys[target->count] = key;
    target->values[target->count++] = value;
    return 0;
}

static int read_query(struct target *target, struct arena *arena, const char *raw,
                      struct error *err)
{
    while (*raw) {
        size_t count = strcspn(raw, "&");
        if (count > 0) {
            int r = add_pair(target, arena, raw, count, err);
            if (r < 0)
                return r;
        }
        raw += count + (raw[count] == '&');
    }
    return 0;
}

int target_read(struct target *target, struct arena *arena, const char *raw,
                struct error *err)
{
    *target = (struct target){ 0 };
    if (raw[0] != '/')
        return error_set(err, -EINVAL, "the address does not begin with a slash");
    if (strchr(raw, '#'))
        return error_set(err, -EINVAL, "the address has a \"#\" in it");

    size_t count = strcspn(raw, "?");
    target->path = decode_percent(arena, raw, count, false, err);
    if (!target->path)
        return -EINVAL;
    if (!has_plain_parts(target->path))
        return error_set(err, -EINVAL, "the address has an empty or dotted part");
    return raw[count] == '?' ? read_query(target, arena, raw + count + 1, err) : 0;
}

const char *target_query(const struct target *target, const char *key)
{
    for (uint32_t i = 0; i < target->count; i++)
        if (strcmp(target->keys[i], key) == 0)
            return target->values[i];
    return NULL;
}

bool target_id(const char *text, size_t count, uint64_t *ret_id)
{
    if (count == 0 || count > 19 || text[0] == '0')
        return false;
    uint64_t id = 0; /* 19 digits fit */
    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        id = id * 10 + (uint64_t)(text[i] - '0');
    }
    if (id > INT64_MAX)
        return false;
    *ret_id = id;
    return true;
}

bool target_task(const char *text, size_t count, uint64_t *ret_array,
                 uint32_t *ret_index)
{
    const char *bar = memchr(text, '_', count);
    uint64_t index = 0;
    if (!bar || !target_id(text, (size_t)(bar - text), ret_array))
        return false;
    size_t digits = count - (size_t)(bar + 1 - text);
    bool zero = digits == 1 && bar[1] == '0';
    if (!zero && (!target_id(bar + 1, digits, &index) || index > UINT32_MAX))
        return false;
    *ret_index = (uint32_t)index;
    return true;
}
