/* request_builder.c - a job's flags as a table; arrays and grids; the request to send. */
#include "cmd/berth/request_builder.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/request.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "cmd/berth/flag_values.h"
#include "host/pattern.h"

#define STANDARD_UMASK 022 /* what a job has unless told otherwise */
#define TEXT_MAX (1u << 20)

/* A flag: how its value is read, and the field it goes to. */
struct flag_setter {
    const char *flag;
    int (*set)(struct request_builder *builder, const char *key, const char *value,
               struct error *err);
    const char *key;
};

static int set_text(struct request_builder *builder, const char *key, const char *value,
                    struct error *err)
{
    if (!*value)
        return error_set(err, -EINVAL, "is empty");
    if (!json_can_say(value))
        return error_set(err, -EINVAL, "is not UTF-8");
    json_put_text(builder->fields, key, value);
    return 0;
}

static int set_count(struct request_builder *builder, const char *key,
                     const char *value, struct error *err)
{
    uint64_t count;
    if (!flag_value_count(value, INT32_MAX, &count))
        return error_set(err, -EINVAL, "is \"%.60s\", want a whole number", value);
    json_put_count(builder->fields, key, (int64_t)count);
    return 0;
}

static int set_number(struct request_builder *builder, const char *key,
                      const char *value, struct error *err)
{
    double number;
    if (!units_number(value, &number) || number < 0)
        return error_set(err, -EINVAL, "is \"%.60s\", want a number", value);
    json_put_number(builder->fields, key, number);
    return 0;
}

static int set_time(struct request_builder *builder, const char *key, const char *value,
                    struct error *err)
{
    int64_t ns;
    if (!units_time(value, &ns))
        return error_set(err, -EINVAL, "is \"%.60s\", want a time like 90s, 10m or 2h",
                         value);
    json_put_number(builder->fields, key, (double)ns * 1e-9);
    return 0;
}

static int set_limit(struct request_builder *builder, const char *key,
                     const char *value, struct error *err)
{
    double seconds;
    int r = flag_value_limit(value, &seconds, err);
    if (r == 0)
        json_put_number(builder->fields, key, seconds);
    return r;
}

static int set_moment(struct request_builder *builder, const char *key,
                      const char *value, struct error *err)
{
    double seconds;
    int r = flag_value_time(value, time(NULL), &seconds, err);
    if (r == 0)
        json_put_number(builder->fields, key, seconds);
    return r;
}

static int set_true(struct request_builder *builder, const char *key, const char *value,
                    struct error *err)
{
    json_put_flag(builder->fields, key, true);
    return 0;
}

static int set_false(struct request_builder *builder, const char *key,
                     const char *value, struct error *err)
{
    json_put_flag(builder->fields, key, false);
    return 0;
}

/* "2", or "2-2" as sbatch writes it. */
static int set_nodes(struct request_builder *builder, const char *key,
                     const char *value, struct error *err)
{
    char first[16];
    size_t length = strcspn(value, "-");
    snprintf(first, sizeof first, "%.*s", (int)length, value);
    if (value[length] == '-' && strcmp(first, value + length + 1) != 0)
        return error_set(err, -EINVAL, "is \"%.60s\", want one number of nodes", value);
    return set_count(builder, key, first, err);
}

static int set_gpus_as(struct request_builder *builder, const char *value, bool gres,
                       bool per_node, struct error *err)
{
    int r = flag_value_gpus(builder->arena, value, gres, &builder->gpus, &builder->type,
                            err);
    builder->gpus_given = true;
    builder->gpus_per_node = per_node;
    return r;
}

static int set_gpus(struct request_builder *builder, const char *key, const char *value,
                    struct error *err)
{
    return set_gpus_as(builder, value, false, false, err);
}

static int set_gpus_per_node(struct request_builder *builder, const char *key,
                             const char *value, struct error *err)
{
    return set_gpus_as(builder, value, false, true, err);
}

static int set_gres(struct request_builder *builder, const char *key, const char *value,
                    struct error *err)
{
    return set_gpus_as(builder, value, true, true, err);
}

static int set_own_count(uint32_t *ret_count, const char *value, struct error *err)
{
    uint64_t count;
    if (!flag_value_count(value, 1000000, &count) || count == 0)
        return error_set(err, -EINVAL, "is \"%.60s\", want a whole number above 0",
                         value);
    *ret_count = (uint32_t)count;
    return 0;
}

static int set_ntasks(struct request_builder *builder, const char *key,
                      const char *value, struct error *err)
{
    return set_own_count(&builder->ntasks, value, err);
}

static int set_cpus(struct request_builder *builder, const char *key, const char *value,
                    struct error *err)
{
    return set_own_count(&builder->cpus_per_task, value, err);
}

/* The first letter of 'key' is what the memory is for: node, cpu or gpu. */
static int set_memory(struct request_builder *builder, const char *key,
                      const char *value, struct error *err)
{
    builder->mem_per = key[0];
    return flag_value_memory(value, &builder->mem_bytes, err);
}

static int set_bytes(struct request_builder *builder, const char *key,
                     const char *value, struct error *err)
{
    uint64_t bytes;
    int r = flag_value_memory(value, &bytes, err);
    if (r == 0)
        json_put_count(builder->fields, key, (int64_t)bytes);
    return r;
}

static int set_export(struct request_builder *builder, const char *key,
                      const char *value, struct error *err)
{
    builder->exports = value;
    return 0;
}

static int set_wrap(struct request_builder *builder, const char *key, const char *value,
                    struct error *err)
{
    if (!*value)
        return error_set(err, -EINVAL, "is empty");
    if (!json_can_say(value))
        return error_set(err, -EINVAL, "is not UTF-8");
    builder->wrap = value;
    return 0;
}

static int set_array(struct request_builder *builder, const char *key,
                     const char *value, struct error *err)
{
    return flag_value_array(builder->arena, value, &builder->array, err);
}

static int set_param(struct request_builder *builder, const char *key,
                     const char *value, struct error *err)
{
    struct flag_value_param param;
    int r = flag_value_param(builder->arena, value, &param, err);
    if (r < 0)
        return r;
    if (!json_can_say(value))
        return error_set(err, -EINVAL, "is not UTF-8");
    for (uint32_t i = 0; i < builder->param_count; i++)
        if (strcmp(builder->params[i].name, param.name) == 0) {
            builder->params[i] = param; /* given again: the later one counts */
            return 0;
        }
    if (builder->param_count == REQUEST_BUILDER_PARAMS_MAX)
        return error_set(err, -EINVAL, "more than %d names",
                         REQUEST_BUILDER_PARAMS_MAX);
    builder->params[builder->param_count++] = param;
    return 0;
}

static int set_signal(struct request_builder *builder, const char *key,
                      const char *value, struct error *err)
{
    struct flag_value_signal asked;
    int r = flag_value_signal(value, &asked, err);
    if (r < 0)
        return r;
    json_put_text(builder->fields, key, asked.name);
    json_remove(builder->fields, "warn_s");
    if (asked.warns)
        json_put_number(builder->fields, "warn_s", asked.warn_s);
    return 0;
}

static int set_pattern(struct request_builder *builder, const char *key,
                       const char *value, struct error *err)
{
    int r = pattern_check(value, err);
    return r < 0 ? r : set_text(builder, key, value, err);
}

static int set_chdir(struct request_builder *builder, const char *key,
                     const char *value, struct error *err)
{
    char path[PATH_MAX];
    if (!realpath(value, path))
        return error_set(err, -EINVAL, "%.100s: %s", value, strerror(errno));
    return set_text(builder, key, path, err);
}

/* "afterok:1:2,afterany:3", "singleton"; "5" means afterany:5. */
static int set_dependency(struct request_builder *builder, const char *key,
                          const char *value, struct error *err)
{
    struct json *list = json_new_array();
    char *save, *save_id, *copy = arena_text(builder->arena, value);
    int r = *value ? 0 : -EINVAL;
    for (char *part = strtok_r(copy, ",", &save); part && r == 0;
         part = strtok_r(NULL, ",", &save)) {
        char *ids = strchr(part, ':');
        uint64_t id;
        bool bare = flag_value_count(part, INT64_MAX, &id);
        if (ids)
            *ids++ = '\0';
        if (!ids && !bare && strcmp(part, "singleton") != 0)
            r = -EINVAL;
        if (!ids && r == 0) {
            struct json *item = json_new_object();
            json_put_text(item, "kind", bare ? "afterany" : part);
            if (bare)
                json_put_count(item, "id", (int64_t)id);
            json_add(list, item);
        }
        for (char *one = ids ? strtok_r(ids, ":", &save_id) : NULL; one && r == 0;
             one = strtok_r(NULL, ":", &save_id)) {
            struct json *item = json_new_object();
            json_put_text(item, "kind", part);
            if (flag_value_count(one, INT64_MAX, &id))
                json_put_count(item, "id", (int64_t)id);
            else
                r = -EINVAL;
            json_add(list, item);
        }
    }
    if (r < 0) {
        json_free(list);
        return error_set(err, -EINVAL,
                         "is \"%.60s\", want afterok:ID[:ID…], afterany:ID, after:ID, "
                         "afternotok:ID or singleton",
                         value);
    }
    json_put(builder->fields, key, list);
    return 0;
}

static const struct flag_setter setters[] = {
    { "job-name", set_text, "name" },
    { "gpus", set_gpus },
    { "gpus-per-node", set_gpus_per_node },
    { "gres", set_gres },
    { "constraint", set_text, "types" },
    { "min-gpus", set_count, "min_gpus" },
    { "max-gpus", set_count, "max_gpus" },
    { "nodes", set_nodes, "nodes" },
    { "ntasks", set_ntasks },
    { "ntasks-per-node", set_count, "tasks_per_node" },
    { "cpus-per-task", set_cpus },
    { "mem", set_memory, "node" },
    { "mem-per-cpu", set_memory, "cpu" },
    { "mem-per-gpu", set_memory, "gpu" },
    { "shared", set_true, "shared" },
    { "gpu-memory", set_bytes, "gpu_memory_bytes" },
    { "time", set_limit, "time_limit_s" },
    { "array", set_array },
    { "param", set_param },
    { "dependency", set_dependency, "dependency" },
    { "begin", set_moment, "begin" },
    { "deadline", set_moment, "deadline" },
    { "hold", set_true, "hold" },
    { "chdir", set_chdir, "cwd" },
    { "output", set_text, "output" },
    { "error", set_text, "error" },
    { "export", set_export },
    { "wrap", set_wrap },
    { "signal", set_signal, "signal" },
    { "requeue", set_true, "requeue" },
    { "no-requeue", set_false, "requeue" },
    { "retries", set_count, "retries" },
    { "class", set_text, "class" },
    { "grace", set_time, "grace_s" },
    { "cost-pause", set_time, "pause_s" },
    { "cost-load", set_time, "load_s" },
    { "ckpt-every", set_time, "ckpt_s" },
    { "ckpt-dir", set_text, "ckpt_dir" },
    { "steps", set_number, "steps" },
    { "pattern", set_pattern, "pattern" },
    { "kind", set_text, "kind" },
    { "step-time", set_time, "step_time_s" },
    { "weight", set_number, "weight" },
    { "entity", set_text, "entity" },
    { "slurm-names", set_true, "slurm_names" },
};

void request_builder_init(struct request_builder *builder, struct arena *arena)
{
    *builder = (struct request_builder){ .arena = arena, .fields = json_new_object() };
}

void request_builder_release(struct request_builder *builder)
{
    json_free(builder->fields);
    json_free(builder->lines);
}

int request_builder_set(struct request_builder *builder, const char *flag,
                        const char *value, struct error *err)
{
    for (size_t i = 0; i < sizeof setters / sizeof *setters; i++) {
        if (strcmp(setters[i].flag, flag) != 0)
            continue;
        struct error inner;
        int r = setters[i].set(builder, setters[i].key, value, &inner);
        return r == 0 ? 0 : error_set(err, r, "--%s: %s", flag, inner.text);
    }
    return 0;
}

static int64_t field_count(const struct request_builder *builder, const char *key,
                           int64_t fallback)
{
    int64_t count;
    return json_as_count(json_get(builder->fields, key), &count) ? count : fallback;
}

/* Fields that depend on several flags. */
static int put_sizes(struct request_builder *builder, struct error *err)
{
    struct json *fields = builder->fields;
    int64_t nodes = field_count(builder, "nodes", 1);
    int64_t per_node = field_count(builder, "tasks_per_node", 0);
    if (builder->gpus_given)
        json_put_count(fields, "gpus",
                       (int64_t)builder->gpus * (builder->gpus_per_node ? nodes : 1));
    if (builder->gpus_given && builder->type)
        json_put_text(fields, "types", builder->type);
    if (builder->ntasks || builder->cpus_per_task) {
        int64_t tasks = builder->ntasks ? builder->ntasks
                        : per_node      ? per_node * nodes
                                        : 1;
        json_put_number(fields, "cpus",
                        (double)tasks *
                            (builder->cpus_per_task ? builder->cpus_per_task : 1));
    }
    if (builder->mem_bytes) {
        double cpus = 1;
        json_as_number(json_get(fields, "cpus"), &cpus);
        double times = builder->mem_per == 'n' ? (double)nodes
                       : builder->mem_per == 'c'
                           ? cpus
                           : (double)field_count(builder, "gpus", 0);
        double bytes = (double)builder->mem_bytes * times;
        if (bytes > 0x1p50)
            return error_set(err, -EINVAL, "--mem: is more than a petabyte");
        json_put_count(fields, "mem_bytes", (int64_t)bytes);
    }
    return 0;
}

/* For the files of a job that runs as its user but under another's service. */
static void put_umask(struct request_builder *builder)
{
    mode_t mask = umask(0);
    umask(mask);
    if (mask != STANDARD_UMASK)
        json_put_count(builder->fields, "umask", mask);
}

static int put_working_folder(struct request_builder *builder, struct error *err)
{
    char path[PATH_MAX];
    put_umask(builder);
    if (json_get(builder->fields, "cwd"))
        return 0;
    if (!getcwd(path, sizeof path))
        return error_set(err, -errno, "the present folder: %s", strerror(errno));
    if (!json_can_say(path))
        return error_set(err, -EINVAL, "the present folder's name is not UTF-8");
    json_put_text(builder->fields, "cwd", path);
    return 0;
}

/* ---- arrays and grids ---- */

/* One job of an array or grid: its index, and the value of each parameter. */
struct grid_point {
    const struct request_builder *builder;
    bool in_array;
    uint32_t index;
    uint32_t values[REQUEST_BUILDER_PARAMS_MAX];
    bool too_long; /* a text with its values is */
};

static const char *param_value(const struct grid_point *point, uint32_t param)
{
    return point->builder->params[param].values[point->values[param]];
}

/* The value for "{name…", or NULL; and the length of the name with its braces. */
static const char *find_replacement(const struct grid_point *point, const char *text,
                                    char number[16], size_t *ret_length)
{
    const char *end = strchr(text, '}');
    if (!end)
        return NULL;
    size_t length = (size_t)(end - text - 1);
    *ret_length = length + 2;
    for (uint32_t i = 0; i < point->builder->param_count; i++) {
        const char *name = point->builder->params[i].name;
        if (strlen(name) == length && strncmp(name, text + 1, length) == 0)
            return param_value(point, i);
    }
    if (!point->in_array || length != 5 || strncmp(text + 1, "index", 5) != 0)
        return NULL;
    snprintf(number, 16, "%u", point->index);
    return number;
}

static void fill_in(struct grid_point *point, const char *text, struct buf *out)
{
    buf_reset(out);
    buf_text(out, ""); /* not NULL, even if nothing follows */
    while (*text) {
        char number[16];
        size_t length;
        const char *value =
            *text == '{' ? find_replacement(point, text, number, &length) : NULL;
        if (value)
            buf_text(out, value);
        else
            buf_add(out, text, length = 1);
        text += length;
    }
    point->too_long |= out->full;
}

static void fill_in_field(struct grid_point *point, struct json *job, const char *key,
                          struct buf *scratch)
{
    const char *text = json_as_text(json_get(job, key));
    if (!text || !strchr(text, '{'))
        return;
    fill_in(point, text, scratch);
    json_put_text(job, key, scratch->bytes);
}

static void fill_in_command(struct grid_point *point, struct json *job,
                            struct buf *scratch)
{
    const struct json *words = json_get(job, "command");
    if (!words)
        return;
    struct json *filled = json_new_array();
    for (size_t i = 0; i < json_count(words); i++) {
        const char *word = json_as_text(json_item(words, i));
        fill_in(point, word ? word : "", scratch);
        json_add_text(filled, scratch->bytes);
    }
    json_put(job, "command", filled);
}

/* BERTH_PARAM_LR for "lr": letters and digits in capitals, the rest '_'. */
static void put_param_variables(const struct grid_point *point, struct json *job)
{
    struct json *env =
        json_get(job, "env") ? json_copy_of(json_get(job, "env")) : json_new_object();
    for (uint32_t i = 0; i < point->builder->param_count; i++) {
        char name[80] = "BERTH_PARAM_";
        size_t at = strlen(name);
        for (const char *c = point->builder->params[i].name; *c; c++)
            name[at++] =
                isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
        name[at] = '\0';
        json_put_text(env, name, param_value(point, i));
    }
    json_put(job, "env", env);
}

/* Name it as in "train.py lr=1e-3 seed=2", to tell jobs apart in the queue. */
static void put_job_name(struct grid_point *point, struct json *job,
                         struct buf *scratch)
{
    const char *name = json_as_text(json_get(job, "name"));
    if (name && strchr(name, '{')) {
        fill_in_field(point, job, "name", scratch);
        return;
    }
    buf_reset(scratch);
    buf_text(scratch, name ? name : "job");
    for (uint32_t i = 0; i < point->builder->param_count; i++)
        buf_print(scratch, " %s=%s", point->builder->params[i].name,
                  param_value(point, i));
    if (scratch->count <= REQUEST_NAME_MAX)
        json_put_text(job, "name", scratch->bytes);
}

static struct json *make_job(struct grid_point *point, struct buf *scratch)
{
    struct json *job = json_copy_of(point->builder->fields);
    if (point->in_array)
        json_put_count(job, "array_index", point->index);
    if (point->builder->array.limit)
        json_put_count(job, "array_limit", point->builder->array.limit);
    fill_in_command(point, job, scratch);
    put_job_name(point, job, scratch);
    fill_in_field(point, job, "output", scratch);
    fill_in_field(point, job, "error", scratch);
    fill_in_field(point, job, "ckpt_dir", scratch);
    if (point->builder->param_count > 0)
        put_param_variables(point, job);
    return job;
}

/* Move to the next point of the grid; false after the last. */
static bool next_grid_point(struct grid_point *point)
{
    for (uint32_t i = point->builder->param_count; i-- > 0;) {
        if (++point->values[i] < point->builder->params[i].count)
            return true;
        point->values[i] = 0;
    }
    return false;
}

/*
 * The builder's fields as they are, or {"jobs": […]} with a job per index of the array and
 * point of the grid, the last parameter changing fastest.  Each job has BERTH_PARAM_NAME in
 * its environment.  In its command, its name and its paths {NAME} is replaced by the value,
 * and {index} by the array's index.
 */
static int expand_jobs(const struct request_builder *builder, struct json **ret_body,
                       struct error *err)
{
    const struct flag_value_array *array = &builder->array;
    uint64_t count = array->count ? array->count : 1;
    for (uint32_t i = 0; i < builder->param_count; i++) {
        count *= builder->params[i].count;
        if (count > FLAG_VALUE_JOBS_MAX)
            return error_set(err, -EINVAL, "makes more than %d jobs",
                             FLAG_VALUE_JOBS_MAX);
    }
    if (array->count == 0 && builder->param_count == 0) {
        *ret_body = json_copy_of(builder->fields);
        return 0;
    }
    struct buf scratch;
    buf_init(&scratch, TEXT_MAX);
    struct json *jobs = json_new_array();
    bool too_long = false;
    for (uint32_t a = 0; a < (array->count ? array->count : 1); a++) {
        struct grid_point point = { .builder = builder, .in_array = array->count > 0 };
        point.index = point.in_array ? array->indices[a] : 0;
        do
            json_add(jobs, make_job(&point, &scratch));
        while (next_grid_point(&point));
        too_long |= point.too_long;
    }
    buf_release(&scratch);
    struct json *body = json_new_object();
    json_put(body, "jobs", jobs);
    if (too_long) {
        json_free(body);
        return error_set(err, -EINVAL, "a command is longer than %u bytes", TEXT_MAX);
    }
    *ret_body = body;
    return 0;
}

/* ---- the body ---- */

/* Refuse what berthd would refuse, and name the line of the job file that is wrong. */
static int check_request(struct request_builder *builder, const struct json *request,
                         struct error *err)
{
    struct request read;
    struct error inner;
    int r = request_read(&read, builder->arena, request, &inner);
    if (r == 0)
        return 0;
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(inner.text, ":"), inner.text);
    int64_t line;
    if (json_as_count(json_get(builder->lines, key), &line))
        return error_set(err, r, "%s:%lld: %s", builder->file, (long long)line,
                         inner.text);
    return error_set(err, r, "%s", inner.text);
}

int request_builder_body(struct request_builder *builder, struct json **ret_body,
                         struct error *err)
{
    int r = put_sizes(builder, err);
    if (r == 0)
        r = put_working_folder(builder, err);
    if (r < 0)
        return r;
    struct json *body = NULL;
    r = expand_jobs(builder, &body, err);
    if (r < 0)
        return r;
    const struct json *jobs = json_get(body, "jobs");
    r = check_request(builder, jobs ? json_item(jobs, 0) : body, err);
    for (size_t i = 1; jobs && i < json_count(jobs) && r == 0; i++)
        if (builder->param_count > 0) /* otherwise they differ in their index only */
            r = check_request(builder, json_item(jobs, i), err);
    if (r < 0)
        json_free(body);
    else
        *ret_body = body;
    return r;
}
