/*
 * scopes.h - what a caller may ask for, by what it has shown.
 *
 * Every route names the scopes that may use it (struct route).  A scope never adds to what its
 * user may do: a handler still checks whose job it is, or whether the caller is an
 * administrator.
 */
#pragma once

#include <stdint.h>

enum scope {
    SCOPE_PUBLIC = 1 << 0,  /* over TCP, nothing                                      */
    SCOPE_JOB = 1 << 1,     /* a job's own token, or munge's word for its owner       */
    SCOPE_FLOW = 1 << 2,    /* a token of berth-flowd: levels of packets, bytes sent  */
    SCOPE_READ = 1 << 3,    /* a token that changes nothing                           */
    SCOPE_SUBMIT = 1 << 4,  /* a token for its user's own jobs                        */
    SCOPE_ADMIN = 1 << 5,   /* a token of berthd's own user, or 0.1's token file      */
    SCOPE_SESSION = 1 << 6, /* a browser: its user, by way of a pass                  */
    SCOPE_LOCAL = 1 << 7,   /* the UNIX socket: its user, by the kernel's word        */
};

/* What the rows of routes are made of. */
#define SCOPES_OWNER (SCOPE_ADMIN | SCOPE_LOCAL)
#define SCOPES_USER (SCOPES_OWNER | SCOPE_SESSION)
#define SCOPES_SUBMIT (SCOPES_USER | SCOPE_SUBMIT)
#define SCOPES_READ (SCOPES_SUBMIT | SCOPE_READ)

/* The scope of a token by its name: flow, read, submit, admin; 0: there is none. */
uint32_t scopes_find(const char *name);

/* The name of a token's scope, and of others for a sentence. */
const char *scopes_name(uint32_t scope);
