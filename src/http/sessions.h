/*
 * sessions.h - browsers that may come in, and whose they are.
 *
 * A browser cannot use the UNIX socket, and must not be given the token that opens
 * everything.  So whoever has a right to be here asks on the socket for a pass: a secret
 * for an address, good once and for some minutes.  The page trades it for a session, which
 * it keeps for itself and sends with every request.  A session is a user's, with that
 * user's rights, and no more.
 *
 * Sessions and the port are kept in a file of the state folder, so that a page that is
 * open goes on after a restart.  Passes are not.
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

/* A secret, whose it is, and when it ends; seconds since 1970. */
struct session {
    char secret[TOKEN_CHARS + 1]; /* "": a free place */
    uint32_t uid, gid;
    int64_t until_s;
};

struct sessions {
    char path[4096];
    uint16_t port; /* that pages were told; 0: none */
    struct session passes[PASSES_MAX];
    struct session sessions[SESSIONS_MAX];
};

/* With what is in 'dir' from before; what cannot be read is as if it were not there. */
void sessions_open(struct sessions *sessions, const char *dir, int64_t now_s);

/* A pass for this user; those who ask too often lose their oldest one. */
int sessions_make_pass(struct sessions *sessions, uint32_t uid, uint32_t gid,
                       int64_t now_s, char ret_pass[static TOKEN_CHARS + 1],
                       struct error *err);

/* Trade a pass for a session.  NULL: it is wrong, used or too old. */
const struct session *sessions_redeem_pass(struct sessions *sessions, const char *pass,
                                           int64_t now_s);

/* Whose session is it?  NULL: nobody's, any more. */
const struct session *sessions_find(const struct sessions *sessions, const char *secret,
                                    int64_t now_s);

void sessions_end(struct sessions *sessions, const char *secret);

/* Is there a page that may come back? */
bool sessions_any(const struct sessions *sessions);

/* Pages are told this port from now on. */
void sessions_set_port(struct sessions *sessions, uint16_t port);
