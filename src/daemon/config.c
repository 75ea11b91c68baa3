/* config.c - berthd.yaml. */
#include "daemon/config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "api/yaml.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "daemon/daemon.h"

#define FILE_BYTES_MAX (1 << 20)

enum kind { TEXT, FLAG, COUNT, PRICES, SPEEDS };

static const struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    double min, max;
} keys[] = {
    { "state", TEXT, offsetof(struct daemon_setup, state_dir), 0, 0 },
    { "socket", TEXT, offsetof(struct daemon_setup, socket), 0, 0 },
    { "listen", TEXT, offsetof(struct daemon_setup, listen), 0, 0 },
    { "fake_gpus", TEXT, offsetof(struct daemon_setup, fake_gpus), 0, 0 },
    { "policy", TEXT, offsetof(struct daemon_setup, policy), 0, 0 },
    { "flow", TEXT, offsetof(struct daemon_setup, flow), 0, 0 },
    { "executor", TEXT, offsetof(struct daemon_setup, executor), 0, 0 },
    { "slurm_driver", TEXT, offsetof(struct daemon_setup, slurm_driver), 0, 0 },
    { "slurm_bell", TEXT, offsetof(struct daemon_setup, slurm_bell), 0, 0 },
    { "munge_socket", TEXT, offsetof(struct daemon_setup, munge_socket), 0, 0 },
    { "throughputs", TEXT, offsetof(struct daemon_setup, throughputs), 0, 0 },
    { "fence_s", COUNT, offsetof(struct daemon_setup, fence_s), 1, 86400 },
    { "system", FLAG, offsetof(struct daemon_setup, system), 0, 0 },
    { "max_jobs", COUNT, offsetof(struct daemon_setup, job_max), 1, 1e6 },
    { "keep_days", COUNT, offsetof(struct daemon_setup, keep_days), 1, 36500 },
    { "prices", PRICES, 0, 0, 1e6 },
    { "speeds", SPEEDS, 0, 0, 1e6 },
};

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

/* The type of that name, added if it is new; NULL: there are too many. */
static struct daemon_type *type_named(struct daemon_setup *setup, struct arena *arena,
                                      const char *name)
{
    for (uint32_t i = 0; i < setup->type_count; i++)
        if (strcmp(setup->types[i].name, name) == 0)
            return &setup->types[i];
    if (setup->type_count == TYPES_MAX)
        return NULL;
    struct daemon_type *type = &setup->types[setup->type_count++];
    *type = (struct daemon_type){ .name = arena_text(arena, name) };
    return type;
}

/* A number for each of some types. */
static const char *take_types(struct daemon_setup *setup, struct arena *arena,
                              const struct key *key, const struct json *value)
{
    const char *name;
    const struct json *item;
    double number;
    if (!json_is_object(value))
        return "want {TYPE: NUMBER, …}";
    for (void *at = NULL; (at = json_member(value, at, &name, &item));) {
        if (!json_as_number(item, &number) || !(number > key->min) || number > key->max)
            return "want a number above 0 for each type";
        struct daemon_type *type = type_named(setup, arena, name);
        if (!type)
            return "too many types";
        *(key->kind == PRICES ? &type->usd_per_hour : &type->speed) = number;
    }
    return NULL;
}

/* What is wrong with it, or NULL. */
static const char *take(struct daemon_setup *setup, struct arena *arena,
                        const struct key *key, const struct json *value)
{
    char *field = (char *)setup + key->offset;
    double number;
    bool flag;
    switch (key->kind) {
    case TEXT: {
        const char *text = json_as_text(value);
        if (!text || !*text)
            return "want a text";
        if (!*(const char **)field)
            *(const char **)field = arena_text(arena, text);
        return NULL;
    }
    case FLAG:
        if (!json_as_flag(value, &flag))
            return "want true or false";
        *(bool *)field = *(bool *)field || flag;
        return NULL;
    case PRICES:
    case SPEEDS:
        return take_types(setup, arena, key, value);
    default:
        if (!json_as_number(value, &number) || number < key->min || number > key->max ||
            number != (double)(uint32_t)number)
            return "want a whole number within its bounds";
        if (!*(uint32_t *)field)
            *(uint32_t *)field = (uint32_t)number;
        return NULL;
    }
}

static int apply(struct daemon_setup *setup, struct arena *arena, const char *path,
                 const struct json *json, const struct json *lines, struct error *err)
{
    const char *name;
    const struct json *value;
    for (void *at = NULL; (at = json_member(json, at, &name, &value));) {
        double line = 0;
        json_as_number(json_get(lines, name), &line);
        const struct key *key = find_key(name);
        const char *wrong =
            key ? take(setup, arena, key, value) : "there is no such key";
        if (wrong)
            return error_set(err, -EINVAL, "%s:%.0f: %.40s: %s", path, line, name,
                             wrong);
    }
    return 0;
}

/* Nothing but blanks and comments: then it says nothing. */
static bool is_blank(const char *bytes)
{
    for (; *bytes; bytes++) {
        bytes += strspn(bytes, " \t\r");
        if (*bytes == '#')
            bytes += strcspn(bytes, "\n");
        if (*bytes != '\n')
            return *bytes == '\0';
    }
    return true;
}

static int parse(struct daemon_setup *setup, struct arena *arena, const char *path,
                 const char *bytes, size_t count, struct error *err)
{
    struct json *json = NULL;
    struct json *lines = NULL;
    int r = yaml_read(bytes, count, path, &json, &lines, err);
    if (r == 0)
        r = apply(setup, arena, path, json, lines, err);
    json_free(json);
    json_free(lines);
    return r;
}

int config_load(struct daemon_setup *setup, struct arena *arena, const char *path,
                struct error *err)
{
    struct buf bytes;
    buf_init(&bytes, FILE_BYTES_MAX);
    int r = buf_read(&bytes, path, err);
    if (r == 0 && !is_blank(bytes.bytes))
        r = parse(setup, arena, path, bytes.bytes, bytes.count, err);
    buf_release(&bytes);
    return r < 0 ? -EINVAL : 0;
}
