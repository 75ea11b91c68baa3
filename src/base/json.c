/* json.c - JSON documents through jansson. */
#include "base/json.h"

#include <errno.h>
#include <math.h>

#include <jansson.h>

#include "base/error.h"
#include "base/memory.h"

#define DIGITS JSON_REAL_PRECISION(12)

static json_t *to_jansson(const struct json *json)
{
    return (json_t *)(uintptr_t)json;
}

static struct json *from_jansson(json_t *json)
{
    return (struct json *)json;
}

/* Building fails only when memory has run out or a text is not UTF-8. */
static void check_built(int r)
{
    if (r != 0)
        memory_exhausted();
}

static json_t *number_value(double number)
{
    /* JSON has no infinity; callers leave out what is not finite. */
    return json_real(isfinite(number) ? number : 0.0);
}

static json_t *text_value(const char *text)
{
    json_t *value = json_string(text);
    return value ? value : json_string("(not UTF-8)");
}

struct json *json_new_object(void)
{
    return from_jansson(json_object());
}

struct json *json_new_array(void)
{
    return from_jansson(json_array());
}

struct json *json_new_text(const char *text)
{
    return from_jansson(text_value(text));
}

struct json *json_new_number(double number)
{
    return from_jansson(number_value(number));
}

struct json *json_new_count(int64_t count)
{
    return from_jansson(json_integer(count));
}

struct json *json_new_flag(bool flag)
{
    return from_jansson(json_boolean(flag));
}

void json_free(struct json *json)
{
    json_decref(to_jansson(json));
}

bool json_can_say(const char *text)
{
    json_t *value = json_string(text);
    json_decref(value);
    return value != NULL;
}

struct json *json_copy_of(const struct json *json)
{
    json_t *copy = json_deep_copy(to_jansson(json));
    check_built(copy ? 0 : -1);
    return from_jansson(copy);
}

struct json *json_copy_shared(const struct json *json)
{
    json_t *copy = json_copy(to_jansson(json));
    check_built(copy ? 0 : -1);
    return from_jansson(copy);
}

void json_put(struct json *object, const char *key, struct json *child)
{
    check_built(json_object_set_new(to_jansson(object), key, to_jansson(child)));
}

void json_put_text(struct json *object, const char *key, const char *text)
{
    check_built(json_object_set_new(to_jansson(object), key, text_value(text)));
}

void json_put_number(struct json *object, const char *key, double number)
{
    check_built(json_object_set_new(to_jansson(object), key, number_value(number)));
}

void json_put_count(struct json *object, const char *key, int64_t count)
{
    check_built(json_object_set_new(to_jansson(object), key, json_integer(count)));
}

void json_put_flag(struct json *object, const char *key, bool flag)
{
    check_built(json_object_set_new(to_jansson(object), key, json_boolean(flag)));
}

void json_remove(struct json *object, const char *key)
{
    json_object_del(to_jansson(object), key);
}

void json_add(struct json *array, struct json *child)
{
    check_built(json_array_append_new(to_jansson(array), to_jansson(child)));
}

void json_add_text(struct json *array, const char *text)
{
    check_built(json_array_append_new(to_jansson(array), text_value(text)));
}

void json_add_number(struct json *array, double number)
{
    check_built(json_array_append_new(to_jansson(array), number_value(number)));
}

void json_add_count(struct json *array, int64_t count)
{
    check_built(json_array_append_new(to_jansson(array), json_integer(count)));
}

void json_print(const struct json *json, FILE *file, bool indented)
{
    json_dumpf(to_jansson(json), file,
               DIGITS | (indented ? JSON_INDENT(2) : JSON_COMPACT));
    fputc('\n', file);
}

void json_print_fine(const struct json *json, FILE *file)
{
    json_dumpf(to_jansson(json), file, JSON_REAL_PRECISION(15) | JSON_INDENT(2));
    fputc('\n', file);
}

char *json_text_fine(const struct json *json)
{
    char *text = json_dumps(to_jansson(json),
                            JSON_REAL_PRECISION(15) | JSON_INDENT(2) | JSON_ENCODE_ANY);
    check_built(text ? 0 : -1);
    return text;
}

void json_print_exact(const struct json *json, FILE *file)
{
    json_dumpf(to_jansson(json), file, JSON_REAL_PRECISION(17) | JSON_COMPACT);
    fputc('\n', file);
}

char *json_text(const struct json *json)
{
    char *text = json_dumps(to_jansson(json), DIGITS | JSON_COMPACT | JSON_ENCODE_ANY);
    check_built(text ? 0 : -1);
    return text;
}

char *json_text_exact(const struct json *json)
{
    char *text = json_dumps(to_jansson(json),
                            JSON_REAL_PRECISION(17) | JSON_COMPACT | JSON_ENCODE_ANY);
    check_built(text ? 0 : -1);
    return text;
}

int json_parse(const char *text, size_t count, struct json **ret_json,
               struct error *err)
{
    json_error_t at;
    json_t *json = json_loadb(text, count, JSON_REJECT_DUPLICATES, &at);
    if (!json)
        return error_set(err, -EINVAL, "line %d: %s", at.line, at.text);
    *ret_json = from_jansson(json);
    return 0;
}

int json_parse_piece(const char *text, size_t count, const char *file, uint64_t line,
                     struct json **ret_json, struct error *err)
{
    json_error_t at;
    json_t *json = json_loadb(text, count, JSON_REJECT_DUPLICATES, &at);
    if (!json)
        return error_set(err, -EINVAL, "%s:%llu: %s", file,
                         (unsigned long long)line +
                             (at.line > 0 ? (unsigned)at.line - 1 : 0),
                         at.text);
    *ret_json = from_jansson(json);
    return 0;
}

size_t json_scan(struct json_scan *scan, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char c = bytes[i];
        if (scan->escaped)
            scan->escaped = false;
        else if (scan->in_text && c == '\\')
            scan->escaped = true;
        else if (c == '"')
            scan->in_text = !scan->in_text;
        else if (!scan->in_text && (c == '{' || c == '['))
            scan->depth++;
        else if (!scan->in_text && (c == '}' || c == ']') && --scan->depth == 0)
            return i + 1;
    }
    return 0;
}

const struct json *json_get(const struct json *object, const char *key)
{
    return from_jansson(json_object_get(to_jansson(object), key));
}

const struct json *json_item(const struct json *array, size_t index)
{
    return from_jansson(json_array_get(to_jansson(array), index));
}

size_t json_count(const struct json *array)
{
    return json_array_size(to_jansson(array));
}

const char *json_as_text(const struct json *json)
{
    return json_string_value(to_jansson(json));
}

bool json_as_number(const struct json *json, double *ret_number)
{
    if (!json_is_number(to_jansson(json)))
        return false;
    *ret_number = json_number_value(to_jansson(json));
    return true;
}

bool json_as_count(const struct json *json, int64_t *ret_count)
{
    if (!json_is_integer(to_jansson(json)))
        return false;
    *ret_count = json_integer_value(to_jansson(json));
    return true;
}

bool json_as_flag(const struct json *json, bool *ret_flag)
{
    if (!json_is_boolean(to_jansson(json)))
        return false;
    *ret_flag = json_is_true(to_jansson(json));
    return true;
}

int64_t json_count_at(const struct json *object, const char *key)
{
    int64_t count = 0;
    json_as_count(json_get(object, key), &count);
    return count;
}

const char *json_text_at(const struct json *object, const char *key)
{
    const char *text = json_as_text(json_get(object, key));
    return text ? text : "";
}

bool json_flag_at(const struct json *object, const char *key)
{
    bool flag = false;
    json_as_flag(json_get(object, key), &flag);
    return flag;
}

bool json_is_text(const struct json *json)
{
    return json && json_typeof(to_jansson(json)) == JSON_STRING;
}

const char *json_text_or(const struct json *object, const char *key,
                         const char *fallback)
{
    const char *text = json_as_text(json_get(object, key));
    return text ? text : fallback;
}

double json_number_or(const struct json *object, const char *key, double fallback)
{
    double number;
    return json_as_number(json_get(object, key), &number) ? number : fallback;
}

bool(json_is_object)(const struct json *json)
{
    return json && json_typeof(to_jansson(json)) == JSON_OBJECT;
}

bool(json_is_array)(const struct json *json)
{
    return json && json_typeof(to_jansson(json)) == JSON_ARRAY;
}

bool(json_is_null)(const struct json *json)
{
    return json && json_typeof(to_jansson(json)) == JSON_NULL;
}

void *json_member(const struct json *object, void *last, const char **ret_key,
                  const struct json **ret_value)
{
    void *at = last ? json_object_iter_next(to_jansson(object), last)
                    : json_object_iter(to_jansson(object));
    if (at) {
        *ret_key = json_object_iter_key(at);
        *ret_value = from_jansson(json_object_iter_value(at));
    }
    return at;
}
