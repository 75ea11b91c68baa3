/*
 * Cgroups of jobs: membership, limits, killing, and that nothing is left behind.  With
 * what this machine has: version 2, version 1 or both; only root may make them.
 */
#include "support/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/attempt.h"
#include "host/cgroup.h"

#define NO_LIMITS (&(const struct cgroup_limits){ 0 })
#define NVIDIA 195 /* a number of devices that this machine does not have */

static struct cgroup_tree tree;
static char name[CGROUP_NAME_MAX];

static int setup(void **state)
{
    snprintf(name, sizeof name, "berth-test-%d", (int)getpid());
    cgroup_tree_open(&tree, name, true);
    return 0;
}

static bool is_nothing_known(void *context, const char *job)
{
    return false;
}

static int teardown(void **state)
{
    cgroup_sweep(&tree, is_nothing_known, NULL);
    cgroup_tree_close(&tree);
    return 0;
}

static void need(uint32_t features)
{
    if ((tree.features & features) != features)
        SKIP("this kernel or user has no such cgroups");
}

/* A process in the job's cgroup that ends with what 'act' returns. */
static int run_in(const char *job, int (*act)(void))
{
    int status;
    pid_t pid = cgroup_fork(&tree, job, CGROUP_FORK_CHILD);
    if (pid == 0)
        _exit(act());
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* Forks, leaves its session, and stays. */
static int stay_behind(void)
{
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            setsid();
            signal(SIGTERM, SIG_IGN);
            pause();
        }
    return 0;
}

static void all_processes_are_killed_wherever_they_went(void **state)
{
    need(CGROUP_KILL);
    assert_true(cgroup_make(&tree, "1.0", NO_LIMITS));
    assert_int_equal(run_in("1.0", stay_behind), 0);
    assert_false(cgroup_remove(&tree, "1.0"));

    assert_true(cgroup_kill(&tree, "1.0"));

    for (int i = 0; i < 1000 && !cgroup_remove(&tree, "1.0"); i++)
        usleep(10000);
    assert_false(cgroup_kill(&tree, "1.0"));
    assert_true(cgroup_remove(&tree, "1.0"));
}

static int wait_for_end(void)
{
    pause();
    return 0;
}

static void write_to(const char *job, const char *file, const char *text)
{
    char path[CGROUP_PATH_MAX * 2], group[CGROUP_PATH_MAX];
    assert_true(cgroup_path(&tree, job, group));
    snprintf(path, sizeof path, "%s/%s", group, file);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void frozen_processes_are_killed(void **state)
{
    int status;
    need(CGROUP_KILL);
    assert_true(cgroup_make(&tree, "5.0", NO_LIMITS));
    pid_t pid = cgroup_fork(&tree, "5.0", CGROUP_FORK_CHILD);
    if (pid == 0)
        _exit(wait_for_end());
    assert_true(pid > 0);
    write_to("5.0", "cgroup.freeze", "1");
    assert_true(cgroup_kill(&tree, "5.0"));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* 0: a job starts below a cgroup with processes, and what cannot be enforced is explained. */
static int divide_own_group(void)
{
    struct cgroup_tree own;
    int status = 1;
    cgroup_tree_open(&own, "berth-test-below", false);
    if (!(own.features & CGROUP_KILL) ||
        !cgroup_make(&own, "1.0", &(struct cgroup_limits){ .cpu_milli = 1000 }))
        return 2;
    pid_t pid = cgroup_fork(&own, "1.0", CGROUP_FORK_CHILD);
    if (pid == 0)
        _exit(0);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return 3;
    bool limits = own.features & CGROUP_MEMORY && own.features & CGROUP_PIDS &&
                  own.features & CGROUP_CPU;
    if (!limits && !strstr(own.why, "has processes"))
        return 4;
    cgroup_remove(&own, "1.0");
    cgroup_tree_close(&own);
    return 0;
}

static void a_cgroup_with_processes_still_has_jobs(void **state)
{
    need(CGROUP_KILL);
    assert_true(cgroup_make(&tree, "6.0", NO_LIMITS));
    assert_int_equal(run_in("6.0", divide_own_group), 0);
}

#define TOO_MUCH (64 << 20)

static int take_memory(void)
{
    char *bytes = mmap(NULL, TOO_MUCH, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return bytes == MAP_FAILED ? 1 : 0;
}

static void memory_is_limited(void **state)
{
    need(CGROUP_MEMORY);
    assert_true(cgroup_make(&tree, "2.0",
                            &(struct cgroup_limits){ .memory_bytes = TOO_MUCH / 4 }));
    int oom = cgroup_open_oom(&tree, "2.0");
    assert_int_equal(cgroup_count_oom_kills(oom), 0);
    int status = run_in("2.0", take_memory);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_true(cgroup_count_oom_kills(oom) > 0);
    close(oom);
    assert_true(cgroup_make(&tree, "2.1",
                            &(struct cgroup_limits){ .memory_bytes = TOO_MUCH * 4l }));
    assert_int_equal(run_in("2.1", take_memory), 0);
}

static int fork_often(void)
{
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0)
            pause();
        if (pid < 0)
            return 7;
    }
    return 0;
}

static void processes_are_limited(void **state)
{
    need(CGROUP_PIDS | CGROUP_KILL);
    assert_true(cgroup_make(&tree, "3.0", &(struct cgroup_limits){ .pids = 10 }));
    assert_int_equal(WEXITSTATUS(run_in("3.0", fork_often)), 7);
    cgroup_kill(&tree, "3.0");
}

static char devices[2][64];

/* 1: the first cannot be opened by rule; 2: nor can the second. */
static int open_devices(void)
{
    int denied = 0;
    for (int i = 0; i < 2; i++)
        if (open(devices[i], O_RDWR) < 0 && errno == EPERM)
            denied |= 1 << i;
    return denied;
}

static void other_gpus_cannot_be_opened(void **state)
{
    char folder[] = "/tmp/berth-test-XXXXXX";
    need(CGROUP_DEVICES);
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(devices[i], sizeof devices[i], "%s/nvidia%d", folder, i);
        assert_int_equal(mknod(devices[i], S_IFCHR | 0666, makedev(NVIDIA, i)), 0);
    }
    const struct cgroup_device other = { NVIDIA, 1 };
    assert_true(cgroup_make(
        &tree, "4.0", &(struct cgroup_limits){ .denied = &other, .denied_count = 1 }));
    assert_int_equal(WEXITSTATUS(run_in("4.0", open_devices)), 2);
    assert_int_equal(open_devices(), 0); /* only in the job */
    unlink(devices[0]);
    unlink(devices[1]);
    rmdir(folder);
}

static void what_a_berthd_left_behind_is_removed(void **state)
{
    need(CGROUP_KILL);
    struct cgroup_tree gone;
    cgroup_tree_open(&gone, "berth-0badc0de", true);
    assert_true(cgroup_make(&gone, "9.0", NO_LIMITS));
    struct cgroup_tree next;
    char foreign[CGROUP_PATH_MAX + 8];
    snprintf(foreign, sizeof foreign, "%s-other", gone.v2);
    cgroup_tree_open(&next, name, true);
    assert_int_equal(access(gone.v2, F_OK), 0); /* in use, though it is empty */
    for (int i = 0; i < CGROUP_PARENTS; i++)
        if (gone.locks[i] >= 0)
            close(gone.locks[i]);
    cgroup_tree_close(&next);
    mkdir(foreign, 0755);
    cgroup_tree_open(&next, name, true);
    assert_int_not_equal(access(gone.v2, F_OK), 0);
    assert_int_equal(rmdir(foreign), 0); /* not a berthd's */
    cgroup_tree_close(&next);
}

static void a_process_is_known_by_its_start(void **state)
{
    uint64_t started = attempt_process_start(getpid());
    assert_true(started > 0);
    int fd = attempt_open_process(getpid(), started);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(attempt_open_process(getpid(), started + 1), -1);
}

RUN_CASES(CASE(all_processes_are_killed_wherever_they_went),
          CASE(frozen_processes_are_killed),
          CASE(a_cgroup_with_processes_still_has_jobs), CASE(memory_is_limited),
          CASE(processes_are_limited), CASE(other_gpus_cannot_be_opened),
          CASE(what_a_berthd_left_behind_is_removed),
          CASE(a_process_is_known_by_its_start));
