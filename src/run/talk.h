/*
 * talk.h - the two sockets of a supervisor: job.sock for the job, run.sock for berthd.
 *
 * Lines in both directions.  Whoever sends rubbish or does not read is shut out; nobody
 * is waited for.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/protocol.h"
#include "host/run_words.h"

struct error;

#define TALK_LINKS_MAX 4 /* berthds, old and new */
#define TALK_FDS_MAX (2 + TALK_LINKS_MAX + PROTOCOL_CONNECTIONS_MAX)

struct talker {
    int fd; /* -1: nobody */
    struct run_lines lines;
};

struct talk {
    int job_listener, run_listener;
    struct talker links[TALK_LINKS_MAX];
    struct talker
        *ranks;          /* of PROTOCOL_CONNECTIONS_MAX; made for the first who comes */
    uint32_t rank_count; /* places used so far */

    /* What is done about a line; false shuts the sender out. */
    bool (*job_line)(void *context, char *line);
    bool (*run_line)(void *context, char *line);
    /* Somebody new is to be told what is so. */
    void (*job_greet)(void *context, struct talker *talker);
    void (*run_greet)(void *context, struct talker *talker);
    void *context;
};

/* Bind both in the present folder; 'link' is a connection to berthd, or -1. */
int talk_open(struct talk *talk, int link, struct error *err);
void talk_close_jobs(struct talk *talk); /* the job is over */

/* Fill in what to wait for; returns how many.  Then, after poll(), the same array. */
uint32_t talk_fds(const struct talk *talk, struct pollfd *fds);
void talk_ready(struct talk *talk, const struct pollfd *fds, uint32_t count);

void talk_send(struct talker *talker, const char *text, size_t length);
void talk_send_links(struct talk *talk, const char *text, size_t length);
void talk_send_ranks(struct talk *talk, const char *text, size_t length);
bool talk_has_link(const struct talk *talk);
