/*
 * talk.h - a server in a test, and clients that say exactly what the test wants.
 *
 * Server and clients share one thread and one loop: whoever waits for an answer runs the
 * loop meanwhile.  So a test can stop time between any two bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "http/http.h"

struct talk {
    uv_loop_t loop;
    struct http *http;
    char folder[32]; /* a scratch folder, removed at the end */
    char socket[64]; /* FOLDER/api.sock */
};

/* A server with this setup; loop and socket are filled in. */
void talk_open(struct talk *talk, struct http_setup setup);
void talk_close(struct talk *talk);

/* A loop and a scratch folder alone. */
void talk_prepare(struct talk *talk);

/* Let the loop turn for a while, or until something holds. */
void talk_turn(struct talk *talk, int milliseconds);
bool talk_until(struct talk *talk, bool (*holds)(void *), void *context);

int talk_connect(struct talk *talk);
int talk_connect_tcp(uint16_t port);

/* Send bytes as they are, the loop turning while the socket is full; false if it broke. */
bool talk_send(struct talk *talk, int fd, const char *bytes, size_t count);
bool talk_say(struct talk *talk, int fd, const char *text);

struct answer {
    int status;  /* 0: the connection ended without one */
    bool closed; /* the server hung up after it */
    char *head;
    char *body;
    size_t body_size;
};

/* The next reply on this connection, with Content-Length or in chunks. */
void talk_hear(struct talk *talk, int fd, struct answer *answer);
void answer_free(struct answer *answer);

/* One request on a connection of its own; the status, and the body in 'body' if wanted. */
int talk_ask(struct talk *talk, const char *request, struct buf *body);

/* What has come on 'fd' within a while, as it is, appended. */
void talk_drain(struct talk *talk, int fd, struct buf *got, int milliseconds);

/* The same until 'text' has come; false if it never does. */
bool talk_drain_until(struct talk *talk, int fd, struct buf *got, const char *text);
