/*
 * slurm_heartbeat.h - tell others that berthd can place jobs (host/heartbeat.h).
 *
 * Whoever can place jobs has a loop that turns, a berth-slurm that answers, and a Slurm that
 * answers that.  So from time to time berth-slurm is asked to poll Slurm, and when that is done
 * the file is renewed: in a thread, as it may be on a file system that hangs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct slurm;
struct slurm_heartbeat;

struct slurm_heartbeat *slurm_heartbeat_open(struct slurm *slurm, const char *path,
                                             uint32_t limit_s);

/* It frees itself when the loop has let go of it. */
void slurm_heartbeat_close(struct slurm_heartbeat *heartbeat);

/* Slurm answers, for the first time or again: others are not to wait for a period. */
void slurm_heartbeat_soon(struct slurm_heartbeat *heartbeat);

/* True: the answer was to our request. */
bool slurm_heartbeat_answer(struct slurm_heartbeat *heartbeat, int64_t seq, bool ok);

/* berth-slurm has ended, and our request with it. */
void slurm_heartbeat_lost(struct slurm_heartbeat *heartbeat);
