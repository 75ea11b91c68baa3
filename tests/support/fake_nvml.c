/*
 * fake_nvml.c - a machine with three GPUs, for tests: a library that looks like NVIDIA's.
 *
 * FAKE_NVML_PID is a process that computes on the second of them, while it lives.  They are
 * busy by 10, 20 and 30 percent.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, compute_instance;
};

static const char *const names[] = { "Tesla V100-SXM2-16GB",
                                     "NVIDIA GeForce RTX 2080 Ti",
                                     "Tesla V100-SXM2-16GB" };

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetName(void *device, char *text, unsigned size);
int nvmlDeviceGetUUID(void *device, char *text, unsigned size);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *list);

int nvmlDeviceGetUtilizationRates(void *device, unsigned ret[2]);
int nvmlDeviceGetMinorNumber(void *device, unsigned *number);

/* Numbered backwards: a device file is not called by the index. */
int nvmlDeviceGetMinorNumber(void *device, unsigned *number)
{
    *number = 2 - (unsigned)((const char **)device - names);
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned ret[2])
{
    ret[0] = 10 + 10 * (unsigned)((const char **)device - names);
    ret[1] = 0;
    return 0;
}

int nvmlInit_v2(void)
{
    return getenv("FAKE_NVML_BROKEN") ? 9 : 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 3;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)&names[index];
    return index < 3 ? 0 : 2;
}

int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    snprintf(text, size, "%s", *(const char **)device);
    return 0;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    snprintf(text, size, "GPU-%d", (int)((const char **)device - names));
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *list)
{
    const char *pid = getenv("FAKE_NVML_PID");
    *count = pid && device == (void *)&names[1] && kill(atoi(pid), 0) == 0;
    if (*count)
        list[0] = (struct process){ .pid = (unsigned)atoi(pid), .bytes = 1 };
    return 0;
}
