/*
 * launch_bridge.h - berth-slurm, started for a berthd that has no rights in Slurm.
 *
 * Program, user and environment are the launcher's own; berthd names a driver and partitions,
 * which are checked.  One runs at a time: a new one ends the one before it.
 */
#pragma once

#include <stdint.h>

struct error;
struct launcher_bridge_request;

#define LAUNCH_BRIDGE_PARTITIONS_MAX 30

struct launch_bridge_setup {
    const char *program; /* path of berth-slurm; NULL: it is not started here */
    const char *user;    /* the user that it runs as */
    uint32_t uid, gid;
    const char *partitions[LAUNCH_BRIDGE_PARTITIONS_MAX];
    uint32_t partition_count; /* 0: berthd may name any */
};

/* What berthd asks for, as arguments; refers to the request. */
struct launch_bridge_words {
    char *list[2 * LAUNCH_BRIDGE_PARTITIONS_MAX + 8];
    uint32_t count;
};

/* Whether Slurm and our command lines take it for a name and nothing else. */
int launch_bridge_check_partition(const char *name, struct error *err);

/* Check a request and make arguments of it; its texts are changed. */
int launch_bridge_read(const struct launch_bridge_setup *setup,
                       struct launcher_bridge_request *request,
                       struct launch_bridge_words *ret_words, struct error *err);

/*
 * Start it.  'fds': its socket, and its bell if there are two.  'pidfd' is that of the one
 * before, or -1, and of the new one then.
 */
int launch_bridge_start(const struct launch_bridge_setup *setup,
                        struct launcher_bridge_request *request, const int *fds,
                        uint32_t fd_count, int *pidfd, struct error *err);
