/*
 * transport.h - HTTP to berthd and back, for call.c: over its UNIX socket
 * (transport_socket.c), or to a URL by libcurl (transport_url.c).
 *
 * The socket has a client of its own: a command is over in a millisecond or two, and to
 * load libcurl with all that it brings along takes three times as long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;

#define TRANSPORT_IDLE_MS 100 /* how often it is asked whether to go on */

struct question {
    const char *method;
    const char *path;
    const char *token; /* or NULL                                        */
    const char *body;  /* JSON; or NULL                                  */
    long answer_s;     /* the longest it may take; 0: it may go on       */

    /* Gets the answer's bytes as they come; false: no more are wanted. */
    bool (*take)(void *context, long status, const char *bytes, size_t count);
    bool (*idle)(void *context); /* false: do not go on; or NULL           */
    void *context;
};

struct transport {
    /*
     * Ask, and hand on the answer.  0 when it is all there; -ECONNREFUSED if nobody is;
     * -ECANCELED, without words, if 'take' or 'idle' said so; -EPIPE if the other side
     * left, maybe in the middle of the answer; -ETIMEDOUT, -EIO and others.  The status is
     * 0 until it is known.
     */
    int (*ask)(struct transport *transport, const struct question *question,
               long *ret_status, struct error *err);
    void (*close)(struct transport *transport);
};

/* Neither connects yet.  NULL if there is no memory. */
struct transport *transport_socket(const char *path);
int transport_url(struct transport **ret_transport, const char *base,
                  struct error *err);
