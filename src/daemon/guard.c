/* guard.c - Host, Origin and the token. */
#include "daemon/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Is 'text' HOST:PORT of ours?  Without a port it means 80. */
static bool ours(const struct guard *guard, const char *text)
{
    const char *const names[] = { "localhost", "127.0.0.1", "[::1]", guard->host };
    char port[8];
    snprintf(port, sizeof port, ":%u", guard->port);

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t count = strlen(names[i]);
        if (count == 0 || strncasecmp(text, names[i], count) != 0)
            continue;
        if (strcmp(text + count, port) == 0 || (guard->port == 80 && !text[count]))
            return true;
    }
    return false;
}

/* Takes as long however much of it is right. */
static bool same_token(const char *given, const char *token)
{
    size_t count = strlen(token);
    size_t given_count = strlen(given);
    unsigned char differ = given_count != count;
    for (size_t i = 0; i < given_count; i++)
        differ |= (unsigned char)(given[i] ^ token[count > 0 ? i % count : 0]);
    return count > 0 && !differ;
}

static bool holds_token(const struct guard *guard, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
        return false;
    return same_token(authorization + strlen(scheme), guard->token);
}

int guard_check(const struct guard *guard, const char *host, const char *origin,
                const char *authorization, const char **ret_sentence)
{
    static const char http[] = "http://";

    if (!host || !ours(guard, host)) {
        *ret_sentence = "the Host of the request is not this server";
        return 421;
    }
    if (origin && (strncmp(origin, http, strlen(http)) != 0 ||
                   !ours(guard, origin + strlen(http)))) {
        *ret_sentence = "requests from pages of other origins are refused";
        return 403;
    }
    if (!holds_token(guard, authorization)) {
        *ret_sentence = "the token is missing or wrong: Authorization: Bearer TOKEN";
        return 401;
    }
    return 0;
}
