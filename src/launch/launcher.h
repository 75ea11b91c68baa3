/*
 * launcher.h - the part of berthd that is root, for jobs of several users: berth-launch.
 *
 * It starts jobs as their users, kills and removes attempts, or starts berth-slurm where Slurm
 * does that, and opens files with a user's rights, when berthd asks over an inherited socket;
 * nothing else reaches it.  It looks up users, paths and cgroups itself, and parses nothing
 * that a user wrote: a job's script, arguments and environment pass through it as texts.
 * What may take long, or touches what a user can write, is done by a child.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/job_users.h"
#include "launch/launch_bridge.h"

struct error;

struct launcher_setup {
    const char *run_dir, *state_dir; /* absolute                        */
    const char *run_program;         /* path of berth-run; NULL: no jobs are run here */
    struct launch_bridge_setup bridge;
    struct job_users users; /* whose jobs are run; who berthd is */
    uint32_t service_gid;   /* of berthd                       */
    int orders, openings;   /* sockets of berthd; unused with 'listen' */
    const char *listen;     /* path of a socket for berthd, or NULL */
};

/*
 * Serve until berthd has gone.  With 'listen', which only the service's user may use, wait
 * for the next one then.  Negative without a text: berthd was told what is wrong.
 */
int launcher_run(const struct launcher_setup *setup, struct error *err);
