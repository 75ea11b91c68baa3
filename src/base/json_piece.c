/* json_piece.c - the members of an object as they stand in its text. */
#include "base/json_piece.h"

#include <string.h>

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* The end of the text that begins here with its quote. */
static const char *skip_text(const char *at)
{
    for (at++; *at; at++) {
        at += strcspn(at, "\"\\");
        if (*at == '"')
            return at + 1;
        if (*at && at[1])
            at++; /* the character after a backslash is part of the text */
    }
    return at;
}

/* The end of the object or array that begins here. */
static const char *skip_nested(const char *at)
{
    int depth = 0;
    do {
        if (*at == '"') {
            at = skip_text(at);
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at += *at != '\0';
    } while (*at && depth > 0);
    return at;
}

static const char *skip_value(const char *at)
{
    if (*at == '"')
        return skip_text(at);
    if (*at == '{' || *at == '[')
        return skip_nested(at);
    return at + strcspn(at, ",}] \t\r\n");
}

const char *json_piece_next(const char *at, struct json_piece *piece)
{
    at = skip_space(at);
    if (*at == '{' || *at == ',')
        at = skip_space(at + 1);
    if (*at != '"')
        return NULL;
    const char *end = skip_text(at);
    piece->key = at + 1;
    piece->key_count = (size_t)(end - at) - 2;
    at = skip_space(end);
    piece->value = skip_space(at + (*at == ':'));
    end = skip_value(piece->value);
    piece->value_count = (size_t)(end - piece->value);
    return end;
}
