/*
 * start.h - an attempt from its order to processes: folder, sockets, files, identity.
 *
 * berth-run does this with its user's own rights.  With several users berth-launch does it
 * as root, in a child of its own that becomes berth-run: what has to be opened is opened
 * before, and handed on as descriptors.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "host/launch_order.h"

struct attempts;
struct error;

#define RANKS_MAX 256 /* processes started for one job */
#define START_WHY_MAX 200

/* What a supervisor owns from then on. */
struct started {
    int link;          /* to berthd; -1: none                           */
    int run_listener;  /* run.sock                                      */
    int job_listener;  /* job/sock                                      */
    int claim;         /* its lock says that the supervisor is alive    */
    int status;        /* where the end is written; its space is taken  */
    int kill;          /* of the job's cgroup; -1: none                 */
    int oom;           /* counts kills for want of memory; -1: no limit */
    int order;         /* the sealed memfd                              */
    int session;       /* closing it ends the job's session; -1: none   */
    pid_t session_pid; /* of the process that holds it; 0: none         */
    pid_t pids[RANKS_MAX];
    uint32_t pid_count;
    int64_t output_bytes; /* in the output before the start */
    uint32_t uid, gid;    /* the user's, if we are root */
    uint32_t service_uid, service_gid;
    char why[START_WHY_MAX]; /* "": it has started, else why not */
};

/* With whose rights; the caller has taken on the user's groups. */
struct start_identity {
    bool become; /* else with our own */
    uint32_t uid, gid;
    const char *user; /* its name */
};

/*
 * Make the attempt's folder with all that is in it, claim it, and start all processes of
 * the job, or none: then 'why' says why not.  The current folder is the job's afterwards.
 * -EALREADY: this attempt was begun before.  Other errors: there is no attempt, nothing
 * can be reported in it.
 */
int start_attempt(struct attempts *attempts, const struct launch_order *order,
                  const struct start_identity *identity, struct started *started,
                  struct error *err);
