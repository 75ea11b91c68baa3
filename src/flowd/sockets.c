/*
 * sockets.c - mark the sockets of a job's processes from outside.
 *
 * pidfd_getfd() duplicates a socket of another process; IP_TOS, IPV6_TCLASS and
 * SO_PRIORITY set on the duplicate apply to the socket.  This needs nothing from the job,
 * its network namespace or the packet filter, so it works for containers and without a
 * cgroup.  New sockets are found by a search every second; those that a marked listener
 * accepts have its mark from the start.
 *
 * The options that a socket had before are kept by its cookie, which the kernel never
 * uses again, and restored when its job is no longer marked.  No duplicate stays open: a
 * connection must end when its job closes it.  A socket that has one of our code points
 * when it is first seen was marked by an earlier agent, or accepted from a marked
 * listener: it had none before.  Marks have no timeout, so a child process removes them
 * if the agent is killed.
 */
#include "flowd/marker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/tcp.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/memory.h"
#include "host/capabilities.h"
#include "flowd/desired.h"
#include "flowd/dscp.h"
#include "flowd/mark_target.h"
#include "flowd/procs.h"

#define SOCKETS_MAX (1u << 20)
#define ECN_MASK 3

/* The options of a socket; of IPv4 and IPv6 both, where it can use both. */
struct socket_marks {
    int tos, tclass, priority;
};

/* A socket that is marked. */
struct marked_socket {
    uint64_t cookie;
    struct socket_marks original;
    uint64_t bytes; /* acknowledged at the last visit */
    uint32_t pass;  /* of the last visit */
};

/* A job that is marked. */
struct sockets_job {
    struct mark_target target; /* with a copy of its cgroup's path */
    uint64_t start;            /* of its first process */
    uint64_t bytes;
};

/* A marked job in memory that the child shares, with the path of its cgroup. */
struct cleanup_job {
    struct mark_target target;
    uint64_t start; /* of its first process */
    char cgroup[DESIRED_CGROUP_MAX];
};

struct cleanup_list {
    _Atomic uint32_t count; /* 0 while it is being written */
    struct cleanup_job jobs[DESIRED_JOBS_MAX];
};

/* A child that waits for the end of the agent and then unmarks the listed jobs. */
struct cleanup {
    struct cleanup_list *list;
    pid_t child;  /* 0: there is none */
    int pipe_end; /* closed by the kernel when the agent ends: the child reads the end */
};

struct sockets {
    const struct dscp_levels *levels;
    struct cleanup cleanup;
    struct procs procs;
    struct sockets_job *jobs; /* by id */
    uint32_t count, room;
    struct sockets_job *next; /* the list that update_jobs() makes */
    uint32_t next_room;
    struct marked_socket *list;
    uint32_t marked_count, marked_room;
    struct map indices; /* cookie to index in the list */
    uint32_t pass;
};

/* --- one socket --------------------------------------------------------------------- */

static bool get_option(int fd, int level, int name, int *value)
{
    socklen_t size = sizeof *value;
    return getsockopt(fd, level, name, value, &size) == 0;
}

static void set_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof value);
}

static bool read_marks(int fd, int domain, struct socket_marks *marks)
{
    *marks = (struct socket_marks){ .tclass = -1 };
    return get_option(fd, IPPROTO_IP, IP_TOS, &marks->tos) &&
           get_option(fd, SOL_SOCKET, SO_PRIORITY, &marks->priority) &&
           (domain != AF_INET6 ||
            get_option(fd, IPPROTO_IPV6, IPV6_TCLASS, &marks->tclass));
}

/* Keep the congestion bits.  Setting IP_TOS changes the priority, which comes last. */
static void write_marks(int fd, const struct socket_marks *now,
                        const struct socket_marks *want)
{
    int tos = (want->tos & ~ECN_MASK) | (now->tos & ECN_MASK);
    int tclass = (want->tclass & ~ECN_MASK) | (now->tclass & ECN_MASK);
    bool moved = tos != now->tos;
    if (moved)
        set_option(fd, IPPROTO_IP, IP_TOS, tos);
    if (now->tclass >= 0 && tclass != now->tclass)
        set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, tclass);
    if (moved || want->priority != now->priority)
        set_option(fd, SOL_SOCKET, SO_PRIORITY, want->priority);
}

static uint64_t read_acknowledged(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof info;
    int protocol;
    if (!get_option(fd, SOL_SOCKET, SO_PROTOCOL, &protocol) ||
        protocol != IPPROTO_TCP ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_acked) + 8)
        return 0;
    return info.tcpi_bytes_acked;
}

static bool is_our_point(const struct sockets *sockets, int tos)
{
    int point = dscp_levels_find(sockets->levels, (uint8_t)(tos >> 2));
    return point >= 0 && tos >> 2 != DSCP_UNMARKED;
}

/* The options before a socket was marked, as far as can be known. */
static struct socket_marks guess_original(const struct sockets *sockets,
                                          const struct socket_marks *now)
{
    struct socket_marks marks = *now;
    if (is_our_point(sockets, now->tos) ||
        (now->tclass >= 0 && is_our_point(sockets, now->tclass)))
        marks = (struct socket_marks){ .tclass = now->tclass < 0 ? -1 : 0 };
    return marks;
}

/* --- marked sockets ----------------------------------------------------------------- */

static struct marked_socket *find_socket(struct sockets *sockets, uint64_t cookie)
{
    uint32_t index = map_find(&sockets->indices, cookie);
    return index == MAP_NONE ? NULL : &sockets->list[index];
}

static struct marked_socket *add_socket(struct sockets *sockets, uint64_t cookie,
                                        const struct socket_marks *now)
{
    if (sockets->marked_count == SOCKETS_MAX)
        return NULL;
    uint32_t index = sockets->marked_count++;
    sockets->list = grow_array(sockets->list, &sockets->marked_room, index + 1,
                               sizeof *sockets->list);
    sockets->list[index] =
        (struct marked_socket){ .cookie = cookie,
                                .original = guess_original(sockets, now) };
    map_put(&sockets->indices, cookie, index);
    return &sockets->list[index];
}

static void remove_socket(struct sockets *sockets, uint32_t index)
{
    map_remove(&sockets->indices, sockets->list[index].cookie);
    sockets->list[index] = sockets->list[--sockets->marked_count];
    if (index < sockets->marked_count)
        map_put(&sockets->indices, sockets->list[index].cookie, index);
}

/* Sockets that were not seen in this pass are closed. */
static void remove_closed_sockets(struct sockets *sockets)
{
    for (uint32_t i = sockets->marked_count; i-- > 0;)
        if (sockets->list[i].pass != sockets->pass)
            remove_socket(sockets, i);
}

/* --- one process -------------------------------------------------------------------- */

struct socket_visit {
    struct sockets *sockets;
    struct sockets_job *job;
    const struct dscp_point *point; /* NULL: restore what it had */
};

static void mark_socket(struct socket_visit *visit, int fd, int domain, uint64_t cookie)
{
    struct sockets *sockets = visit->sockets;
    struct socket_marks now;
    if (!read_marks(fd, domain, &now))
        return;
    struct marked_socket *marked = find_socket(sockets, cookie);
    if (!marked && !(marked = add_socket(sockets, cookie, &now)))
        return;
    uint64_t bytes = read_acknowledged(fd);
    if (marked->pass != sockets->pass && bytes > marked->bytes) {
        visit->job->bytes += bytes - marked->bytes;
        marked->bytes = bytes;
    }
    marked->pass = sockets->pass;
    struct socket_marks want = { .tos = visit->point->dscp << 2,
                                 .tclass = visit->point->dscp << 2,
                                 .priority = visit->point->priority };
    write_marks(fd, &now, &want);
}

static void unmark_socket(struct socket_visit *visit, int fd, int domain,
                          uint64_t cookie)
{
    struct socket_marks now;
    if (!read_marks(fd, domain, &now))
        return;
    struct marked_socket *marked = find_socket(visit->sockets, cookie);
    struct socket_marks want =
        marked ? marked->original : guess_original(visit->sockets, &now);
    write_marks(fd, &now, &want);
}

static void visit_socket(struct socket_visit *visit, int fd)
{
    int domain;
    uint64_t cookie;
    socklen_t size = sizeof cookie;
    if (!get_option(fd, SOL_SOCKET, SO_DOMAIN, &domain) ||
        (domain != AF_INET && domain != AF_INET6) ||
        getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) < 0)
        return;
    (visit->point ? mark_socket : unmark_socket)(visit, fd, domain, cookie);
}

static bool visit_process(void *context, int pid, int handle)
{
    char path[64], link[16];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, link, sizeof link);
        if (length < 8 || memcmp(link, "socket:[", 8) != 0)
            continue;
        int fd = (int)syscall(SYS_pidfd_getfd, handle, atoi(entry->d_name), 0);
        if (fd < 0)
            continue;
        visit_socket(context, fd);
        close(fd);
    }
    if (folder)
        closedir(folder);
    return true;
}

static void visit_job(struct sockets *sockets, struct sockets_job *job,
                      const struct dscp_point *point)
{
    struct socket_visit visit = { sockets, job, point };
    procs_for_each(&sockets->procs, &job->target, &job->start, visit_process, &visit);
}

/* --- all jobs ----------------------------------------------------------------------- */

static void copy_target(struct sockets_job *job, const struct mark_target *target)
{
    char *name = memory_text(target->cgroup);
    free((char *)(uintptr_t)job->target.cgroup);
    job->target = *target;
    job->target.cgroup = name;
}

/* Whether the job has another first process: it was restarted. */
static bool is_other_process(const struct sockets_job *job,
                             const struct mark_target *target)
{
    return job->target.pid != target->pid || job->target.attempt != target->attempt;
}

static void unmark_job(struct sockets *sockets, struct sockets_job *job)
{
    visit_job(sockets, job, NULL);
    free((char *)(uintptr_t)job->target.cgroup);
}

/* Keep what is known of jobs that stay, unmark the others.  Both lists are sorted by id. */
static void update_jobs(struct sockets *sockets, const struct marking *marking)
{
    uint32_t a = 0;
    sockets->next = grow_array(sockets->next, &sockets->next_room, marking->count + 1,
                               sizeof *sockets->next);
    for (uint32_t b = 0; b < marking->count; b++) {
        const struct mark_target *target = &marking->targets[b];
        struct sockets_job *job = &sockets->next[b];
        while (a < sockets->count && sockets->jobs[a].target.id < target->id)
            unmark_job(sockets, &sockets->jobs[a++]);
        *job = (struct sockets_job){ .start = 0 };
        if (a < sockets->count && sockets->jobs[a].target.id == target->id)
            *job = sockets->jobs[a++];
        if (is_other_process(job, target))
            job->start = 0;
        copy_target(job, target);
    }
    while (a < sockets->count)
        unmark_job(sockets, &sockets->jobs[a++]);
    struct sockets_job *spare = sockets->jobs;
    uint32_t spare_room = sockets->room;
    sockets->jobs = sockets->next;
    sockets->room = sockets->next_room;
    sockets->count = marking->count;
    sockets->next = spare;
    sockets->next_room = spare_room;
}

/* --- cleanup after a kill ----------------------------------------------------------- */

/* Close all descriptors but 'kept': an inherited one would keep the nftables table. */
static void close_other_files(int kept)
{
    if (dup2(kept, 3) < 0)
        _exit(1);
    syscall(SYS_close_range, 4u, ~0u, 0);
}

/*
 * In the child: unmark the sockets of all listed jobs.  What each socket had before is
 * lost with the agent; most had nothing.
 */
static void unmark_listed(struct sockets *sockets)
{
    struct cleanup_list *list = sockets->cleanup.list;
    uint32_t count = atomic_load(&list->count);
    procs_init(&sockets->procs);
    for (uint32_t i = 0; i < count; i++) {
        struct cleanup_job *one = &list->jobs[i];
        struct sockets_job job = { .target = one->target, .start = one->start };
        one->cgroup[sizeof one->cgroup - 1] = '\0';
        job.target.cgroup = one->cgroup[0] ? one->cgroup : NULL;
        visit_job(sockets, &job, NULL);
    }
}

static _Noreturn void wait_and_unmark(struct sockets *sockets, int pipe_end)
{
    char byte;
    /* A signal to the whole process group is meant for the agent; the child follows it. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_NAME, "flowd-cleanup");
    close_other_files(pipe_end);
    while (read(3, &byte, 1) < 0 && errno == EINTR)
        ;
    unmark_listed(sockets);
    _exit(0);
}

static int start_child(struct sockets *sockets, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, -errno, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        wait_and_unmark(sockets, ends[0]);
    close(ends[0]);
    if (child < 0) {
        close(ends[1]);
        return error_set(err, -EAGAIN, "a child that clears up cannot be started");
    }
    sockets->cleanup.child = child;
    sockets->cleanup.pipe_end = ends[1];
    return 0;
}

/* Whether there is no child, or it was killed; forgets one that was. */
static bool has_no_child(struct cleanup *cleanup)
{
    if (cleanup->child == 0 || waitpid(cleanup->child, NULL, WNOHANG) != cleanup->child)
        return cleanup->child == 0;
    close(cleanup->pipe_end);
    cleanup->child = 0;
    return true;
}

/* Stop the child: nothing is marked any more. */
static void close_cleanup(struct cleanup *cleanup)
{
    if (!cleanup->list)
        return;
    atomic_store(&cleanup->list->count, 0);
    if (!has_no_child(cleanup)) {
        close(cleanup->pipe_end);
        waitpid(cleanup->child, NULL, 0);
    }
    munmap(cleanup->list, sizeof *cleanup->list);
    cleanup->list = NULL;
}

static int open_cleanup(struct sockets *sockets, struct error *err)
{
    struct cleanup *cleanup = &sockets->cleanup;
    cleanup->list = mmap(NULL, sizeof *cleanup->list, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cleanup->list == MAP_FAILED)
        memory_exhausted();
    int r = start_child(sockets, err);
    if (r < 0)
        close_cleanup(cleanup);
    return r;
}

/* Write the list anew.  Meanwhile it is empty; a child that was killed is replaced. */
static void list_jobs_for_cleanup(struct sockets *sockets)
{
    struct cleanup_list *list = sockets->cleanup.list;
    uint32_t count = 0;
    atomic_store(&list->count, 0);
    if (has_no_child(&sockets->cleanup))
        start_child(sockets, NULL); /* if that fails, the next call tries again */
    for (; count < sockets->count && count < DESIRED_JOBS_MAX; count++) {
        const struct sockets_job *job = &sockets->jobs[count];
        struct cleanup_job *one = &list->jobs[count];
        *one = (struct cleanup_job){ .target = job->target, .start = job->start };
        one->target.cgroup = NULL;
        snprintf(one->cgroup, sizeof one->cgroup, "%s",
                 job->target.cgroup ? job->target.cgroup : "");
    }
    atomic_store(&list->count, count);
}

/* --- the marker --------------------------------------------------------------------- */

static int sockets_apply(void *self, const struct marking *marking, struct error *err)
{
    struct sockets *sockets = self;
    procs_reset(&sockets->procs);
    update_jobs(sockets, marking);
    list_jobs_for_cleanup(sockets); /* before any of them is marked */
    sockets->pass++;
    for (uint32_t i = 0; i < sockets->count; i++) {
        struct sockets_job *job = &sockets->jobs[i];
        visit_job(sockets, job, &sockets->levels->points[job->target.point]);
    }
    remove_closed_sockets(sockets);
    if (sockets->marked_count == SOCKETS_MAX)
        return error_set(err, -E2BIG, "jobs have more than %u sockets", SOCKETS_MAX);
    return 0;
}

static void sockets_bytes(void *self,
                          void (*each)(void *context, uint64_t id, uint64_t bytes),
                          void *context)
{
    struct sockets *sockets = self;
    for (uint32_t i = 0; i < sockets->count; i++)
        each(context, sockets->jobs[i].target.id, sockets->jobs[i].bytes);
}

static bool sockets_reaches(const struct mark_target *target)
{
    return target->group != 0 || target->pid != 0 || target->slurm;
}

/* Without capabilities, a user may trace their own processes unless Yama forbids it. */
static bool may_trace_own_processes(void)
{
    int scope = 0;
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file && fscanf(file, "%d", &scope) != 1)
        scope = 0;
    if (file)
        fclose(file);
    return scope == 0;
}

/* Try it on a socket of our own: whether the kernel can do it at all. */
static int probe_getfd(struct error *why)
{
    int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (own < 0)
        return error_set(why, -errno, "pidfd_open: %s", strerror(errno));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int same = fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, own, fd, 0);
    int r = same < 0 ? error_set(why, -errno, "pidfd_getfd: %s", strerror(errno)) : 0;
    if (same >= 0)
        close(same);
    if (fd >= 0)
        close(fd);
    close(own);
    return r;
}

static int sockets_probe(struct error *why)
{
    bool able =
        capabilities_hold(CAP_SYS_PTRACE) && capabilities_hold(CAP_DAC_READ_SEARCH);
    if (!able && (geteuid() == 0 || !may_trace_own_processes()))
        return error_set(why, -EPERM, "needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
    return probe_getfd(why);
}

static int sockets_open(void *self, const struct dscp_levels *levels, struct error *err)
{
    struct sockets *sockets = self;
    *sockets = (struct sockets){ .levels = levels };
    int r = open_cleanup(sockets, err);
    procs_init(&sockets->procs);
    return r;
}

static void sockets_close(void *self)
{
    struct sockets *sockets = self;
    const struct marking nothing = { .count = 0 };
    sockets_apply(sockets, &nothing, NULL);
    close_cleanup(&sockets->cleanup);
    procs_release(&sockets->procs);
    map_release(&sockets->indices);
    free(sockets->jobs);
    free(sockets->next);
    free(sockets->list);
    *sockets = (struct sockets){ .count = 0 };
}

static const int needed_capabilities[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, -1 };

const struct marker marker_sockets = {
    .name = "sockets",
    .brief = "on the sockets of each job's processes, from outside",
    .capabilities = needed_capabilities,
    .self_size = sizeof(struct sockets),
    .probe = sockets_probe,
    .open = sockets_open,
    .reaches = sockets_reaches,
    .apply = sockets_apply,
    .bytes = sockets_bytes,
    .close = sockets_close,
};
