/* yaml.c - YAML through libyaml, turned into JSON. */
#include "base/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/field.h"
#include "base/json.h"
#include "base/suggest.h"
#include "base/units.h"

/* Nodes beside one per byte, counted where they are used: an alias may stand for many. */
#define NODES_MAX 100000
#define DEPTH_MAX 32
#define LINES_DEPTH 2 /* deeper than "key.index.key" no lines are kept */
#define FIELDS_MAX 64

struct yaml_converter {
    yaml_document_t *document;
    const char *file;
    bool texts; /* scalars stay texts */
    size_t nodes, nodes_max;
    char path[200]; /* of the node being converted: key.index.key */
    struct json *lines;
    struct error *err;
};

static int set_wrong(struct yaml_converter *c, const yaml_node_t *node,
                     const char *what)
{
    return error_set(c->err, -EINVAL, "%s:%zu: %s", c->file, node->start_mark.line + 1,
                     what);
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static const char *const yes[] = { "true", "True", "TRUE", "yes", "on", NULL };
static const char *const no[] = { "false", "False", "FALSE", "no", "off", NULL };

/* What a scalar is: plain ones may be numbers or flags, quoted ones are texts. */
static struct json *scalar_value(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    double number;
    char *end;
    if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (is_one_of(text, yes) || is_one_of(text, no))
            return json_new_flag(is_one_of(text, yes));
        errno = 0;
        long long count = strtoll(text, &end, 10);
        if (end != text && !*end && errno == 0)
            return json_new_count(count);
        if (units_number(text, &number))
            return json_new_number(number);
    }
    return json_new_text(text);
}

static int convert_node(struct yaml_converter *c, int index, uint32_t depth,
                        struct json **ret);

/* Convert what stands under this name in the node at c->path, and keep its line. */
static int convert_child(struct yaml_converter *c, const char *name, size_t line,
                         int index, uint32_t depth, struct json **ret)
{
    size_t length = strlen(c->path);
    snprintf(c->path + length, sizeof c->path - length, "%s%s", length ? "." : "",
             name);
    if (depth <= LINES_DEPTH)
        json_put_count(c->lines, c->path, (int64_t)line + 1);
    int r = convert_node(c, index, depth + 1, ret);
    c->path[length] = '\0';
    return r;
}

static int convert_list(struct yaml_converter *c, const yaml_node_t *node,
                        uint32_t depth, struct json **ret)
{
    struct json *array = json_new_array();
    uint32_t number = 0;
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *value = yaml_document_get_node(c->document, *item);
        struct json *child;
        char name[16];
        snprintf(name, sizeof name, "%u", number++);
        int r = convert_child(c, name, value->start_mark.line, *item, depth, &child);
        if (r < 0) {
            json_free(array);
            return r;
        }
        json_add(array, child);
    }
    *ret = array;
    return 0;
}

static int convert_map(struct yaml_converter *c, const yaml_node_t *node,
                       uint32_t depth, struct json **ret)
{
    struct json *object = json_new_object();
    int r = 0;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         r == 0 && pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(c->document, pair->key);
        size_t line = key->start_mark.line;
        struct json *child;
        if (key->type != YAML_SCALAR_NODE) {
            r = set_wrong(c, key, "a key is not a word");
            break;
        }
        const char *name = (const char *)key->data.scalar.value;
        if (json_get(object, name))
            r = error_set(c->err, -EINVAL, "%s:%zu: %.60s: is there twice", c->file,
                          line + 1, name);
        else
            r = convert_child(c, name, line, pair->value, depth, &child);
        if (r == 0)
            json_put(object, name, child);
    }
    if (r < 0)
        json_free(object);
    else
        *ret = object;
    return r;
}

static int convert_node(struct yaml_converter *c, int index, uint32_t depth,
                        struct json **ret)
{
    const yaml_node_t *node = yaml_document_get_node(c->document, index);
    if (depth > DEPTH_MAX)
        return set_wrong(c, node, "is nested too deeply");
    if (c->nodes++ == c->nodes_max)
        return set_wrong(c, node, "the file says too much");
    if (node->type == YAML_SEQUENCE_NODE)
        return convert_list(c, node, depth, ret);
    if (node->type == YAML_MAPPING_NODE)
        return convert_map(c, node, depth, ret);
    if (strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
        return set_wrong(c, node, "has a zero byte in it");
    *ret = c->texts ? json_new_text((const char *)node->data.scalar.value)
                    : scalar_value(node);
    return 0;
}

static int read_document(struct yaml_converter *c, struct json **ret_json)
{
    const yaml_node_t *root = yaml_document_get_root_node(c->document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return error_set(c->err, -EINVAL, "%s:1: want lines of KEY: VALUE", c->file);
    return convert_map(c, root, 0, ret_json);
}

static int parse_document(const char *text, size_t count, const char *file, bool texts,
                          struct json **ret_json, struct json **ret_lines,
                          struct error *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser))
        return error_set(err, -ENOMEM, "%s: out of memory", file);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, count);
    int r;
    if (!yaml_parser_load(&parser, &document)) {
        r = error_set(err, -EINVAL, "%s:%zu: %s", file, parser.problem_mark.line + 1,
                      parser.problem ? parser.problem : "is no YAML");
    } else {
        struct yaml_converter c = { .document = &document,
                                    .file = file,
                                    .texts = texts,
                                    .nodes_max = NODES_MAX + count,
                                    .lines = json_new_object(),
                                    .err = err };
        r = read_document(&c, ret_json);
        if (r < 0)
            json_free(c.lines);
        else
            *ret_lines = c.lines;
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return r;
}

int yaml_read(const char *text, size_t count, const char *file, struct json **ret_json,
              struct json **ret_lines, struct error *err)
{
    return parse_document(text, count, file, /* texts= */ false, ret_json, ret_lines,
                          err);
}

/* --- files that are read by tables of fields ------------------------------------------ */

/* Nothing but blanks and comments. */
static bool is_blank(const char *bytes, size_t count)
{
    bool comment = false;
    for (size_t i = 0; i < count; i++) {
        comment = bytes[i] != '\n' && (comment || bytes[i] == '#');
        if (!comment && !strchr(" \t\r\n", bytes[i]))
            return false;
    }
    return true;
}

int yaml_parse(struct yaml_file *file, const char *name, const char *bytes,
               size_t count, struct error *err)
{
    *file = (struct yaml_file){ .name = name };
    if (is_blank(bytes, count)) {
        file->json = json_new_object();
        return 0;
    }
    return parse_document(bytes, count, name, /* texts= */ true, &file->json,
                          &file->lines, err);
}

int yaml_load(struct yaml_file *file, const char *path, uint32_t bytes_max,
              struct error *err)
{
    *file = (struct yaml_file){ .name = path };
    struct buf bytes;
    buf_init(&bytes, bytes_max);
    int r = buf_read(&bytes, path, err);
    if (r == 0)
        r = yaml_parse(file, path, bytes.bytes, bytes.count, err);
    buf_release(&bytes);
    return r;
}

void yaml_release(struct yaml_file *file)
{
    json_free(file->json);
    json_free(file->lines);
}

int yaml_wrong(const struct yaml_file *file, const char *path, struct error *err,
               const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return error_set(err, -EINVAL, "%.100s:%lld: %s", file->name,
                     (long long)json_count_at(file->lines, path), what);
}

/* Whether the member is not 0, false or NULL; not for FIELD_NUMBER, _BUFFER and _OTHER. */
static bool member_is_set(const struct field *field, const void *self)
{
    return field_is_whole(field)
               ? field_get_whole(field, self) != 0
               : *(const char *const *)((const char *)self + field->offset) != NULL;
}

static int set_member(const struct yaml_file *file, const char *path,
                      const struct field *field, const struct json *value, void *self,
                      bool fill, struct arena *arena, struct error *err)
{
    const char *text = json_as_text(value);
    char want[200];
    if (!text)
        return yaml_wrong(file, path, err, "%s: want %s", field->name,
                          field_describe(field, want, sizeof want));
    char owner[160];
    snprintf(owner, sizeof owner, "%.100s:%lld", file->name,
             (long long)json_count_at(file->lines, path));
    if (fill && member_is_set(field, self))
        self = NULL;
    if (field->type == FIELD_FLAG)
        text = is_one_of(text, yes) ? "true" : is_one_of(text, no) ? "false" : text;
    return field_read(field, self, text, owner, arena, err);
}

static int unknown_key(const struct yaml_file *file, const char *path, const char *key,
                       const struct field *fields, struct error *err)
{
    const char *names[FIELDS_MAX + 1] = { NULL };
    for (size_t i = 0; i < FIELDS_MAX && fields[i].name; i++)
        names[i] = fields[i].name;
    char hint[128];
    return yaml_wrong(file, path, err, "%.40s: there is no such key%s", key,
                      suggest_names(hint, sizeof hint, key, names));
}

int yaml_set(const struct yaml_file *file, const char *path, const struct json *object,
             const struct field *fields, void *self, bool fill, struct arena *arena,
             struct error *err)
{
    const char *key;
    const struct json *value;
    if (!json_is_object(object))
        return yaml_wrong(file, path, err, "want lines of KEY: VALUE");
    for (void *at = NULL; (at = json_member(object, at, &key, &value));) {
        char where[200];
        snprintf(where, sizeof where, "%s%s%s", path, *path ? "." : "", key);
        const struct field *field = fields;
        while (field->name && strcmp(field->name, key) != 0)
            field++;
        int r = 0;
        if (!field->name)
            r = unknown_key(file, where, key, fields, err);
        else if (field->type != FIELD_OTHER)
            r = set_member(file, where, field, value, self, fill, arena, err);
        if (r < 0)
            return r;
    }
    return 0;
}
