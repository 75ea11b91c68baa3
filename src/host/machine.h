/*
 * machine.h - the machine in front of us as a cluster: its GPUs, or slots that stand in for
 * them.
 *
 * A node has GPUs of one type; a machine with two types is two nodes that share its CPUs and
 * memory out by the number of their GPUs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/cluster.h"

struct arena;
struct cgroup_device;
struct error;
struct gpu_use;
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

/* What they do now, one of 'uses' for each of machine_gpu_count(); as gpus_find_use(). */
uint32_t machine_gpu_count(const struct machine *machine);
void machine_find_use(const struct machine *machine, const char *run_dir,
                      struct gpu_use *uses);

/* Which of them is this GPU of a node. */
uint32_t machine_gpu(const struct machine *machine, node_id node, uint32_t gpu);

/* The GPUs of a node that such processes use, as bits. */
uint64_t machine_foreign(const struct machine *machine, node_id node,
                         const struct gpu_use *uses);

/* The least memory of a GPU of that type; 0: not known. */
uint64_t machine_gpu_bytes(const struct machine *machine, const char *type);

/* NVIDIA's compute mode lets one process at a time use a GPU of that type (NULL: of any). */
bool machine_is_exclusive(const struct machine *machine, const char *type);

/* The permanent names of GPUs ("0,3"), separated by commas; false: not known. */
bool machine_uuids(const struct machine *machine, const char *indices, char *text,
                   size_t size);

/* The devices of all GPUs but those in 'allowed' ("0,3"); how many. */
uint32_t machine_list_others(const struct machine *machine, const char *allowed,
                             struct cgroup_device *devices, uint32_t max);
