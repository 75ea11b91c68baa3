/* flowd_bench.c - measure how long an update of the marks takes on this host. */
#include "flowd/flowd_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "flowd/dscp.h"
#include "flowd/marker.h"
#include "flowd/mark_target.h"
#include "flowd/desired.h"

#define PATH_BYTES 256
#define ROUNDS 9
#define SOCKETS_EACH 4

struct flowd_bench {
    uint32_t count;
    char folder[PATH_BYTES]; /* of our jobs, below CGROUP_ROOT */
    pid_t *children;
    struct desired_marks desired;
    struct mark_targets targets;
    const struct dscp_levels *levels;
    FILE *file;
};

/* Elapsed time, and CPU time: the difference is the load of the machine. */
struct bench_time {
    double ms, cpu_ms;
};

static struct bench_time time_now(void)
{
    return (struct bench_time){ clock_now_s() * 1e3, clock_cpu_s() * 1e3 };
}

static struct bench_time time_since(struct bench_time begun)
{
    struct bench_time end = time_now();
    return (struct bench_time){ end.ms - begun.ms, end.cpu_ms - begun.cpu_ms };
}

/* Start a job: a process with some sockets in its own cgroup, which ends with us. */
static pid_t start_job(const char *cgroup)
{
    char path[2 * PATH_BYTES];
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof path, "%s/%s/cgroup.procs", CGROUP_ROOT, cgroup);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        _exit(1);
    for (int i = 0; i < SOCKETS_EACH; i++)
        if (socket(AF_INET, i % 2 ? SOCK_DGRAM : SOCK_STREAM, 0) < 0)
            _exit(1);
    for (;;)
        pause();
}

static int start_jobs(struct flowd_bench *bench, struct error *err)
{
    char path[2 * PATH_BYTES];
    snprintf(bench->folder, sizeof bench->folder, "%sberth-bench-%d",
             mark_target_hierarchy(), (int)getpid());
    snprintf(path, sizeof path, "%s/%s", CGROUP_ROOT, bench->folder);
    if (mkdir(path, 0755) < 0)
        return error_set(err, -errno, "%.200s: %s", path, strerror(errno));
    bench->desired.levels = bench->levels->count;
    bench->desired.jobs =
        arena_array(&bench->desired.arena, struct desired_job, bench->count);
    bench->desired.count = bench->count;
    for (uint32_t i = 0; i < bench->count; i++) {
        char name[PATH_BYTES + 16];
        snprintf(name, sizeof name, "%s/%u", bench->folder, i + 1);
        snprintf(path, sizeof path, "%s/%s", CGROUP_ROOT, name);
        if (mkdir(path, 0755) < 0)
            return error_set(err, -errno, "%.200s: %s", path, strerror(errno));
        bench->desired.jobs[i] =
            (struct desired_job){ .id = i + 1,
                                  .level = i % bench->levels->count,
                                  .cgroup = arena_text(&bench->desired.arena, name) };
        bench->children[i] = start_job(name);
    }
    return 0;
}

static void end_jobs(struct flowd_bench *bench)
{
    char path[2 * PATH_BYTES];
    for (uint32_t i = 0; i < bench->count; i++)
        if (bench->children[i] > 0) {
            kill(bench->children[i], SIGKILL);
            waitpid(bench->children[i], NULL, 0);
        }
    for (uint32_t i = 0; i < bench->count; i++) {
        snprintf(path, sizeof path, "%s/%s/%u", CGROUP_ROOT, bench->folder, i + 1);
        rmdir(path);
    }
    snprintf(path, sizeof path, "%s/%s", CGROUP_ROOT, bench->folder);
    rmdir(path);
}

/* How the levels differ from one round to the next. */
enum bench_change { CHANGE_NONE, CHANGE_ONE, CHANGE_ALL };

static const char *const change_names[] = { [CHANGE_NONE] = "the same order again",
                                            [CHANGE_ONE] = "one job's level changes",
                                            [CHANGE_ALL] = "all levels change" };

static void change_order(struct flowd_bench *bench, enum bench_change change,
                         uint32_t round)
{
    uint32_t levels = bench->levels->count;
    uint32_t count = change == CHANGE_ALL ? bench->count : change == CHANGE_ONE ? 1 : 0;
    for (uint32_t i = 0; i < count; i++)
        bench->desired.jobs[i].level = (i + round) % levels;
}

static int compare_ms(const void *a, const void *b)
{
    const struct bench_time *x = a, *y = b;
    return (x->ms > y->ms) - (x->ms < y->ms);
}

static int compare_cpu(const void *a, const void *b)
{
    const struct bench_time *x = a, *y = b;
    return (x->cpu_ms > y->cpu_ms) - (x->cpu_ms < y->cpu_ms);
}

static void add_bytes(void *context, uint64_t id, uint64_t bytes)
{
    *(uint64_t *)context += bytes;
}

static void print_times(struct flowd_bench *bench, const char *marker, const char *what,
                        struct bench_time *took, uint32_t count)
{
    qsort(took, count, sizeof *took, compare_cpu);
    double cpu_ms = took[count / 2].cpu_ms;
    qsort(took, count, sizeof *took, compare_ms);
    fprintf(bench->file,
            "%-8s %4u jobs  %-24s median %6.2f ms  worst %6.2f ms  CPU %6.2f ms\n",
            marker, bench->count, what, took[count / 2].ms, took[count - 1].ms, cpu_ms);
}

/* One update as in the agent: look up cgroups, then change the kernel. */
static int run_update(struct flowd_bench *bench, const struct marker *marker,
                      void *self, struct bench_time *took, struct error *err)
{
    struct bench_time begun = time_now();
    mark_targets_fill(&bench->targets, &bench->desired, bench->levels,
                      &cgroup_patterns_standard);
    struct marking marking = { .targets = bench->targets.list,
                               .count = bench->targets.count,
                               .now_ns = (int64_t)(begun.ms * 1e6),
                               .until_ns = (int64_t)((begun.ms + 45000) * 1e6) };
    int r = marker->apply(self, &marking, err);
    *took = time_since(begun);
    return r;
}

static int time_marker(struct flowd_bench *bench, const struct marker *marker,
                       void *self, struct error *err)
{
    struct bench_time took[ROUNDS];
    uint64_t sum = 0;
    int r = run_update(bench, marker, self, &took[0], err);
    if (r < 0)
        return r;
    print_times(bench, marker->name, "the first order", took, 1);
    for (enum bench_change change = CHANGE_NONE; change <= CHANGE_ALL; change++) {
        for (uint32_t round = 0; round < ROUNDS; round++) {
            change_order(bench, change, round + 1);
            r = run_update(bench, marker, self, &took[round], err);
            if (r < 0)
                return r;
        }
        print_times(bench, marker->name, change_names[change], took, ROUNDS);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct bench_time begun = time_now();
        marker->bytes(self, add_bytes, &sum);
        took[round] = time_since(begun);
    }
    print_times(bench, marker->name, "bytes of all jobs", took, ROUNDS);
    return 0;
}

static int run_marker(struct flowd_bench *bench, const struct marker *marker,
                      struct error *err)
{
    void *self = memory_checked(calloc(1, marker->self_size));
    int r = marker->open(self, bench->levels, err);
    if (r == 0) {
        r = time_marker(bench, marker, self, err);
        marker->close(self);
    }
    free(self);
    return r;
}

static int run_all(struct flowd_bench *bench, struct error *err)
{
    int r = start_jobs(bench, err);
    for (size_t i = 0; r == 0 && marker_list[i]; i++) {
        struct error why;
        if (!marker_list[i]->bytes)
            continue; /* advice */
        if (marker_list[i]->probe(&why) < 0)
            fprintf(bench->file, "%-8s %s\n", marker_list[i]->name, why.text);
        else
            r = run_marker(bench, marker_list[i], err);
    }
    end_jobs(bench);
    return r;
}

int flowd_bench_markers(uint32_t jobs, const struct dscp_levels *levels, FILE *file,
                        struct error *err)
{
    struct flowd_bench bench = { .count = jobs, .levels = levels, .file = file };
    if (!mark_target_hierarchy())
        return error_set(err, -ENOENT, "no cgroups of version 2 are mounted");
    if (unshare(CLONE_NEWNET) < 0)
        return error_set(err, -errno, "a network namespace of our own: %s",
                         strerror(errno));
    desired_init(&bench.desired);
    mark_targets_init(&bench.targets);
    bench.children = memory_checked(calloc(jobs, sizeof *bench.children));
    int r = run_all(&bench, err);
    free(bench.children);
    mark_targets_release(&bench.targets);
    desired_release(&bench.desired);
    return r;
}
