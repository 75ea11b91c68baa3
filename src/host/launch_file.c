/* launch_file.c - the order that a supervisor is given, as records. */
#include "host/launch_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"

/* One value by name and place; lists are apart. */
enum ord_kind { ORD_TEXT, ORD_U64, ORD_U32, ORD_I64, ORD_INT, ORD_BOOL, ORD_REAL };

struct ord_field {
    const char *key;
    enum ord_kind kind;
    size_t offset;
};

#define FIELD(name, kind, member) \
    { \
        name, kind, offsetof(struct order, member) \
    }

static const struct ord_field fields[] = {
    FIELD("id", ORD_U64, launch.id),
    FIELD("name", ORD_TEXT, launch.name),
    FIELD("script", ORD_TEXT, launch.script),
    FIELD("cwd", ORD_TEXT, launch.cwd),
    FIELD("out", ORD_TEXT, launch.out),
    FIELD("err", ORD_TEXT, launch.err),
    FIELD("ckpt_dir", ORD_TEXT, launch.ckpt_dir),
    FIELD("pattern", ORD_TEXT, launch.pattern),
    FIELD("signal", ORD_INT, launch.signal),
    FIELD("limit_ns", ORD_I64, launch.limit_ns),
    FIELD("limit_warns", ORD_BOOL, launch.limit_warns),
    FIELD("warn_ns", ORD_I64, launch.warn_ns),
    FIELD("slurm_names", ORD_BOOL, launch.slurm_names),
    FIELD("tasks_per_node", ORD_U32, launch.tasks_per_node),
    FIELD("array_id", ORD_U64, launch.array_id),
    FIELD("array_index", ORD_U32, launch.array_index),
    FIELD("has_steps", ORD_BOOL, launch.has_steps),
    FIELD("uid", ORD_U32, launch.uid),
    FIELD("gid", ORD_U32, launch.gid),
    FIELD("te", ORD_BOOL, launch.te),
    FIELD("attempt", ORD_U32, attempt),
    FIELD("own_out", ORD_BOOL, own_out),
    FIELD("become", ORD_BOOL, become),
    FIELD("gpus", ORD_TEXT, gpus),
    FIELD("type", ORD_TEXT, type),
    FIELD("cgroup", ORD_TEXT, cgroup),
    FIELD("gpu_count", ORD_U32, gpu_count),
    FIELD("cpu_milli", ORD_U32, cpu_milli),
    FIELD("mem_mib", ORD_U32, mem_mib),
    FIELD("steps_kept", ORD_REAL, steps_kept),
    FIELD("grace_ns", ORD_I64, grace_ns),
    FIELD("dscp", ORD_INT, dscp),
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

static void add_field(struct buf *buf, const struct ord_field *field, const void *at)
{
    switch (field->kind) {
    case ORD_TEXT:
        if (*(const char *const *)at)
            add_text(buf, field->key, *(const char *const *)at);
        return;
    case ORD_U64:
        buf_print(buf, "%s=%" PRIu64, field->key, *(const uint64_t *)at);
        break;
    case ORD_U32:
        buf_print(buf, "%s=%" PRIu32, field->key, *(const uint32_t *)at);
        break;
    case ORD_I64:
        buf_print(buf, "%s=%" PRId64, field->key, *(const int64_t *)at);
        break;
    case ORD_INT:
        buf_print(buf, "%s=%d", field->key, *(const int *)at);
        break;
    case ORD_BOOL:
        buf_print(buf, "%s=%d", field->key, *(const bool *)at);
        break;
    case ORD_REAL:
        buf_print(buf, "%s=%.17g", field->key, *(const double *)at);
        break;
    }
    buf_add(buf, "", 1);
}

void order_write(const struct order *order, struct buf *buf)
{
    for (size_t i = 0; i < FIELD_TOTAL; i++)
        add_field(buf, &fields[i], (const char *)order + fields[i].offset);
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

/* A whole number from 'low' to 'high'. */
static bool whole(const char *text, int64_t low, uint64_t high, uint64_t *ret)
{
    char *end;
    errno = 0;
    bool minus = text[0] == '-';
    if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
        return false;
    if (minus) {
        long long value = strtoll(text, &end, 10);
        *ret = (uint64_t)value;
        return errno == 0 && *end == '\0' && value >= low;
    }
    unsigned long long value = strtoull(text, &end, 10);
    *ret = value;
    return errno == 0 && *end == '\0' && value <= high;
}

static bool set_field(const struct ord_field *field, void *at, const char *value)
{
    uint64_t number = 0;
    char *end;
    switch (field->kind) {
    case ORD_TEXT:
        *(const char **)at = value;
        return true;
    case ORD_U64:
        if (!whole(value, 0, UINT64_MAX, &number))
            return false;
        *(uint64_t *)at = number;
        return true;
    case ORD_U32:
        if (!whole(value, 0, UINT32_MAX, &number))
            return false;
        *(uint32_t *)at = (uint32_t)number;
        return true;
    case ORD_I64:
        if (!whole(value, INT64_MIN, INT64_MAX, &number))
            return false;
        *(int64_t *)at = (int64_t)number;
        return true;
    case ORD_INT:
        if (!whole(value, INT32_MIN, INT32_MAX, &number))
            return false;
        *(int *)at = (int)(int64_t)number;
        return true;
    case ORD_BOOL:
        if (!whole(value, 0, 1, &number))
            return false;
        *(bool *)at = number == 1;
        return true;
    case ORD_REAL:
        *(double *)at = strtod(value, &end);
        return end != value && *end == '\0';
    }
    return false;
}

/* Places for the words of both lists, and a NULL at the end of each. */
struct lists {
    const char **args, **envs;
    size_t arg_count, env_count;
};

static int read_record(struct order *order, struct lists *lists, const char *key,
                       const char *value, struct error *err)
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
        uint64_t group;
        if (order->group_count == ORDER_GROUPS_MAX ||
            !whole(value, 0, UINT32_MAX, &group))
            return error_set(err, -EINVAL, "launch file: bad group '%.20s'", value);
        order->groups[order->group_count++] = (uint32_t)group;
        return 0;
    }
    for (size_t i = 0; i < FIELD_TOTAL; i++)
        if (strcmp(key, fields[i].key) == 0) {
            if (set_field(&fields[i], (char *)order + fields[i].offset, value))
                return 0;
            return error_set(err, -EINVAL, "launch file: %s is '%.40s'", key, value);
        }
    return 0; /* of a newer berthd */
}

static int check(const struct order *order, struct error *err)
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

int order_read(struct order *order, char *bytes, size_t count, struct error *err)
{
    static const char last[] = "end=";
    *order = (struct order){ .dscp = -1 };
    if (count < sizeof last ||
        memcmp(bytes + count - sizeof last, last, sizeof last) != 0)
        return error_set(err, -EINVAL, "launch file: cut short");

    size_t record_count = 0;
    for (size_t i = 0; i < count; i++)
        record_count += bytes[i] == '\0';
    struct lists lists = { 0 };
    lists.args = calloc(2 * (record_count + 1), sizeof *lists.args);
    if (!lists.args)
        abort();
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
        r = check(order, err);
    if (r < 0)
        order_release(order);
    return r;
}

void order_release(struct order *order)
{
    free((void *)order->launch.argv);
    order->launch.argv = NULL;
    order->launch.env = NULL;
}
