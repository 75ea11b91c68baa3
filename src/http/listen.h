/* listen.h - sockets to listen on: a UNIX socket in a file, a port. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/*
 * A listening UNIX socket, its file with mode 0600, or 0666 for 'any_user'.  A socket
 * file without a listener is replaced; -EADDRINUSE if it has one, -EEXIST if it
 * is something else.
 */
int listen_unix(const char *path, bool any_user, struct error *err);

/*
 * If 'file', the socket's file as it was made, is not at its path any more: make it again, and
 * put the new socket in the place of 'fd'.  Nothing is done for a NULL path.  1: that was done; 0: it is there.
 */
struct stat;
int listen_renew_unix(const char *path, bool any_user, int fd, struct stat *file,
                      struct error *err);

/* Remove the socket's file, unless another process has replaced it. */
void listen_remove_unix(const char *path, const struct stat *file);

/* A listening TCP socket on "HOST:PORT"; the host as written goes into 'host'.  Whether only
 * this machine can reach it goes into 'ret_loopback'. */
int listen_tcp(const char *where, char *host, size_t host_size, uint16_t *ret_port,
               bool *ret_loopback, struct error *err);
