/*
 * limit_settings.h - the keys of limits, and how they are written: in berthd.yaml, in
 * requests and in the store.
 *
 *     default: {jobs: 1000, class: be}
 *     users:   {ada: {jobs: none}}
 *     groups:  {lab: {weight: 10, grace: 10m}}
 *
 * A value is a number of the key's unit, whatever its type: seconds, bytes, a set of classes.
 * A key is added here and enforced in limits.c.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"

struct buf;
struct error;
struct json;

enum limit {
    LIMIT_JOBS,            /* live at once                                     */
    LIMIT_WAITING,         /* of these waiting                                 */
    LIMIT_JOB_GPUS,        /* of one job                                       */
    LIMIT_JOB_TIME,        /* that one job may ask for, in seconds             */
    LIMIT_WEIGHT,          /* that one job may claim                           */
    LIMIT_CLASS,           /* that one job may claim: bits, 1 << CLASS_TE, …   */
    LIMIT_GRACE,           /* that one job may claim, in seconds               */
    LIMIT_CONNECTIONS,     /* at once                                          */
    LIMIT_BYTES_IN_FLIGHT, /* of requests                                      */
    LIMIT_BYTES_STORED,    /* of jobs and their records                        */
    LIMIT_SUBMITS_PER_S,   /* jobs submitted                                   */
    LIMIT_COUNT
};

#define LIMIT_NONE INFINITY /* no limit               */
#define LIMIT_UNSAID NAN    /* another setting counts */

/* A value for each key. */
struct limit_values {
    double of[LIMIT_COUNT];
};

/* What a setting is for. */
enum limit_scope { LIMIT_DEFAULT, LIMIT_GROUP, LIMIT_USER };

struct limit_setting {
    enum limit_scope scope;
    const char *name; /* of the user or group; NULL for LIMIT_DEFAULT */
    enum limit key;
    double value; /* LIMIT_UNSAID: forget what was set */
};

/* The keys: names, types, bounds; ended by a row without a name. */
extern const struct field limit_fields[];

/* Read a value as people write it: "500", "90m", "2G", "te,be", "none". */
int limit_read_value(enum limit key, const char *text, double *ret_value,
                     struct error *err);

/* Read "KEY=VALUE"s and objects of them: the key of that name, or -EINVAL. */
int limit_find_key(const char *name, enum limit *ret_key, struct error *err);

/*
 * Go through an object as above and call 'take' for each value; null is LIMIT_UNSAID.  -EINVAL
 * with a sentence otherwise, and 'ret_path', unless NULL, is where: "users.ada".
 */
#define LIMIT_PATH_MAX 160
int limit_read_settings(const struct json *json,
                        void (*take)(void *context,
                                     const struct limit_setting *setting),
                        void *context, char *ret_path, struct error *err);

/* Write one value as a member of an object: a number, "te,be" or "none". */
void limit_write_value(struct buf *buf, const char *key, enum limit limit,
                       double value);

/* The same for sentences: "50000", "1h", "32 MiB", "be". */
const char *limit_show_value(char *text, size_t size, enum limit key, double value);
