/*
 * The GPUs of a machine: NVIDIA's, AMD's, fake slots; and which other processes use
 * them.
 */
#include "support/cases.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/cgroup.h"
#include "host/gpus.h"
#include "host/machine.h"
#include "host/nvml.h"
#include "model/cluster.h"

struct gpus_stage {
    struct arena arena;
    struct gpus gpus;
    struct gpu_use uses[GPUS_MAX];
    struct cluster cluster;
    const uint32_t *index, *item;
    const int *core;
    struct error err;
    char nvml[512], old[512], lines[64];
};

#define NOWHERE "/no/such/place"

static int find(struct gpus_stage *m, struct gpus_setup setup)
{
    int r = gpus_find(&m->gpus, &m->arena, &setup, &m->err);
    return r < 0 ? r
                 : gpus_cluster(&m->gpus, &m->cluster, &m->arena, &m->index, &m->core,
                                &m->item, &m->err);
}

static void names_of_makers_become_one_word(void **state)
{
    static const char *const names[][2] = {
        { "Tesla V100-SXM2-16GB", "v100" },
        { "NVIDIA A100-SXM4-80GB", "a100" },
        { "NVIDIA A100 80GB PCIe", "a100" },
        { "NVIDIA H100 80GB HBM3", "h100" },
        { "NVIDIA GeForce RTX 3090", "rtx3090" },
        { "NVIDIA GeForce RTX 2080 Ti", "rtx2080ti" },
        { "GeForce GTX 1660 SUPER", "gtx1660super" },
        { "NVIDIA L40S", "l40s" },
        { "NVIDIA TITAN V", "titanv" },
        { "Quadro RTX 6000", "rtx6000" },
        { "AMD Instinct MI250X", "mi250x" },
        { "", "gpu" },
        { "NVIDIA", "gpu" },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char word[32];
        gpus_type_word(names[i][0], word, sizeof word);
        assert_string_equal(word, names[i][1]);
    }
}

static void nvidia_gpus_are_found_and_sorted_into_nodes(void **state)
{
    struct gpus_stage *m = *state;

    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);

    assert_int_equal(m->gpus.source, GPUS_NVML);
    assert_int_equal(m->gpus.count, 3);
    assert_int_equal(m->cluster.node_count, 2);
    assert_int_equal(m->cluster.gpu_count, 3);
    assert_string_equal(m->cluster.types[0].name, "rtx2080ti");
    assert_string_equal(m->cluster.types[1].name, "v100");
    assert_int_equal(m->index[0], 1);
    assert_int_equal(m->index[NODE_GPUS_MAX], 0);
    assert_int_equal(m->index[NODE_GPUS_MAX + 1], 2);
    assert_string_equal(m->gpus.items[m->item[NODE_GPUS_MAX + 1]].uuid, "GPU-2");
}

static void the_devices_of_other_gpus_are_listed(void **state)
{
    struct gpus_stage *m = *state;
    char folder[] = "/tmp/berth-test-XXXXXX", path[64];
    struct cgroup_device others[4];
    if (getuid() != 0)
        SKIP("only root can make device files");
    assert_non_null(mkdtemp(folder));
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/nvidia%u", folder, i);
        assert_int_equal(mknod(path, S_IFCHR | 0600, makedev(195, i)), 0);
    }
    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml, .dev = folder }), 0);

    /* GPU 0 is nvidia2, 1 is nvidia1, 2 is nvidia0. */
    assert_int_equal(gpus_list_others(&m->gpus, "0,1", others, 4), 1);
    assert_int_equal(others[0].major, 195);
    assert_int_equal(others[0].minor, 0);
    assert_int_equal(gpus_list_others(&m->gpus, "", others, 4), 3);
    assert_int_equal(gpus_list_others(&m->gpus, "10,2", others, 4), 2);
    assert_int_equal(gpus_list_others(&m->gpus, "", others, 2), 2);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/nvidia%u", folder, i);
        unlink(path);
    }
    rmdir(folder);
}

static void a_library_that_finds_no_driver_is_as_good_as_none(void **state)
{
    struct gpus_stage *m = *state;
    setenv("FAKE_NVML_BROKEN", "1", 1);

    int r = find(m, (struct gpus_setup){ .nvml = m->nvml, .kfd = NOWHERE });

    unsetenv("FAKE_NVML_BROKEN");
    assert_int_equal(r, 0);
    assert_int_equal(m->gpus.source, GPUS_CPU);
    assert_string_equal(m->cluster.types[0].name, "cpu");
    assert_true(m->gpus.count >= 1);
}

/* Start a process with this environment, which runs until killed. */
static pid_t other(const char *mark)
{
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = { "sleep", "1000", NULL }, *env[] = { (char *)mark, NULL };
        execve("/bin/sleep", argv, env);
        _exit(1);
    }
    char path[64], text[8] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    for (int i = 0; i < 10000 && strncmp(text, "sleep", 5) != 0; i++) {
        usleep(1000);
        FILE *file = fopen(path, "re");
        if (!file || !fgets(text, sizeof text, file))
            text[0] = '\0';
        if (file)
            fclose(file);
    }
    return pid;
}

/* How many GPUs others use; what all do is in m->uses. */
static uint32_t count_foreign(struct gpus_stage *m)
{
    uint32_t count = 0;
    gpus_find_use(&m->gpus, "/run/berth", m->uses);
    for (uint32_t i = 0; i < m->gpus.count; i++)
        count += m->uses[i].foreign;
    return count;
}

static uint32_t foreign_with(struct gpus_stage *m, const char *mark)
{
    char text[16];
    pid_t pid = other(mark);
    snprintf(text, sizeof text, "%d", pid);
    setenv("FAKE_NVML_PID", text, 1);
    uint32_t count = count_foreign(m);
    unsetenv("FAKE_NVML_PID");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return count;
}

static void foreign_processes_are_seen_and_ours_are_not(void **state)
{
    struct gpus_stage *m = *state;
    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);

    assert_int_equal(count_foreign(m), 0);
    for (uint32_t i = 0; i < m->gpus.count; i++)
        assert_int_equal(m->uses[i].busy, 10 + 10 * m->gpus.items[i].index);
    assert_int_equal(foreign_with(m, "BERTH_PREEMPT_FILE=/run/berth/jobs/1.0/preempt"),
                     0);
    assert_int_equal(foreign_with(m, "BERTH_PREEMPT_FILE=/tmp/else/jobs/1.0/preempt"),
                     1);
    assert_int_equal(foreign_with(m, "HOME=/"), 1);
    assert_true(m->uses[m->item[0]].foreign);
    assert_false(m->uses[m->item[NODE_GPUS_MAX]].foreign);
}

static void say(struct gpus_stage *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Lines for the library to read from now on. */
static void say(struct gpus_stage *m, const char *fmt, ...)
{
    va_list args;
    FILE *file = fopen(m->lines, "we");
    assert_non_null(file);
    va_start(args, fmt);
    vfprintf(file, fmt, args);
    va_end(args);
    fclose(file);
    setenv("FAKE_NVML_FILE", m->lines, 1);
}

static void gpus_have_the_memory_that_programs_can_have(void **state)
{
    struct gpus_stage *m = *state;

    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);

    struct machine machine = { .gpus = &m->gpus };
    assert_int_equal(machine_gpu_bytes(&machine, "v100") >> 20, 16 * 1024 - 512);
    assert_int_equal(machine_gpu_bytes(&machine, "rtx2080ti") >> 20, 11 * 1024 - 256);
    assert_int_equal(machine_gpu_bytes(&machine, "k80"), 0);
}

static void a_gpu_in_mig_mode_is_left_out(void **state)
{
    struct gpus_stage *m = *state;
    say(m, "mig 2\n");

    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);

    assert_int_equal(m->gpus.count, 2);
    assert_int_equal(m->gpus.items[1].index, 0);
    assert_int_equal(m->gpus.left_out_count, 1);
    assert_string_equal(m->gpus.left_out[0],
                        "GPU 2 (v100) is in MIG mode, and Berth gives out whole GPUs "
                        "only: it is left out until 'nvidia-smi -i 2 -mig 0' ends that "
                        "mode");
}

static void a_gpu_that_no_process_may_use_is_left_out(void **state)
{
    struct gpus_stage *m = *state;
    say(m, "mode 1 2\n");

    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);

    assert_int_equal(m->gpus.count, 2);
    assert_int_equal(m->gpus.left_out_count, 1);
    assert_non_null(strstr(m->gpus.left_out[0], "compute mode Prohibited"));
}

static void a_compute_mode_for_one_process_is_known(void **state)
{
    struct gpus_stage *m = *state;
    struct machine machine = { .gpus = &m->gpus };
    say(m, "mode 0 3\n");

    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);

    assert_true(machine_is_exclusive(&machine, "v100")); /* one of both is enough */
    assert_false(machine_is_exclusive(&machine, "rtx2080ti"));
    assert_true(machine_is_exclusive(&machine, NULL));
}

static void memory_of_jobs_is_summed_by_gpu(void **state)
{
    struct gpus_stage *m = *state;
    pid_t one = other("BERTH_PREEMPT_FILE=/run/berth/jobs/7.1/job/preempt");
    pid_t two = other("BERTH_PREEMPT_FILE=/run/berth/jobs/7.1/job/preempt");
    pid_t beside = other("BERTH_PREEMPT_FILE=/run/berth/jobs/12.0/job/preempt");
    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);
    say(m,
        "process 0 %d 3000\nprocess 0 %d 500\nprocess 0 %d 40\nprocess 2 %d -1\n"
        "process 1 %d 9\n",
        one, two, beside, one, two);

    assert_int_equal(count_foreign(m), 0);

    const struct gpu_use *first = &m->uses[m->item[NODE_GPUS_MAX]];
    assert_int_equal(first->job_count, 2);
    assert_int_equal(first->jobs[0].id, 7);
    assert_int_equal(first->jobs[0].attempt, 1);
    assert_int_equal(first->jobs[0].bytes, 3500);
    assert_int_equal(first->jobs[1].id, 12);
    assert_int_equal(first->jobs[1].bytes, 40);
    assert_int_equal(m->uses[m->item[NODE_GPUS_MAX + 1]].job_count, 0); /* not told */
    assert_int_equal(m->uses[m->item[0]].jobs[0].bytes, 9);
    const pid_t pids[] = { one, two, beside };
    for (int i = 0; i < 3; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
}

/* A process that is called so; 'folder' is removed with it. */
static pid_t called(const char *folder, const char *name)
{
    char path[128], command[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(command, sizeof command, "cp /bin/sleep %s", path);
    assert_int_equal(system(command), 0);
    pid_t pid = fork();
    if (pid == 0) {
        execl(path, name, "1000", (char *)NULL);
        _exit(1);
    }
    char text[32] = "", comm[64];
    snprintf(comm, sizeof comm, "/proc/%d/comm", pid);
    for (int i = 0; i < 10000 && strncmp(text, name, 15) != 0; i++) {
        usleep(1000);
        FILE *file = fopen(comm, "re");
        if (!file || !fgets(text, sizeof text, file))
            text[0] = '\0';
        if (file)
            fclose(file);
    }
    return pid;
}

static void the_server_of_mps_is_not_foreign_and_its_clients_count_once(void **state)
{
    struct gpus_stage *m = *state;
    char folder[] = "/tmp/berth-mps-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    pid_t server = called(folder, "nvidia-cuda-mps-server");
    pid_t job = other("BERTH_PREEMPT_FILE=/run/berth/jobs/7.0/job/preempt");
    pid_t stranger = other("HOME=/");
    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);
    say(m, "process 0 %d 100\nprocess 0 %d 3000\nmps 0 %d 3000\n", server, job, job);

    uint32_t before = count_foreign(m);
    const struct gpu_use *first = &m->uses[m->item[NODE_GPUS_MAX]];
    uint64_t bytes = first->job_count == 1 ? first->jobs[0].bytes : 0;
    say(m, "process 0 %d 100\nmps 0 %d 1\n", server, stranger);
    uint32_t after = count_foreign(m);

    const pid_t pids[] = { server, job, stranger };
    for (int i = 0; i < 3; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(before, 0);
    assert_int_equal(bytes, 3000);
    assert_int_equal(after, 1);
}

static void more_processes_than_can_be_listed_are_foreign(void **state)
{
    struct gpus_stage *m = *state;
    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);
    say(m, "crowd 0 %d\n", NVML_PROCESSES_MAX + 1);

    assert_int_equal(count_foreign(m), 1);
    assert_true(m->uses[m->item[NODE_GPUS_MAX]].foreign);
}

static void a_library_without_the_newer_functions_will_do(void **state)
{
    struct gpus_stage *m = *state;
    struct machine machine = { .gpus = &m->gpus };
    pid_t job = other("BERTH_PREEMPT_FILE=/run/berth/jobs/7.0/job/preempt");
    pid_t next = other("BERTH_PREEMPT_FILE=/run/berth/jobs/8.0/job/preempt");

    int r = find(m, (struct gpus_setup){ .nvml = m->old });
    say(m, "process 0 %d 3000\nprocess 0 %d 77\n", job, next);
    uint32_t foreign = r == 0 ? count_foreign(m) : 0;
    kill(job, SIGKILL);
    kill(next, SIGKILL);
    waitpid(job, NULL, 0);
    waitpid(next, NULL, 0);

    assert_int_equal(r, 0);
    assert_int_equal(m->gpus.source, GPUS_NVML);
    assert_int_equal(foreign, 0);
    assert_int_equal(machine_gpu_bytes(&machine, "v100") >> 20, 16 * 1024);
    assert_int_equal(m->uses[m->item[NODE_GPUS_MAX]].jobs[1].id, 8);
    assert_int_equal(m->uses[m->item[NODE_GPUS_MAX]].jobs[1].bytes, 77);
}

static void permanent_names_are_told_by_index(void **state)
{
    struct gpus_stage *m = *state;
    struct machine machine = { .gpus = &m->gpus };
    char text[64];
    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);

    assert_true(machine_uuids(&machine, "2,0", text, sizeof text));
    assert_string_equal(text, "GPU-2,GPU-0");
    assert_false(machine_uuids(&machine, "3", text, sizeof text));
    assert_false(machine_uuids(&machine, "", text, sizeof text));
    assert_false(machine_uuids(&machine, "2,0", text, 11));
}

static void a_control_daemon_of_mps_is_one_that_lives(void **state)
{
    char folder[] = "/tmp/berth-mps-XXXXXX", path[128], command[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/nvidia-cuda-mps-control.pid", folder);
    pid_t daemon = called(folder, "nvidia-cuda-mps-control");
    pid_t stranger = other("HOME=/");
    assert_false(gpus_mps_runs(NULL));
    bool before = gpus_mps_runs(folder);
    FILE *file = fopen(path, "we");
    fprintf(file, "%d\n", daemon);
    fclose(file);
    bool runs = gpus_mps_runs(folder);
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
    bool after = gpus_mps_runs(folder);
    file = fopen(path, "we");
    fprintf(file, "%d\n", stranger); /* has its number now */
    fclose(file);
    bool another = gpus_mps_runs(folder);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_false(before);
    assert_true(runs);
    assert_false(after);
    assert_false(another);
    assert_string_equal(gpus_mps_folder("/run/mps"), "/run/mps");
}

/* What a wrong caller is told: how its process ends. */
static int misuse(const char *path, void (*act)(void *library))
{
    pid_t pid = fork();
    if (pid == 0) {
        fclose(stderr);
        act(dlopen(path, RTLD_NOW | RTLD_LOCAL));
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

typedef int nvml_none(void);
typedef int nvml_number(unsigned *count);
typedef int nvml_handle(unsigned index, void **device);
typedef int nvml_text(void *device, char *text, unsigned size);
typedef int nvml_struct(void *device, void *ret);

#define CALL(type, name, ...) \
    do { \
        type *function; \
        *(void **)(void *)&function = dlsym(library, name); \
        function(__VA_ARGS__); \
    } while (0)

static void act_before_init(void *library)
{
    unsigned count;
    CALL(nvml_number, "nvmlDeviceGetCount_v2", &count);
}

static void act_after_shutdown(void *library)
{
    unsigned count;
    CALL(nvml_none, "nvmlInit_v2");
    CALL(nvml_none, "nvmlShutdown");
    CALL(nvml_number, "nvmlDeviceGetCount_v2", &count);
}

static void act_with_a_wrong_handle(void *library)
{
    char text[96];
    CALL(nvml_none, "nvmlInit_v2");
    CALL(nvml_text, "nvmlDeviceGetName", text, text, 96);
}

static void act_with_a_short_buffer(void *library)
{
    char text[96];
    void *device;
    CALL(nvml_none, "nvmlInit_v2");
    CALL(nvml_handle, "nvmlDeviceGetHandleByIndex_v2", 0, &device);
    CALL(nvml_text, "nvmlDeviceGetUUID", device, text, 64);
}

static void act_with_a_wrong_version(void *library)
{
    uint64_t memory[5] = { 0 };
    void *device;
    CALL(nvml_none, "nvmlInit_v2");
    CALL(nvml_handle, "nvmlDeviceGetHandleByIndex_v2", 0, &device);
    CALL(nvml_struct, "nvmlDeviceGetMemoryInfo_v2", device, memory);
}

static void act_without_shutdown(void *library)
{
    CALL(nvml_none, "nvmlInit_v2");
    exit(0);
}

static void act_well(void *library)
{
    unsigned count;
    CALL(nvml_none, "nvmlInit_v2");
    CALL(nvml_number, "nvmlDeviceGetCount_v2", &count);
    CALL(nvml_none, "nvmlShutdown");
}

static void the_library_of_this_test_ends_callers_that_misuse_it(void **state)
{
    struct gpus_stage *m = *state;
    assert_int_equal(misuse(m->nvml, act_well), 0);
    void (*const wrong[])(void *) = { act_before_init,          act_after_shutdown,
                                      act_with_a_wrong_handle,  act_with_a_short_buffer,
                                      act_with_a_wrong_version, act_without_shutdown };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(misuse(m->nvml, wrong[i]), SIGABRT);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void amd_gpus_are_found_in_the_files_of_their_driver(void **state)
{
    struct gpus_stage *m = *state;
    char folder[] = "/tmp/berth-kfd-XXXXXX", command[64], name[64];
    assert_non_null(mkdtemp(folder));
    put(folder, "topology/nodes/0/properties", "cpu_cores_count 8\nsimd_count 0\n");
    put(folder, "topology/nodes/1/properties",
        "cpu_cores_count 0\nsimd_count 440\ngfx_target_version 90010\nunique_id 255\n");
    put(folder, "topology/nodes/1/name", "mi250x\n");
    put(folder, "topology/nodes/1/gpu_id", "4711\n");
    put(folder, "topology/nodes/1/mem_banks/0/properties",
        "heap_type 1\nsize_in_bytes 3000\nflags 0\n");
    put(folder, "topology/nodes/1/mem_banks/1/properties",
        "heap_type 4\nsize_in_bytes 500\n");
    put(folder, "topology/nodes/1/mem_banks/2/properties",
        "heap_type 2\nsize_in_bytes 40\n");
    pid_t pid = other("HOME=/");
    pid_t job = other("BERTH_PREEMPT_FILE=/run/berth/jobs/7.0/job/preempt");
    snprintf(name, sizeof name, "proc/%d/vram_4711", job);
    put(folder, name, "77\n");
    snprintf(name, sizeof name, "proc/%d/vram_4711", pid);
    put(folder, name, "4096\n");

    int r = find(m, (struct gpus_setup){ .nvml = NOWHERE, .kfd = folder });
    uint32_t foreign = count_foreign(m);
    kill(pid, SIGKILL);
    kill(job, SIGKILL);
    waitpid(pid, NULL, 0);
    waitpid(job, NULL, 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);

    assert_int_equal(r, 0);
    assert_int_equal(m->gpus.items[0].bytes, 3040);
    assert_int_equal(m->uses[0].job_count, 1);
    assert_int_equal(m->uses[0].jobs[0].bytes, 77);
    assert_int_equal(m->gpus.source, GPUS_ROCM);
    assert_int_equal(m->gpus.count, 1);
    assert_string_equal(m->gpus.items[0].type, "mi250x");
    assert_string_equal(m->gpus.items[0].uuid, "GPU-ff");
    assert_int_equal(foreign, 1);
}

static void slots_stand_in_for_gpus(void **state)
{
    struct gpus_stage *m = *state;

    assert_int_equal(find(m, (struct gpus_setup){ .fake = "v100:4,p100:2,v100:1" }), 0);

    assert_int_equal(m->gpus.source, GPUS_FAKE);
    assert_int_equal(m->cluster.node_count, 2);
    assert_int_equal(m->cluster.nodes[0].gpu_count, 2);
    assert_int_equal(m->cluster.nodes[1].gpu_count, 5);
    assert_true(m->cluster.nodes[0].cpu_milli > 0);
    assert_int_equal(count_foreign(m), 0);
}

static void more_gpus_than_a_node_holds_are_several_nodes(void **state)
{
    struct gpus_stage *m = *state;

    assert_int_equal(find(m, (struct gpus_setup){ .fake = "v100:100" }), 0);

    assert_int_equal(m->cluster.node_count, 2);
    assert_int_equal(m->cluster.gpu_count, 100);
    assert_int_equal(m->index[NODE_GPUS_MAX], 64);
}

/* The process may use so many of its processors. */
static void use_processors(const cpu_set_t *all, int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int core = CPU_SETSIZE - 1; core >= 0 && count > 0; core--)
        if (CPU_ISSET(core, all)) {
            CPU_SET(core, &set);
            count--;
        }
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

static void slots_of_processors_are_bound_to_those_it_may_use(void **state)
{
    struct gpus_stage *m = *state;
    cpu_set_t all, set;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    use_processors(&all, 1);
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);

    int r = find(m, (struct gpus_setup){ .fake = "k80:1,v100:1@cpu" });

    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(r, 0);
    assert_int_equal(m->core[0], -1);
    assert_in_range(m->core[NODE_GPUS_MAX], 0, CPU_SETSIZE - 1);
    assert_true(CPU_ISSET(m->core[NODE_GPUS_MAX], &set));
}

static void more_slots_than_processors_are_refused(void **state)
{
    struct gpus_stage *m = *state;
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    use_processors(&all, 1);

    int r = find(m, (struct gpus_setup){ .fake = "v100:1@cpu,k80:1@cpu" });

    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(r, -EINVAL);
    assert_string_equal(m->err.text, "GPUs are 'v100:1@cpu,k80:1@cpu', bound to more "
                                     "processors than the 1 there are");
}

static void bad_words_for_slots_are_refused(void **state)
{
    struct gpus_stage *m = *state;
    static const char *const bad[] = {
        "",         "v100",
        "v100:",    "v100:0",
        "v100:x",   ":4",
        "v100:4,",  "v100:-1",
        "v100:257", "a b:1",
        "v100:4x",  "../x:1",
        "a:1:2",    "v100:99999999999999999999",
        "v100@cpu", "v100:1@",
        "v100:1@c", "v100:1@cpu2",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(find(m, (struct gpus_setup){ .fake = bad[i] }), -EINVAL);
}

static int setup(void **state)
{
    static struct gpus_stage m;
    m = (struct gpus_stage){ 0 };
    arena_init(&m.arena, 65536);
    ssize_t length = readlink("/proc/self/exe", m.nvml, sizeof m.nvml - 32);
    assert_true(length > 0);
    m.nvml[length] = '\0';
    char *name = strrchr(m.nvml, '/');
    snprintf(m.old, sizeof m.old, "%.*s/libfake_nvml_old.so", (int)(name - m.nvml),
             m.nvml);
    snprintf(name, 32, "/libfake_nvml.so");
    snprintf(m.lines, sizeof m.lines, "/tmp/berth-nvml-%d", (int)getpid());
    *state = &m;
    return 0;
}

static int teardown(void **state)
{
    struct gpus_stage *m = *state;
    gpus_release(&m->gpus);
    unsetenv("FAKE_NVML_FILE");
    unlink(m->lines);
    arena_release(&m->arena);
    return 0;
}

RUN_CASES(CASE(names_of_makers_become_one_word),
          CASE(nvidia_gpus_are_found_and_sorted_into_nodes),
          CASE(the_devices_of_other_gpus_are_listed),
          CASE(a_library_that_finds_no_driver_is_as_good_as_none),
          CASE(foreign_processes_are_seen_and_ours_are_not),
          CASE(gpus_have_the_memory_that_programs_can_have),
          CASE(a_gpu_in_mig_mode_is_left_out),
          CASE(a_gpu_that_no_process_may_use_is_left_out),
          CASE(a_compute_mode_for_one_process_is_known),
          CASE(memory_of_jobs_is_summed_by_gpu),
          CASE(the_server_of_mps_is_not_foreign_and_its_clients_count_once),
          CASE(more_processes_than_can_be_listed_are_foreign),
          CASE(a_library_without_the_newer_functions_will_do),
          CASE(permanent_names_are_told_by_index),
          CASE(a_control_daemon_of_mps_is_one_that_lives),
          CASE(the_library_of_this_test_ends_callers_that_misuse_it),
          CASE(amd_gpus_are_found_in_the_files_of_their_driver),
          CASE(slots_stand_in_for_gpus),
          CASE(more_gpus_than_a_node_holds_are_several_nodes),
          CASE(slots_of_processors_are_bound_to_those_it_may_use),
          CASE(more_slots_than_processors_are_refused),
          CASE(bad_words_for_slots_are_refused));
