/* config.c - flowd.yaml. */
#include "flowd/config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "api/yaml.h"
#include "base/error.h"
#include "base/json.h"

#define FILE_BYTES_MAX (64 << 10)

static const struct key {
    const char *name;
    size_t offset;
} keys[] = {
    { "socket", offsetof(struct flowd_config, socket) },
    { "host", offsetof(struct flowd_config, host) },
    { "backend", offsetof(struct flowd_config, backend) },
    { "levels", offsetof(struct flowd_config, levels) },
    { "token_file", offsetof(struct flowd_config, token_file) },
};

/* A pattern, or a list of them. */
static const char *take_patterns(struct patterns *patterns, struct arena *arena,
                                 const struct json *value)
{
    size_t count = json_is_array(value) ? json_count(value) : 1;
    if (count > PATTERNS_MAX)
        return "too many patterns";
    for (size_t i = 0; i < count; i++) {
        const char *text =
            json_as_text(json_is_array(value) ? json_item(value, i) : value);
        if (!text || !pattern_is_fit(text))
            return "want a path with one %j, or a list of them";
        patterns->list[i] = arena_text(arena, text);
    }
    patterns->count = (uint32_t)count;
    return NULL;
}

/* What is wrong with it, or NULL. */
static const char *take(struct flowd_config *config, struct arena *arena,
                        const char *name, const struct json *value)
{
    if (strcmp(name, "cgroup") == 0)
        return config->patterns.count > 0
                   ? NULL
                   : take_patterns(&config->patterns, arena, value);
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

static int apply(struct flowd_config *config, struct arena *arena, const char *path,
                 const struct json *json, const struct json *lines, struct error *err)
{
    const char *name;
    const struct json *value;
    for (void *at = NULL; (at = json_member(json, at, &name, &value));) {
        const char *wrong = take(config, arena, name, value);
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
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, -EINVAL, "%.200s: %s", path, strerror(errno));
    char *bytes = arena_alloc(arena, FILE_BYTES_MAX + 1, 1, 1);
    size_t count = fread(bytes, 1, FILE_BYTES_MAX + 1, file);
    bool failed = ferror(file);
    fclose(file);
    if (failed || count > FILE_BYTES_MAX)
        return error_set(err, -EINVAL, "%.200s: %s", path,
                         failed ? "cannot be read" : "more than 64 KiB");
    int r = yaml_read(bytes, count, path, &json, &lines, err);
    if (r == 0)
        r = apply(config, arena, path, json, lines, err);
    json_free(json);
    json_free(lines);
    return r < 0 ? -EINVAL : 0;
}
