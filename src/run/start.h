/* start.h - from a launch order to processes: files, environment, identity. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "host/launch_file.h"

struct error;

#define RANKS_MAX 256 /* processes started for one job */

/* Take on the identity that the order names, for access to files. */
int start_become(const struct launch_order *order, struct error *err);

/*
 * Start all processes of the job; 'dir' is the attempt's folder and the current one.
 * All or none: on failure nothing runs, and 'err' says why, for the owner.  The caller
 * has no privileges left afterwards.
 */
int start_ranks(const struct launch_order *order, const char *dir, pid_t *pids,
                uint32_t *ret_count, struct error *err);
