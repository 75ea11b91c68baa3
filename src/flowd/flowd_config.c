/* flowd_config.c - flowd.yaml. */
#include "flowd/flowd_config.h"

#include <errno.h>
#include <stddef.h>

#include "base/field.h"
#include "base/json.h"
#include "base/yaml.h"

#define FILE_BYTES_MAX (64 << 10)

#define AT(member) offsetof(struct flowd_config, member)

static const struct field fields[] = {
    { "server", FIELD_TEXT, AT(server) },
    { "host", FIELD_TEXT, AT(host) },
    { "backend", FIELD_TEXT, AT(backend) },
    { "levels", FIELD_TEXT, AT(levels) },
    { "token_file", FIELD_TEXT, AT(token_file) },
    { "cgroup", FIELD_OTHER },
    { 0 },
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

int flowd_config_load(struct flowd_config *config, struct arena *arena,
                      const char *path, struct error *err)
{
    struct yaml_file file;
    int r = yaml_load(&file, path, FILE_BYTES_MAX, err);
    if (r == 0)
        r = yaml_set(&file, "", file.json, fields, config, /* fill= */ true, arena,
                     err);
    const struct json *cgroup = r == 0 ? json_get(file.json, "cgroup") : NULL;
    if (cgroup && config->patterns.count == 0) {
        const char *wrong = read_patterns(&config->patterns, arena, cgroup);
        if (wrong)
            r = yaml_wrong(&file, "cgroup", err, "cgroup: %s", wrong);
    }
    yaml_release(&file);
    return r < 0 ? -EINVAL : 0;
}
