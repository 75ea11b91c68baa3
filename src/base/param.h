/* param.h - settings as data: command line, help, API and docs from one table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;

enum param_type {
    PARAM_COUNT,  /* uint32_t                              */
    PARAM_NUMBER, /* double                                */
    PARAM_FLAG,   /* bool: true, false                     */
    PARAM_TIME,   /* int64_t nanoseconds: 90s, 10m, 2h, 1d */
    PARAM_CHOICE, /* uint32_t: place in 'choices'          */
    PARAM_TEXT,   /* struct param_text                     */
};

#define PARAM_TEXT_MAX 512

struct param_text {
    char text[PARAM_TEXT_MAX];
};

/* One setting; a table of them ends with a row whose name is NULL. */
struct param {
    const char *name;
    enum param_type type;
    size_t offset;              /* of the field in the private state       */
    const char *standard;       /* its value unless set, as text           */
    const char *unit;           /* for people; NULL where there is none    */
    const char *brief;          /* one line                                */
    double min, max;            /* both 0: no bounds but the type's        */
    const char *const *choices; /* PARAM_CHOICE: names, ended by NULL      */
};

/* A bound or a value as people write it: 1e8, not 1e+08. */
const char *param_show_number(char *text, size_t size, double value);

/* Write every setting's standard value into 'self'.  'params' may be NULL. */
void param_defaults(const struct param *params, void *self);

/*
 * Settings as "name=value,name=value"; 'text' may be NULL or empty.  -EINVAL with a sentence
 * if there is none of that name or a value is bad; then none is set.  param_check() looks
 * and sets none.
 */
int param_check(const struct param *params, const char *owner, const char *text,
                struct error *err);
int param_parse(const struct param *params, void *self, const char *owner,
                const char *text, struct error *err);
