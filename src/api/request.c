/*
 * request.c - a job's request in JSON, by a table of fields.
 *
 * Lists, and rules about several fields, have functions of their own.
 */
#include "api/request.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/field.h"
#include "base/json.h"
#include "base/json_piece.h"
#include "base/memory.h"
#include "base/suggest.h"
#include "base/units.h"
#include "model/node_set.h"

#define SECONDS_MAX ((double)(TIME_MAX_NS / NS_PER_S))
#define LISTED_MAX 4096 /* bytes of a list of types, and of a pattern */

#define SPEC(member) offsetof(struct request, spec.member)
#define LAUNCH(member) offsetof(struct request, launch.member)
#define OWN(member) offsetof(struct request, member)

/* In the order in which they are written. */
static const struct field fields[] = {
    { "command", FIELD_OTHER, LAUNCH(argv) },
    { "script", FIELD_TEXT, LAUNCH(script), .max = REQUEST_SCRIPT_MAX },
    { "name", FIELD_WORD, SPEC(name), .max = REQUEST_NAME_MAX },
    { "cwd", FIELD_WORD, LAUNCH(cwd), .max = REQUEST_PATH_MAX },
    { "env", FIELD_OTHER, LAUNCH(env) },
    { "gpus", FIELD_COUNT, SPEC(gpus), .max = REQUEST_GPUS_MAX },
    { "types", FIELD_WORD, SPEC(types), .max = LISTED_MAX },
    { "min_gpus", FIELD_COUNT, SPEC(gpus_min), .min = 1, .max = REQUEST_GPUS_MAX },
    { "max_gpus", FIELD_COUNT, SPEC(gpus_max), .min = 1, .max = REQUEST_GPUS_MAX },
    { "nodes", FIELD_COUNT, SPEC(nodes), .min = 1, .max = REQUEST_GPUS_MAX },
    { "nodelist", FIELD_WORD, SPEC(nodelist), .max = NODE_WORDS_MAX },
    { "exclude", FIELD_WORD, SPEC(exclude), .max = NODE_WORDS_MAX },
    { "within", FIELD_WORD, SPEC(within), .max = NODE_WORDS_MAX },
    { "cpus", FIELD_CPUS, SPEC(cpu_milli), .max = 1e6 },
    { "mem_bytes", FIELD_MEMORY, SPEC(mem_mib), .max = 0x1p50 },
    { "shared", FIELD_FLAG, SPEC(shares) },
    { "gpu_memory_bytes", FIELD_MEMORY, SPEC(gpu_mib), .max = 0x1p50 },
    { "class", FIELD_CHOICE, SPEC(class), .choices = job_classes },
    { "grace_s", FIELD_TIME, SPEC(grace_ns), .max = 7 * 86400 },
    { "pause_s", FIELD_TIME, SPEC(pause_ns), .max = 7 * 86400 },
    { "load_s", FIELD_TIME, SPEC(load_ns), .max = 7 * 86400 },
    { "ckpt_s", FIELD_TIME, SPEC(ckpt_ns), .max = SECONDS_MAX },
    { "steps", FIELD_NUMBER, SPEC(steps), .max = 1e15 },
    { "time_limit_s", FIELD_TIME, LAUNCH(limit_ns), .max = SECONDS_MAX },
    { "warn_s", FIELD_TIME, LAUNCH(warn_ns), .max = SECONDS_MAX },
    { "signal", FIELD_OTHER, LAUNCH(signal) },
    { "signal_to", FIELD_WORD, LAUNCH(signal_to), .max = 16 },
    { "weight", FIELD_NUMBER, SPEC(weight), .min = 1e-6, .max = 1e6 },
    { "entity", FIELD_WORD, SPEC(entity), .max = REQUEST_NAME_MAX },
    { "deadline", FIELD_TIME, SPEC(deadline_ns), .max = SECONDS_MAX },
    { "kind", FIELD_WORD, SPEC(kind), .max = REQUEST_NAME_MAX },
    { "step_time_s", FIELD_NUMBER, SPEC(step_s), .min = 1e-9, .max = 1e9 },
    { "output", FIELD_WORD, LAUNCH(out), .max = REQUEST_PATH_MAX },
    { "error", FIELD_WORD, LAUNCH(err), .max = REQUEST_PATH_MAX },
    { "ckpt_dir", FIELD_WORD, LAUNCH(ckpt_dir), .max = REQUEST_PATH_MAX },
    { "progress_file", FIELD_WORD, LAUNCH(progress), .max = REQUEST_PATH_MAX },
    { "umask", FIELD_COUNT, LAUNCH(umask), .max = 0777 },
    { "pattern", FIELD_WORD, LAUNCH(pattern), .max = LISTED_MAX },
    { "stays", FIELD_FLAG, SPEC(stays) },
    { "submitted", FIELD_TIME, LAUNCH(submitted_ns), .max = SECONDS_MAX },
    { "requeue", FIELD_FLAG, OWN(requeue) },
    { "retries", FIELD_COUNT, OWN(retries), .max = 100 },
    { "hold", FIELD_FLAG, OWN(hold) },
    { "begin", FIELD_TIME, OWN(begin_ns), .max = SECONDS_MAX },
    { "dependency", FIELD_OTHER, OWN(dependencies) },
    { "waits_for", FIELD_WORD, OWN(outside), .max = LISTED_MAX },
    { "array_index", FIELD_COUNT, LAUNCH(array_index), .max = 4e9 },
    { "array_limit", FIELD_COUNT, OWN(array_limit), .max = 1e6 },
    { "slurm_names", FIELD_FLAG, LAUNCH(slurm_names) },
    { "tasks_per_node", FIELD_COUNT, LAUNCH(tasks_per_node), .min = 1, .max = 1024 },
};

#define FIELD_TOTAL (sizeof fields / sizeof *fields)

static const char *const dependency_kinds[] = {
    [DEPENDS_AFTER] = "after",         [DEPENDS_OK] = "afterok",
    [DEPENDS_NOT_OK] = "afternotok",   [DEPENDS_ANY] = "afterany",
    [DEPENDS_SINGLETON] = "singleton",
};

#define DEPENDENCY_KINDS (sizeof dependency_kinds / sizeof *dependency_kinds)

static const char *const no_words[] = { NULL };

/* A request that is being read. */
struct request_reader {
    struct request *request;
    struct arena *arena;
    size_t bytes; /* of all texts so far */
    bool kept;    /* the command may be elsewhere */
    struct error *err;
};

int request_signal(const char *text)
{
    double number;
    if (units_number(text, &number))
        return number >= 1 && number < NSIG && number == floor(number) ? (int)number
                                                                       : 0;
    if (strncasecmp(text, "SIG", 3) == 0)
        text += 3;
    for (int i = 1; i < NSIG; i++) {
        const char *name = sigabbrev_np(i);
        if (name && strcasecmp(name, text) == 0)
            return i;
    }
    return 0;
}

const char *request_signal_name(int number)
{
    static char text[16];
    const char *name = sigabbrev_np(number);
    if (name)
        return name;
    snprintf(text, sizeof text, "%d", number);
    return text;
}

/* Values of fields that are absent. */
static void request_defaults(struct request *request)
{
    *request = (struct request){
        .spec = { .class = CLASS_BE, .grace_ns = 60 * NS_PER_S, .may_send = true },
        .launch = { .argv = no_words, .env = no_words, .cwd = "/", .signal = SIGTERM },
        .requeue = true,
    };
}

static int set_wrong(struct request_reader *reader, const char *key, const char *want)
{
    return error_set(reader->err, -EINVAL, "%s: want %s", key, want);
}

/* A copy of a text, counted. */
static const char *keep_text(struct request_reader *reader, const char *text)
{
    reader->bytes += strlen(text) + 1;
    return arena_text(reader->arena, text);
}

static bool is_visible(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            return false;
    return true;
}

static int read_text(struct request_reader *reader, const struct field *field,
                     const struct json *value, const char **ret_text)
{
    const char *text = json_as_text(value);
    if (!text)
        return set_wrong(reader, field->name, "a text");
    size_t length = strlen(text);
    if (length == 0)
        return error_set(reader->err, -EINVAL, "%s: is empty", field->name);
    if (length > (size_t)field->max)
        return error_set(reader->err, -EINVAL, "%s: has %zu bytes, %.0f are the most",
                         field->name, length, field->max);
    if (field->type == FIELD_WORD && !is_visible(text))
        return error_set(reader->err, -EINVAL, "%s: has a control character in it",
                         field->name);
    *ret_text = keep_text(reader, text);
    return 0;
}

static int read_number(struct request_reader *reader, const struct field *field,
                       const struct json *value, double *ret_number)
{
    if (!json_as_number(value, ret_number))
        return set_wrong(reader, field->name, "a number");
    if (!(*ret_number >= field->min && *ret_number <= field->max))
        return error_set(reader->err, -EINVAL, "%s: is %g, want %.10g to %.10g",
                         field->name, *ret_number, field->min, field->max);
    return 0;
}

static int read_count(struct request_reader *reader, const struct field *field,
                      const struct json *value, int64_t *ret_count)
{
    if (!json_as_count(value, ret_count))
        return set_wrong(reader, field->name, "a whole number");
    if ((double)*ret_count < field->min || (double)*ret_count > field->max)
        return error_set(reader->err, -EINVAL, "%s: is %lld, want %.0f to %.0f",
                         field->name, (long long)*ret_count, field->min, field->max);
    return 0;
}

static int read_args(struct request_reader *reader, const struct field *field,
                     const struct json *value, const char *const **ret_words)
{
    if (!json_is_array(value))
        return set_wrong(reader, field->name, "an array of texts");
    size_t count = json_count(value);
    if (count > REQUEST_ARGS_MAX)
        return error_set(reader->err, -EINVAL, "%s: has %zu words, %d are the most",
                         field->name, count, REQUEST_ARGS_MAX);
    const char **words = arena_array(reader->arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_as_text(json_item(value, i));
        if (!text)
            return set_wrong(reader, field->name, "an array of texts");
        words[i] = keep_text(reader, text);
    }
    *ret_words = words;
    return 0;
}

static int read_env(struct request_reader *reader, const struct field *field,
                    const struct json *value, const char *const **ret_words)
{
    if (!json_is_object(value))
        return set_wrong(reader, field->name, "an object of texts");
    const char *key;
    const struct json *item;
    uint32_t count = 0;
    for (void *at = NULL; (at = json_member(value, at, &key, &item));)
        count++;
    if (count > REQUEST_ENV_MAX)
        return error_set(reader->err, -EINVAL, "env: has %u variables, %d are the most",
                         count, REQUEST_ENV_MAX);
    const char **words = arena_array(reader->arena, const char *, count + 1);
    count = 0;
    for (void *at = NULL; (at = json_member(value, at, &key, &item));) {
        const char *text = json_as_text(item);
        if (!text)
            return error_set(reader->err, -EINVAL, "env: %.100s: want a text", key);
        if (!*key || strchr(key, '='))
            return error_set(reader->err, -EINVAL,
                             "env: \"%.100s\" is no name of a variable", key);
        size_t before = strlen(key) + 1;
        size_t size = before + strlen(text) + 1;
        char *both = arena_array(reader->arena, char, size);
        memcpy(both, key, before); /* faster than printing, and there are many */
        both[before - 1] = '=';
        memcpy(both + before, text, size - before);
        reader->bytes += size;
        words[count++] = both;
    }
    *ret_words = words;
    return 0;
}

static int read_dependency(struct request_reader *reader, const struct json *item,
                           struct dependency *ret_dependency)
{
    const struct json *kind = json_get(item, "kind");
    const char *text = json_as_text(kind);
    uint32_t number = 0;
    while (text && number < DEPENDENCY_KINDS &&
           strcmp(text, dependency_kinds[number]) != 0)
        number++;
    if (!text || number == DEPENDENCY_KINDS)
        return set_wrong(reader, "dependency: kind",
                         "after, afterok, afternotok, afterany or singleton");
    ret_dependency->kind = (enum dependency_kind)number;
    int64_t id = 0;
    bool given = json_as_count(json_get(item, "id"), &id);
    if (number == DEPENDS_SINGLETON ? json_get(item, "id") != NULL : !given || id < 1)
        return set_wrong(reader, "dependency: id",
                         number == DEPENDS_SINGLETON ? "none beside singleton"
                                                     : "the number of a job");
    ret_dependency->id = (uint64_t)id;
    const char *key;
    const struct json *value;
    for (void *at = NULL; (at = json_member(item, at, &key, &value));)
        if (strcmp(key, "kind") != 0 && strcmp(key, "id") != 0)
            return error_set(reader->err, -EINVAL, "dependency: no field '%.60s'", key);
    return 0;
}

static int read_dependencies(struct request_reader *reader, const struct field *field,
                             const struct json *value)
{
    if (!json_is_array(value))
        return set_wrong(reader, field->name, "an array of {kind, id}");
    size_t count = json_count(value);
    if (count > REQUEST_DEPENDENCIES_MAX)
        return error_set(reader->err, -EINVAL, "%s: has %zu, %d are the most",
                         field->name, count, REQUEST_DEPENDENCIES_MAX);
    struct request *request = reader->request;
    request->dependencies = arena_array(reader->arena, struct dependency, count);
    request->dependency_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        int r = read_dependency(reader, json_item(value, i), &request->dependencies[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_choice(struct request_reader *reader, const struct field *field,
                       const struct json *value)
{
    const char *text = json_as_text(value);
    char want[100];
    return text && field_read(field, reader->request, text, "", NULL, NULL) == 0
               ? 0
               : set_wrong(reader, field->name,
                           field_describe(field, want, sizeof want));
}

static int read_signal(struct request_reader *reader, const struct field *field,
                       const struct json *value)
{
    const char *text = json_as_text(value);
    int number = text ? request_signal(text) : 0;
    if (number == 0 || number == SIGKILL || number == SIGSTOP)
        return set_wrong(reader, field->name,
                         "the name of a signal that can be caught");
    reader->request->launch.signal = number;
    return 0;
}

/* Fields that no other table has. */
static int read_other(struct request_reader *reader, const struct field *field,
                      const struct json *value)
{
    struct launch *launch = &reader->request->launch;
    switch (field->offset) {
    case LAUNCH(argv):
        return read_args(reader, field, value, &launch->argv);
    case LAUNCH(env):
        return read_env(reader, field, value, &launch->env);
    case LAUNCH(signal):
        return read_signal(reader, field, value);
    default:
        return read_dependencies(reader, field, value);
    }
}

/* Seconds to nanoseconds, in whole microseconds: that much survives being written. */
static int64_t time_of(double seconds)
{
    return (int64_t)llround(seconds * 1e6) * 1000;
}

static int read_quantity(struct request_reader *reader, const struct field *field,
                         const struct json *value, void *at)
{
    double number;
    int r = read_number(reader, field, value, &number);
    if (r < 0)
        return r;
    if (field->type == FIELD_NUMBER)
        *(double *)at = number;
    else if (field->type == FIELD_TIME)
        *(int64_t *)at = time_of(number);
    else
        *(uint32_t *)at = (uint32_t)ceil(number * 1000 - 1e-6);
    return 0;
}

static int read_field(struct request_reader *reader, const struct field *field,
                      const struct json *value)
{
    void *at = (char *)reader->request + field->offset;
    int64_t count = 0;
    int r = 0;

    switch (field->type) {
    case FIELD_TEXT:
    case FIELD_WORD:
        return read_text(reader, field, value, at);
    case FIELD_CHOICE:
        return read_choice(reader, field, value);
    case FIELD_FLAG:
        return json_as_flag(value, at)
                   ? 0
                   : set_wrong(reader, field->name, "true or false");
    case FIELD_COUNT:
    case FIELD_MEMORY:
        r = read_count(reader, field, value, &count);
        if (r == 0)
            *(uint32_t *)at =
                (uint32_t)(field->type == FIELD_COUNT ? count
                                                      : (count + (1 << 20) - 1) >> 20);
        return r;
    case FIELD_NUMBER:
    case FIELD_TIME:
    case FIELD_CPUS:
        return read_quantity(reader, field, value, at);
    default:
        return read_other(reader, field, value);
    }
}

static const struct field *field_of(const char *key)
{
    for (size_t i = 0; i < FIELD_TOTAL; i++)
        if (strcmp(fields[i].name, key) == 0)
            return &fields[i];
    return NULL;
}

static int no_field(struct request_reader *reader, const char *key)
{
    const char *names[FIELD_TOTAL + 1] = { NULL };
    for (size_t i = 0; i < FIELD_TOTAL; i++)
        names[i] = fields[i].name;
    char hint[160];
    return error_set(reader->err, -EINVAL, "%.60s: there is no such field%s", key,
                     suggest_names(hint, sizeof hint, key, names));
}

/*
 * A path below the job's folder.  In paths of output '%' stands for something, so one
 * that is in the folder's own name is written twice.
 */
static const char *make_absolute(struct request_reader *reader, const char *path,
                                 bool holders)
{
    const char *cwd = reader->request->launch.cwd;
    if (!path || path[0] == '/')
        return path;
    size_t size = 2 * strlen(cwd) + strlen(path) + 2;
    char *whole = arena_array(reader->arena, char, size);
    size_t count = 0;
    for (const char *c = cwd; *c; c++) {
        if (*c == '%' && holders)
            whole[count++] = '%';
        whole[count++] = *c;
    }
    snprintf(whole + count, size - count, "%s%s", strcmp(cwd, "/") == 0 ? "" : "/",
             path);
    return whole;
}

static int check_command(struct request_reader *reader)
{
    const struct launch *launch = &reader->request->launch;
    if (launch->script && strncmp(launch->script, "#!", 2) != 0)
        return set_wrong(reader, "script", "a first line \"#!…\"");
    if (!launch->script && !launch->argv[0])
        return error_set(reader->err, -EINVAL, "command: is missing");
    if (!launch->script && !launch->argv[0][0])
        return error_set(reader->err, -EINVAL, "command: its first word is empty");
    return 0;
}

/* A bound that is absent is the number of GPUs. */
static int check_gpus(struct request_reader *reader)
{
    struct job_spec *spec = &reader->request->spec;
    if (spec->gpus_min || spec->gpus_max) {
        spec->gpus_min = spec->gpus_min ? spec->gpus_min : spec->gpus;
        spec->gpus_max = spec->gpus_max ? spec->gpus_max : spec->gpus;
        if (spec->gpus == 0)
            return error_set(reader->err, -EINVAL,
                             "gpus: is missing beside min_gpus or max_gpus");
        if (spec->gpus_min > spec->gpus)
            return error_set(reader->err, -EINVAL, "min_gpus: is above gpus");
        if (spec->gpus_max < spec->gpus)
            return error_set(reader->err, -EINVAL, "max_gpus: is below gpus");
    }
    return 0;
}

static uint32_t cpus_unless_said(const struct job_spec *spec)
{
    return spec->gpus == 0 ? 1000 : 0;
}

static bool ends_in(const char *word, const char *end)
{
    size_t count = strlen(word);
    size_t tail = strlen(end);
    return count > tail && strcmp(word + count - tail, end) == 0;
}

/*
 * What the command runs, as jobs are told apart by it: a file of Python or of a shell among its
 * words, else the first word after the name of an interpreter, else the first word.
 */
static const char *find_program(const char *const *argv)
{
    static const char *const interpreters[] = { "python", "bash", "sh", "env",
                                                "torchrun" };
    const char *program = argv ? argv[0] : NULL;
    for (uint32_t i = 0; program && argv[i]; i++)
        if (argv[i][0] != '-' && (ends_in(argv[i], ".py") || ends_in(argv[i], ".sh")))
            return strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
    if (!program)
        return NULL;
    const char *slash = strrchr(program, '/');
    program = slash ? slash + 1 : program;
    for (uint32_t i = 0; i < sizeof interpreters / sizeof *interpreters; i++) {
        if (strncmp(program, interpreters[i], strlen(interpreters[i])) != 0)
            continue;
        for (uint32_t w = 1; argv[w]; w++)
            if (argv[w][0] != '-')
                return argv[w];
    }
    return program;
}

/* Rules about several fields, and values that follow from others. */
static int complete_request(struct request_reader *reader, const struct json *json)
{
    struct request *request = reader->request;
    struct launch *launch = &request->launch;
    struct job_spec *spec = &request->spec;

    if (launch->cwd[0] != '/')
        return set_wrong(reader, "cwd", "an absolute path");
    int r = reader->kept ? 0 : check_command(reader);
    if (r == 0)
        r = check_gpus(reader);
    if (r < 0)
        return r;
    if (!json_get(json, "cpus"))
        spec->cpu_milli = cpus_unless_said(spec);
    if (spec->gpus == 0 && spec->cpu_milli == 0)
        return set_wrong(reader, "cpus", "more than 0 for a job without accelerators");
    if (reader->bytes > REQUEST_BYTES_MAX)
        return error_set(reader->err, -EINVAL,
                         "env: with command and script more than %u bytes",
                         REQUEST_BYTES_MAX);
    launch->out = make_absolute(reader, launch->out, true);
    launch->err = make_absolute(reader, launch->err, true);
    launch->ckpt_dir = make_absolute(reader, launch->ckpt_dir, false);
    launch->progress = make_absolute(reader, launch->progress, true);
    launch->limit_warns = json_get(json, "warn_s") != NULL;
    request->in_array = json_get(json, "array_index") != NULL;
    spec->loses_work = !json_get(json, "grace_s") && !json_get(json, "pause_s") &&
                       !json_get(json, "ckpt_s") && !json_get(json, "signal") &&
                       !launch->ckpt_dir;
    launch->name = spec->name;
    spec->program = find_program(launch->argv);
    launch->has_steps = spec->steps > 0;
    launch->te = spec->class == CLASS_TE;
    return 0;
}

static int read_fields(struct request_reader *reader, const struct json *json)
{
    request_defaults(reader->request);
    if (!json_is_object(json))
        return error_set(reader->err, -EINVAL, "job: want an object");

    const char *key;
    const struct json *value;
    for (void *at = NULL; (at = json_member(json, at, &key, &value));) {
        const struct field *field = field_of(key);
        int r = field ? read_field(reader, field, value) : no_field(reader, key);
        if (r < 0)
            return r;
    }
    return complete_request(reader, json);
}

int request_read(struct request *request, struct arena *arena, const struct json *json,
                 struct error *err)
{
    struct request_reader reader = { .request = request, .arena = arena, .err = err };
    return read_fields(&reader, json);
}

int request_read_kept(struct request *request, struct arena *arena,
                      const struct json *json, struct error *err)
{
    struct request_reader reader = {
        .request = request, .arena = arena, .kept = true, .err = err
    };
    return read_fields(&reader, json);
}

static const char *copy_json(struct arena *arena, const struct json *json)
{
    char *text = json ? json_text_exact(json) : NULL;
    const char *copy = text ? arena_text(arena, text) : NULL;
    free(text);
    return copy;
}

void request_split(struct request_texts *texts, struct arena *arena,
                   const struct json *json)
{
    struct json *rest = json_copy_shared(json);
    texts->env = copy_json(arena, json_get(json, "env"));
    texts->script = copy_json(arena, json_get(json, "script"));
    json_remove(rest, "env");
    json_remove(rest, "script");
    texts->request = copy_json(arena, rest);
    json_free(rest);
}

/* A copy of so many bytes, as a text. */
static char *copy_bytes(struct arena *arena, const char *bytes, size_t count)
{
    char *copy = arena_array(arena, char, count + 1);
    memcpy(copy, bytes, count);
    return copy;
}

static bool is_key(const struct json_piece *piece, const char *key)
{
    return piece->key_count == strlen(key) &&
           memcmp(piece->key, key, piece->key_count) == 0;
}

/* Append a member as it stands: its key with quotes, a colon, its value. */
static size_t add_piece(char *to, size_t count, const struct json_piece *piece)
{
    if (count > 1)
        to[count++] = ',';
    to[count++] = '"';
    memcpy(to + count, piece->key, piece->key_count);
    count += piece->key_count;
    to[count++] = '"';
    to[count++] = ':';
    memcpy(to + count, piece->value, piece->value_count);
    return count + piece->value_count;
}

void request_split_text(struct request_texts *texts, struct arena *arena,
                        const char *text, const struct json *json)
{
    struct json_piece piece;
    size_t count = 1;
    char *rest = arena_array(arena, char, strlen(text) + 3);
    *texts = (struct request_texts){ .request = rest };
    rest[0] = '{';
    for (const char *at = text; (at = json_piece_next(at, &piece));) {
        if (memchr(piece.key, '\\', piece.key_count)) {
            request_split(texts, arena, json); /* a key in another spelling */
            return;
        }
        if (is_key(&piece, "env"))
            texts->env = copy_bytes(arena, piece.value, piece.value_count);
        else if (is_key(&piece, "script"))
            texts->script = copy_bytes(arena, piece.value, piece.value_count);
        else
            count = add_piece(rest, count, &piece);
    }
    rest[count] = '}';
}

static void write_words(struct json *object, const char *key, const char *const *words)
{
    if (!words[0])
        return;
    struct json *array = json_new_array();
    for (uint32_t i = 0; words[i]; i++)
        json_add_text(array, words[i]);
    json_put(object, key, array);
}

static void write_env(struct json *object, const char *const *words)
{
    if (!words[0])
        return;
    struct json *env = json_new_object();
    for (uint32_t i = 0; words[i]; i++) {
        const char *equals = strchr(words[i], '=');
        char *name = memory_checked(strndup(words[i], (size_t)(equals - words[i])));
        json_put_text(env, name, equals + 1);
        free(name);
    }
    json_put(object, "env", env);
}

static void write_dependencies(struct json *object, const struct request *request)
{
    if (request->dependency_count == 0)
        return;
    struct json *array = json_new_array();
    for (uint32_t i = 0; i < request->dependency_count; i++) {
        const struct dependency *dependency = &request->dependencies[i];
        struct json *item = json_new_object();
        json_put_text(item, "kind", dependency_kinds[dependency->kind]);
        if (dependency->kind != DEPENDS_SINGLETON)
            json_put_count(item, "id", (int64_t)dependency->id);
        json_add(array, item);
    }
    json_put(object, "dependency", array);
}

static double seconds_of(int64_t ns)
{
    return (double)(ns / 1000) / 1e6;
}

/* A field whose value is not the standard one. */
static void write_field(struct json *object, const struct field *field,
                        const struct request *request, const struct request *standard)
{
    const void *at = (const char *)request + field->offset;
    const void *usual = (const char *)standard + field->offset;
    int64_t whole = field_is_whole(field) ? field_get_whole(field, request) : 0;
    if (field_is_whole(field) && whole == field_get_whole(field, standard))
        return;
    switch (field->type) {
    case FIELD_TEXT:
    case FIELD_WORD: {
        const char *text = *(const char *const *)at;
        const char *other = *(const char *const *)usual;
        if (text && (!other || strcmp(text, other) != 0))
            json_put_text(object, field->name, text);
        break;
    }
    case FIELD_COUNT:
        json_put_count(object, field->name, whole);
        break;
    case FIELD_MEMORY:
        json_put_count(object, field->name, whole << 20);
        break;
    case FIELD_NUMBER:
        if (*(const double *)at != *(const double *)usual)
            json_put_number(object, field->name, *(const double *)at);
        break;
    case FIELD_TIME:
        json_put_number(object, field->name, seconds_of(whole));
        break;
    case FIELD_FLAG:
        json_put_flag(object, field->name, whole);
        break;
    case FIELD_CHOICE:
        json_put_text(object, field->name, field->choices[whole]);
        break;
    default: /* the others: see request_write() */
        if (field->offset == LAUNCH(signal) && request->launch.signal != 0 &&
            request->launch.signal != standard->launch.signal)
            json_put_text(object, field->name,
                          request_signal_name(request->launch.signal));
        break;
    }
}

struct json *request_write(const struct request *request)
{
    struct request standard;
    request_defaults(&standard);
    struct json *object = json_new_object();
    write_words(object, "command", request->launch.argv);
    for (size_t i = 0; i < FIELD_TOTAL; i++)
        write_field(object, &fields[i], request, &standard);
    write_env(object, request->launch.env);
    if (request->spec.cpu_milli != cpus_unless_said(&request->spec))
        json_put_number(object, "cpus", (double)request->spec.cpu_milli / 1000);
    if (request->launch.limit_warns)
        json_put_number(object, "warn_s", seconds_of(request->launch.warn_ns));
    if (request->in_array)
        json_put_count(object, "array_index", request->launch.array_index);
    write_dependencies(object, request);
    return object;
}
