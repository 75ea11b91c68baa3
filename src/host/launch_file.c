/* launch_file.c - the order that a supervisor is given, as records. */
#include "host/launch_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/field.h"
#include "base/memory.h"

#define ROW(name, type, member) \
    { \
        name, type, offsetof(struct launch_order, member) \
    }

/* One record each; lists are written apart. */
static const struct field fields[] = {
    ROW("id", FIELD_ID, launch.id),
    ROW("name", FIELD_TEXT, launch.name),
    ROW("script", FIELD_TEXT, launch.script),
    ROW("cwd", FIELD_TEXT, launch.cwd),
    ROW("out", FIELD_TEXT, launch.out),
    ROW("err", FIELD_TEXT, launch.err),
    ROW("ckpt_dir", FIELD_TEXT, launch.ckpt_dir),
    ROW("pattern", FIELD_TEXT, launch.pattern),
    ROW("signal", FIELD_INT, launch.signal),
    ROW("limit_ns", FIELD_TIME, launch.limit_ns),
    ROW("limit_warns", FIELD_FLAG, launch.limit_warns),
    ROW("warn_ns", FIELD_TIME, launch.warn_ns),
    ROW("slurm_names", FIELD_FLAG, launch.slurm_names),
    ROW("tasks_per_node", FIELD_COUNT, launch.tasks_per_node),
    ROW("array_id", FIELD_ID, launch.array_id),
    ROW("array_index", FIELD_COUNT, launch.array_index),
    ROW("has_steps", FIELD_FLAG, launch.has_steps),
    ROW("uid", FIELD_COUNT, launch.uid),
    ROW("gid", FIELD_COUNT, launch.gid),
    ROW("te", FIELD_FLAG, launch.te),
    ROW("attempt", FIELD_COUNT, attempt),
    ROW("own_out", FIELD_FLAG, own_out),
    ROW("become", FIELD_FLAG, become),
    ROW("gpus", FIELD_TEXT, gpus),
    ROW("type", FIELD_TEXT, type),
    ROW("cgroup", FIELD_TEXT, cgroup),
    ROW("gpu_count", FIELD_COUNT, gpu_count),
    ROW("cpu_milli", FIELD_COUNT, cpu_milli),
    ROW("mem_mib", FIELD_COUNT, mem_mib),
    ROW("steps_kept", FIELD_NUMBER, steps_kept),
    ROW("grace_ns", FIELD_TIME, grace_ns),
    ROW("dscp", FIELD_INT, dscp),
};
#define FIELD_TOTAL (sizeof fields / sizeof fields[0])

/* --- writing ----------------------------------------------------------------------- */

static void add_text(struct buf *buf, const char *key, const char *value)
{
    buf_text(buf, key);
    buf_text(buf, "=");
    buf_text(buf, value);
    buf_add(buf, "", 1);
}

static void add_field(struct buf *buf, const struct field *field,
                      const struct launch_order *order)
{
    const void *at = (const char *)order + field->offset;
    if (field->type == FIELD_TEXT) {
        if (*(const char *const *)at)
            add_text(buf, field->name, *(const char *const *)at);
        return;
    }
    if (field->type == FIELD_NUMBER)
        buf_print(buf, "%s=%.17g", field->name, *(const double *)at);
    else if (field->type == FIELD_ID)
        buf_print(buf, "%s=%" PRIu64, field->name, *(const uint64_t *)at);
    else
        buf_print(buf, "%s=%" PRId64, field->name, field_get_whole(field, order));
    buf_add(buf, "", 1);
}

void launch_file_write(const struct launch_order *order, struct buf *buf)
{
    for (size_t i = 0; i < FIELD_TOTAL; i++)
        add_field(buf, &fields[i], order);
    for (const char *const *arg = order->launch.argv; arg && *arg; arg++)
        add_text(buf, "arg", *arg);
    for (const char *const *env = order->launch.env; env && *env; env++)
        add_text(buf, "env", *env);
    for (uint32_t i = 0; i < order->group_count; i++) {
        buf_print(buf, "group=%" PRIu32, order->groups[i]);
        buf_add(buf, "", 1);
    }
    add_text(buf, "end", "");
}

/* --- reading ----------------------------------------------------------------------- */

static bool read_whole(const char *text, bool is_id, int64_t *ret)
{
    char *end;
    errno = 0;
    *ret = is_id ? (int64_t)strtoull(text, &end, 10) : strtoll(text, &end, 10);
    bool begins = (text[0] >= '0' && text[0] <= '9') || (text[0] == '-' && !is_id);
    return errno == 0 && begins && end != text && *end == '\0';
}

static bool set_field(const struct field *field, struct launch_order *order,
                      const char *value)
{
    void *at = (char *)order + field->offset;
    int64_t whole;
    char *end;
    if (field->type == FIELD_TEXT) {
        *(const char **)at = value;
        return true;
    }
    if (field->type == FIELD_NUMBER) {
        *(double *)at = strtod(value, &end);
        return end != value && *end == '\0';
    }
    return read_whole(value, field->type == FIELD_ID, &whole) &&
           field_set_whole(field, order, whole);
}

/* The arguments and the environment, each ended by NULL. */
struct launch_lists {
    const char **args, **envs;
    size_t arg_count, env_count;
};

static int read_record(struct launch_order *order, struct launch_lists *lists,
                       const char *key, const char *value, struct error *err)
{
    if (strcmp(key, "arg") == 0) {
        lists->args[lists->arg_count++] = value;
        return 0;
    }
    if (strcmp(key, "env") == 0) {
        lists->envs[lists->env_count++] = value;
        return 0;
    }
    if (strcmp(key, "group") == 0) {
        int64_t group;
        if (order->group_count == LAUNCH_GROUPS_MAX ||
            !read_whole(value, false, &group) || group < 0 || group > UINT32_MAX)
            return error_set(err, -EINVAL, "launch file: bad group '%.20s'", value);
        order->groups[order->group_count++] = (uint32_t)group;
        return 0;
    }
    for (size_t i = 0; i < FIELD_TOTAL; i++)
        if (strcmp(key, fields[i].name) == 0) {
            if (set_field(&fields[i], order, value))
                return 0;
            return error_set(err, -EINVAL, "launch file: %s is '%.40s'", key, value);
        }
    return 0; /* a key of a newer berthd */
}

static int check_order(const struct launch_order *order, struct error *err)
{
    const struct launch *launch = &order->launch;
    if (!launch->script && (!launch->argv || !launch->argv[0]))
        return error_set(err, -EINVAL, "launch file: no command");
    if (!launch->cwd || !launch->out || !launch->ckpt_dir || !order->gpus)
        return error_set(err, -EINVAL,
                         "launch file: cwd, out, ckpt_dir or gpus missing");
    if (order->dscp < -1 || order->dscp > 63)
        return error_set(err, -EINVAL, "launch file: dscp is %d", order->dscp);
    return 0;
}

int launch_file_read(struct launch_order *order, char *bytes, size_t count,
                     struct error *err)
{
    static const char last[] = "end=";
    *order = (struct launch_order){ .dscp = -1 };
    if (count < sizeof last ||
        memcmp(bytes + count - sizeof last, last, sizeof last) != 0)
        return error_set(err, -EINVAL, "launch file: cut short");

    size_t record_count = 0;
    for (size_t i = 0; i < count; i++)
        record_count += bytes[i] == '\0';
    struct launch_lists lists = { 0 };
    lists.args = memory_checked(calloc(2 * (record_count + 1), sizeof *lists.args));
    lists.envs = lists.args + record_count + 1;
    order->launch.argv = lists.args;
    order->launch.env = lists.envs;

    int r = 0;
    for (char *key = bytes; r == 0 && key < bytes + count;) {
        char *next = key + strlen(key) + 1;
        char *value = strchr(key, '=');
        if (!value) {
            r = error_set(err, -EINVAL, "launch file: '%.40s' has no value", key);
            break;
        }
        *value++ = '\0';
        r = read_record(order, &lists, key, value, err);
        key = next;
    }
    if (r == 0)
        r = check_order(order, err);
    if (r < 0)
        launch_file_release(order);
    return r;
}

void launch_file_release(struct launch_order *order)
{
    free((void *)order->launch.argv);
    order->launch.argv = NULL;
    order->launch.env = NULL;
}
