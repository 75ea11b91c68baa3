/* config.c - berthd.yaml. */
#include "daemon/config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/field.h"
#include "base/json.h"
#include "base/yaml.h"
#include "daemon/daemon.h"
#include "daemon/limit_settings.h"
#include "host/heartbeat.h"
#include "model/cluster.h"

#define FILE_BYTES_MAX (1 << 20)
#define KEEP_S_MAX (36500.0 * 86400)

#define AT(member) offsetof(struct daemon_setup, member)

/* By enum daemon_forecasts. */
static const char *const forecasts_words[] = { "true", "false", NULL };

static const struct field fields[] = {
    { "state", FIELD_TEXT, AT(state_dir) },
    { "socket", FIELD_TEXT, AT(socket) },
    { "listen", FIELD_TEXT, AT(listen) },
    { "tls_certificate", FIELD_TEXT, AT(tls_certificate) },
    { "tls_key", FIELD_TEXT, AT(tls_key) },
    { "fake_gpus", FIELD_TEXT, AT(fake_gpus) },
    { "policy", FIELD_TEXT, AT(policy) },
    { "flow", FIELD_TEXT, AT(flow) },
    { "executor", FIELD_TEXT, AT(executor) },
    { "slurm_driver", FIELD_TEXT, AT(slurm_driver) },
    { "slurm_bell", FIELD_TEXT, AT(slurm_bell) },
    { "slurm_heartbeat", FIELD_TEXT, AT(slurm_heartbeat) },
    { "fail_open_s", FIELD_OTHER },
    { "slurm_user", FIELD_TEXT, AT(slurm_user) },
    { "munge_socket", FIELD_TEXT, AT(munge_socket) },
    { "throughputs", FIELD_TEXT, AT(throughputs) },
    { "fence_s", FIELD_COUNT, AT(fence_s), .min = 1, .max = 86400 },
    { "system", FIELD_FLAG, AT(system) },
    { "user", FIELD_TEXT, AT(user) },
    { "root_jobs", FIELD_FLAG, AT(root_jobs) },
    { "min_uid", FIELD_COUNT, AT(min_uid), .min = 1, .max = 4294967294.0 },
    { "launcher", FIELD_TEXT, AT(launch_socket) },
    { "max_jobs", FIELD_COUNT, AT(job_max), .min = 1, .max = 1e6 },
    { "keep_reports", FIELD_TIME, AT(keep_reports_ns), .min = 1, .max = KEEP_S_MAX },
    { "keep_jobs", FIELD_TIME, AT(keep_jobs_ns), .min = 1, .max = KEEP_S_MAX },
    { "keep_days", FIELD_COUNT, AT(keep_days), .min = 1, .max = 36500 },
    { "forecasts", FIELD_CHOICE, AT(forecasts), .choices = forecasts_words },
    { "prices", FIELD_OTHER },
    { "speeds", FIELD_OTHER },
    { "limits", FIELD_OTHER },
    { "entities", FIELD_OTHER },
    { "sharing", FIELD_OTHER },
    { 0 },
};

/* Apart from the others: 0 is a value of its own. */
static const struct field fail_open_field = { "fail_open_s", FIELD_COUNT,
                                              AT(fail_open_s),
                                              .max = HEARTBEAT_LIMIT_MAX_S };

/* By enum daemon_sharing. */
static const char *const sharing_words[] = { "unless_system", "true", "false", NULL };

#define SHARING(member) offsetof(struct daemon_sharing_setup, member)

static const struct field sharing_fields[] = {
    { "allow", FIELD_CHOICE, SHARING(allow), .choices = sharing_words },
    { "across_users", FIELD_FLAG, SHARING(across_users) },
    { "reserve_gib", FIELD_NUMBER, SHARING(reserve_gib), .max = 1e4 },
    { "mps", FIELD_TEXT, SHARING(mps) },
    { "gpu_memory_gib", FIELD_OTHER },
    { 0 },
};

/* What is said of one type; a number above 0. */
static const struct field type_fields[] = {
    { "prices", FIELD_NUMBER, offsetof(struct daemon_type, usd_per_hour), .min = 1e-9,
      .max = 1e6 },
    { "speeds", FIELD_NUMBER, offsetof(struct daemon_type, speed), .min = 1e-9,
      .max = 1e6 },
    { "gpu_memory_gib", FIELD_NUMBER, offsetof(struct daemon_type, gpu_gib),
      .min = 1e-9, .max = 1e5 },
};

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

/* A number for each of some types, at 'path'. */
static int read_types(struct daemon_setup *setup, struct arena *arena,
                      const struct yaml_file *file, const struct json *in,
                      const char *path, const struct field *field, struct error *err)
{
    const struct json *value = json_get(in, field->name);
    const char *name;
    const struct json *item;
    if (value && !json_is_object(value))
        return yaml_wrong(file, path, err, "%s: want {TYPE: NUMBER, …}", field->name);
    for (void *at = NULL; value && (at = json_member(value, at, &name, &item));) {
        struct daemon_type *type = type_named(setup, arena, name);
        if (!type)
            return yaml_wrong(file, path, err, "%s: too many types", field->name);
        const char *text = json_as_text(item);
        if (!text || field_read(field, type, text, "", NULL, NULL) < 0)
            return yaml_wrong(file, path, err,
                              "%s: want a number above 0 for each type", field->name);
    }
    return 0;
}

static int read_sharing(struct daemon_setup *setup, struct arena *arena,
                        const struct yaml_file *file, struct error *err)
{
    const struct json *json = json_get(file->json, "sharing");
    int r = 0;
    if (json)
        r = yaml_set(file, "sharing", json, sharing_fields, &setup->sharing,
                     /* fill= */ false, arena, err);
    if (r == 0 && setup->sharing.mps && setup->sharing.mps[0] != '/')
        r = yaml_wrong(file, "sharing.mps", err, "mps is \"%.60s\", want a whole path",
                       setup->sharing.mps);
    if (r == 0 && json)
        r = read_types(setup, arena, file, json, "sharing.gpu_memory_gib",
                       &type_fields[2], err);
    return r;
}

/* The heartbeat that a Slurm cluster sees. */
static int read_fail_open(struct daemon_setup *setup, const struct yaml_file *file,
                          struct error *err)
{
    const struct json *json = json_get(file->json, "fail_open_s");
    const char *text = json ? json_as_text(json) : NULL;
    const char *path = setup->slurm_heartbeat;
    if (path && path[0] != '/')
        return yaml_wrong(file, "slurm_heartbeat", err,
                          "slurm_heartbeat is \"%.60s\", want a whole path", path);
    if (!json)
        return 0;
    if (!text || field_read(&fail_open_field, setup, text, "", NULL, NULL) < 0 ||
        (setup->fail_open_s > 0 && setup->fail_open_s < HEARTBEAT_LIMIT_MIN_S))
        return yaml_wrong(file, "fail_open_s", err,
                          "fail_open_s is \"%.20s\", want seconds from %d to %d, or 0 "
                          "for never",
                          text ? text : "", HEARTBEAT_LIMIT_MIN_S,
                          HEARTBEAT_LIMIT_MAX_S);
    return 0;
}

/* Limits as they are read. */
struct config_limits {
    struct daemon_setup *setup;
    struct arena *arena;
    uint32_t room;
};

static void count_limit(void *context, const struct limit_setting *setting)
{
    (void)setting;
    ((struct config_limits *)context)->room++;
}

static void add_limit(void *context, const struct limit_setting *setting)
{
    struct config_limits *limits = context;
    struct limit_setting *kept = &limits->setup->limits[limits->setup->limit_count++];
    *kept = *setting;
    if (setting->name)
        kept->name = arena_text(limits->arena, setting->name);
}

/* What users, groups and everybody else may have. */
static int read_limits(struct daemon_setup *setup, struct arena *arena,
                       const struct yaml_file *file, struct error *err)
{
    struct config_limits limits = { .setup = setup, .arena = arena };
    const struct json *json = json_get(file->json, "limits");
    char where[LIMIT_PATH_MAX], path[LIMIT_PATH_MAX + 8];
    struct error inner;
    if (!json)
        return 0;
    if (limit_read_settings(json, count_limit, &limits, where, &inner) < 0) {
        snprintf(path, sizeof path, "limits%s%s", *where ? "." : "", where);
        return yaml_wrong(file, path, err, "limits.%s", inner.text);
    }
    setup->limits = arena_array(arena, struct limit_setting, limits.room + 1);
    return limit_read_settings(json, add_limit, &limits, NULL, err);
}

/* Weights of groups and users, written as in a cluster file. */
static int read_entities(struct daemon_setup *setup, struct arena *arena,
                         const struct yaml_file *file, struct error *err)
{
    struct cluster named = { 0 };
    int r = cluster_read_entities(&named, arena, file, err);
    setup->groups = named.entities;
    setup->group_count = named.entity_count;
    setup->users = named.users;
    setup->user_count = named.user_count;
    return r;
}

int config_load(struct daemon_setup *setup, struct arena *arena, const char *path,
                struct error *err)
{
    struct yaml_file file;
    int r = yaml_load(&file, path, FILE_BYTES_MAX, err);
    if (r == 0)
        r = yaml_set(&file, "", file.json, fields, setup, /* fill= */ true, arena, err);
    for (int i = 0; i < 2 && r == 0; i++)
        r = read_types(setup, arena, &file, file.json, type_fields[i].name,
                       &type_fields[i], err);
    if (r == 0)
        r = read_sharing(setup, arena, &file, err);
    if (r == 0)
        r = read_fail_open(setup, &file, err);
    if (r == 0)
        r = read_limits(setup, arena, &file, err);
    if (r == 0)
        r = read_entities(setup, arena, &file, err);
    yaml_release(&file);
    return r < 0 ? -EINVAL : 0;
}
