/*
 * machine.h - the machine in front of us as a cluster: its accelerators, or slots that
 * stand in for them.
 *
 * A node has accelerators of one type; a machine with two types is two nodes that share
 * its CPUs and memory out by the number of their accelerators.
 */
#pragma once

#include <stdint.h>

#include "model/cluster.h"

struct arena;
struct error;

struct machine {
    struct cluster cluster;
    uint32_t
        *gpu_index; /* by node * NODE_GPUS_MAX + bit: what CUDA_VISIBLE_DEVICES says */
    const char *source; /* where the accelerators come from, for people */
    void *found;        /* of who looks for other people's use of them */
};

/*
 * 'fake' is "TYPE:N,…" or NULL: then GPUs by NVML or ROCm; else a slot per CPU, of type
 * "cpu".
 */
int machine_find(struct machine *machine, struct arena *arena, const char *fake,
                 struct error *err);
void machine_release(struct machine *machine);

/* Accelerators of a node in use by processes that we did not start, as bits. */
uint64_t machine_foreign(struct machine *machine, node_id node);
