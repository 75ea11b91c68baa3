/*
 * nvml.c - NVIDIA's management library, if installed.
 *
 * Loaded at run time; the few types needed are declared here as its manual gives them.
 * Names with a version at the end are those of every driver since 2014; the list of
 * processes has had three layouts, of which two matter.
 */
#include "host/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/memory.h"

struct device;

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, compute_instance; /* since version 2 */
};

struct process_v1 {
    unsigned pid;
    unsigned long long bytes;
};

struct utilization {
    unsigned gpu, memory; /* percent */
};

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, struct device **ret);
    int (*name)(struct device *device, char *text, unsigned size);
    int (*uuid)(struct device *device, char *text, unsigned size);
    int (*busy)(struct device *device, struct utilization *ret);
    int (*processes)(struct device *device, unsigned *count, struct process *list);
    int (*processes_v1)(struct device *device, unsigned *count,
                        struct process_v1 *list);
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
    FIND(nvml, busy, "nvmlDeviceGetUtilizationRates");
    if (!FIND(nvml, processes, "nvmlDeviceGetComputeRunningProcesses_v3"))
        FIND(nvml, processes, "nvmlDeviceGetComputeRunningProcesses_v2");
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

bool nvml_describe(const struct nvml *nvml, uint32_t index, char name[96],
                   char uuid[96])
{
    struct device *device;
    if (nvml->by_index(index, &device) != 0 || nvml->name(device, name, 96) != 0)
        return false;
    name[95] = '\0';
    if (nvml->uuid(device, uuid, 96) != 0)
        uuid[0] = '\0';
    uuid[95] = '\0';
    return true;
}

int nvml_busy(const struct nvml *nvml, uint32_t index)
{
    struct device *device;
    struct utilization use;
    if (!nvml->busy || nvml->by_index(index, &device) != 0 ||
        nvml->busy(device, &use) != 0 || use.gpu > 100)
        return -1;
    return (int)use.gpu;
}

uint32_t nvml_processes(const struct nvml *nvml, uint32_t index,
                        int pids[NVML_PROCESSES_MAX])
{
    struct device *device;
    unsigned count = NVML_PROCESSES_MAX;
    if (nvml->by_index(index, &device) != 0)
        return 0;
    if (nvml->processes) {
        struct process list[NVML_PROCESSES_MAX];
        if (nvml->processes(device, &count, list) != 0 || count > NVML_PROCESSES_MAX)
            return 0;
        for (unsigned i = 0; i < count; i++)
            pids[i] = (int)list[i].pid;
        return count;
    }
    struct process_v1 list[NVML_PROCESSES_MAX];
    if (!nvml->processes_v1 || nvml->processes_v1(device, &count, list) != 0 ||
        count > NVML_PROCESSES_MAX)
        return 0;
    for (unsigned i = 0; i < count; i++)
        pids[i] = (int)list[i].pid;
    return count;
}
