/*
 * sockets.c - marks on the sockets of a job's processes, from outside.
 *
 * pidfd_getfd() gives us a second handle of another process's socket; IP_TOS,
 * IPV6_TCLASS and SO_PRIORITY on it are as good as its own.  It needs nothing from the
 * job, its network namespace or the packet filter, so it works for containers and where
 * there is no cgroup.  New sockets are found by looking again, once a second; those that
 * a marked listener accepts have its mark from the start.
 *
 * What a socket had before is remembered by the kernel's cookie of it, which is never
 * used again, and given back when the job is no longer to be marked.  We keep no handle:
 * a connection must end when its job closes it.  A socket that carries one of our code
 * points before we have seen it was marked by an agent before us, or accepted from one
 * we marked: it had none.  Marks have no timeout, so a child takes them off if we are
 * killed.
 */
#include "flowd/marker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/tcp.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/map.h"
#include "flowd/heir.h"
#include "flowd/dscp.h"
#include "flowd/procs.h"
#include "flowd/capabilities.h"
#include "flowd/mark_target.h"

#define SOCKETS_MAX (1u << 20)
#define ECN_MASK 3

/* What a socket says of itself; of version 4 and 6 both, where it can speak both. */
struct marks {
    int tos, tclass, priority;
};

/* A socket we have marked. */
struct marked {
    uint64_t cookie;
    struct marks before;
    uint64_t bytes; /* acknowledged when we last looked */
    uint32_t pass;  /* when that was */
};

/* A job we have marked. */
struct own {
    struct mark_target target; /* its cgroup's name is ours to free */
    uint64_t start;            /* of its first process */
    uint64_t bytes;
};

struct sockets {
    const struct dscp_levels *levels;
    struct heir *heir;
    struct procs procs;
    struct own *jobs; /* by id */
    uint32_t count, room;
    struct own *next; /* the list that is being made */
    uint32_t next_room;
    struct marked *list;
    uint32_t marked_count, marked_room;
    struct map places; /* cookie to its place in the list */
    uint32_t pass;
};

/* --- one socket --------------------------------------------------------------------- */

static bool ask(int fd, int level, int name, int *value)
{
    socklen_t size = sizeof *value;
    return getsockopt(fd, level, name, value, &size) == 0;
}

static void set(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof value);
}

static bool read_marks(int fd, int domain, struct marks *marks)
{
    *marks = (struct marks){ .tclass = -1 };
    return ask(fd, IPPROTO_IP, IP_TOS, &marks->tos) &&
           ask(fd, SOL_SOCKET, SO_PRIORITY, &marks->priority) &&
           (domain != AF_INET6 || ask(fd, IPPROTO_IPV6, IPV6_TCLASS, &marks->tclass));
}

/* The congestion bits stay; a change of IP_TOS moves the priority, which comes last. */
static void write_marks(int fd, const struct marks *now, const struct marks *want)
{
    int tos = (want->tos & ~ECN_MASK) | (now->tos & ECN_MASK);
    int tclass = (want->tclass & ~ECN_MASK) | (now->tclass & ECN_MASK);
    bool moved = tos != now->tos;
    if (moved)
        set(fd, IPPROTO_IP, IP_TOS, tos);
    if (now->tclass >= 0 && tclass != now->tclass)
        set(fd, IPPROTO_IPV6, IPV6_TCLASS, tclass);
    if (moved || want->priority != now->priority)
        set(fd, SOL_SOCKET, SO_PRIORITY, want->priority);
}

static uint64_t acknowledged(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof info;
    int protocol;
    if (!ask(fd, SOL_SOCKET, SO_PROTOCOL, &protocol) || protocol != IPPROTO_TCP ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_acked) + 8)
        return 0;
    return info.tcpi_bytes_acked;
}

static bool is_ours(const struct sockets *sockets, int tos)
{
    int point = dscp_levels_find(sockets->levels, (uint8_t)(tos >> 2));
    return point >= 0 && tos >> 2 != DSCP_UNMARKED;
}

/* As it was before anybody marked it, as far as can be known. */
static struct marks before(const struct sockets *sockets, const struct marks *now)
{
    struct marks marks = *now;
    if (is_ours(sockets, now->tos) ||
        (now->tclass >= 0 && is_ours(sockets, now->tclass)))
        marks = (struct marks){ .tclass = now->tclass < 0 ? -1 : 0 };
    return marks;
}

/* --- those we know ------------------------------------------------------------------ */

static struct marked *known(struct sockets *sockets, uint64_t cookie)
{
    uint32_t place = map_find(&sockets->places, cookie);
    return place == MAP_NONE ? NULL : &sockets->list[place];
}

static struct marked *get_to_know(struct sockets *sockets, uint64_t cookie,
                                  const struct marks *now)
{
    if (sockets->marked_count == SOCKETS_MAX)
        return NULL;
    uint32_t place = sockets->marked_count++;
    sockets->list =
        grow(sockets->list, &sockets->marked_room, place + 1, sizeof *sockets->list);
    sockets->list[place] =
        (struct marked){ .cookie = cookie, .before = before(sockets, now) };
    map_put(&sockets->places, cookie, place);
    return &sockets->list[place];
}

static void forget(struct sockets *sockets, uint32_t place)
{
    map_remove(&sockets->places, sockets->list[place].cookie);
    sockets->list[place] = sockets->list[--sockets->marked_count];
    if (place < sockets->marked_count)
        map_put(&sockets->places, sockets->list[place].cookie, place);
}

/* What was not seen in this pass is closed. */
static void forget_closed(struct sockets *sockets)
{
    for (uint32_t i = sockets->marked_count; i-- > 0;)
        if (sockets->list[i].pass != sockets->pass)
            forget(sockets, i);
}

/* --- one process -------------------------------------------------------------------- */

struct visit {
    struct sockets *sockets;
    struct own *job;
    const struct dscp_point *point; /* NULL: give back what it had */
};

static void mark(struct visit *visit, int fd, int domain, uint64_t cookie)
{
    struct sockets *sockets = visit->sockets;
    struct marks now;
    if (!read_marks(fd, domain, &now))
        return;
    struct marked *marked = known(sockets, cookie);
    if (!marked && !(marked = get_to_know(sockets, cookie, &now)))
        return;
    uint64_t bytes = acknowledged(fd);
    if (marked->pass != sockets->pass && bytes > marked->bytes) {
        visit->job->bytes += bytes - marked->bytes;
        marked->bytes = bytes;
    }
    marked->pass = sockets->pass;
    struct marks want = { .tos = visit->point->dscp << 2,
                          .tclass = visit->point->dscp << 2,
                          .priority = visit->point->priority };
    write_marks(fd, &now, &want);
}

static void unmark(struct visit *visit, int fd, int domain, uint64_t cookie)
{
    struct marks now;
    if (!read_marks(fd, domain, &now))
        return;
    struct marked *marked = known(visit->sockets, cookie);
    struct marks want = marked ? marked->before : before(visit->sockets, &now);
    write_marks(fd, &now, &want);
}

static void visit_socket(struct visit *visit, int fd)
{
    int domain;
    uint64_t cookie;
    socklen_t size = sizeof cookie;
    if (!ask(fd, SOL_SOCKET, SO_DOMAIN, &domain) ||
        (domain != AF_INET && domain != AF_INET6) ||
        getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) < 0)
        return;
    (visit->point ? mark : unmark)(visit, fd, domain, cookie);
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

static void visit_job(struct sockets *sockets, struct own *job,
                      const struct dscp_point *point)
{
    struct visit visit = { sockets, job, point };
    procs_for_each(&sockets->procs, &job->target, &job->start, visit_process, &visit);
}

/* --- all jobs ----------------------------------------------------------------------- */

static void take_name(struct own *job, const struct mark_target *target)
{
    char *name = target->cgroup ? strdup(target->cgroup) : NULL;
    if (target->cgroup && !name)
        abort();
    free((char *)(uintptr_t)job->target.cgroup);
    job->target = *target;
    job->target.cgroup = name;
}

/* The same as before in another place: another attempt, another first process. */
static bool has_moved(const struct own *job, const struct mark_target *target)
{
    return job->target.pid != target->pid || job->target.attempt != target->attempt;
}

static void leave(struct sockets *sockets, struct own *job)
{
    visit_job(sockets, job, NULL);
    free((char *)(uintptr_t)job->target.cgroup);
}

/* Carry over what is known of jobs that stay; unmark those that do not.  Both by id. */
static void renew(struct sockets *sockets, const struct marking *marking)
{
    uint32_t a = 0;
    sockets->next = grow(sockets->next, &sockets->next_room, marking->count + 1,
                         sizeof *sockets->next);
    for (uint32_t b = 0; b < marking->count; b++) {
        const struct mark_target *target = &marking->targets[b];
        struct own *job = &sockets->next[b];
        while (a < sockets->count && sockets->jobs[a].target.id < target->id)
            leave(sockets, &sockets->jobs[a++]);
        *job = (struct own){ .start = 0 };
        if (a < sockets->count && sockets->jobs[a].target.id == target->id)
            *job = sockets->jobs[a++];
        if (has_moved(job, target))
            job->start = 0;
        take_name(job, target);
    }
    while (a < sockets->count)
        leave(sockets, &sockets->jobs[a++]);
    struct own *spare = sockets->jobs;
    uint32_t spare_room = sockets->room;
    sockets->jobs = sockets->next;
    sockets->room = sockets->next_room;
    sockets->count = marking->count;
    sockets->next = spare;
    sockets->next_room = spare_room;
}

static void bequeath(struct sockets *sockets)
{
    heir_begin(sockets->heir);
    for (uint32_t i = 0; i < sockets->count; i++)
        heir_add(sockets->heir, &sockets->jobs[i].target, sockets->jobs[i].start);
    heir_end(sockets->heir);
}

/* In the child.  What each socket had before is known to who was killed; most had
 * nothing. */
static void inherit(void *self, struct bequest *list, uint32_t count)
{
    struct sockets *sockets = self;
    procs_init(&sockets->procs);
    for (uint32_t i = 0; i < count; i++) {
        struct own job = { .target = list[i].target, .start = list[i].start };
        visit_job(sockets, &job, NULL);
    }
}

static int sockets_apply(void *self, const struct marking *marking, struct error *err)
{
    struct sockets *sockets = self;
    procs_reset(&sockets->procs);
    renew(sockets, marking);
    bequeath(sockets); /* before the first of them is marked */
    sockets->pass++;
    for (uint32_t i = 0; i < sockets->count; i++) {
        struct own *job = &sockets->jobs[i];
        visit_job(sockets, job, &sockets->levels->points[job->target.point]);
    }
    forget_closed(sockets);
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

/* Without capabilities a user's own processes are ours to look into, unless Yama says
 * that only parents may. */
static bool own_jobs_are_open(void)
{
    int scope = 0;
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file && fscanf(file, "%d", &scope) != 1)
        scope = 0;
    if (file)
        fclose(file);
    return scope == 0;
}

/* On a socket of our own: whether the kernel can do it at all. */
static int try_getfd(struct error *why)
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
    if (!able && (geteuid() == 0 || !own_jobs_are_open()))
        return error_set(why, -EPERM, "needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
    return try_getfd(why);
}

static int sockets_open(void *self, const struct dscp_levels *levels, struct error *err)
{
    struct sockets *sockets = self;
    *sockets = (struct sockets){ .levels = levels };
    int r = heir_new(&sockets->heir, inherit, sockets, err);
    procs_init(&sockets->procs);
    return r;
}

static void sockets_close(void *self)
{
    struct sockets *sockets = self;
    const struct marking nothing = { .count = 0 };
    sockets_apply(sockets, &nothing, NULL);
    heir_free(sockets->heir);
    procs_release(&sockets->procs);
    map_release(&sockets->places);
    free(sockets->jobs);
    free(sockets->next);
    free(sockets->list);
    *sockets = (struct sockets){ .count = 0 };
}

static const int needs[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, -1 };

const struct marker marker_sockets = {
    .name = "sockets",
    .brief = "on the sockets of each job's processes, from outside",
    .needs = needs,
    .self_size = sizeof(struct sockets),
    .probe = sockets_probe,
    .open = sockets_open,
    .reaches = sockets_reaches,
    .apply = sockets_apply,
    .bytes = sockets_bytes,
    .close = sockets_close,
};
