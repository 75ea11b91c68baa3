/* guard.c - access checks over TCP: Host, Origin and the credential. */
#include "http/guard.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Does it listen on every address of the machine? */
static bool is_any_host(const struct guard *guard)
{
    return strcmp(guard->host, "0.0.0.0") == 0 || strcmp(guard->host, "[::]") == 0;
}

/* Is 'text' HOST:PORT of this server?  Without a port it means that of the scheme. */
static bool is_own_address(const struct guard *guard, const char *text)
{
    uint16_t standard = guard->tls ? 443 : 80;
    const char *const names[] = { "localhost", "127.0.0.1", "[::1]", guard->host };
    char port[8];
    snprintf(port, sizeof port, ":%u", guard->port);

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t count = strlen(names[i]);
        if (count == 0 || strncasecmp(text, names[i], count) != 0)
            continue;
        if (strcmp(text + count, port) == 0 ||
            (guard->port == standard && !text[count]))
            return true;
    }
    return false;
}

const char *guard_find_bearer(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
        return NULL;
    return authorization + strlen(scheme);
}

int guard_check_address(const struct guard *guard, const char *host, const char *origin,
                        const char **ret_sentence)
{
    const char *scheme = guard->tls ? "https://" : "http://";
    bool any = guard->tls && is_any_host(guard);

    if (!host || (!any && !is_own_address(guard, host))) {
        *ret_sentence = "the Host of the request is not this server";
        return 421;
    }
    if (origin && (strncmp(origin, scheme, strlen(scheme)) != 0 ||
                   (any ? strcasecmp(origin + strlen(scheme), host) != 0
                        : !is_own_address(guard, origin + strlen(scheme))))) {
        *ret_sentence = "requests from pages of other origins are refused";
        return 403;
    }
    return 0;
}
