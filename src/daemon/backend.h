/*
 * backend.h - the kinds of cluster that berthd can drive: this machine, or a Slurm cluster.
 *
 * A node has GPUs of one type; a machine with two types is two nodes that share its CPUs and
 * memory out by the number of their GPUs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/cluster.h"

struct daemon;
struct error;
struct executor;
struct gpus;

/* Where a cluster comes from, and the executor for it. */
struct backend {
    const struct executor *executor;
    int (*find_cluster)(struct daemon *daemon, struct error *err);
    int (*open)(struct daemon *daemon, void **ret_self, struct error *err);
};
extern const struct backend backend_local, backend_slurm;

struct machine {
    struct cluster cluster;
    const char *source; /* where it comes from, for users: "NVML", "CPU slots" */

    /* Of the machine that berthd runs on; NULL for others. */
    struct gpus *gpus;
    const uint32_t *gpu_index; /* for struct local_setup                         */
    const uint32_t *gpu_item;  /* by node * NODE_GPUS_MAX + bit: which of 'gpus' */
};

void machine_release(struct machine *machine);

/* The GPUs are real: processes that berthd did not start could use them. */
bool machine_is_shared(const struct machine *machine);

/* Find the GPUs that such processes use now, as bits by node; below 'run_dir' are ours. */
void machine_find_foreign(struct machine *machine, const char *run_dir,
                          uint64_t *ret_foreign);

/* How busy a GPU was the last time, in percent; -1: not known. */
int machine_busy(const struct machine *machine, node_id node, uint32_t gpu);
