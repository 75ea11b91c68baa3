/* procs.c - find the processes of a job. */
#include "flowd/procs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "flowd/mark_target.h"

#define PATH_BYTES 1024
#define PIDS_MAX 65536 /* of one job, or of the machine */
#define ENVIRON_BYTES (128 * 1024)
#define START_ENDED \
    UINT64_MAX /* a start: all its processes ended, and their pids may be reused */

static ssize_t read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t count = 0;
    for (ssize_t n; count < size - 1; count += (size_t)n)
        if ((n = read(fd, text + count, size - 1 - count)) <= 0)
            break;
    close(fd);
    text[count] = '\0';
    return (ssize_t)count;
}

/* --- one process -------------------------------------------------------------------- */

static bool read_stat(int pid, struct proc *proc)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (read_file(path, text, sizeof text) <= 0)
        return false;
    /* The name may contain anything, also brackets: continue after the last one. */
    const char *rest = strrchr(text, ')');
    *proc = (struct proc){ .pid = pid };
    return rest && sscanf(rest,
                          ") %*c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                          "%*d %*d %*d %*d %" SCNu64,
                          &proc->parent, &proc->session, &proc->start) == 3;
}

/* Whether its cgroup of version 2 is this one, or one below it. */
static bool is_in_cgroup(int pid, const char *cgroup)
{
    char path[64], text[4096];
    const char *hierarchy = mark_target_hierarchy();
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    if (!hierarchy || read_file(path, text, sizeof text) <= 0)
        return false;
    const char *name = cgroup + strlen(hierarchy);
    size_t length = strlen(name);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line, "0::/", 4) == 0)
            return strncmp(line + 4, name, length) == 0 &&
                   (line[4 + length] == '\0' || line[4 + length] == '/');
    return false;
}

/* The SLURM_JOB_ID in its environment, or 0. */
static uint64_t read_slurm_id(int pid, char *text)
{
    static const char mark[] = "SLURM_JOB_ID=";
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    ssize_t count = read_file(path, text, ENVIRON_BYTES);
    for (const char *at = text; count > 0 && at < text + count; at += strlen(at) + 1)
        if (strncmp(at, mark, sizeof mark - 1) == 0)
            return strtoull(at + sizeof mark - 1, NULL, 10);
    return 0;
}

/* --- all processes ------------------------------------------------------------------ */

static int compare_pids(const void *a, const void *b)
{
    const struct proc *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void list_processes(struct procs *procs)
{
    DIR *folder = opendir("/proc");
    if (procs->listed || !folder) {
        if (folder)
            closedir(folder);
        return;
    }
    procs->listed = true;
    procs->list = arena_array(&procs->arena, struct proc, PIDS_MAX);
    for (struct dirent *entry; procs->count < PIDS_MAX && (entry = readdir(folder));)
        if (isdigit((unsigned char)entry->d_name[0]) &&
            read_stat(atoi(entry->d_name), &procs->list[procs->count]))
            procs->count++;
    closedir(folder);
    qsort(procs->list, procs->count, sizeof *procs->list, compare_pids);
}

static void read_slurm_ids(struct procs *procs)
{
    list_processes(procs);
    if (procs->has_slurm_ids)
        return;
    procs->has_slurm_ids = true;
    char *text = arena_alloc(&procs->arena, ENVIRON_BYTES, 1, 1);
    for (uint32_t i = 0; i < procs->count; i++)
        procs->list[i].slurm = read_slurm_id(procs->list[i].pid, text);
}

static const struct proc *find_process(const struct procs *procs, int pid)
{
    struct proc key = { .pid = pid };
    return procs->count
               ? bsearch(&key, procs->list, procs->count, sizeof key, compare_pids)
               : NULL;
}

static bool is_descendant(const struct procs *procs, const struct proc *proc, int root)
{
    for (uint32_t steps = 0; proc && steps < 1000; steps++) {
        if (proc->pid == root)
            return true;
        proc = proc->parent > 1 ? find_process(procs, proc->parent) : NULL;
    }
    return false;
}

/* --- the processes of one job ------------------------------------------------------- */

static int open_handle(int pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

struct procs_walk {
    const struct mark_target *target;
    bool (*each)(void *context, int pid, int handle);
    void *context;
    uint32_t left; /* how many more may be visited */
};

static void visit_member(struct procs_walk *walk, int pid)
{
    int handle = open_handle(pid);
    if (handle < 0)
        return;
    if (is_in_cgroup(pid, walk->target->cgroup) &&
        !walk->each(walk->context, pid, handle))
        walk->left = 0;
    close(handle);
}

/* A threaded cgroup lists its threads only, which belong to the same processes. */
static FILE *open_members(int folder)
{
    static const char *const names[] = { "cgroup.procs", "cgroup.threads" };
    for (size_t i = 0; i < 2; i++) {
        int fd = openat(folder, names[i], O_RDONLY | O_CLOEXEC);
        FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
        int c = file ? fgetc(file) : EOF;
        if (c != EOF) {
            ungetc(c, file);
            return file;
        }
        if (file)
            fclose(file);
        else if (fd >= 0)
            close(fd);
    }
    return NULL;
}

static int open_folder(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Visit the processes of a cgroup and of those below it; closes 'fd'. */
static void walk_cgroup(struct procs_walk *walk, int fd, uint32_t depth)
{
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return;
    }
    FILE *file = open_members(dirfd(folder));
    for (int pid; file && walk->left > 0 && fscanf(file, "%d", &pid) == 1;)
        if (pid > 0) { /* 0: it is in another pid namespace */
            walk->left--;
            visit_member(walk, pid);
        }
    if (file)
        fclose(file);
    for (struct dirent *entry;
         depth > 0 && walk->left > 0 && (entry = readdir(folder));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            walk_cgroup(walk, open_folder(dirfd(folder), entry->d_name), depth - 1);
    closedir(folder);
}

/* Open the cgroup that was looked up, not another one that has its name now. */
static int open_cgroup(const struct mark_target *target)
{
    char path[PATH_BYTES];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", CGROUP_ROOT, target->cgroup);
    int fd = open_folder(AT_FDCWD, path);
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_ino == target->group)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void visit_same_process(struct procs_walk *walk, const struct proc *proc)
{
    struct proc now;
    int handle = open_handle(proc->pid);
    if (handle < 0)
        return;
    if (read_stat(proc->pid, &now) && now.start == proc->start &&
        !walk->each(walk->context, proc->pid, handle))
        walk->left = 0;
    close(handle);
}

static void walk_descendants(struct procs *procs, struct procs_walk *walk,
                             uint64_t *start)
{
    int root = walk->target->pid;
    list_processes(procs);
    const struct proc *first = find_process(procs, root);
    if (*start == 0)
        *start = first ? first->start : START_ENDED;
    /* The number of a session is not reused while the session has members. */
    bool any = false, alive = first && first->start == *start;
    if (*start == START_ENDED || (first && !alive)) {
        *start = START_ENDED;
        return;
    }
    for (uint32_t i = 0; i < procs->count && walk->left > 0; i++) {
        const struct proc *proc = &procs->list[i];
        if (proc->session == root || (alive && is_descendant(procs, proc, root))) {
            any = true;
            visit_same_process(walk, proc);
        }
    }
    if (!any)
        *start = START_ENDED;
}

static void walk_environments(struct procs *procs, struct procs_walk *walk)
{
    read_slurm_ids(procs);
    for (uint32_t i = 0; i < procs->count && walk->left > 0; i++)
        if (procs->list[i].slurm == walk->target->id)
            visit_same_process(walk, &procs->list[i]);
}

void procs_for_each(struct procs *procs, const struct mark_target *target,
                    uint64_t *start, bool (*each)(void *context, int pid, int handle),
                    void *context)
{
    struct procs_walk walk = { target, each, context, PIDS_MAX };
    if (target->group) {
        walk_cgroup(&walk, open_cgroup(target), MARK_TARGET_DEPTH_MAX);
    } else if (target->pid) {
        walk_descendants(procs, &walk, start);
    } else if (target->slurm) {
        walk_environments(procs, &walk);
    }
}
