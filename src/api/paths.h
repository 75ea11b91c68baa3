/* paths.h - standard paths of a daemon's state folder and its socket. */
#pragma once

#include <stddef.h>

struct error;

#define PATHS_MAX 4096

/* The state folder of this user: $XDG_STATE_HOME/berth, else ~/.local/state/berth. */
int paths_state(char *path, size_t size, struct error *err);

/* The folder of its sockets: $XDG_RUNTIME_DIR/berth, else /tmp/berth-UID. */
int paths_run(char *path, size_t size, struct error *err);

/*
 * -EPERM, with a sentence, if that folder exists and belongs to another user: any user can make
 * one in /tmp, and a program that listens there would receive scripts and environments.
 */
int paths_check(const char *path, struct error *err);

/* The socket of this user's daemon, api.sock in a folder that was checked. */
int paths_socket(char *path, size_t size, struct error *err);

/* The socket of the daemon of a state folder that was named. */
int paths_socket_of(char *path, size_t size, const char *state, struct error *err);

/* The system's daemon.  The folder stays while it is stopped or restarted. */
#define PATHS_SYSTEM_RUN "/run/berth"
#define PATHS_SYSTEM_SOCKET PATHS_SYSTEM_RUN "/api.sock"
