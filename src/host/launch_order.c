/* launch_order.c - the order that a supervisor is given: records in a sealed memfd. */
#include "host/launch_order.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    ROW("umask", FIELD_COUNT, launch.umask),
    ROW("attempt", FIELD_COUNT, attempt),
    ROW("gpus", FIELD_TEXT, gpus),
    ROW("uuids", FIELD_TEXT, uuids),
    ROW("type", FIELD_TEXT, type),
    ROW("cores", FIELD_TEXT, cores),
    ROW("mps", FIELD_TEXT, mps),
    ROW("gpu_mib", FIELD_COUNT, gpu_mib),
    ROW("gpu_count", FIELD_COUNT, gpu_count),
    ROW("cpu_milli", FIELD_COUNT, cpu_milli),
    ROW("mem_mib", FIELD_COUNT, mem_mib),
    ROW("steps_kept", FIELD_NUMBER, steps_kept),
    ROW("grace_ns", FIELD_TIME, grace_ns),
    ROW("dscp", FIELD_INT, dscp),
    ROW("cgroup", FIELD_TEXT, cgroups[0]),
    ROW("cgroup_memory", FIELD_TEXT, cgroups[1 + CGROUP_V1_MEMORY]),
    ROW("cgroup_pids", FIELD_TEXT, cgroups[1 + CGROUP_V1_PIDS]),
    ROW("cgroup_cpu", FIELD_TEXT, cgroups[1 + CGROUP_V1_CPU]),
    ROW("cgroup_devices", FIELD_TEXT, cgroups[1 + CGROUP_V1_DEVICES]),
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

void launch_order_write(const struct launch_order *order, struct buf *buf)
{
    for (size_t i = 0; i < FIELD_TOTAL; i++)
        add_field(buf, &fields[i], order);
    for (const char *const *arg = order->launch.argv; arg && *arg; arg++)
        add_text(buf, "arg", *arg);
    for (const char *const *env = order->launch.env; env && *env; env++)
        add_text(buf, "env", *env);
    for (uint32_t i = 0; i < order->denied_count; i++) {
        buf_print(buf, "denied=%" PRIu32 ":%" PRIu32, order->denied[i].major,
                  order->denied[i].minor);
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
    if (strcmp(key, "denied") == 0) {
        struct cgroup_device *device = &order->denied[order->denied_count];
        if (order->denied_count == LAUNCH_DENIED_MAX ||
            sscanf(value, "%" SCNu32 ":%" SCNu32, &device->major, &device->minor) != 2)
            return error_set(err, -EINVAL, "order: bad device '%.20s'", value);
        order->denied_count++;
        return 0;
    }
    for (size_t i = 0; i < FIELD_TOTAL; i++)
        if (strcmp(key, fields[i].name) == 0) {
            if (set_field(&fields[i], order, value))
                return 0;
            return error_set(err, -EINVAL, "order: %s is '%.40s'", key, value);
        }
    return 0; /* a key of a newer berthd */
}

static int check_order(const struct launch_order *order, struct error *err)
{
    const struct launch *launch = &order->launch;
    if (!launch->script && (!launch->argv || !launch->argv[0]))
        return error_set(err, -EINVAL, "order: no command");
    if (!launch->cwd || !order->gpus)
        return error_set(err, -EINVAL, "order: cwd or gpus missing");
    if (order->dscp < -1 || order->dscp > 63)
        return error_set(err, -EINVAL, "order: dscp is %d", order->dscp);
    return 0;
}

int launch_order_read(struct launch_order *order, char *bytes, size_t count,
                      struct error *err)
{
    static const char last[] = "end=";
    *order = (struct launch_order){ .dscp = -1 };
    if (count < sizeof last ||
        memcmp(bytes + count - sizeof last, last, sizeof last) != 0)
        return error_set(err, -EINVAL, "order: cut short");

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
            r = error_set(err, -EINVAL, "order: '%.40s' has no value", key);
            break;
        }
        *value++ = '\0';
        r = read_record(order, &lists, key, value, err);
        key = next;
    }
    if (r == 0)
        r = check_order(order, err);
    if (r < 0)
        launch_order_release(order);
    return r;
}

void launch_order_release(struct launch_order *order)
{
    free((void *)order->launch.argv);
    free(order->bytes);
    order->bytes = NULL;
    order->launch.argv = NULL;
    order->launch.env = NULL;
}

/* --- sealed memory -------------------------------------------------------------------- */

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

/* Never executable: some kernels are set to refuse all other memory (vm.memfd_noexec). */
int launch_order_memory(const char *name, unsigned flags)
{
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd; /* before 6.3 */
}

int launch_order_seal(const struct launch_order *order, struct error *err)
{
    struct buf buf;
    buf_init(&buf, LAUNCH_ORDER_MAX);
    launch_order_write(order, &buf);
    if (buf.full) {
        buf_release(&buf);
        return error_set(err, -E2BIG, "script and environment: too long");
    }
    int fd = launch_order_memory("berth-order", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool whole = fd >= 0 && write(fd, buf.bytes, buf.count) == (ssize_t)buf.count &&
                 fcntl(fd, F_ADD_SEALS, SEALS) == 0;
    int code = errno;
    buf_release(&buf);
    if (whole)
        return fd;
    if (fd >= 0)
        close(fd);
    return error_set(err, code ? -code : -EIO, "cannot write the order: %s",
                     strerror(code));
}

int launch_order_unseal(struct launch_order *order, int fd, struct error *err)
{
    struct stat stat;
    int seals = fcntl(fd, F_GET_SEALS); /* others may be there as well */
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &stat) < 0)
        return error_set(err, -EPERM, "order: not sealed");
    if (stat.st_size > LAUNCH_ORDER_MAX)
        return error_set(err, -EINVAL, "order: too long");
    size_t size = (size_t)stat.st_size;
    char *bytes = memory_checked(malloc(size + 1)); /* the order points into it */
    if (pread(fd, bytes, size, 0) != (ssize_t)size) {
        free(bytes);
        return error_set(err, -EIO, "order: cannot be read");
    }
    bytes[size] = '\0';
    int r = launch_order_read(order, bytes, size, err);
    if (r < 0)
        free(bytes);
    else
        order->bytes = bytes;
    return r;
}
