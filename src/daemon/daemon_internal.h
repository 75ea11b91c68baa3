/*
 * daemon_internal.h - the services of one berthd, for daemon.c, which owns them, and for the
 * two backends.  A service knows those it needs by pointers of its own, and nothing of this.
 */
#pragma once

#include <uv.h>

#include "base/arena.h"
#include "daemon/backend.h"
#include "daemon/daemon.h"
#include "daemon/limits.h"
#include "daemon/scheduler.h"
#include "daemon/submission.h"
#include "host/machine.h"
#include "model/throughput.h"

struct daemon {
    struct daemon_setup setup;
    uv_loop_t loop;
    uv_check_t check;
    uv_timer_t wake, retry, watch, move_log;
    uv_signal_t signals[2];

    struct arena fixed; /* the machine */
    const struct backend *backend;
    struct machine machine;
    struct throughput rates;

    struct store *store;
    struct scheduler scheduler;
    struct submission submission;
    struct limits limits;
    struct flows *flows;
    struct forecasts *forecasts;
    struct progress *progress;
    struct gpu_watch *gpu_watch;
    struct users *users;
    struct routes *routes;
    struct upkeep *upkeep;

    int64_t started_ns;
    uint64_t pass_count, failures;
    char state_trouble[320];  /* why the database cannot be found; "": it is there */
    char socket_trouble[320]; /* why the socket cannot be made again               */
    bool replaced;            /* the database was: berthd ends                     */
    bool failed;              /* berth-launch has ended: berthd ends too           */
    bool killing;             /* all jobs end before berthd does                   */
    bool outgrown;            /* Slurm has nodes that our cluster does not have    */
};
