/*
 * gpus.h - what accelerators this machine has, and who else is using them.
 *
 * NVIDIA's through NVML, which is looked for at run time and never needed to build; AMD's
 * through the files of the kernel's driver.  Without either, or if asked for, slots stand
 * in: of any type, or one per processor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct cluster;
struct error;

#define GPUS_MAX 256

enum gpus_source { GPUS_NVML, GPUS_ROCM, GPUS_FAKE, GPUS_CPU };

struct gpu {
    const char *type; /* "a100": from the maker's name, in lower case  */
    uint32_t index;   /* what CUDA_VISIBLE_DEVICES says                */
    char uuid[96];    /* "": not known                                 */
    uint64_t kfd_id;  /* AMD: the driver's number for it               */
    bool foreign;     /* in use by a process that Berth did not start  */
    int busy;         /* percent of the last moment; -1: not known     */
};

/* Where to look; NULL: at the usual place. */
struct gpus_setup {
    const char *fake; /* "v100:4,p100:2": these stand in; NULL: none    */
    const char *nvml; /* the library                                    */
    const char *kfd;  /* folder of the AMD driver                       */
};

struct nvml;

struct gpus {
    enum gpus_source source;
    struct gpu *items; /* those of a type together, in order of their index */
    uint32_t count;
    struct nvml *nvml; /* or NULL */
    const char *kfd;
};

/* Lives in 'arena', but for the library: release it.  -EINVAL: 'fake' is no such text. */
int gpus_find(struct gpus *gpus, struct arena *arena, const struct gpus_setup *setup,
              struct error *err);
void gpus_release(struct gpus *gpus);

/*
 * This machine as a cluster: a node for each type, with a share of processors and memory
 * by its number of accelerators.  *ret_index says for node * NODE_GPUS_MAX + bit which
 * index a job is told, for struct local_setup; *ret_item which of 'items' it is.
 */
int gpus_cluster(const struct gpus *gpus, struct cluster *cluster, struct arena *arena,
                 const uint32_t **ret_index, const uint32_t **ret_item,
                 struct error *err);

/*
 * Look who is using them now, and how much, and set 'foreign' and 'busy'.  Ours are the processes that were
 * started below 'run_dir' of executor/local.  Returns how many are in foreign hands.
 */
uint32_t gpus_foreign(struct gpus *gpus, const char *run_dir);

/* "NVIDIA GeForce RTX 2080 Ti" is "rtx2080ti", "Tesla V100-SXM2-16GB" is "v100". */
void gpus_type_word(const char *name, char *word, unsigned size);
