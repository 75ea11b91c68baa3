/*
 * machine.h - the machine in front of us as a cluster: its accelerators, or slots that
 * stand in for them.
 *
 * A node has accelerators of one type; a machine with two types is two nodes that share
 * its CPUs and memory out by the number of their accelerators.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/cluster.h"

struct arena;
struct error;
struct gpus;

struct machine {
    struct cluster cluster;
    struct gpus *gpus;
    const uint32_t *gpu_index; /* for struct local_setup                              */
    const uint32_t *gpu_item;  /* by node * NODE_GPUS_MAX + bit: which of 'gpus'      */
    const char *source; /* where they come from, for people: "NVML", "CPU slots" */
};

/* 'fake' is "TYPE:N,…", or NULL: then what there is. */
int machine_find(struct machine *machine, struct arena *arena, const char *fake,
                 struct error *err);
void machine_release(struct machine *machine);

/* Others could use them: they are real. */
bool machine_is_shared(const struct machine *machine);

/* See who uses them now; below 'run_dir' are ours. */
void machine_look(struct machine *machine, const char *run_dir);

/* How busy an accelerator was when we looked, in percent; -1: nobody knows. */
int machine_busy(const struct machine *machine, node_id node, uint32_t gpu);

/* Accelerators of a node in use by processes that we did not start, as bits. */
uint64_t machine_foreign(const struct machine *machine, node_id node);
