/*
 * run_sockets.h - the two sockets of a supervisor: job.sock for the job, run.sock for
 * berthd.
 *
 * Lines in both directions.  A peer that sends nonsense or does not read is
 * disconnected; sending never waits.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/protocol.h"
#include "host/run_protocol.h"

struct error;

#define RUN_SOCKETS_BERTHDS_MAX 4 /* berthds, old and new */
#define RUN_SOCKETS_FDS_MAX (2 + RUN_SOCKETS_BERTHDS_MAX + PROTOCOL_CONNECTIONS_MAX)

struct socket_peer {
    int fd; /* -1: not connected */
    struct run_lines lines;
};

struct run_sockets {
    int job_listener, run_listener;
    struct socket_peer links[RUN_SOCKETS_BERTHDS_MAX];
    struct socket_peer
        *ranks;          /* PROTOCOL_CONNECTIONS_MAX of them, allocated for the first */
    uint32_t rank_count; /* elements used so far */

    /* Handle a line; false disconnects the peer. */
    bool (*job_line)(void *context, char *line);
    bool (*run_line)(void *context, char *line);
    /* A new peer has connected: send it the current state. */
    void (*job_greet)(void *context, struct socket_peer *peer);
    void (*run_greet)(void *context, struct socket_peer *peer);
    void *context;
};

/* Bind both in the current folder; 'link' is a connection to berthd, or -1. */
int run_sockets_open(struct run_sockets *sockets, int link, struct error *err);
void run_sockets_close_job(struct run_sockets *sockets); /* the job has ended */

/* Fill in what to poll; returns how many.  After poll(), handle the same array. */
uint32_t run_sockets_fill_fds(const struct run_sockets *sockets, struct pollfd *fds);
void run_sockets_handle_ready(struct run_sockets *sockets, const struct pollfd *fds,
                              uint32_t count);

void run_sockets_send(struct socket_peer *peer, const char *text, size_t length);
void run_sockets_send_to_berthd(struct run_sockets *sockets, const char *text,
                                size_t length);
void run_sockets_send_to_ranks(struct run_sockets *sockets, const char *text,
                               size_t length);
bool run_sockets_have_berthd(const struct run_sockets *sockets);
