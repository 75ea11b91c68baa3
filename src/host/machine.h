/*
 * machine.h - the machine in front of us as a cluster: its GPUs, or slots that stand in for
 * them.
 *
 * A node has GPUs of one type; a machine with two types is two nodes that share its CPUs and
 * memory out by the number of their GPUs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/cluster.h"

struct arena;
struct cgroup_device;
struct error;
struct gpus;

struct machine {
    struct cluster cluster;
    const char *source; /* where it comes from, for users: "NVML", "CPU slots" */

    /* Of the machine that berthd runs on; NULL for others. */
    struct gpus *gpus;
    const uint32_t *gpu_index; /* for struct local_setup                         */
    const int *gpu_core;       /* the same: processor of a fake GPU, or -1       */
    const uint32_t *gpu_item;  /* by node * NODE_GPUS_MAX + bit: which of 'gpus' */
};

/* 'fake' is "TYPE:N[@cpu],…", or NULL: what there is. */
int machine_find(struct machine *machine, struct arena *arena, const char *fake,
                 struct error *err);
void machine_release(struct machine *machine);

/* The GPUs are real: processes that berthd did not start could use them. */
bool machine_is_shared(const struct machine *machine);

/* Find the GPUs that such processes use now, as bits by node; below 'run_dir' are ours. */
void machine_find_foreign(struct machine *machine, const char *run_dir,
                          uint64_t *ret_foreign);

/* The devices of all GPUs but those in 'allowed' ("0,3"); how many. */
uint32_t machine_list_others(const struct machine *machine, const char *allowed,
                             struct cgroup_device *devices, uint32_t max);

/* How busy a GPU was the last time, in percent; -1: not known. */
int machine_busy(const struct machine *machine, node_id node, uint32_t gpu);
