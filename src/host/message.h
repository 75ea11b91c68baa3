/* message.h - one message and some descriptors over a UNIX socket of kind SOCK_SEQPACKET. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MESSAGE_FDS_MAX 4

/* 0, or a negative errno. */
int message_send(int socket, const void *bytes, size_t size, const int *fds,
                 uint32_t fd_count);

/*
 * Receive one; its size, 0 at the end, or a negative errno.  *fd_count is how many
 * descriptors there is room for, and then how many came.  -EPROTO: more came; all are
 * closed again.
 */
ssize_t message_receive(int socket, void *bytes, size_t size, int *fds,
                        uint32_t *fd_count, int flags);
