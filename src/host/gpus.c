/* gpus.c - the GPUs of this machine, and which other processes use them. */
#include "host/gpus.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"
#include "host/attempt.h"
#include "host/leftovers.h"
#include "model/cluster.h"
#include "host/machine.h"

#define KFD "/sys/class/kfd/kfd"
#define TYPE_WORD_MAX 32

/* --- names ----------------------------------------------------------------------------- */

static bool is_one_of(const char *word, size_t length, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == length && strncasecmp(word, *list, length) == 0)
            return true;
    return false;
}

static bool is_letters(const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalpha((unsigned char)word[i]))
            return false;
    return true;
}

/* Makers' and families' names are dropped; "RTX" is half a name; "Ti" belongs to it. */
void gpus_type_word(const char *name, char *word, unsigned size)
{
    static const char *const skipped[] = { "NVIDIA", "Tesla",  "GeForce",  "Quadro",
                                           "AMD",    "Radeon", "Instinct", "Graphics",
                                           "Device", NULL };
    static const char *const suffixes[] = { "Ti", "SUPER", NULL };
    unsigned used = 0;
    bool whole = false;
    for (const char *at = name + strspn(name, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " -/");
        bool suffix = is_one_of(at, length, suffixes);
        if (whole && !suffix)
            break;
        if (used > 0 || !is_one_of(at, length, skipped)) {
            for (size_t i = 0; i < length && used + 1 < size; i++)
                if (isalnum((unsigned char)at[i]))
                    word[used++] = (char)tolower((unsigned char)at[i]);
            whole = whole || !is_letters(at, length);
        }
        at += strcspn(at, " ");
    }
    word[used] = '\0';
    if (used == 0)
        snprintf(word, size, "gpu");
}

/* --- NVIDIA's management library ----------------------------------------------------- */

/*
 * Loaded at run time, if installed; the few types needed are declared here as its manual
 * gives them.  Names with a version at the end are those of every driver since 2014; the
 * list of processes has had three layouts, of which two matter.
 */
#define NVML_PROCESSES_MAX 256

struct nvml_device;

struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, compute_instance; /* since version 2 */
};

struct nvml_process_v1 {
    unsigned pid;
    unsigned long long bytes;
};

struct nvml_utilization {
    unsigned gpu, memory; /* percent */
};

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, struct nvml_device **ret);
    int (*name)(struct nvml_device *device, char *text, unsigned size);
    int (*uuid)(struct nvml_device *device, char *text, unsigned size);
    int (*number)(struct nvml_device *device, unsigned *number);
    int (*busy)(struct nvml_device *device, struct nvml_utilization *ret);
    int (*processes)(struct nvml_device *device, unsigned *count,
                     struct nvml_process *list);
    int (*processes_v1)(struct nvml_device *device, unsigned *count,
                        struct nvml_process_v1 *list);
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
    FIND(nvml, number, "nvmlDeviceGetMinorNumber");
    FIND(nvml, busy, "nvmlDeviceGetUtilizationRates");
    if (!FIND(nvml, processes, "nvmlDeviceGetComputeRunningProcesses_v3"))
        FIND(nvml, processes, "nvmlDeviceGetComputeRunningProcesses_v2");
    FIND(nvml, processes_v1, "nvmlDeviceGetComputeRunningProcesses");
    return nvml->init && nvml->shutdown && nvml->count && nvml->by_index &&
           nvml->name && nvml->uuid;
}

/* NULL: not installed, or it finds no driver.  'path' NULL: the usual name. */
static struct nvml *nvml_open(const char *path)
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

static void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

static uint32_t nvml_count(const struct nvml *nvml)
{
    unsigned count = 0;
    return nvml->count(&count) == 0 ? count : 0;
}

/* Its name and a permanent id; false: it does not answer. */
static bool nvml_describe(const struct nvml *nvml, uint32_t index, char name[96],
                          char uuid[96])
{
    struct nvml_device *device;
    if (nvml->by_index(index, &device) != 0 || nvml->name(device, name, 96) != 0)
        return false;
    name[95] = '\0';
    if (nvml->uuid(device, uuid, 96) != 0)
        uuid[0] = '\0';
    uuid[95] = '\0';
    return true;
}

/* Its device file is called by a number that need not be its index. */
static void nvml_name_device(const struct nvml *nvml, struct gpu *gpu)
{
    struct nvml_device *device;
    unsigned number;
    if (nvml->number && nvml->by_index(gpu->index, &device) == 0 &&
        nvml->number(device, &number) == 0)
        snprintf(gpu->device, sizeof gpu->device, "nvidia%u", number);
}

/* Percent of the last moment in which it computed; -1: unknown. */
static int nvml_busy(const struct nvml *nvml, uint32_t index)
{
    struct nvml_device *device;
    struct nvml_utilization use;
    if (!nvml->busy || nvml->by_index(index, &device) != 0 ||
        nvml->busy(device, &use) != 0 || use.gpu > 100)
        return -1;
    return (int)use.gpu;
}

/* Processes that compute on it; returns how many. */
static uint32_t nvml_processes(const struct nvml *nvml, uint32_t index,
                               int pids[NVML_PROCESSES_MAX])
{
    struct nvml_device *device;
    unsigned count = NVML_PROCESSES_MAX;
    if (nvml->by_index(index, &device) != 0)
        return 0;
    if (nvml->processes) {
        struct nvml_process list[NVML_PROCESSES_MAX];
        if (nvml->processes(device, &count, list) != 0 || count > NVML_PROCESSES_MAX)
            return 0;
        for (unsigned i = 0; i < count; i++)
            pids[i] = (int)list[i].pid;
        return count;
    }
    struct nvml_process_v1 list[NVML_PROCESSES_MAX];
    if (!nvml->processes_v1 || nvml->processes_v1(device, &count, list) != 0 ||
        count > NVML_PROCESSES_MAX)
        return 0;
    for (unsigned i = 0; i < count; i++)
        pids[i] = (int)list[i].pid;
    return count;
}

/* --- discovery -------------------------------------------------------------------- */

static struct gpu *add_gpu(struct gpus *gpus, struct arena *arena, const char *type,
                           uint32_t index)
{
    struct gpu *gpu = &gpus->items[gpus->count++];
    *gpu = (struct gpu){ .index = index, .core = -1 };
    for (uint32_t i = 0; i + 1 < gpus->count && !gpu->type; i++)
        if (strcmp(gpus->items[i].type, type) == 0)
            gpu->type = gpus->items[i].type;
    if (!gpu->type)
        gpu->type = arena_text(arena, type);
    return gpu;
}

static bool find_nvml(struct gpus *gpus, struct arena *arena, const char *path)
{
    gpus->nvml = nvml_open(path);
    uint32_t count = gpus->nvml ? nvml_count(gpus->nvml) : 0;
    for (uint32_t i = 0; i < count && gpus->count < GPUS_MAX; i++) {
        char name[96], uuid[96], type[TYPE_WORD_MAX];
        if (!nvml_describe(gpus->nvml, i, name, uuid))
            continue;
        gpus_type_word(name, type, sizeof type);
        struct gpu *gpu = add_gpu(gpus, arena, type, i);
        memcpy(gpu->uuid, uuid, sizeof uuid);
        nvml_name_device(gpus->nvml, gpu);
    }
    if (gpus->count == 0) {
        nvml_close(gpus->nvml);
        gpus->nvml = NULL;
    }
    return gpus->count > 0;
}

static bool read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t count = file ? fread(text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    text[count] = '\0';
    return count > 0;
}

/* "simd_count 304" in a list of properties; 0: not there. */
static uint64_t read_property(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; at; at = (at = strchr(at, '\n')) ? at + 1 : NULL)
        if (strncmp(at, name, length) == 0 && at[length] == ' ')
            return strtoull(at + length + 1, NULL, 10);
    return 0;
}

/* The driver's topology: processors are nodes as well, those with SIMD units are GPUs. */
static bool find_kfd(struct gpus *gpus, struct arena *arena, const char *kfd)
{
    for (uint32_t node = 0; node < 2 * GPUS_MAX && gpus->count < GPUS_MAX; node++) {
        char path[512], text[4096], name[96] = "", type[TYPE_WORD_MAX];
        snprintf(path, sizeof path, "%s/topology/nodes/%u/properties", kfd, node);
        if (!read_text(path, text, sizeof text))
            break;
        if (read_property(text, "simd_count") == 0)
            continue;
        uint64_t unique = read_property(text, "unique_id");
        uint64_t version = read_property(text, "gfx_target_version");
        uint64_t render = read_property(text, "drm_render_minor");
        snprintf(path, sizeof path, "%s/topology/nodes/%u/name", kfd, node);
        read_text(path, name, sizeof name);
        name[strcspn(name, "\n")] = '\0';
        if (name[0] == '\0')
            snprintf(name, sizeof name, "gfx%" PRIu64, version);
        gpus_type_word(name, type, sizeof type);
        struct gpu *gpu = add_gpu(gpus, arena, type, gpus->count);
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%" PRIx64, unique);
        if (render > 0)
            snprintf(gpu->device, sizeof gpu->device, "dri/renderD%" PRIu64, render);
        snprintf(path, sizeof path, "%s/topology/nodes/%u/gpu_id", kfd, node);
        if (read_text(path, text, sizeof text))
            gpu->kfd_id = strtoull(text, NULL, 10);
    }
    gpus->kfd = arena_text(arena, kfd);
    return gpus->count > 0;
}

/* Processors that this process may use. */
static uint32_t find_cores(cpu_set_t *set)
{
    CPU_ZERO(set);
    int count = sched_getaffinity(0, sizeof *set, set) == 0 ? CPU_COUNT(set) : 0;
    return count > 0 ? (uint32_t)count : 1;
}

/* The next processor after 'core' that this process may use; -1: there is none. */
static int next_core(const cpu_set_t *set, int core)
{
    for (core++; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, set))
            return core;
    return -1;
}

static int find_fake(struct gpus *gpus, struct arena *arena, const char *text,
                     struct error *err)
{
    static const char cpu[] = "@cpu";
    cpu_set_t set;
    uint32_t core_count = find_cores(&set);
    int core = -1;
    for (const char *at = text;;) {
        char type[TYPE_WORD_MAX], *end;
        size_t length = strcspn(at, ":,");
        bool named = length > 0 && length < sizeof type && at[length] == ':' &&
                     isdigit((unsigned char)at[length + 1]);
        for (size_t i = 0; named && i < length; i++)
            named = isalnum((unsigned char)at[i]) || strchr("-_.", at[i]);
        if (!named)
            return error_set(err, -EINVAL,
                             "GPUs are '%.60s', want TYPE:N[@cpu][,TYPE:N[@cpu]]",
                             text);
        memcpy(type, at, length);
        type[length] = '\0';
        unsigned long count = strtoul(at + length + 1, &end, 10);
        bool bound = strncmp(end, cpu, strlen(cpu)) == 0;
        end += bound ? strlen(cpu) : 0;
        if ((*end != '\0' && *end != ',') || count == 0)
            return error_set(err, -EINVAL,
                             "GPUs are '%.60s', want TYPE:N[@cpu][,TYPE:N[@cpu]]",
                             text);
        if (count > GPUS_MAX - gpus->count)
            return error_set(err, -EINVAL, "GPUs are '%.60s', %d are the most", text,
                             GPUS_MAX);
        for (; count > 0; count--) {
            struct gpu *gpu = add_gpu(gpus, arena, type, gpus->count);
            if (bound && (gpu->core = core = next_core(&set, core)) < 0)
                return error_set(err, -EINVAL,
                                 "GPUs are '%.60s', bound to more processors than the "
                                 "%u there are",
                                 text, core_count);
        }
        if (*end == '\0')
            return 0;
        at = end + 1;
    }
}

static uint32_t cpu_count(void)
{
    cpu_set_t set;
    return find_cores(&set);
}

static int by_type_and_index(const void *a, const void *b)
{
    const struct gpu *x = a, *y = b;
    int order = strcmp(x->type, y->type);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

int gpus_find(struct gpus *gpus, struct arena *arena, const struct gpus_setup *setup,
              struct error *err)
{
    *gpus = (struct gpus){ .items = arena_array(arena, struct gpu, GPUS_MAX),
                           .dev = setup->dev ? setup->dev : "/dev" };
    int r = 0;
    if (setup->fake) {
        gpus->source = GPUS_FAKE;
        r = find_fake(gpus, arena, setup->fake, err);
    } else if (find_nvml(gpus, arena, setup->nvml)) {
        gpus->source = GPUS_NVML;
    } else if (find_kfd(gpus, arena, setup->kfd ? setup->kfd : KFD)) {
        gpus->source = GPUS_ROCM;
    } else {
        gpus->source = GPUS_CPU;
        uint32_t count = cpu_count();
        while (gpus->count < count && gpus->count < GPUS_MAX)
            add_gpu(gpus, arena, "cpu", gpus->count);
    }
    qsort(gpus->items, gpus->count, sizeof *gpus->items, by_type_and_index);
    return r;
}

void gpus_release(struct gpus *gpus)
{
    nvml_close(gpus->nvml);
    gpus->nvml = NULL;
}

/* --- as a cluster ------------------------------------------------------------------------- */

static uint32_t memory_mib(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGE_SIZE);
    uint64_t mib = pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes >> 20 : 0;
    return mib > UINT32_MAX ? UINT32_MAX : (uint32_t)mib;
}

/* How many GPUs from 'first' on go into one node. */
static uint32_t node_size(const struct gpus *gpus, uint32_t first)
{
    uint32_t count = 1;
    while (first + count < gpus->count && count < NODE_GPUS_MAX &&
           gpus->items[first + count].type == gpus->items[first].type)
        count++;
    return count;
}

static uint32_t share_of(uint32_t whole, uint32_t part, uint32_t of)
{
    return (uint32_t)((uint64_t)whole * part / of);
}

int gpus_cluster(const struct gpus *gpus, struct cluster *cluster, struct arena *arena,
                 const uint32_t **ret_index, const int **ret_core,
                 const uint32_t **ret_item, struct error *err)
{
    char host[64] = "local", name[128];
    gethostname(host, sizeof host - 1);
    uint32_t node_max = gpus->count; /* each may be of another type */
    uint32_t *index = arena_array(arena, uint32_t, node_max * NODE_GPUS_MAX);
    int *cores = arena_array(arena, int, node_max *NODE_GPUS_MAX);
    uint32_t *items = arena_array(arena, uint32_t, node_max * NODE_GPUS_MAX);
    uint32_t cpu_milli = cpu_count() * 1000, mem_mib = memory_mib();
    cluster_begin(cluster, arena, host, node_max);
    cluster->node_names = arena_array(arena, const char *, node_max);
    for (uint32_t first = 0, count; first < gpus->count; first += count) {
        const char *type = gpus->items[first].type;
        count = node_size(gpus, first);
        struct node node = { .type = cluster_type(cluster, arena, type),
                             .gpu_count = count,
                             .cpu_milli = share_of(cpu_milli, count, gpus->count),
                             .mem_mib = share_of(mem_mib, count, gpus->count) };
        if (node.type == TYPES_MAX)
            return error_set(err, -EINVAL, "more than %d types of accelerators",
                             TYPES_MAX);
        uint32_t at = cluster->node_count;
        for (uint32_t g = 0; g < count; g++) {
            index[at * NODE_GPUS_MAX + g] = gpus->items[first + g].index;
            cores[at * NODE_GPUS_MAX + g] = gpus->items[first + g].core;
            items[at * NODE_GPUS_MAX + g] = first + g;
        }
        if (count == gpus->count)
            snprintf(name, sizeof name, "%s", host);
        else if (gpus->count > NODE_GPUS_MAX)
            snprintf(name, sizeof name, "%s/%.32s-%u", host, type, at);
        else
            snprintf(name, sizeof name, "%s/%.32s", host, type);
        cluster->node_names[at] = arena_text(arena, name);
        cluster_add(cluster, &node);
    }
    cluster_end(cluster, arena);
    *ret_index = index;
    *ret_core = cores;
    *ret_item = items;
    return 0;
}

/* --- use by other processes ------------------------------------------------------- */

/* By its cgroup, which all users may read, or by its environment. */
static bool is_ours(int pid, const char *run_dir)
{
    char mark[256], path[64], text[4096], group[CGROUP_NAME_MAX];
    attempt_cgroup_name(run_dir, group);
    snprintf(mark, sizeof mark, "/%s/", group);
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    if (read_text(path, text, sizeof text) && strstr(text, mark))
        return true;
    snprintf(mark, sizeof mark, "BERTH_PREEMPT_FILE=%s/jobs/", run_dir);
    return leftovers_marked(pid, mark);
}

static bool nvml_is_foreign(const struct gpus *gpus, const struct gpu *gpu,
                            const char *run_dir)
{
    int pids[NVML_PROCESSES_MAX];
    uint32_t count = nvml_processes(gpus->nvml, gpu->index, pids);
    for (uint32_t i = 0; i < count; i++)
        if (!is_ours(pids[i], run_dir))
            return true;
    return false;
}

/*
 * The driver has a folder for every process that uses it, with its memory on each GPU.
 */
static bool kfd_is_foreign(const struct gpus *gpus, const struct gpu *gpu,
                           const char *run_dir)
{
    char path[512], text[64];
    snprintf(path, sizeof path, "%s/proc", gpus->kfd);
    DIR *dir = opendir(path);
    bool foreign = false;
    for (struct dirent *entry; dir && !foreign && (entry = readdir(dir));) {
        int pid = atoi(entry->d_name);
        if (pid <= 0)
            continue;
        snprintf(path, sizeof path, "%s/proc/%d/vram_%" PRIu64, gpus->kfd, pid,
                 gpu->kfd_id);
        foreign = read_text(path, text, sizeof text) && strtoull(text, NULL, 10) > 0 &&
                  !is_ours(pid, run_dir);
    }
    if (dir)
        closedir(dir);
    return foreign;
}

uint32_t gpus_foreign(struct gpus *gpus, const char *run_dir)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < gpus->count; i++) {
        struct gpu *gpu = &gpus->items[i];
        gpu->foreign =
            (gpus->source == GPUS_NVML && nvml_is_foreign(gpus, gpu, run_dir)) ||
            (gpus->source == GPUS_ROCM && kfd_is_foreign(gpus, gpu, run_dir));
        gpu->busy = gpus->source == GPUS_NVML ? nvml_busy(gpus->nvml, gpu->index) : -1;
        count += gpu->foreign;
    }
    return count;
}

/* --- devices --------------------------------------------------------------------------- */

static bool is_in_list(const char *list, uint32_t number)
{
    for (const char *at = list; *at; at += *at == ',') {
        char *end;
        if (strtoul(at, &end, 10) == number && end != at)
            return true;
        at = end + strcspn(end, ",");
    }
    return false;
}

uint32_t gpus_list_others(const struct gpus *gpus, const char *allowed,
                          struct cgroup_device *devices, uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < gpus->count && count < max; i++) {
        const struct gpu *gpu = &gpus->items[i];
        char path[256];
        struct stat file;
        snprintf(path, sizeof path, "%s/%s", gpus->dev, gpu->device);
        if (gpu->device[0] && !is_in_list(allowed, gpu->index) &&
            stat(path, &file) == 0 && S_ISCHR(file.st_mode))
            devices[count++] =
                (struct cgroup_device){ major(file.st_rdev), minor(file.st_rdev) };
    }
    return count;
}

/* --- the machine as a cluster ------------------------------------------------------------ */

int machine_find(struct machine *machine, struct arena *arena, const char *fake,
                 struct error *err)
{
    static const char *const sources[] = { [GPUS_NVML] = "NVML",
                                           [GPUS_ROCM] = "ROCm",
                                           [GPUS_FAKE] = "--fake-gpus",
                                           [GPUS_CPU] = "CPU slots" };
    *machine = (struct machine){ 0 };
    machine->gpus = arena_new(arena, struct gpus);
    int r = gpus_find(machine->gpus, arena, &(struct gpus_setup){ .fake = fake }, err);
    if (r < 0)
        return r;
    machine->source = sources[machine->gpus->source];
    return gpus_cluster(machine->gpus, &machine->cluster, arena, &machine->gpu_index,
                        &machine->gpu_core, &machine->gpu_item, err);
}

void machine_release(struct machine *machine)
{
    if (machine->gpus)
        gpus_release(machine->gpus);
    machine->gpus = NULL;
}

bool machine_is_shared(const struct machine *machine)
{
    if (!machine->gpus)
        return false;
    return machine->gpus->source == GPUS_NVML || machine->gpus->source == GPUS_ROCM;
}

static uint64_t foreign_gpus(const struct machine *machine, node_id node)
{
    uint64_t bits = 0;
    for (uint32_t g = 0; g < machine->cluster.nodes[node].gpu_count; g++) {
        uint32_t item = machine->gpu_item[node * NODE_GPUS_MAX + g];
        if (machine->gpus->items[item].foreign)
            bits |= (uint64_t)1 << g;
    }
    return bits;
}

void machine_find_foreign(struct machine *machine, const char *run_dir,
                          uint64_t *ret_foreign)
{
    if (machine_is_shared(machine))
        gpus_foreign(machine->gpus, run_dir);
    for (node_id node = 0; node < machine->cluster.node_count; node++)
        ret_foreign[node] = machine->gpus ? foreign_gpus(machine, node) : 0;
}

int machine_busy(const struct machine *machine, node_id node, uint32_t gpu)
{
    if (!machine_is_shared(machine))
        return -1;
    uint32_t item = machine->gpu_item[node * NODE_GPUS_MAX + gpu];
    return machine->gpus->items[item].busy;
}

uint32_t machine_list_others(const struct machine *machine, const char *allowed,
                             struct cgroup_device *devices, uint32_t max)
{
    return machine_is_shared(machine)
               ? gpus_list_others(machine->gpus, allowed, devices, max)
               : 0;
}
