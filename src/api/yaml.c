/*
 * yaml.c - YAML through libyaml, turned into JSON.
 *
 * Job files have the keys of a request, so whatever is in them goes the way of a request
 * in JSON: one table of fields says what is allowed, wherever it was written.
 */
#include "api/yaml.h"

#include <errno.h>
#include <string.h>
#include <stdlib.h>

#include <yaml.h>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"

#define NODES_MAX 100000 /* counted where they are used: an alias may stand for many */
#define DEPTH_MAX 32

struct converting {
    yaml_document_t *document;
    const char *file;
    uint32_t nodes;
    struct error *err;
};

static int wrong(struct converting *c, const yaml_node_t *node, const char *what)
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

/* What a scalar is: plain ones may be numbers or flags, quoted ones are texts. */
static struct json *scalar_value(const yaml_node_t *node)
{
    static const char *const yes[] = { "true", "True", "TRUE", "yes", "on", NULL };
    static const char *const no[] = { "false", "False", "FALSE", "no", "off", NULL };
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

static int convert(struct converting *c, int index, uint32_t depth, struct json **ret);

static int convert_list(struct converting *c, const yaml_node_t *node, uint32_t depth,
                        struct json **ret)
{
    struct json *array = json_new_array();
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        struct json *child;
        int r = convert(c, *item, depth + 1, &child);
        if (r < 0) {
            json_free(array);
            return r;
        }
        json_add(array, child);
    }
    *ret = array;
    return 0;
}

static int convert_map(struct converting *c, const yaml_node_t *node, uint32_t depth,
                       struct json **ret)
{
    struct json *object = json_new_object();
    int r = 0;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         r == 0 && pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(c->document, pair->key);
        struct json *child;
        if (key->type != YAML_SCALAR_NODE) {
            r = wrong(c, key, "a key is not a word");
            break;
        }
        const char *name = (const char *)key->data.scalar.value;
        if (json_get(object, name))
            r = error_set(c->err, -EINVAL, "%s:%zu: %.60s: is there twice", c->file,
                          key->start_mark.line + 1, name);
        else
            r = convert(c, pair->value, depth + 1, &child);
        if (r == 0)
            json_put(object, name, child);
    }
    if (r < 0)
        json_free(object);
    else
        *ret = object;
    return r;
}

static int convert(struct converting *c, int index, uint32_t depth, struct json **ret)
{
    const yaml_node_t *node = yaml_document_get_node(c->document, index);
    if (depth > DEPTH_MAX)
        return wrong(c, node, "is nested too deeply");
    if (c->nodes++ == NODES_MAX)
        return wrong(c, node, "the file says too much");
    if (node->type == YAML_SEQUENCE_NODE)
        return convert_list(c, node, depth, ret);
    if (node->type == YAML_MAPPING_NODE)
        return convert_map(c, node, depth, ret);
    if (strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
        return wrong(c, node, "has a zero byte in it");
    *ret = scalar_value(node);
    return 0;
}

static struct json *lines_of(yaml_document_t *document, const yaml_node_t *root)
{
    struct json *lines = json_new_object();
    for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key);
        json_put_count(lines, (const char *)key->data.scalar.value,
                       (int64_t)key->start_mark.line + 1);
    }
    return lines;
}

static int read_document(struct converting *c, struct json **ret_json,
                         struct json **ret_lines)
{
    const yaml_node_t *root = yaml_document_get_root_node(c->document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return error_set(c->err, -EINVAL, "%s:1: want lines of KEY: VALUE", c->file);
    int r = convert_map(c, root, 0, ret_json);
    if (r == 0)
        *ret_lines = lines_of(c->document, root);
    return r;
}

int yaml_read(const char *text, size_t count, const char *file, struct json **ret_json,
              struct json **ret_lines, struct error *err)
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
        struct converting c = { .document = &document, .file = file, .err = err };
        r = read_document(&c, ret_json, ret_lines);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return r;
}
