/*
 * listeners.h - the sockets that a server listens on, and accepting connections from them.
 *
 * A UNIX socket, where the kernel names the caller; a port on loopback, which speaks plain
 * HTTP; a port that other machines can reach, which speaks TLS.  Which of the two a port is
 * follows from its address.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <uv.h>

#include "http/guard.h"

struct error;
struct listeners;

enum listener_kind { LISTENER_UNIX, LISTENER_PLAIN, LISTENER_TLS };

#define LISTENER_KINDS 3

struct listener {
    struct listeners *listeners;
    enum listener_kind kind;
    uv_poll_t poll;
    int fd;
    struct guard guard; /* of a port: its address */
};

/* One per kind, at most. */
struct listeners {
    struct uv_loop_s *loop;
    /* A connection has come: 'fd' belongs to the callee. */
    void (*accepted)(void *context, int fd, const struct listener *listener);
    void (*finished)(void *context); /* after one or more of these */
    void *context;

    struct listener list[LISTENER_KINDS];
    uint32_t count;
    bool paused; /* no descriptors left: not accepting */
    char *path;  /* of the UNIX socket */
    struct stat file;
    void (*closed)(void *context);
    uint32_t handles; /* not yet closed */
};

/* The first four members are set by the caller.  Neither accepts before listeners_resume(). */
int listeners_open_unix(struct listeners *listeners, const char *path, bool any_user,
                        struct error *err);

/* Make the UNIX socket again if its file was deleted: 1; 0: it is there, or there is none. */
int listeners_renew_unix(struct listeners *listeners, bool any_user, struct error *err);

/* "HOST:PORT", port 0: any.  -EALREADY if there is one of that kind already. */
int listeners_open_tcp(struct listeners *listeners, const char *where,
                       struct error *err);

/* NULL: there is none. */
const struct listener *listeners_find(const struct listeners *listeners,
                                      enum listener_kind kind);

/* Accept from all of them, after opening one or when descriptors may be there again. */
void listeners_resume(struct listeners *listeners);

/* Before any was polled: close the sockets at once, remove the socket's file. */
void listeners_drop(struct listeners *listeners);

/* The same for those that are polled; 'closed' is called when the loop has run. */
void listeners_close(struct listeners *listeners, void (*closed)(void *context));
