/* gpus.c - the GPUs of this machine, and which other processes use them. */
#include "host/gpus.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
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
#include "host/nvml.h"
#include "model/cluster.h"
#include "host/machine.h"

#define KFD "/sys/class/kfd/kfd"
#define KFD_HEAP_PUBLIC 1
#define KFD_HEAP_PRIVATE 2
#define BANKS_MAX 16
#define TYPE_WORD_MAX 32
#define MPS_COMM \
    "nvidia-cuda-mps" /* its server and its control daemon, cut at 15 characters */
#define MPS_FOLDER "/tmp/nvidia-mps" /* where it is unless said otherwise */
#define MPS_PID_FILE "nvidia-cuda-mps-control.pid"

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

static void leave_out(struct gpus *gpus, struct arena *arena, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void leave_out(struct gpus *gpus, struct arena *arena, const char *fmt, ...)
{
    char text[320];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    gpus->left_out[gpus->left_out_count++] = arena_text(arena, text);
}

/* Jobs can have it whole. */
static bool is_usable(struct gpus *gpus, struct arena *arena,
                      const struct nvml_gpu *found, const char *type, uint32_t index)
{
    if (found->mig)
        leave_out(gpus, arena,
                  "GPU %" PRIu32 " (%s) is in MIG mode, and Berth gives out whole GPUs "
                  "only: it is left out until 'nvidia-smi -i %" PRIu32
                  " -mig 0' ends that mode",
                  index, type, index);
    else if (found->mode == NVML_MODE_PROHIBITED)
        leave_out(gpus, arena,
                  "GPU %" PRIu32 " (%s) is in compute mode Prohibited, in which no "
                  "process can use it: it is left out until 'nvidia-smi -i %" PRIu32
                  " -c DEFAULT' ends that mode",
                  index, type, index);
    return !found->mig && found->mode != NVML_MODE_PROHIBITED;
}

static bool find_nvml(struct gpus *gpus, struct arena *arena, const char *path)
{
    gpus->nvml = nvml_open(path);
    uint32_t count = gpus->nvml ? nvml_count(gpus->nvml) : 0;
    for (uint32_t i = 0; i < count && i < GPUS_MAX; i++) {
        struct nvml_gpu found;
        char type[TYPE_WORD_MAX];
        if (!nvml_describe(gpus->nvml, i, &found))
            continue;
        gpus_type_word(found.name, type, sizeof type);
        if (!is_usable(gpus, arena, &found, type, i))
            continue;
        struct gpu *gpu = add_gpu(gpus, arena, type, i);
        memcpy(gpu->uuid, found.uuid, sizeof gpu->uuid);
        gpu->bytes = found.bytes;
        gpu->exclusive = found.mode != NVML_MODE_DEFAULT;
        if (found.minor >= 0)
            snprintf(gpu->device, sizeof gpu->device, "nvidia%d", found.minor);
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

/* Of its banks those of its own memory count: visible to all, or to it alone. */
static uint64_t find_kfd_memory(const char *kfd, uint32_t node)
{
    uint64_t bytes = 0;
    for (uint32_t bank = 0; bank < BANKS_MAX; bank++) {
        char path[512], text[1024];
        snprintf(path, sizeof path, "%s/topology/nodes/%u/mem_banks/%u/properties", kfd,
                 node, bank);
        if (!read_text(path, text, sizeof text))
            break;
        uint64_t heap = read_property(text, "heap_type");
        if (heap == KFD_HEAP_PUBLIC || heap == KFD_HEAP_PRIVATE)
            bytes += read_property(text, "size_in_bytes");
    }
    return bytes;
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
        gpu->bytes = find_kfd_memory(kfd, node);
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
                           .left_out = arena_array(arena, const char *, GPUS_MAX),
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

/* --- use by processes ------------------------------------------------------------- */

/* The job that a search for processes is about. */
struct marks {
    char group[CGROUP_NAME_MAX + 3]; /* "/berth-0123abcd/", in the name of a cgroup */
    char variable[256];              /* "BERTH_PREEMPT_FILE=RUN_DIR/jobs/"          */
};

static void make_marks(struct marks *marks, const char *run_dir)
{
    char group[CGROUP_NAME_MAX];
    attempt_cgroup_name(run_dir, group);
    snprintf(marks->group, sizeof marks->group, "/%s/", group);
    snprintf(marks->variable, sizeof marks->variable, "BERTH_PREEMPT_FILE=%s/jobs/",
             run_dir);
}

/*
 * The attempt that it belongs to, by its cgroup, which all users may read, or by its
 * environment; false: it is none of ours.
 */
static bool find_attempt(int pid, const struct marks *marks, uint64_t *ret_id,
                         uint32_t *ret_attempt)
{
    char path[64], text[4096], name[64];
    *ret_id = 0;
    *ret_attempt = 0;
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    const char *at =
        read_text(path, text, sizeof text) ? strstr(text, marks->group) : NULL;
    if (at)
        at += strlen(marks->group);
    else if (leftovers_read(pid, marks->variable, name, sizeof name))
        at = name;
    if (at)
        sscanf(at, "%" SCNu64 ".%" SCNu32, ret_id, ret_attempt);
    return at != NULL;
}

/* The server of NVIDIA's MPS is on every GPU that its clients use; they are listed themselves. */
static bool is_mps(int pid)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    return read_text(path, text, sizeof text) &&
           strncmp(text, MPS_COMM, strlen(MPS_COMM)) == 0;
}

/* A process has so much memory on the GPU. */
static void add_use(struct gpu_use *use, int pid, uint64_t bytes,
                    const struct marks *marks)
{
    uint64_t id;
    uint32_t attempt, i = 0;
    if (!find_attempt(pid, marks, &id, &attempt)) {
        use->foreign = use->foreign || !is_mps(pid);
        return;
    }
    while (i < use->job_count &&
           (use->jobs[i].id != id || use->jobs[i].attempt != attempt))
        i++;
    if (id == 0 || i == GPU_JOBS_MAX || bytes == NVML_BYTES_UNKNOWN)
        return;
    if (i == use->job_count)
        use->jobs[use->job_count++] = (struct gpu_job){ .id = id, .attempt = attempt };
    use->jobs[i].bytes += bytes;
}

static void find_nvml_use(const struct gpus *gpus, const struct gpu *gpu,
                          const struct marks *marks, struct gpu_use *use)
{
    struct nvml_process list[NVML_PROCESSES_MAX];
    int count = nvml_processes(gpus->nvml, gpu->index, list);
    use->foreign = count == -ENOSPC; /* no jobs of ours are so many processes */
    for (int i = 0; i < count; i++)
        add_use(use, list[i].pid, list[i].bytes, marks);
    use->busy = nvml_busy(gpus->nvml, gpu->index);
}

/*
 * The driver has a folder for every process that uses it, with its memory on each GPU.
 */
static void find_kfd_use(const struct gpus *gpus, const struct gpu *gpu,
                         const struct marks *marks, struct gpu_use *use)
{
    char path[512], text[64];
    snprintf(path, sizeof path, "%s/proc", gpus->kfd);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        int pid = atoi(entry->d_name);
        if (pid <= 0)
            continue;
        snprintf(path, sizeof path, "%s/proc/%d/vram_%" PRIu64, gpus->kfd, pid,
                 gpu->kfd_id);
        uint64_t bytes =
            read_text(path, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
        if (bytes > 0)
            add_use(use, pid, bytes, marks);
    }
    if (dir)
        closedir(dir);
}

void gpus_find_use(const struct gpus *gpus, const char *run_dir, struct gpu_use *uses)
{
    struct marks marks;
    make_marks(&marks, run_dir);
    for (uint32_t i = 0; i < gpus->count; i++) {
        uses[i] = (struct gpu_use){ .busy = -1 };
        if (gpus->source == GPUS_NVML)
            find_nvml_use(gpus, &gpus->items[i], &marks, &uses[i]);
        else if (gpus->source == GPUS_ROCM)
            find_kfd_use(gpus, &gpus->items[i], &marks, &uses[i]);
    }
}

/* A file of a process that has ended stays if it was killed; its number may be another's now. */
bool gpus_mps_runs(const char *folder)
{
    char path[512], text[64];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", MPS_PID_FILE);
    int pid = folder && read_text(path, text, sizeof text) ? atoi(text) : 0;
    if (pid <= 0 || (kill(pid, 0) < 0 && errno != EPERM))
        return false;
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    return !read_text(path, text, sizeof text) || is_mps(pid);
}

/* Any user may make the usual folder: the user of the control daemon counts. */
const char *gpus_mps_folder(const char *folder)
{
    struct stat file;
    bool ours = stat(MPS_FOLDER "/" MPS_PID_FILE, &file) == 0 &&
                (file.st_uid == 0 || file.st_uid == geteuid());
    if (folder)
        return folder;
    return ours && gpus_mps_runs(MPS_FOLDER) ? MPS_FOLDER : NULL;
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

void machine_find_use(const struct machine *machine, const char *run_dir,
                      struct gpu_use *uses)
{
    if (machine->gpus)
        gpus_find_use(machine->gpus, run_dir, uses);
}

uint32_t machine_gpu_count(const struct machine *machine)
{
    return machine->gpus ? machine->gpus->count : 0;
}

uint32_t machine_gpu(const struct machine *machine, node_id node, uint32_t gpu)
{
    return machine->gpu_item[node * NODE_GPUS_MAX + gpu];
}

uint64_t machine_foreign(const struct machine *machine, node_id node,
                         const struct gpu_use *uses)
{
    uint64_t bits = 0;
    uint32_t count = machine->gpus ? machine->cluster.nodes[node].gpu_count : 0;
    for (uint32_t g = 0; g < count; g++)
        if (uses[machine_gpu(machine, node, g)].foreign)
            bits |= (uint64_t)1 << g;
    return bits;
}

uint64_t machine_gpu_bytes(const struct machine *machine, const char *type)
{
    uint64_t least = 0;
    for (uint32_t i = 0; i < machine_gpu_count(machine); i++) {
        const struct gpu *gpu = &machine->gpus->items[i];
        if (strcmp(gpu->type, type) == 0 && (least == 0 || gpu->bytes < least))
            least = gpu->bytes;
    }
    return least;
}

bool machine_is_exclusive(const struct machine *machine, const char *type)
{
    bool exclusive = false;
    for (uint32_t i = 0; i < machine_gpu_count(machine); i++)
        exclusive =
            exclusive || (machine->gpus->items[i].exclusive &&
                          (!type || strcmp(machine->gpus->items[i].type, type) == 0));
    return exclusive;
}

bool machine_uuids(const struct machine *machine, const char *indices, char *text,
                   size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (const char *at = indices; *at; at += *at == ',') {
        char *end;
        const char *uuid = "";
        uint32_t index = (uint32_t)strtoul(at, &end, 10);
        for (uint32_t i = 0; i < machine_gpu_count(machine); i++)
            if (machine->gpus->items[i].index == index)
                uuid = machine->gpus->items[i].uuid;
        if (end == at || !*uuid || used + strlen(uuid) + 2 > size)
            return false;
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", uuid);
        at = end;
    }
    return used > 0;
}

uint32_t machine_list_others(const struct machine *machine, const char *allowed,
                             struct cgroup_device *devices, uint32_t max)
{
    return machine_is_shared(machine)
               ? gpus_list_others(machine->gpus, allowed, devices, max)
               : 0;
}
