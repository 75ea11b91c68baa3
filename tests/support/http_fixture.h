/*
 * http_fixture.h - an HTTP server in a test, and clients that send exact bytes.
 *
 * Server and clients share one thread and one loop: a client that waits for a reply runs
 * the loop meanwhile.  So a test can stop between any two bytes.
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

/* Open a server with this setup; loop and socket are filled in. */
void http_fixture_open(struct http_fixture *fixture, struct http_setup setup);
void http_fixture_close(struct http_fixture *fixture);

/* Open a loop and a scratch folder only. */
void http_fixture_prepare(struct http_fixture *fixture);

/* Run the loop for a while, or until something holds. */
void http_fixture_run(struct http_fixture *fixture, int milliseconds);
bool http_fixture_run_until(struct http_fixture *fixture, bool (*holds)(void *),
                            void *context);

int http_fixture_connect(struct http_fixture *fixture);
int http_fixture_connect_tcp(uint16_t port);

/* Send bytes, and run the loop while the socket is full; false: the connection broke. */
bool http_fixture_send(struct http_fixture *fixture, int fd, const char *bytes,
                       size_t count);
bool http_fixture_send_text(struct http_fixture *fixture, int fd, const char *text);

struct fixture_reply {
    int status;  /* 0: the connection ended without a reply */
    bool closed; /* the server closed the connection */
    char *head;
    char *body;
    size_t body_size;
};

/* Read the next reply on this connection, with Content-Length or in chunks. */
void http_fixture_read_reply(struct http_fixture *fixture, int fd,
                             struct fixture_reply *answer);
void fixture_reply_free(struct fixture_reply *answer);

/* Send one request on a new connection; returns the status, and the body unless NULL. */
int http_fixture_request(struct http_fixture *fixture, const char *request,
                         struct buf *body);

/* Append what arrives on 'fd' within a while. */
void http_fixture_read(struct http_fixture *fixture, int fd, struct buf *got,
                       int milliseconds);

/* The same until 'text' arrives; false: it never does. */
bool http_fixture_read_until(struct http_fixture *fixture, int fd, struct buf *got,
                             const char *text);
