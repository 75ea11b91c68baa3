/*
 * gpus.h - the GPUs of this machine, and which other processes use them.
 *
 * NVIDIA's through NVML, which is loaded at run time and never needed to build; AMD's
 * through the files of the kernel's driver.  Without either, or on request, fake slots
 * stand in: of any type, or one per processor.  A fake slot with '@cpu' is a processor of its
 * own, to which its jobs are bound: two that share it slow each other down.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct cgroup_device;
struct cluster;
struct error;

#define GPUS_MAX 256

enum gpus_source { GPUS_NVML, GPUS_ROCM, GPUS_FAKE, GPUS_CPU };

struct gpu {
    const char *type; /* "a100": from the maker's name, in lower case */
    uint32_t index;   /* as in CUDA_VISIBLE_DEVICES */
    char uuid[96];    /* "": not known */
    uint64_t kfd_id;  /* AMD: the driver's number for it */
    char device[48];  /* its file below /dev; "": none that only it has */
    int core;         /* processor that its jobs are bound to; -1: none */
    uint64_t bytes;   /* of memory; 0: not known */
    bool exclusive;   /* one process at a time may use it, by NVIDIA's compute mode */
};

/* Where to search; NULL: at the usual place. */
struct gpus_setup {
    const char *fake; /* "v100:4,p100:2@cpu": fake slots; NULL: none */
    const char *nvml; /* the library */
    const char *kfd;  /* folder of the AMD driver */
    const char *dev;  /* folder of device files; a constant */
};

struct nvml;

struct gpus {
    enum gpus_source source;
    struct gpu *items; /* grouped by type, in order of their index */
    uint32_t count;
    const char **left_out; /* sentences about GPUs that are not among them */
    uint32_t left_out_count;
    struct nvml *nvml; /* or NULL */
    const char *kfd, *dev;
};

/* Memory is taken from 'arena'; release the library. -EINVAL: 'fake' is malformed. */
int gpus_find(struct gpus *gpus, struct arena *arena, const struct gpus_setup *setup,
              struct error *err);
void gpus_release(struct gpus *gpus);

/*
 * This machine as a cluster: a node for each type, with a share of processors and
 * memory by its number of GPUs.  By node * NODE_GPUS_MAX + bit, *ret_index has the
 * index that jobs are given, for struct local_setup, *ret_core the processor they are bound
 * to, or -1, and *ret_item the index in 'items'.
 */
int gpus_cluster(const struct gpus *gpus, struct cluster *cluster, struct arena *arena,
                 const uint32_t **ret_index, const int **ret_core,
                 const uint32_t **ret_item, struct error *err);

#define GPU_JOBS_MAX 8 /* on one GPU; more are not told apart */

/* Memory that a job's processes have on a GPU. */
struct gpu_job {
    uint64_t id;
    uint32_t attempt;
    uint64_t bytes;
};

/* What a GPU does now. */
struct gpu_use {
    bool foreign; /* a process that Berth did not start uses it */
    int busy;     /* percent of the last moment; -1: not known */
    uint32_t job_count;
    struct gpu_job jobs[GPU_JOBS_MAX];
};

/*
 * What all GPUs do now, one of 'uses' for each.  Processes of ours are those in a cgroup of
 * the berthd of 'run_dir', or started below it.  It changes nothing, and may run in a thread
 * of its own.
 */
void gpus_find_use(const struct gpus *gpus, const char *run_dir, struct gpu_use *uses);

/* The control daemon of NVIDIA's MPS runs that has its pipes in this folder (NULL: none). */
bool gpus_mps_runs(const char *folder);

/*
 * The folder of pipes that jobs are to be told: 'folder' if it is set, else the usual one if a
 * control daemon of root or of this user runs there, else NULL.
 */
const char *gpus_mps_folder(const char *folder);

/* The devices of all GPUs but those in 'allowed' ("0,3"); how many. */
uint32_t gpus_list_others(const struct gpus *gpus, const char *allowed,
                          struct cgroup_device *devices, uint32_t max);

/* "NVIDIA GeForce RTX 2080 Ti" is "rtx2080ti", "Tesla V100-SXM2-16GB" is "v100". */
void gpus_type_word(const char *name, char *word, unsigned size);
