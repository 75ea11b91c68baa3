/* limit_settings.c - the keys of limits, and how they are written. */
#include "daemon/limit_settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/units.h"
#include "model/job.h"

#define NAME_BYTES_MAX 64

#define BYTES_MAX 9007199254740992.0 /* whole numbers that a double holds */
#define BODY_BYTES 65536             /* the smallest room for requests    */

/* The type says how a value is written; it is kept as a double. */
const struct field limit_fields[] = {
    [LIMIT_JOBS] = { "jobs", FIELD_COUNT, .max = 1e6 },
    [LIMIT_WAITING] = { "waiting", FIELD_COUNT, .max = 1e6 },
    [LIMIT_JOB_GPUS] = { "job_gpus", FIELD_COUNT, .max = 1e6 },
    [LIMIT_JOB_TIME] = { "job_time", FIELD_TIME, .min = 1, .max = 3155760000.0 },
    [LIMIT_WEIGHT] = { "weight", FIELD_NUMBER, .min = 1, .max = 1e6 },
    [LIMIT_CLASS] = { "class", FIELD_OTHER },
    [LIMIT_GRACE] = { "grace", FIELD_TIME, .min = 60, .max = 7 * 86400 },
    [LIMIT_CONNECTIONS] = { "connections", FIELD_COUNT, .min = 1, .max = 1e6 },
    [LIMIT_BYTES_IN_FLIGHT] = { "bytes_in_flight", FIELD_MEMORY, .min = BODY_BYTES,
                                .max = BYTES_MAX },
    [LIMIT_BYTES_STORED] = { "bytes_stored", FIELD_MEMORY, .max = BYTES_MAX },
    [LIMIT_SUBMITS_PER_S] = { "submits_per_s", FIELD_NUMBER, .min = 1e-3, .max = 1e6 },
    [LIMIT_COUNT] = { 0 },
};

/* ---- reading ---- */

/* "te", "be", "te,be" as bits; 0: it is none of them. */
static uint32_t read_classes(const char *text)
{
    uint32_t bits = 0;
    while (*text) {
        size_t count = strcspn(text, ",");
        uint32_t i = 0;
        while (job_classes[i] && (strlen(job_classes[i]) != count ||
                                  strncmp(job_classes[i], text, count) != 0))
            i++;
        if (!job_classes[i] || (text[count] && !text[count + 1]))
            return 0;
        bits |= 1u << i;
        text += count + (text[count] != '\0');
    }
    return bits;
}

/* False if the text is not of the key's type. */
static bool read_number(enum limit key, const char *text, double *ret_value)
{
    int64_t ns;
    uint64_t bytes;
    switch (limit_fields[key].type) {
    case FIELD_TIME:
        if (!units_time(text, &ns))
            return false;
        *ret_value = (double)ns / NS_PER_S;
        return true;
    case FIELD_MEMORY:
        if (!units_size(text, &bytes))
            return false;
        *ret_value = (double)bytes;
        return true;
    case FIELD_OTHER:
        *ret_value = read_classes(text);
        return *ret_value > 0;
    default:
        return units_number(text, ret_value);
    }
}

static const char *describe_value(enum limit key, char *text, size_t size)
{
    const struct field *field = &limit_fields[key];
    char min[40], max[40];
    if (key == LIMIT_CLASS)
        snprintf(text, size, "te, be or te,be");
    else
        snprintf(text, size, "%s from %s to %s, or none",
                 field->type == FIELD_TIME     ? "a time"
                 : field->type == FIELD_MEMORY ? "a size"
                 : field->type == FIELD_COUNT  ? "a whole number"
                                               : "a number",
                 limit_show_value(min, sizeof min, key, field->min),
                 limit_show_value(max, sizeof max, key, field->max));
    return text;
}

int limit_read_value(enum limit key, const char *text, double *ret_value,
                     struct error *err)
{
    const struct field *field = &limit_fields[key];
    char want[120];
    double value;
    if (strcmp(text, "none") == 0) {
        *ret_value = LIMIT_NONE;
        return 0;
    }
    if (!read_number(key, text, &value) ||
        (key != LIMIT_CLASS && (value < field->min || value > field->max)) ||
        (field->type == FIELD_COUNT && value != floor(value)))
        return error_set(err, -EINVAL, "%s is \"%.40s\", want %s", field->name, text,
                         describe_value(key, want, sizeof want));
    *ret_value = value;
    return 0;
}

int limit_find_key(const char *name, enum limit *ret_key, struct error *err)
{
    char names[240] = "";
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (strcmp(limit_fields[i].name, name) == 0) {
            *ret_key = (enum limit)i;
            return 0;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                 limit_fields[i].name);
    }
    return error_set(err, -EINVAL, "there is no limit \"%.40s\", want %s", name, names);
}

/* A value in JSON: a text as people write it, a number, or null. */
static int read_json_value(enum limit key, const struct json *json, double *ret_value,
                           struct error *err)
{
    char digits[32];
    double number;
    const char *text = json_as_text(json);
    if (json_is_null(json)) {
        *ret_value = LIMIT_UNSAID;
        return 0;
    }
    if (!text && json_as_number(json, &number)) {
        snprintf(digits, sizeof digits, "%.17g", number);
        text = digits;
    }
    return limit_read_value(key, text ? text : "", ret_value, err);
}

/* Where settings go while an object is read. */
struct settings_reader {
    void (*take)(void *context, const struct limit_setting *setting);
    void *context;
    char *path; /* LIMIT_PATH_MAX bytes */
};

static int read_keys(const struct settings_reader *reader, const struct json *object,
                     enum limit_scope scope, const char *name, struct error *err)
{
    const char *key;
    const struct json *value;
    if (!json_is_object(object))
        return error_set(err, -EINVAL, "%s: want {KEY: VALUE, …}", reader->path);
    for (void *at = NULL; (at = json_member(object, at, &key, &value));) {
        struct limit_setting setting = { .scope = scope, .name = name };
        struct error inner;
        int r = limit_find_key(key, &setting.key, &inner);
        if (r == 0)
            r = read_json_value(setting.key, value, &setting.value, &inner);
        if (r < 0)
            return error_set(err, r, "%s: %.300s", reader->path, inner.text);
        reader->take(reader->context, &setting);
    }
    return 0;
}

static bool is_name(const char *name)
{
    size_t count = strlen(name);
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        if (*c <= ' ' || *c == 0x7f || strchr(",:\"\\", *c))
            return false;
    return count > 0 && count < NAME_BYTES_MAX;
}

static int read_names(const struct settings_reader *reader, const struct json *object,
                      enum limit_scope scope, struct error *err)
{
    const char *word = scope == LIMIT_USER ? "users" : "groups";
    const char *name;
    const struct json *value;
    snprintf(reader->path, LIMIT_PATH_MAX, "%s", word);
    if (!json_is_object(object))
        return error_set(err, -EINVAL, "%s: want {NAME: {KEY: VALUE, …}, …}", word);
    for (void *at = NULL; (at = json_member(object, at, &name, &value));) {
        if (!is_name(name))
            return error_set(err, -EINVAL, "%s: \"%.60s\" is no name", word, name);
        snprintf(reader->path, LIMIT_PATH_MAX, "%s.%s", word, name);
        int r = read_keys(reader, value, scope, name, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int limit_read_settings(const struct json *json,
                        void (*take)(void *context,
                                     const struct limit_setting *setting),
                        void *context, char *ret_path, struct error *err)
{
    char path[LIMIT_PATH_MAX];
    struct settings_reader reader = { take, context, ret_path ? ret_path : path };
    const char *word;
    const struct json *value;
    reader.path[0] = '\0';
    if (!json_is_object(json))
        return error_set(err, -EINVAL, "want default, users and groups");
    for (void *at = NULL; (at = json_member(json, at, &word, &value));) {
        int r = 0;
        snprintf(reader.path, LIMIT_PATH_MAX, "%.60s", word);
        if (strcmp(word, "default") == 0)
            r = read_keys(&reader, value, LIMIT_DEFAULT, NULL, err);
        else if (strcmp(word, "users") == 0)
            r = read_names(&reader, value, LIMIT_USER, err);
        else if (strcmp(word, "groups") == 0)
            r = read_names(&reader, value, LIMIT_GROUP, err);
        else
            r = error_set(err, -EINVAL, "%.60s: want default, users or groups", word);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- writing ---- */

static const char *show_classes(char *text, size_t size, double value)
{
    static const enum job_class order[] = { CLASS_TE, CLASS_BE };
    text[0] = '\0';
    for (int i = 0; i < 2; i++) {
        size_t used = strlen(text);
        if (!isfinite(value) || ((uint32_t)value & (1u << order[i])))
            snprintf(text + used, size - used, "%s%s", used ? "," : "",
                     job_classes[order[i]]);
    }
    return text;
}

void limit_write_value(struct buf *buf, const char *key, enum limit limit, double value)
{
    char text[40];
    if (limit == LIMIT_CLASS)
        json_write_text(buf, key, show_classes(text, sizeof text, value));
    else if (!isfinite(value))
        json_write_text(buf, key, "none");
    else if (limit_fields[limit].type == FIELD_NUMBER ||
             limit_fields[limit].type == FIELD_TIME)
        json_write_number(buf, key, value);
    else
        json_write_count(buf, key, (int64_t)value);
}

static const char *show_bytes(char *text, size_t size, double bytes)
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    int i = 0;
    for (; i < 4 && bytes >= 1024; i++)
        bytes /= 1024;
    snprintf(text, size, "%.4g %s", bytes, units[i]);
    return text;
}

/* As people write it: 90s, 10m, 2h, 1d. */
static const char *show_time(char *text, size_t size, double seconds)
{
    static const struct {
        double seconds;
        char letter;
    } units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
    int i = 0;
    while (i < 3 &&
           (seconds < units[i].seconds || fmod(seconds, units[i].seconds) != 0))
        i++;
    snprintf(text, size, "%.10g%c", seconds / units[i].seconds, units[i].letter);
    return text;
}

const char *limit_show_value(char *text, size_t size, enum limit key, double value)
{
    if (key == LIMIT_CLASS)
        return show_classes(text, size, value);
    if (!isfinite(value))
        snprintf(text, size, "none");
    else if (limit_fields[key].type == FIELD_TIME)
        return show_time(text, size, value);
    else if (limit_fields[key].type == FIELD_MEMORY)
        return show_bytes(text, size, value);
    else
        snprintf(text, size, "%.10g", value);
    return text;
}
