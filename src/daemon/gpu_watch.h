/*
 * gpu_watch.h - what the GPUs of this machine do, looked at every few seconds.
 *
 * The driver is asked in a worker thread: its answers take milliseconds, and for ever when a
 * GPU has failed.  What comes back becomes events: 'foreign' where other processes use GPUs,
 * 'gpu_use' for the memory that a job's processes have and for how busy it keeps its GPUs.
 */
#pragma once

#include <stdint.h>

#include "model/cluster.h"

struct gpu_watch;
struct machine;
struct scheduler;

/* Below 'run_dir' are the jobs of this berthd.  Both live longer. */
struct gpu_watch *gpu_watch_new(struct scheduler *scheduler,
                                const struct machine *machine, const char *run_dir);
/* No further look; then run the loop until it is idle, and free it. */
void gpu_watch_stop(struct gpu_watch *watch);
void gpu_watch_free(struct gpu_watch *watch);

/* Look at once, and wait for it: before jobs are started. */
void gpu_watch_look(struct gpu_watch *watch);

/* From now on every few seconds. */
void gpu_watch_start(struct gpu_watch *watch);

/* The GPUs of a node that other processes use, as bits. */
uint64_t gpu_watch_foreign(const struct gpu_watch *watch, node_id node);

/* How busy a GPU was at the last look, in percent; -1: not known. */
int gpu_watch_busy(const struct gpu_watch *watch, node_id node, uint32_t gpu);
