/* param.c - settings as data. */
#include "base/param.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units.h"

#define PARAMS_MAX 64

static bool within(const struct param *param, double value)
{
    return (param->min == 0 && param->max == 0) ||
           (value >= param->min && value <= param->max);
}

/*
 * Read 'value' into the field; false if it is not of the type or out of bounds.  Without
 * 'self' it is only looked at.
 */
static bool store(const struct param *param, void *self, const char *value)
{
    union {
        uint32_t count;
        double number;
        bool flag;
        int64_t ns;
        struct param_text text;
    } nowhere;
    void *field = self ? (char *)self + param->offset : (char *)&nowhere;
    double number;
    int64_t ns;

    switch (param->type) {
    case PARAM_COUNT:
        if (!units_number(value, &number) || number < 0 || number > UINT32_MAX ||
            number != (double)(uint32_t)number || !within(param, number))
            return false;
        *(uint32_t *)field = (uint32_t)number;
        return true;
    case PARAM_NUMBER:
        if (!units_number(value, &number) || !within(param, number))
            return false;
        *(double *)field = number;
        return true;
    case PARAM_FLAG:
        if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return false;
        *(bool *)field = value[0] == 't';
        return true;
    case PARAM_TIME:
        if (!units_time(value, &ns) || !within(param, (double)ns / 1e9))
            return false;
        *(int64_t *)field = ns;
        return true;
    case PARAM_CHOICE:
        for (uint32_t i = 0; param->choices[i]; i++)
            if (strcmp(param->choices[i], value) == 0) {
                *(uint32_t *)field = i;
                return true;
            }
        return false;
    case PARAM_TEXT:
        if (strlen(value) >= PARAM_TEXT_MAX)
            return false;
        snprintf(((struct param_text *)field)->text, PARAM_TEXT_MAX, "%s", value);
        return true;
    }
    return false;
}

/* As people write it: 1e8, not 1e+08. */
const char *param_show_number(char *text, size_t size, double value)
{
    snprintf(text, size, "%g", value);
    char *exponent = strstr(text, "e+");
    if (exponent) {
        char *digits = exponent + 2 + strspn(exponent + 2, "0");
        memmove(exponent + 1, digits, strlen(digits) + 1);
    }
    return text;
}

static int bad_value(const struct param *param, const char *owner, const char *value,
                     struct error *err)
{
    char bounds[64] = "";
    char min[24];
    char max[24];
    if (param->min != 0 || param->max != 0)
        snprintf(bounds, sizeof bounds, " from %s to %s",
                 param_show_number(min, sizeof min, param->min),
                 param_show_number(max, sizeof max, param->max));

    switch (param->type) {
    case PARAM_COUNT:
        return error_set(err, -EINVAL, "%s: %s is \"%.40s\", want a whole number%s",
                         owner, param->name, value, bounds);
    case PARAM_NUMBER:
        return error_set(err, -EINVAL, "%s: %s is \"%.40s\", want a number%s", owner,
                         param->name, value, bounds);
    case PARAM_FLAG:
        return error_set(err, -EINVAL, "%s: %s is \"%.40s\", want true or false", owner,
                         param->name, value);
    case PARAM_TIME:
        return error_set(
            err, -EINVAL, "%s: %s is \"%.40s\", want a time such as 90s, 10m or 2h%s%s",
            owner, param->name, value, bounds, bounds[0] ? " seconds" : "");
    case PARAM_TEXT:
        return error_set(err, -EINVAL, "%s: %s is \"%.40s…\", want a shorter text",
                         owner, param->name, value);
    case PARAM_CHOICE:
        break;
    }
    char names[160] = "";
    size_t used = 0;
    for (uint32_t i = 0; param->choices[i] && used < sizeof names; i++) {
        int n = snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                         param->choices[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return error_set(err, -EINVAL, "%s: %s is \"%.40s\", want one of: %s", owner,
                     param->name, value, names);
}

void param_defaults(const struct param *params, void *self)
{
    for (; params && params->name; params++) {
        bool good = store(params, self, params->standard);
        assert(good);
    }
}

/* Set one; -EINVAL with a sentence if there is none of that name or the value is bad. */
static int param_set(const struct param *params, void *self, const char *owner,
                     const char *name, const char *value, struct error *err)
{
    const char *names[PARAMS_MAX + 1] = { NULL };
    uint32_t count = 0;
    for (const struct param *p = params; p && p->name; p++) {
        if (strcmp(p->name, name) == 0)
            return store(p, self, value) ? 0 : bad_value(p, owner, value, err);
        if (count < PARAMS_MAX)
            names[count++] = p->name;
    }
    if (count == 0)
        return error_set(err, -EINVAL, "%s: no setting '%.40s': it has none", owner,
                         name);
    char hint[128];
    return error_set(err, -EINVAL, "%s: no setting '%.40s'%s", owner, name,
                     suggest(hint, sizeof hint, name, names));
}

static bool is_known(const struct param *params, const char *name)
{
    for (; params && params->name; params++)
        if (strcmp(params->name, name) == 0)
            return true;
    return false;
}

static int parse(const struct param *params, void *self, const char *owner,
                 const char *text, struct error *err)
{
    while (text && *text) {
        const char *end = strchrnul(text, ',');
        const char *equals = memchr(text, '=', (size_t)(end - text));
        char name[64];
        char value[PARAM_TEXT_MAX];
        size_t name_bytes = (size_t)((equals ? equals : end) - text);
        size_t value_bytes = equals ? (size_t)(end - equals - 1) : 0;
        if (name_bytes >= sizeof name || value_bytes >= sizeof value)
            return error_set(err, -EINVAL, "%s: setting '%.40s…' is too long", owner,
                             text);
        memcpy(name, text, name_bytes);
        name[name_bytes] = '\0';
        if (!equals && is_known(params, name))
            return error_set(err, -EINVAL,
                             "%s: setting '%s' has no value, want %s=VALUE", owner,
                             name, name);
        if (!equals)
            return param_set(params, NULL, owner, name, "", err);
        memcpy(value, equals + 1, value_bytes);
        value[value_bytes] = '\0';
        int r = param_set(params, self, owner, name, value, err);
        if (r < 0)
            return r;
        text = *end ? end + 1 : end;
    }
    return 0;
}

int param_check(const struct param *params, const char *owner, const char *text,
                struct error *err)
{
    return parse(params, NULL, owner, text, err);
}

int param_parse(const struct param *params, void *self, const char *owner,
                const char *text, struct error *err)
{
    int r = param_check(params, owner, text, err);
    return r < 0 ? r : parse(params, self, owner, text, err);
}
