/* nvml.c - NVIDIA's management library, as far as Berth asks it. */
#include "host/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"

/*
 * The few types that are needed, as the library's manual gives them.  Names with a version
 * at the end are those of every driver since 2014; the list of processes has had three
 * layouts, of which two matter, and memory has two.
 */
#define INSUFFICIENT_SIZE 7
#define MEMORY_VERSION ((unsigned)sizeof(struct nvml_memory) | 2u << 24)

struct nvml_device;

struct nvml_listed {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, compute_instance;
};

struct nvml_listed_v1 {
    unsigned pid;
    unsigned long long bytes;
};

struct nvml_utilization {
    unsigned gpu, memory; /* percent */
};

struct nvml_memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct nvml_memory_v1 {
    unsigned long long total, free, used;
};

typedef int nvml_list(struct nvml_device *device, unsigned *count,
                      struct nvml_listed *list);

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, struct nvml_device **ret);
    int (*name)(struct nvml_device *device, char *text, unsigned size);
    int (*uuid)(struct nvml_device *device, char *text, unsigned size);
    int (*minor)(struct nvml_device *device, unsigned *ret);
    int (*busy)(struct nvml_device *device, struct nvml_utilization *ret);
    int (*memory)(struct nvml_device *device, struct nvml_memory *ret);
    int (*memory_v1)(struct nvml_device *device, struct nvml_memory_v1 *ret);
    int (*mig)(struct nvml_device *device, unsigned *now, unsigned *pending);
    int (*mode)(struct nvml_device *device, int *ret);
    nvml_list *processes, *mps_processes;
    int (*processes_v1)(struct nvml_device *device, unsigned *count,
                        struct nvml_listed_v1 *list);
};

/* In C an object pointer becomes a function pointer only through memory. */
static void *look_up(void *library, const char *name)
{
    return dlsym(library, name);
}

#define FIND(nvml, field, name) \
    (*(void **)(void *)&(nvml)->field = look_up((nvml)->library, name))

static bool find_functions(struct nvml *nvml)
{
    FIND(nvml, init, "nvmlInit_v2");
    FIND(nvml, shutdown, "nvmlShutdown");
    FIND(nvml, count, "nvmlDeviceGetCount_v2");
    FIND(nvml, by_index, "nvmlDeviceGetHandleByIndex_v2");
    FIND(nvml, name, "nvmlDeviceGetName");
    FIND(nvml, uuid, "nvmlDeviceGetUUID");
    FIND(nvml, minor, "nvmlDeviceGetMinorNumber");
    FIND(nvml, busy, "nvmlDeviceGetUtilizationRates");
    FIND(nvml, memory, "nvmlDeviceGetMemoryInfo_v2");
    FIND(nvml, memory_v1, "nvmlDeviceGetMemoryInfo");
    FIND(nvml, mig, "nvmlDeviceGetMigMode");
    FIND(nvml, mode, "nvmlDeviceGetComputeMode");
    if (!FIND(nvml, processes, "nvmlDeviceGetComputeRunningProcesses_v3"))
        FIND(nvml, processes, "nvmlDeviceGetComputeRunningProcesses_v2");
    if (!FIND(nvml, mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v3"))
        FIND(nvml, mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v2");
    FIND(nvml, processes_v1, "nvmlDeviceGetComputeRunningProcesses");
    return nvml->init && nvml->shutdown && nvml->count && nvml->by_index &&
           nvml->name && nvml->uuid;
}

struct nvml *nvml_open(const char *path)
{
    struct nvml *nvml = memory_checked(calloc(1, sizeof *nvml));
    nvml->library = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nvml->library && find_functions(nvml) && nvml->init() == 0)
        return nvml;
    if (nvml->library)
        dlclose(nvml->library);
    free(nvml);
    return NULL;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

uint32_t nvml_count(const struct nvml *nvml)
{
    unsigned count = 0;
    return nvml->count(&count) == 0 ? count : 0;
}

/* What the driver keeps for itself is no program's: old drivers do not tell it apart. */
static uint64_t find_memory(const struct nvml *nvml, struct nvml_device *device)
{
    struct nvml_memory memory = { .version = MEMORY_VERSION };
    if (nvml->memory && nvml->memory(device, &memory) == 0 &&
        memory.reserved <= memory.total)
        return memory.total - memory.reserved;
    struct nvml_memory_v1 old = { 0 };
    bool known = nvml->memory_v1 && nvml->memory_v1(device, &old) == 0;
    return known ? old.total : 0;
}

bool nvml_describe(const struct nvml *nvml, uint32_t index, struct nvml_gpu *ret)
{
    struct nvml_device *device;
    unsigned minor, mig = 0, pending = 0;
    int mode = NVML_MODE_DEFAULT;
    *ret = (struct nvml_gpu){ .minor = -1 };
    if (nvml->by_index(index, &device) != 0 ||
        nvml->name(device, ret->name, sizeof ret->name) != 0)
        return false;
    ret->name[sizeof ret->name - 1] = '\0';
    if (nvml->uuid(device, ret->uuid, sizeof ret->uuid) != 0)
        ret->uuid[0] = '\0';
    ret->uuid[sizeof ret->uuid - 1] = '\0';
    if (nvml->minor && nvml->minor(device, &minor) == 0)
        ret->minor = (int)minor;
    ret->bytes = find_memory(nvml, device);
    ret->mig = nvml->mig && nvml->mig(device, &mig, &pending) == 0 && mig == 1;
    if (nvml->mode && nvml->mode(device, &mode) == 0 && mode >= 0 &&
        mode <= NVML_MODE_EXCLUSIVE_PROCESS)
        ret->mode = (enum nvml_mode)mode;
    return true;
}

int nvml_busy(const struct nvml *nvml, uint32_t index)
{
    struct nvml_device *device;
    struct nvml_utilization use;
    if (!nvml->busy || nvml->by_index(index, &device) != 0 ||
        nvml->busy(device, &use) != 0 || use.gpu > 100)
        return -1;
    return (int)use.gpu;
}

/* A client of MPS may be in both lists. */
static int add_process(struct nvml_process list[NVML_PROCESSES_MAX], int count,
                       unsigned pid, unsigned long long bytes)
{
    int at = 0;
    while (at < count && list[at].pid != (int)pid)
        at++;
    if (at == NVML_PROCESSES_MAX)
        return -ENOSPC;
    if (at == count)
        list[count++] = (struct nvml_process){ (int)pid, bytes };
    else if (list[at].bytes == NVML_BYTES_UNKNOWN ||
             (bytes != NVML_BYTES_UNKNOWN && bytes > list[at].bytes))
        list[at].bytes = bytes;
    return count;
}

/* Add what a function lists; -EIO if it does not answer. */
static int add_list(nvml_list *function, struct nvml_device *device,
                    struct nvml_process list[NVML_PROCESSES_MAX], int count)
{
    struct nvml_listed found[NVML_PROCESSES_MAX];
    unsigned found_count = NVML_PROCESSES_MAX;
    int r = function(device, &found_count, found);
    if (r != 0 || found_count > NVML_PROCESSES_MAX)
        return r == INSUFFICIENT_SIZE ? -ENOSPC : -EIO;
    for (unsigned i = 0; i < found_count && count >= 0; i++)
        count = add_process(list, count, found[i].pid, found[i].bytes);
    return count;
}

static int list_v1(const struct nvml *nvml, struct nvml_device *device,
                   struct nvml_process list[NVML_PROCESSES_MAX])
{
    struct nvml_listed_v1 found[NVML_PROCESSES_MAX];
    unsigned found_count = NVML_PROCESSES_MAX;
    int r = nvml->processes_v1 ? nvml->processes_v1(device, &found_count, found) : -1;
    if (r != 0 || found_count > NVML_PROCESSES_MAX)
        return r == INSUFFICIENT_SIZE ? -ENOSPC : -EIO;
    int count = 0;
    for (unsigned i = 0; i < found_count && count >= 0; i++)
        count = add_process(list, count, found[i].pid, found[i].bytes);
    return count;
}

int nvml_processes(const struct nvml *nvml, uint32_t index,
                   struct nvml_process list[NVML_PROCESSES_MAX])
{
    struct nvml_device *device;
    if (nvml->by_index(index, &device) != 0)
        return -EIO;
    if (!nvml->processes)
        return list_v1(nvml, device, list);
    int count = add_list(nvml->processes, device, list, 0);
    if (count < 0 || !nvml->mps_processes)
        return count;
    int both = add_list(nvml->mps_processes, device, list, count);
    return both == -EIO ? count : both; /* GPUs and drivers without MPS */
}
