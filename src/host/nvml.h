/*
 * nvml.h - NVIDIA's management library, as far as Berth asks it.
 *
 * It is loaded at run time and never needed to build.  GPUs go by its index.  Its functions
 * may be called by several threads at once, and so may these, between open and close.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nvml;

#define NVML_TEXT_MAX 96
#define NVML_PROCESSES_MAX 1024
#define NVML_BYTES_UNKNOWN UINT64_MAX

/* Which processes may compute on a GPU, by the library's numbers. */
enum nvml_mode {
    NVML_MODE_DEFAULT = 0,
    NVML_MODE_EXCLUSIVE_THREAD = 1, /* of old drivers */
    NVML_MODE_PROHIBITED = 2,
    NVML_MODE_EXCLUSIVE_PROCESS = 3,
};

struct nvml_gpu {
    char name[NVML_TEXT_MAX];
    char uuid[NVML_TEXT_MAX]; /* "": not known */
    int minor;      /* of its device file, which need not be its index; -1: not known */
    uint64_t bytes; /* of memory that programs can have; 0: not known */
    bool mig;       /* divided into instances */
    enum nvml_mode mode;
};

struct nvml_process {
    int pid;
    uint64_t bytes; /* of memory on this GPU, or NVML_BYTES_UNKNOWN */
};

/* NULL: not installed, or it finds no driver.  'path' NULL: the usual name. */
struct nvml *nvml_open(const char *path);
void nvml_close(struct nvml *nvml);

uint32_t nvml_count(const struct nvml *nvml);

/* False: it does not answer. */
bool nvml_describe(const struct nvml *nvml, uint32_t index, struct nvml_gpu *ret);

/* Percent of the last moment in which it computed; -1: not known. */
int nvml_busy(const struct nvml *nvml, uint32_t index);

/*
 * The processes that compute on it, by themselves or by way of MPS, each once: how many.
 * -EIO: not known; -ENOSPC: more than NVML_PROCESSES_MAX.
 */
int nvml_processes(const struct nvml *nvml, uint32_t index,
                   struct nvml_process list[NVML_PROCESSES_MAX]);
