/*
 * http_fixture.h - a server in a test, and clients that say exactly what the test wants.
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

struct http_fixture {
    uv_loop_t loop;
    struct http *http;
    char folder[32]; /* a scratch folder, removed at the end */
    char socket[64]; /* FOLDER/api.sock */
};

/* A server with this setup; loop and socket are filled in. */
void http_fixture_open(struct http_fixture *fixture, struct http_setup setup);
void http_fixture_close(struct http_fixture *fixture);

/* A loop and a scratch folder alone. */
void http_fixture_prepare(struct http_fixture *fixture);

/* Let the loop turn for a while, or until something holds. */
void http_fixture_run(struct http_fixture *fixture, int milliseconds);
bool http_fixture_run_until(struct http_fixture *fixture, bool (*holds)(void *),
                            void *context);

int http_fixture_connect(struct http_fixture *fixture);
int http_fixture_connect_tcp(uint16_t port);

/* Send bytes as they are, the loop turning while the socket is full; false if it broke. */
bool http_fixture_send(struct http_fixture *fixture, int fd, const char *bytes,
                       size_t count);
bool http_fixture_send_text(struct http_fixture *fixture, int fd, const char *text);

struct fixture_reply {
    int status;  /* 0: the connection ended without one */
    bool closed; /* the server hung up after it */
    char *head;
    char *body;
    size_t body_size;
};

/* The next reply on this connection, with Content-Length or in chunks. */
void http_fixture_read_reply(struct http_fixture *fixture, int fd,
                             struct fixture_reply *answer);
void fixture_reply_free(struct fixture_reply *answer);

/* One request on a connection of its own; the status, and the body in 'body' if wanted. */
int http_fixture_request(struct http_fixture *fixture, const char *request,
                         struct buf *body);

/* What has come on 'fd' within a while, as it is, appended. */
void http_fixture_read(struct http_fixture *fixture, int fd, struct buf *got,
                       int milliseconds);

/* The same until 'text' has come; false if it never does. */
bool http_fixture_read_until(struct http_fixture *fixture, int fd, struct buf *got,
                             const char *text);
