/*
 * guard.h - who may come in over TCP.
 *
 * Anything on the machine can reach a port, and so can a page in somebody's browser that
 * tricks it (DNS rebinding, forged requests).  Hence three questions: is it us that was
 * called (Host), does it come from a page of ours if from one at all (Origin), does the
 * caller hold the token?
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
 * 0, or the status to refuse with (421, 403, 401) and a sentence.  The texts are the
 * headers' values, NULL where absent.
 */
int guard_check(const struct guard *guard, const char *host, const char *origin,
                const char *authorization, const char **ret_sentence);
