/* desired.c - read the marks that berthd wants on this host from JSON. */
#include "flowd/desired.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "flowd/dscp.h"

#define PID_LAST (1 << 22) /* the kernel's limit */

void desired_init(struct desired_marks *desired)
{
    *desired = (struct desired_marks){ .levels = DSCP_LEVELS_MIN };
    arena_init(&desired->arena, 64 * 1024);
}

void desired_release(struct desired_marks *desired)
{
    arena_release(&desired->arena);
}

static void clear_jobs(struct desired_marks *desired)
{
    arena_reset(&desired->arena);
    desired->jobs = NULL;
    desired->count = 0;
}

static bool is_printable_text(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f || *text == '"' ||
            *text == '\'' || *text == '`')
            return false;
    return true;
}

bool desired_path_is_plain(const char *path)
{
    if (!*path || strlen(path) >= DESIRED_CGROUP_MAX || !is_printable_text(path))
        return false;
    for (const char *at = path;;) {
        size_t length = strcspn(at, "/");
        bool dots = at[0] == '.' && (length == 1 || (length == 2 && at[1] == '.'));
        if (length == 0 || dots)
            return false;
        if (!at[length])
            return true;
        at += length + 1;
    }
}

/* Read a whole number that may be absent; false: it is something else. */
static bool read_count(const struct json *object, const char *key, int64_t min,
                       int64_t max, int64_t *count)
{
    const struct json *value = json_get(object, key);
    return !value || (json_as_count(value, count) && *count >= min && *count <= max);
}

/* Read a name that may be absent. */
static bool read_name(const struct json *object, const char *key, char *name,
                      size_t size)
{
    const struct json *value = json_get(object, key);
    const char *text = value ? json_as_text(value) : "";
    if (!text || strlen(text) >= size || !is_printable_text(text))
        return false;
    snprintf(name, size, "%s", text);
    return true;
}

static const char *read_path(struct desired_marks *desired, struct desired_job *job,
                             const struct json *value)
{
    const char *path = json_as_text(value);
    if (!path || !desired_path_is_plain(path))
        return "cgroup: want a path below /sys/fs/cgroup without \"..\" and quotes";
    job->cgroup = arena_text(&desired->arena, path);
    return NULL;
}

/* Read a job: what is wrong with it, or NULL. */
static const char *read_job(struct desired_marks *desired, struct desired_job *job,
                            const struct json *json)
{
    int64_t id = 0, level = -1, attempt = 0, pid = 0;
    char executor[32];
    if (!json_is_object(json))
        return "want an object";
    if (!read_count(json, "id", 1, INT64_MAX, &id) || id == 0)
        return "id: want a number from 1";
    job->id = (uint64_t)id;
    if (!read_count(json, "level", 0, desired->levels - 1, &level) || level < 0)
        return "level: want a number from 0 and below levels";
    if (!read_count(json, "attempt", 0, UINT32_MAX, &attempt))
        return "attempt: want a number from 0";
    if (!read_count(json, "pid", 1, PID_LAST, &pid))
        return "pid: want the number of a process";
    if (!read_name(json, "executor", executor, sizeof executor))
        return "executor: want a name";
    job->level = (uint32_t)level;
    job->attempt = (uint32_t)attempt;
    job->pid = (int)pid;
    job->slurm = strcmp(executor, "slurm") == 0;
    const struct json *path = json_get(json, "cgroup");
    return path ? read_path(desired, job, path) : NULL;
}

static int compare_ids(const void *a, const void *b)
{
    const struct desired_job *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int read_jobs(struct desired_marks *desired, const struct json *list,
                     struct error *err)
{
    if (!json_is_array(list))
        return error_set(err, -EINVAL, "jobs: want a list");
    size_t count = json_count(list);
    if (count > DESIRED_JOBS_MAX)
        return error_set(err, -EINVAL, "jobs: %zu of them; at most %d", count,
                         DESIRED_JOBS_MAX);
    desired->jobs = arena_array(&desired->arena, struct desired_job, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct desired_job *job = &desired->jobs[i];
        const char *wrong = read_job(desired, job, json_item(list, i));
        if (wrong && job->id)
            return error_set(err, -EINVAL, "job %" PRIu64 ": %s", job->id, wrong);
        if (wrong)
            return error_set(err, -EINVAL, "jobs[%zu]: %s", i, wrong);
    }
    qsort(desired->jobs, count, sizeof *desired->jobs, compare_ids);
    for (size_t i = 1; i < count; i++)
        if (desired->jobs[i].id == desired->jobs[i - 1].id)
            return error_set(err, -EINVAL, "job %" PRIu64 " is there twice",
                             desired->jobs[i].id);
    desired->count = (uint32_t)count;
    return 0;
}

static int read_all(struct desired_marks *desired, const struct json *json,
                    struct error *err)
{
    int64_t levels = 0;
    double valid_s = 0;
    if (!json_is_object(json))
        return error_set(err, -EINVAL, "want an object");
    if (!read_count(json, "levels", DSCP_LEVELS_MIN, DSCP_LEVELS_MAX, &levels) ||
        levels == 0)
        return error_set(err, -EINVAL, "levels: want %d to %d", DSCP_LEVELS_MIN,
                         DSCP_LEVELS_MAX);
    if (!json_as_number(json_get(json, "valid_s"), &valid_s) || !(valid_s >= 1) ||
        valid_s > DESIRED_VALID_MAX_S)
        return error_set(err, -EINVAL, "valid_s: want 1 to %d seconds",
                         DESIRED_VALID_MAX_S);
    if (!read_name(json, "flow", desired->flow, sizeof desired->flow) ||
        !read_name(json, "host", desired->host, sizeof desired->host))
        return error_set(err, -EINVAL, "flow, host: want names");
    desired->levels = (uint32_t)levels;
    desired->valid_ns = units_ns(valid_s);
    return read_jobs(desired, json_get(json, "jobs"), err);
}

int desired_parse(struct desired_marks *desired, const char *text, size_t count,
                  struct error *err)
{
    struct json *json = NULL;
    clear_jobs(desired);
    int r = json_parse(text, count, &json, err);
    if (r == 0)
        r = read_all(desired, json, err);
    json_free(json);
    if (r < 0)
        clear_jobs(desired);
    return r < 0 ? -EINVAL : 0;
}
