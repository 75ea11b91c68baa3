/* peer.h - the other end of a connection: who it is, whether it is there, and refusing it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct peer_user {
    uint32_t uid, gid;
    int32_t pid;
};

/* The user and process at the other end of a UNIX socket; false if unknown. */
bool peer_read(int fd, struct peer_user *ret_peer);

/* What tells hosts apart: an IPv4 address, or the network part of an IPv6 one. */
uint64_t peer_address(int fd);

/* Whether it has closed its end; bytes that have arrived are left to be read. */
bool peer_has_left(int fd);

/*
 * Send one error, without waiting, and close.  'status' is the rest of the status line;
 * 'retry': the same request may succeed a little later.
 */
void peer_refuse(int fd, const char *status, const char *sentence, bool retry);
