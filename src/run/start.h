/* start.h - from an order to processes: files, environment, who runs it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "host/launch_file.h"

struct error;

#define RANKS_MAX 256 /* processes that we start for one job ourselves */

/* Take on the identity that the order names, as far as files are concerned. */
int start_become(const struct order *order, struct error *err);

/*
 * Start all processes of the job; 'dir' is JOBDIR, where we are.  All or none: on failure
 * nothing runs, and 'err' says why for its owner to read.  Whoever calls has no
 * privileges left afterwards.
 */
int start_ranks(const struct order *order, const char *dir, pid_t *pids,
                uint32_t *ret_count, struct error *err);
