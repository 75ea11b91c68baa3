/* param.c - settings as data. */
#include "base/param.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/suggest.h"

#define PARAMS_MAX 64

void param_defaults(const struct field *params, void *self)
{
    for (; params && params->name; params++) {
        int r = field_read(params, self, params->standard, "", NULL, NULL);
        assert(r == 0);
    }
}

/* Set one; -EINVAL with a sentence if there is none of that name or the value is bad. */
static int param_set(const struct field *params, void *self, const char *owner,
                     const char *name, const char *value, struct error *err)
{
    const char *names[PARAMS_MAX + 1] = { NULL };
    uint32_t count = 0;
    for (const struct field *p = params; p && p->name; p++) {
        if (strcmp(p->name, name) == 0)
            return field_read(p, self, value, owner, NULL, err);
        if (count < PARAMS_MAX)
            names[count++] = p->name;
    }
    if (count == 0)
        return error_set(err, -EINVAL, "%s: no setting '%.40s': it has none", owner,
                         name);
    char hint[128];
    return error_set(err, -EINVAL, "%s: no setting '%.40s'%s", owner, name,
                     suggest_names(hint, sizeof hint, name, names));
}

static bool is_known(const struct field *params, const char *name)
{
    for (; params && params->name; params++)
        if (strcmp(params->name, name) == 0)
            return true;
    return false;
}

static int parse_settings(const struct field *params, void *self, const char *owner,
                          const char *text, struct error *err)
{
    while (text && *text) {
        const char *end = strchrnul(text, ',');
        const char *equals = memchr(text, '=', (size_t)(end - text));
        char name[64];
        char value[FIELD_BUFFER_MAX];
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

int param_check(const struct field *params, const char *owner, const char *text,
                struct error *err)
{
    return parse_settings(params, NULL, owner, text, err);
}

int param_parse(const struct field *params, void *self, const char *owner,
                const char *text, struct error *err)
{
    int r = param_check(params, owner, text, err);
    return r < 0 ? r : parse_settings(params, self, owner, text, err);
}
