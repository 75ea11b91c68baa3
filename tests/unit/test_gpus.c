/*
 * The GPUs of a machine: NVIDIA's, AMD's, fake slots; and which other processes use
 * them.
 */
#include "support/cases.h"

#include <errno.h>
#include <sched.h>
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
#include "model/cluster.h"

struct machine {
    struct arena arena;
    struct gpus gpus;
    struct cluster cluster;
    const uint32_t *index, *item;
    const int *core;
    struct error err;
    char nvml[512];
};

#define NOWHERE "/no/such/place"

static int find(struct machine *m, struct gpus_setup setup)
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
    struct machine *m = *state;

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
    struct machine *m = *state;
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
    struct machine *m = *state;
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

static uint32_t foreign_with(struct machine *m, const char *mark)
{
    char text[16];
    pid_t pid = other(mark);
    snprintf(text, sizeof text, "%d", pid);
    setenv("FAKE_NVML_PID", text, 1);
    uint32_t count = gpus_foreign(&m->gpus, "/run/berth");
    unsetenv("FAKE_NVML_PID");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return count;
}

static void foreign_processes_are_seen_and_ours_are_not(void **state)
{
    struct machine *m = *state;
    assert_int_equal(find(m, (struct gpus_setup){ .nvml = m->nvml }), 0);

    assert_int_equal(gpus_foreign(&m->gpus, "/run/berth"), 0);
    for (uint32_t i = 0; i < m->gpus.count; i++)
        assert_int_equal(m->gpus.items[i].busy, 10 + 10 * m->gpus.items[i].index);
    assert_int_equal(foreign_with(m, "BERTH_PREEMPT_FILE=/run/berth/jobs/1.0/preempt"),
                     0);
    assert_int_equal(foreign_with(m, "BERTH_PREEMPT_FILE=/tmp/else/jobs/1.0/preempt"),
                     1);
    assert_int_equal(foreign_with(m, "HOME=/"), 1);
    assert_true(m->gpus.items[m->item[0]].foreign);
    assert_false(m->gpus.items[m->item[NODE_GPUS_MAX]].foreign);
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
    struct machine *m = *state;
    char folder[] = "/tmp/berth-kfd-XXXXXX", command[64], name[64];
    assert_non_null(mkdtemp(folder));
    put(folder, "topology/nodes/0/properties", "cpu_cores_count 8\nsimd_count 0\n");
    put(folder, "topology/nodes/1/properties",
        "cpu_cores_count 0\nsimd_count 440\ngfx_target_version 90010\nunique_id 255\n");
    put(folder, "topology/nodes/1/name", "mi250x\n");
    put(folder, "topology/nodes/1/gpu_id", "4711\n");
    pid_t pid = other("HOME=/");
    snprintf(name, sizeof name, "proc/%d/vram_4711", pid);
    put(folder, name, "4096\n");

    int r = find(m, (struct gpus_setup){ .nvml = NOWHERE, .kfd = folder });
    uint32_t foreign = gpus_foreign(&m->gpus, "/run/berth");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);

    assert_int_equal(r, 0);
    assert_int_equal(m->gpus.source, GPUS_ROCM);
    assert_int_equal(m->gpus.count, 1);
    assert_string_equal(m->gpus.items[0].type, "mi250x");
    assert_string_equal(m->gpus.items[0].uuid, "GPU-ff");
    assert_int_equal(foreign, 1);
}

static void slots_stand_in_for_gpus(void **state)
{
    struct machine *m = *state;

    assert_int_equal(find(m, (struct gpus_setup){ .fake = "v100:4,p100:2,v100:1" }), 0);

    assert_int_equal(m->gpus.source, GPUS_FAKE);
    assert_int_equal(m->cluster.node_count, 2);
    assert_int_equal(m->cluster.nodes[0].gpu_count, 2);
    assert_int_equal(m->cluster.nodes[1].gpu_count, 5);
    assert_true(m->cluster.nodes[0].cpu_milli > 0);
    assert_int_equal(gpus_foreign(&m->gpus, "/run/berth"), 0);
}

static void more_gpus_than_a_node_holds_are_several_nodes(void **state)
{
    struct machine *m = *state;

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
    struct machine *m = *state;
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
    struct machine *m = *state;
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
    struct machine *m = *state;
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
    static struct machine m;
    m = (struct machine){ 0 };
    arena_init(&m.arena, 65536);
    ssize_t length = readlink("/proc/self/exe", m.nvml, sizeof m.nvml - 32);
    assert_true(length > 0);
    m.nvml[length] = '\0';
    char *name = strrchr(m.nvml, '/');
    snprintf(name, 32, "/libfake_nvml.so");
    *state = &m;
    return 0;
}

static int teardown(void **state)
{
    struct machine *m = *state;
    gpus_release(&m->gpus);
    arena_release(&m->arena);
    return 0;
}

RUN_CASES(CASE(names_of_makers_become_one_word),
          CASE(nvidia_gpus_are_found_and_sorted_into_nodes),
          CASE(the_devices_of_other_gpus_are_listed),
          CASE(a_library_that_finds_no_driver_is_as_good_as_none),
          CASE(foreign_processes_are_seen_and_ours_are_not),
          CASE(amd_gpus_are_found_in_the_files_of_their_driver),
          CASE(slots_stand_in_for_gpus),
          CASE(more_gpus_than_a_node_holds_are_several_nodes),
          CASE(slots_of_processors_are_bound_to_those_it_may_use),
          CASE(more_slots_than_processors_are_refused),
          CASE(bad_words_for_slots_are_refused));
