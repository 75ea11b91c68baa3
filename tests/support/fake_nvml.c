/*
 * fake_nvml.c - a machine with three GPUs, for tests: a library that looks like NVIDIA's.
 *
 * It holds its caller to the library's manual: a call before the first nvmlInit or after the
 * last nvmlShutdown, a handle that it did not give, a pointer that is NULL, a buffer that is
 * too small for what it may have to hold, a struct of another version, or an end without
 * nvmlShutdown ends the program with a sentence.  It proves calls; it computes nothing.
 *
 * FAKE_NVML_BROKEN: there is no driver.  FAKE_NVML_PID: a process that computes on the second
 * GPU, while it lives.  FAKE_NVML_FILE: what else there is, read at every call, by lines of
 * a word, the number of a GPU and at most two numbers more:
 *
 *     mig 1              the GPU is in MIG mode
 *     mode 0 3           its compute mode
 *     busy 0 80          percent; without it 10, 20 and 30
 *     process 0 17 4096  a process with so many bytes of its memory; -1: it does not tell
 *     mps 0 17 4096      the same by way of MPS
 *     crowd 0 2000       so many other processes
 *
 * With FAKE_NVML_OLD it is built as a library of 2014, without the newer functions.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OK,
    UNINITIALIZED,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    INSUFFICIENT_SIZE = 7,
    NO_DRIVER = 9
};

#define GPU_COUNT 3
#define NAME_SIZE 96 /* NVML_DEVICE_NAME_V2_BUFFER_SIZE */
#define UUID_SIZE 96 /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */
#define GIB (1ull << 30)

struct gpu {
    const char *name, *uuid;
    unsigned minor; /* numbered backwards: a device file is not called by the index */
    unsigned long long total, reserved;
};

static struct gpu gpus[GPU_COUNT] = {
    { "Tesla V100-SXM2-16GB", "GPU-0", 2, 16 * GIB, GIB / 2 },
    { "NVIDIA GeForce RTX 2080 Ti", "GPU-1", 1, 11 * GIB, GIB / 4 },
    { "Tesla V100-SXM2-16GB", "GPU-2", 0, 16 * GIB, GIB / 2 },
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int init_count;

#define REQUIRE(condition, ...) require(__func__, condition, __VA_ARGS__)

static void require(const char *function, bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "fake_nvml: %s: %s\n", function, what);
    abort();
}

static bool is_ready(void)
{
    pthread_mutex_lock(&lock);
    bool ready = init_count > 0;
    pthread_mutex_unlock(&lock);
    return ready;
}

#define REQUIRE_READY() \
    REQUIRE(is_ready(), "called before nvmlInit or after nvmlShutdown")

static unsigned index_of(const char *function, const void *device)
{
    require(function, is_ready(), "called before nvmlInit or after nvmlShutdown");
    for (unsigned i = 0; i < GPU_COUNT; i++)
        if (device == &gpus[i])
            return i;
    require(function, false, "a handle that was not given");
    return 0;
}

#define INDEX(device) index_of(__func__, device)

/* The next line of that word about that GPU; false: there is none. */
static bool next_line(FILE *file, const char *word, unsigned gpu, long long *ret_a,
                      long long *ret_b)
{
    char line[256], found[32];
    while (file && fgets(line, sizeof line, file)) {
        unsigned at;
        *ret_a = *ret_b = 0;
        int count = sscanf(line, "%31s %u %lld %lld", found, &at, ret_a, ret_b);
        if (count >= 2 && strcmp(found, word) == 0 && at == gpu)
            return true;
    }
    return false;
}

static FILE *open_lines(void)
{
    const char *path = getenv("FAKE_NVML_FILE");
    return path ? fopen(path, "re") : NULL;
}

static long long setting(const char *word, unsigned gpu, long long otherwise,
                         bool *ret_any)
{
    long long a, b;
    FILE *file = open_lines();
    bool any = next_line(file, word, gpu, &a, &b);
    if (file)
        fclose(file);
    if (ret_any)
        *ret_any = any;
    return any ? a : otherwise;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetName(void *device, char *text, unsigned size);
int nvmlDeviceGetUUID(void *device, char *text, unsigned size);
int nvmlDeviceGetMinorNumber(void *device, unsigned *number);

/* Counted: the library is there until the last nvmlShutdown. */
int nvmlInit_v2(void)
{
    if (getenv("FAKE_NVML_BROKEN"))
        return NO_DRIVER;
    pthread_mutex_lock(&lock);
    init_count++;
    pthread_mutex_unlock(&lock);
    return OK;
}

int nvmlShutdown(void)
{
    REQUIRE_READY();
    pthread_mutex_lock(&lock);
    init_count--;
    pthread_mutex_unlock(&lock);
    return OK;
}

__attribute__((destructor)) static void check_end(void)
{
    REQUIRE(!is_ready(), "the library is unloaded without nvmlShutdown");
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    REQUIRE_READY();
    REQUIRE(count, "count is NULL");
    *count = GPU_COUNT;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    REQUIRE_READY();
    REQUIRE(device, "device is NULL");
    REQUIRE(index < GPU_COUNT, "no such index");
    *device = &gpus[index];
    return OK;
}

int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    unsigned index = INDEX(device);
    REQUIRE(text && size >= NAME_SIZE, "the buffer is smaller than a name may be");
    snprintf(text, size, "%s", gpus[index].name);
    return OK;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    unsigned index = INDEX(device);
    REQUIRE(text && size >= UUID_SIZE, "the buffer is smaller than a UUID may be");
    snprintf(text, size, "%s", gpus[index].uuid);
    return OK;
}

int nvmlDeviceGetMinorNumber(void *device, unsigned *number)
{
    unsigned index = INDEX(device);
    REQUIRE(number, "number is NULL");
    *number = gpus[index].minor;
    return OK;
}

struct utilization {
    unsigned gpu, memory;
};

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *ret);

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *ret)
{
    unsigned index = INDEX(device);
    REQUIRE(ret, "utilization is NULL");
    *ret = (struct utilization){ .gpu = (unsigned)setting("busy", index,
                                                          10 + 10 * index, NULL) };
    return OK;
}

int nvmlDeviceGetComputeMode(void *device, int *mode);

int nvmlDeviceGetComputeMode(void *device, int *mode)
{
    unsigned index = INDEX(device);
    REQUIRE(mode, "mode is NULL");
    *mode = (int)setting("mode", index, 0, NULL);
    return OK;
}

struct memory_v1 {
    unsigned long long total, free, used;
};

int nvmlDeviceGetMemoryInfo(void *device, struct memory_v1 *ret);

int nvmlDeviceGetMemoryInfo(void *device, struct memory_v1 *ret)
{
    unsigned index = INDEX(device);
    REQUIRE(ret, "memory is NULL");
    *ret = (struct memory_v1){ .total = gpus[index].total, .free = gpus[index].total };
    return OK;
}

/* --- processes -------------------------------------------------------------------------- */

struct process {
    unsigned pid;
    unsigned long long bytes;
#ifndef FAKE_NVML_OLD
    unsigned instance, compute_instance;
#endif
};

struct list {
    unsigned *count;
    struct process *items;
    unsigned room, found;
};

static void add_process(struct list *list, long long pid, long long bytes)
{
    if (list->found < list->room)
        list->items[list->found] =
            (struct process){ .pid = (unsigned)pid,
                              .bytes = (unsigned long long)bytes };
    list->found++;
}

static void add_lines(struct list *list, const char *word, unsigned gpu)
{
    long long pid, bytes;
    FILE *file = open_lines();
    while (next_line(file, word, gpu, &pid, &bytes))
        if (kill((pid_t)pid, 0) == 0)
            add_process(list, pid, bytes);
    if (file)
        fclose(file);
}

/* With too little room the number of processes is the answer, and an error. */
static int end_list(const struct list *list)
{
    *list->count = list->found;
    return list->found > list->room ? INSUFFICIENT_SIZE : OK;
}

static int list_processes(const char *function, void *device, unsigned *count,
                          struct process *items)
{
    unsigned gpu = index_of(function, device);
    require(function, count && (items || *count == 0), "there is no list");
    struct list list = { .count = count, .items = items, .room = *count };
    const char *pid = getenv("FAKE_NVML_PID");
    if (pid && gpu == 1 && kill(atoi(pid), 0) == 0)
        add_process(&list, atoi(pid), 1);
    add_lines(&list, "process", gpu);
    for (long long i = setting("crowd", gpu, 0, NULL); i > 0; i--)
        add_process(&list, 1000000 + i, 1);
    return end_list(&list);
}

#ifdef FAKE_NVML_OLD

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count,
                                         struct process *list);

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count,
                                         struct process *list)
{
    return list_processes(__func__, device, count, list);
}

#else

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *list);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count,
                                               struct process *list);
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending);

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *list)
{
    return list_processes(__func__, device, count, list);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count,
                                               struct process *items)
{
    unsigned gpu = INDEX(device);
    REQUIRE(count && (items || *count == 0), "there is no list");
    struct list list = { .count = count, .items = items, .room = *count };
    add_lines(&list, "mps", gpu);
    return end_list(&list);
}

/* The RTX has no such mode. */
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending)
{
    bool any;
    unsigned index = INDEX(device);
    REQUIRE(now && pending, "a mode is NULL");
    setting("mig", index, 0, &any);
    if (index == 1 && !any)
        return NOT_SUPPORTED;
    *now = *pending = any;
    return OK;
}

struct memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *ret);

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *ret)
{
    unsigned index = INDEX(device);
    REQUIRE(ret, "memory is NULL");
    REQUIRE(ret->version == (sizeof *ret | 2u << 24), "memory is of another version");
    ret->total = gpus[index].total;
    ret->reserved = gpus[index].reserved;
    ret->free = ret->total - ret->reserved;
    ret->used = 0;
    return OK;
}

#endif
