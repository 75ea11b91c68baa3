/*
 * launcher_protocol.h - what berthd asks of berth-launch, the program that is root.
 *
 * Fixed structures over two pairs of SOCK_SEQPACKET sockets, which berth-launch inherits:
 * orders, each answered at once, and openings of files, answered when the file system has.
 * Descriptors travel beside them.  All numbers are checked by berth-launch against what it
 * knows itself; it takes no path of ours and no name of a user from berthd.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/job_users.h"

enum launcher_request_kind {
    LAUNCHER_HELLO = 1, /* what is enforced here?                                    */
    LAUNCHER_START,     /* start an attempt: sealed order and link come along         */
    LAUNCHER_KILL,      /* kill an attempt, its supervisor included: is any left?     */
    LAUNCHER_KILL_JOB,  /* kill its processes: the supervisor reports the end         */
    LAUNCHER_REMOVE,    /* remove an attempt that is over                             */
    LAUNCHER_BRIDGE,    /* start berth-slurm: its socket and its bell come along      */
    LAUNCHER_FORGET,    /* remove output and checkpoints of a job that is pruned      */
};

struct launcher_request {
    uint32_t kind;
    uint32_t attempt;
    uint64_t id;
};

#define LAUNCHER_DRIVER_MAX 16
#define LAUNCHER_PARTITIONS_MAX 1024

/*
 * LAUNCHER_BRIDGE in full.  Descriptors: a stream socket, which becomes its standard input
 * and output, and the bell, if there is one.
 */
struct launcher_bridge_request {
    struct launcher_request request;
    char driver[LAUNCHER_DRIVER_MAX];         /* "": the default                  */
    char partitions[LAUNCHER_PARTITIONS_MAX]; /* "a,b"; "": all that are allowed */
};

struct launcher_reply {
    int32_t error;          /* 0, or an errno                   */
    uint32_t left;          /* LAUNCHER_KILL: processes are left */
    uint32_t features;      /* LAUNCHER_HELLO: of cgroups        */
    int32_t pid;            /* LAUNCHER_START: the supervisor    */
    char text[320];         /* what is wrong; LAUNCHER_HELLO: the parent cgroup */
    char why[400];          /* LAUNCHER_HELLO: why not all features are there   */
    struct job_users users; /* LAUNCHER_HELLO: whose jobs are run          */
};

/* Open a file of a user, to read, with the user's rights. */
struct launcher_opening {
    uint64_t tag; /* of the reply */
    uint32_t uid;
    char path[PATH_MAX];
};

struct launcher_opened {
    uint64_t tag;
    int32_t error; /* 0 and a descriptor, or an errno */
};
