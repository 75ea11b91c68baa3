/* yaml.h - a YAML document as JSON; the only file that knows libyaml. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;
struct field;
struct json;

/*
 * Read the first document of 'text'; texts, numbers, true and false become what they are
 * in JSON.  'ret_lines' is an object with the line of every key and item down to the third
 * level, by its path ("nodes.3.gpus").  -EINVAL with "FILE:LINE: …" otherwise.  Free both.
 */
int yaml_read(const char *text, size_t count, const char *file, struct json **ret_json,
              struct json **ret_lines, struct error *err);

/* A file whose scalars stay texts: tables of fields say what they have to be. */
struct yaml_file {
    const char *name; /* borrowed */
    struct json *json, *lines;
};

/* Release it in any case.  A file that says nothing is an empty object. */
int yaml_parse(struct yaml_file *file, const char *name, const char *bytes,
               size_t count, struct error *err);
int yaml_load(struct yaml_file *file, const char *path, uint32_t bytes_max,
              struct error *err);
void yaml_release(struct yaml_file *file);

/* -EINVAL with "FILE:LINE: …" for what stands at this path. */
int yaml_wrong(const struct yaml_file *file, const char *path, struct error *err,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * Set the members of 'self' that the object at 'path' names; the table ends with a row without
 * a name.  With 'fill' members that are set already stay.  Rows of type FIELD_OTHER are left to
 * the caller.
 */
int yaml_set(const struct yaml_file *file, const char *path, const struct json *object,
             const struct field *fields, void *self, bool fill, struct arena *arena,
             struct error *err);
