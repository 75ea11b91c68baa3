/* places.h - the folders of a berthd, and its socket. */
#pragma once

#include <stdbool.h>

struct error;
struct service_user;

struct places {
    char state_dir[4096]; /* jobs, logs, checkpoints: survives a reboot   */
    char run_dir[4096];   /* sockets and folders of attempts: need not    */
    char socket[108];     /* of the API                                   */
};

/*
 * Find them, and make them for this user alone (0700), or for the service (0711), if it is
 * not NULL.
 *
 *   state    --state, $XDG_STATE_HOME/berth, ~/.local/state/berth; system: /var/lib/berth
 *   run      $XDG_RUNTIME_DIR/berth, /tmp/berth-UID; system: /run/berth; with --state:
 *            DIR/run, or where that is too long for a socket, a folder in /tmp that
 *            DIR/run.path names
 *   socket   --socket, or api.sock in there
 */
int places_make(struct places *places, const char *state, const char *socket,
                bool system, const struct service_user *service, struct error *err);
