/* Any bytes as a request's address: taken apart into safe texts, or refused in words. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "http/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Nothing in a decoded text can end it early, or a line of a log. */
static void assert_clean(const char *text)
{
    for (; *text; text++)
        assert((unsigned char)*text >= 0x20 && *text != 0x7f);
}

/* An id that was taken is the text that was read, digit for digit. */
static void assert_id(const char *text)
{
    uint64_t id;
    size_t count = strcspn(text, "/");
    if (!target_id(text, count, &id))
        return;
    assert(id > 0 && id <= INT64_MAX);
    for (size_t i = count; i > 0; i--, id /= 10)
        assert(text[i - 1] == (char)('0' + id % 10));
    assert(id == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char raw[TARGET_BYTES_MAX + 1];
    if (size > TARGET_BYTES_MAX)
        size = TARGET_BYTES_MAX;
    memcpy(raw, data, size);
    raw[size] = '\0';

    struct arena arena;
    arena_init(&arena, 4096);
    struct target target;
    struct error err = { "" };
    if (target_read(&target, &arena, raw, &err) < 0) {
        assert(err.text[0] != '\0');
    } else {
        assert(target.path[0] == '/');
        assert(!strstr(target.path, "/../") && !strstr(target.path, "//"));
        assert_clean(target.path);
        for (const char *at = target.path; at; at = strchr(at + 1, '/'))
            assert_id(at + 1);
        for (uint32_t i = 0; i < target.count; i++) {
            assert_clean(target.keys[i]);
            assert_clean(target.values[i]);
            assert(target_query(&target, target.keys[i]) == target.values[i]);
        }
    }
    arena_release(&arena);
    return 0;
}
