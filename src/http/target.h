/*
 * target.h - the path and the query of a request, decoded and checked.
 *
 * Strict on purpose: half a percent sign, a NUL, a ".." or the same key twice are refused
 * here, so no route has to handle them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

#define TARGET_BYTES_MAX 8192 /* path and query as sent */
#define TARGET_QUERY_MAX 16   /* keys                   */

struct target {
    const char *path; /* decoded; begins with a slash, no empty or dotted parts */
    const char *keys[TARGET_QUERY_MAX];
    const char *values[TARGET_QUERY_MAX]; /* "" for a key without one */
    uint32_t count;
};

/* Decode 'raw'; texts live in 'arena'.  -EINVAL with a sentence if it is malformed. */
int target_read(struct target *target, struct arena *arena, const char *raw,
                struct error *err);

/* The value of a key, or NULL. */
const char *target_query(const struct target *target, const char *key);

/* "12_3": a task of an array, by the array's id and its index. */
bool target_task(const char *text, size_t count, uint64_t *ret_array,
                 uint32_t *ret_index);

/* A job's id: digits alone, the first not zero, at most INT64_MAX. */
bool target_id(const char *text, size_t count, uint64_t *ret_id);
