/*
 * sessions.h - browser sessions and the passes that open them.
 *
 * A browser cannot use the UNIX socket, and must not be given the token, which grants
 * everything.  So a user asks on the socket for a pass: a secret in the address of the page,
 * valid once and for some minutes.  The page redeems it for a session, which it keeps and
 * sends with every request.  A session has the rights of its user.
 *
 * Sessions and the port are kept in a file of the state folder, so that an open page goes
 * on after a restart.  Passes are not kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/token.h"

struct error;

#define SESSIONS_MAX 128
#define SESSIONS_PER_USER_MAX 32
#define PASSES_MAX 64
#define PASSES_PER_USER_MAX 8
#define PASS_S 600
#define SESSION_S (7 * 86400)

/* A secret, its user, and when it expires, in seconds since 1970. */
struct session {
    char secret[TOKEN_CHARS + 1]; /* "": unused */
    uint32_t uid, gid;
    int64_t until_s;
    uint64_t number; /* of a session since berthd was started, from 1 */
};

struct sessions {
    char path[4096];
    uint16_t port; /* that open pages use; 0: none */
    struct session passes[PASSES_MAX];
    struct session sessions[SESSIONS_MAX];
    uint64_t last; /* number that was given */
};

/* Read the sessions kept in 'dir'; what cannot be read is ignored. */
void sessions_open(struct sessions *sessions, const char *dir, int64_t now_s);

/* A pass for this user; beyond the limit the user's oldest one is replaced. */
int sessions_make_pass(struct sessions *sessions, uint32_t uid, uint32_t gid,
                       int64_t now_s, char ret_pass[static TOKEN_CHARS + 1],
                       struct error *err);

/* Exchange a pass for a session.  NULL: it is wrong, used or expired. */
const struct session *sessions_redeem_pass(struct sessions *sessions, const char *pass,
                                           int64_t now_s);

/* The session with this secret.  NULL: there is none, or it has expired. */
const struct session *sessions_find(const struct sessions *sessions, const char *secret,
                                    int64_t now_s);

/* Does the session of this number still hold? */
bool sessions_holds(const struct sessions *sessions, uint64_t number, int64_t now_s);

void sessions_end(struct sessions *sessions, const char *secret);

/* Is there any session? */
bool sessions_any(const struct sessions *sessions);

/* Pages use this port from now on. */
void sessions_set_port(struct sessions *sessions, uint16_t port);
