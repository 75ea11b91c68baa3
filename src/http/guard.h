/*
 * guard.h - who may come in over TCP.
 *
 * Anything on the machine can reach a port, and so can a page in somebody's browser that
 * tricks it (DNS rebinding, forged requests).  Hence three questions: is it us that was
 * called (Host), does it come from a page of ours if from one at all (Origin), does the
 * caller hold the token, or a session that was made for a browser (sessions.h)?
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct guard {
    char host[256]; /* as configured; localhost and its addresses always count */
    uint16_t port;
    char token[128];
};

/*
 * Host and Origin: 0, or the status to refuse with (421, 403) and a sentence.  The texts
 * are the headers' values, NULL where absent.
 */
int guard_check_address(const struct guard *guard, const char *host, const char *origin,
                        const char **ret_sentence);

/* The secret in an Authorization header ("Bearer …"); NULL: there is none. */
const char *guard_find_bearer(const char *authorization);

/* Is it the token? */
bool guard_is_token(const struct guard *guard, const char *bearer);
