/* param.h - settings as data: command line, help, API and docs from one table of fields. */
#pragma once

#include "base/field.h"

struct error;

/* Write every setting's standard value into 'self'.  'params' may be NULL. */
void param_defaults(const struct field *params, void *self);

/*
 * Settings as "name=value,name=value"; 'text' may be NULL or empty.  -EINVAL with a sentence
 * if there is none of that name or a value is bad; then none is set.  param_check() looks
 * and sets none.
 */
int param_check(const struct field *params, const char *owner, const char *text,
                struct error *err);
int param_parse(const struct field *params, void *self, const char *owner,
                const char *text, struct error *err);
