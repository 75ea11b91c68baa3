/* yaml.h - a YAML document as JSON; the only file that knows libyaml. */
#pragma once

#include <stddef.h>

struct error;
struct json;

/*
 * Read the first document of 'text'; texts, numbers, true and false become what they are
 * in JSON.  'ret_lines' is an object with the line of every key at the top.  -EINVAL with
 * "FILE:LINE: …" otherwise.  Free both.
 */
int yaml_read(const char *text, size_t count, const char *file, struct json **ret_json,
              struct json **ret_lines, struct error *err);
