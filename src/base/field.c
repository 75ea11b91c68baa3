/* field.c - members of a struct by name. */
#include "base/field.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/units.h"

static bool is_within(const struct field *field, double value)
{
    return (field->min == 0 && field->max == 0) ||
           (value >= field->min && value <= field->max);
}

static bool find_choice(const struct field *field, const char *text, uint32_t *ret)
{
    for (uint32_t i = 0; field->choices[i]; i++)
        if (strcmp(field->choices[i], text) == 0) {
            *ret = i;
            return true;
        }
    return false;
}

/* False if the text is not of the type or out of bounds; then 'at' is as it was. */
static bool read_member(const struct field *field, void *at, const char *text,
                        struct arena *arena)
{
    double number;
    int64_t ns;

    switch (field->type) {
    case FIELD_COUNT:
        if (!units_number(text, &number) || number < 0 || number > UINT32_MAX ||
            number != (double)(uint32_t)number || !is_within(field, number))
            return false;
        *(uint32_t *)at = (uint32_t)number;
        return true;
    case FIELD_NUMBER:
        if (!units_number(text, &number) || !is_within(field, number))
            return false;
        *(double *)at = number;
        return true;
    case FIELD_FLAG:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return false;
        *(bool *)at = text[0] == 't';
        return true;
    case FIELD_TIME:
        if (!units_time(text, &ns) || !is_within(field, (double)ns / 1e9))
            return false;
        *(int64_t *)at = ns;
        return true;
    case FIELD_CHOICE:
        return find_choice(field, text, at);
    case FIELD_BUFFER:
        if (strlen(text) >= FIELD_BUFFER_MAX)
            return false;
        snprintf(((struct field_buffer *)at)->text, FIELD_BUFFER_MAX, "%s", text);
        return true;
    case FIELD_TEXT:
        if (!*text || (field->max > 0 && strlen(text) > (size_t)field->max))
            return false;
        *(const char **)at = arena ? arena_text(arena, text) : NULL;
        return true;
    default:
        return false; /* in files only */
    }
}

/* As people write it: 1e8, not 1e+08. */
const char *field_show_number(char *text, size_t size, double value)
{
    snprintf(text, size, "%g", value);
    char *exponent = strstr(text, "e+");
    if (exponent) {
        char *digits = exponent + 2 + strspn(exponent + 2, "0");
        memmove(exponent + 1, digits, strlen(digits) + 1);
    }
    return text;
}

const char *field_describe(const struct field *field, char *text, size_t size)
{
    static const char *const types[] = {
        [FIELD_COUNT] = "a whole number",
        [FIELD_NUMBER] = "a number",
        [FIELD_FLAG] = "true or false",
        [FIELD_TIME] = "a time such as 90s, 10m or 2h",
        [FIELD_CHOICE] = "one of: ",
        [FIELD_BUFFER] = "a shorter text",
        [FIELD_TEXT] = "a text",
    };
    char min[24];
    char max[24];
    int used = snprintf(text, size, "%s", types[field->type]);
    if (field->type == FIELD_CHOICE) {
        for (uint32_t i = 0; field->choices[i] && (size_t)used < size; i++)
            used += snprintf(text + used, size - (size_t)used, "%s%s", i ? ", " : "",
                             field->choices[i]);
    } else if (field->type == FIELD_TEXT && field->max > 0) {
        snprintf(text + used, size - (size_t)used, " of 1 to %.0f bytes", field->max);
    } else if (field->min != 0 || field->max != 0) {
        snprintf(text + used, size - (size_t)used, " from %s to %s%s",
                 field_show_number(min, sizeof min, field->min),
                 field_show_number(max, sizeof max, field->max),
                 field->type == FIELD_TIME ? " seconds" : "");
    }
    return text;
}

int field_read(const struct field *field, void *self, const char *text,
               const char *owner, struct arena *arena, struct error *err)
{
    union {
        uint32_t count;
        double number;
        bool flag;
        int64_t ns;
        const char *text;
        struct field_buffer buffer;
    } nowhere;
    void *at = self ? (char *)self + field->offset : (char *)&nowhere;
    if (read_member(field, at, text, arena))
        return 0;
    char want[200];
    char shown[41];
    snprintf(shown, sizeof shown, "%s", text);
    for (unsigned char *c = (unsigned char *)shown; *c; c++)
        if (*c < ' ' || *c == 0x7f)
            *c = '?';
    return error_set(err, -EINVAL, "%s: %s is \"%s%s\", want %s", owner, field->name,
                     shown, strlen(text) > 40 ? "…" : "",
                     field_describe(field, want, sizeof want));
}

bool field_is_whole(const struct field *field)
{
    return field->type != FIELD_NUMBER && field->type != FIELD_BUFFER &&
           field->type != FIELD_TEXT && field->type != FIELD_WORD &&
           field->type != FIELD_OTHER;
}

int64_t field_get_whole(const struct field *field, const void *self)
{
    const void *at = (const char *)self + field->offset;
    switch (field->type) {
    case FIELD_FLAG:
        return *(const bool *)at;
    case FIELD_INT:
        return *(const int *)at;
    case FIELD_ID:
    case FIELD_TIME:
        return *(const int64_t *)at;
    default:
        return *(const uint32_t *)at;
    }
}

bool field_set_whole(const struct field *field, void *self, int64_t value)
{
    void *at = (char *)self + field->offset;
    switch (field->type) {
    case FIELD_FLAG:
        *(bool *)at = value == 1;
        return value == 0 || value == 1;
    case FIELD_INT:
        *(int *)at = (int)value;
        return value >= INT32_MIN && value <= INT32_MAX;
    case FIELD_ID:
    case FIELD_TIME:
        *(int64_t *)at = value;
        return true;
    default:
        *(uint32_t *)at = (uint32_t)value;
        return value >= 0 && value <= UINT32_MAX;
    }
}
