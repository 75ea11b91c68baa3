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

/* A listening TCP socket on "HOST:PORT"; the host as written goes into 'host'. */
int listen_tcp(const char *where, char *host, size_t host_size, uint16_t *ret_port,
               struct error *err);
