/*
 * transport.h - HTTP requests to berthd, for call.c: over its UNIX socket
 * (transport_socket.c), or to a URL by libcurl (transport_url.c).
 *
 * The socket has a client of its own: a command takes a millisecond or two, and loading
 * libcurl with its dependencies takes three times as long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;

#define TRANSPORT_IDLE_MS 100 /* time between two calls of 'idle' */

struct transport_request {
    const char *method;
    const char *path;
    const char *token; /* or NULL                                        */
    const char *body;  /* JSON; or NULL                                  */
    const char *key;   /* Idempotency-Key; or NULL                       */
    long answer_s;     /* the longest time to wait; 0: no limit          */

    /* Gets the bytes of the answer as they arrive; false ends the request. */
    bool (*take)(void *context, long status, const char *bytes, size_t count);
    bool (*idle)(void *context); /* false ends the request; or NULL        */
    void *context;
};

struct transport {
    /*
     * Send a request and pass on the answer.  0 when it is complete; -ECONNREFUSED if no
     * daemon answers, -EAGAIN if one listens and is too busy to; -ECANCELED, without a sentence, if 'take' or 'idle' ended it; -EPIPE if
     * the connection was closed, maybe in the middle of the answer; -ETIMEDOUT, -EIO and
     * others.  The status is 0 until it is known.
     */
    int (*ask)(struct transport *transport, const struct transport_request *request,
               long *ret_status, struct error *err);
    void (*close)(struct transport *transport);

    /* Optional: close a connection that no request uses; the next one opens another. */
    void (*rest)(struct transport *transport);
};

/* Neither connects yet.  NULL if there is no memory. */
struct transport *transport_socket(const char *path);

/* 'fingerprint' of https: the public key that berthd must have (token_text.h); NULL: its
 * certificate must be one that this machine trusts. */
int transport_url(struct transport **ret_transport, const char *base,
                  const char *fingerprint, struct error *err);
