/* scopes.c - the names of scopes. */
#include "daemon/scopes.h"

#include <stddef.h>
#include <string.h>

static const struct {
    uint32_t scope;
    const char *name;
} names[] = {
    { SCOPE_FLOW, "flow" },   { SCOPE_READ, "read" },       { SCOPE_SUBMIT, "submit" },
    { SCOPE_ADMIN, "admin" }, { SCOPE_SESSION, "session" }, { SCOPE_LOCAL, "local" },
    { SCOPE_JOB, "job" },     { SCOPE_PUBLIC, "public" },
};

#define TOKEN_SCOPES 4 /* the first of them */

uint32_t scopes_find(const char *name)
{
    for (size_t i = 0; i < TOKEN_SCOPES; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].scope;
    return 0;
}

const char *scopes_name(uint32_t scope)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].scope == scope)
            return names[i].name;
    return "none";
}
