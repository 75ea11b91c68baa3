/*
 * guard.h - access checks over TCP.
 *
 * Any process on the machine can reach a port, and so can a web page that tricks a browser
 * (DNS rebinding, forged requests).  Hence three checks: the request is for this server
 * (Host), it comes from a page of this server if from a page at all (Origin), and it carries
 * a credential: a token, or a session of a browser (sessions.h).
 *
 * A TLS port on every address of the machine has no name of its own, so any Host is accepted
 * there: a client has checked by the certificate whom it talks to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct guard {
    char host[256]; /* as configured; localhost and its addresses are always accepted */
    uint16_t port;
    bool tls;
};

/*
 * Host and Origin: 0, or the status to refuse with (421, 403) and a sentence.  The texts
 * are the headers' values, NULL where absent.
 */
int guard_check_address(const struct guard *guard, const char *host, const char *origin,
                        const char **ret_sentence);

/* The secret in an Authorization header ("Bearer …"); NULL: there is none. */
const char *guard_find_bearer(const char *authorization);
