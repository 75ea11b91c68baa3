/*
 * json.h - JSON documents in memory: parsed, built, changed and printed; the only file that
 * knows the library.
 *
 * Long or frequent output is written without a document, by json_write.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct error;
struct json; /* an object, an array or a value; owned by what it was put into */

struct json *json_new_object(void);
struct json *json_new_array(void);
struct json *json_new_text(const char *text);
struct json *json_new_number(double number);
struct json *json_new_count(int64_t count);
struct json *json_new_flag(bool flag);
void json_free(struct json *json);

/* Whether JSON can hold this text: it is UTF-8. */
bool json_can_say(const char *text);

/* A deep copy; and one that shares its members with the original. */
struct json *json_copy_of(const struct json *json);
struct json *json_copy_shared(const struct json *json);

/* Set a member of an object, which owns 'child' from now on.  The order is kept. */
void json_put(struct json *object, const char *key, struct json *child);
void json_put_text(struct json *object, const char *key, const char *text);
void json_put_number(struct json *object, const char *key, double number);
void json_put_count(struct json *object, const char *key, int64_t count);
void json_put_flag(struct json *object, const char *key, bool flag);

/* Remove a member of an object, if it exists. */
void json_remove(struct json *object, const char *key);

/* Append to an array. */
void json_add(struct json *array, struct json *child);
void json_add_text(struct json *array, const char *text);
void json_add_number(struct json *array, double number);
void json_add_count(struct json *array, int64_t count);

/* One line, or indented for people.  Numbers have 12 digits, so they stay readable. */
void json_print(const struct json *json, FILE *file, bool indented);

/* Indented, with 15 digits: times since 1970 to the microsecond. */
void json_print_fine(const struct json *json, FILE *file);
char *json_text_fine(const struct json *json); /* to be freed */

/* One line with all digits, so that reading gives equal numbers. */
void json_print_exact(const struct json *json, FILE *file);

/* The same as a string; free() it. */
char *json_text(const struct json *json);
char *json_text_exact(const struct json *json);

/* One value and nothing after it; -EINVAL with the line otherwise.  Depth is limited. */
int json_parse(const char *text, size_t count, struct json **ret_json,
               struct error *err);

/*
 * A part of a larger file: errors begin with "FILE:LINE: ", where 'line' is the number of
 * the line on which 'text' begins.
 */
int json_parse_piece(const char *text, size_t count, const char *file, uint64_t line,
                     struct json **ret_json, struct error *err);

/* Finds the end of an object or array in text that arrives in parts; zero it first. */
struct json_scan {
    uint32_t depth; /* braces and brackets open */
    bool in_text;
    bool escaped; /* the byte before was a backslash */
};

/* Scan these bytes: the number of them up to its end, or 0 if it goes on. */
size_t json_scan(struct json_scan *scan, const char *bytes, size_t count);

/* Reading: NULL, 0 or false if it is absent or of another type. */
const struct json *json_get(const struct json *object, const char *key);
const struct json *json_item(const struct json *array, size_t index);
size_t json_count(const struct json *array); /* 0 unless an array */
const char *json_as_text(const struct json *json);
bool json_as_number(const struct json *json, double *ret_number);
bool json_as_count(const struct json *json, int64_t *ret_count); /* whole: 5, not 5.0 */
bool json_as_flag(const struct json *json, bool *ret_flag);
/* A member of an object; 0, "" or false if it is absent or of another type. */
int64_t json_count_at(const struct json *object, const char *key);
const char *json_text_at(const struct json *object, const char *key);
bool json_flag_at(const struct json *object, const char *key);
/* The same, with a fallback given by the caller. */
const char *json_text_or(const struct json *object, const char *key,
                         const char *fallback);
double json_number_or(const struct json *object, const char *key, double fallback);
bool json_is_object(const struct json *json);
bool json_is_array(const struct json *json);
bool json_is_null(const struct json *json);
bool json_is_text(const struct json *json);

/* Iterate over the members of an object: start with NULL, ends with NULL. */
void *json_member(const struct json *object, void *last, const char **ret_key,
                  const struct json **ret_value);
