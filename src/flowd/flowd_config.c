/* flowd_config.c - flowd.yaml. */
#include "flowd/flowd_config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "api/yaml.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#define FILE_BYTES_MAX (64 << 10)

static const struct flowd_config_key {
    const char *name;
    size_t offset;
} keys[] = {
    { "server", offsetof(struct flowd_config, server) },
    { "host", offsetof(struct flowd_config, host) },
    { "backend", offsetof(struct flowd_config, backend) },
    { "levels", offsetof(struct flowd_config, levels) },
    { "token_file", offsetof(struct flowd_config, token_file) },
};

/* Read a pattern, or a list of them. */
static const char *read_patterns(struct cgroup_patterns *patterns, struct arena *arena,
                                 const struct json *value)
{
    size_t count = json_is_array(value) ? json_count(value) : 1;
    if (count > CGROUP_PATTERNS_MAX)
        return "too many patterns";
    for (size_t i = 0; i < count; i++) {
        const char *text =
            json_as_text(json_is_array(value) ? json_item(value, i) : value);
        if (!text || !mark_target_pattern_is_valid(text))
            return "want a path below /sys/fs/cgroup with one %j, or a list of them";
        patterns->list[i] = arena_text(arena, text);
    }
    patterns->count = (uint32_t)count;
    return NULL;
}

/* Read one member: what is wrong with it, or NULL. */
static const char *read_member(struct flowd_config *config, struct arena *arena,
                               const char *name, const struct json *value)
{
    if (strcmp(name, "cgroup") == 0)
        return config->patterns.count > 0
                   ? NULL
                   : read_patterns(&config->patterns, arena, value);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char **field = (const char **)((char *)config + keys[i].offset);
        if (strcmp(keys[i].name, name) != 0)
            continue;
        const char *text = json_as_text(value);
        if (!text || !*text)
            return "want a text";
        if (!*field)
            *field = arena_text(arena, text);
        return NULL;
    }
    return "there is no such key";
}

static int read_members(struct flowd_config *config, struct arena *arena,
                        const char *path, const struct json *json,
                        const struct json *lines, struct error *err)
{
    const char *name;
    const struct json *value;
    for (void *at = NULL; (at = json_member(json, at, &name, &value));) {
        const char *wrong = read_member(config, arena, name, value);
        double line = 0;
        json_as_number(json_get(lines, name), &line);
        if (wrong)
            return error_set(err, -EINVAL, "%.100s:%.0f: %.40s: %s", path, line, name,
                             wrong);
    }
    return 0;
}

int flowd_config_load(struct flowd_config *config, struct arena *arena,
                      const char *path, struct error *err)
{
    struct json *json = NULL, *lines = NULL;
    struct buf bytes;
    buf_init(&bytes, FILE_BYTES_MAX);
    int r = buf_read(&bytes, path, err);
    if (r == 0)
        r = yaml_read(bytes.bytes, bytes.count, path, &json, &lines, err);
    if (r == 0)
        r = read_members(config, arena, path, json, lines, err);
    json_free(json);
    json_free(lines);
    buf_release(&bytes);
    return r < 0 ? -EINVAL : 0;
}
