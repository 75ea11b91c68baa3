/* cgroup.c - a cgroup per job, where the kernel allows it. */
#include "host/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CGROUP2_MAGIC 0x63677270
#define PATH_BYTES 512

/* Where version 2 is mounted: alone, or beside version 1. */
static const char *mount_point(void)
{
    static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    struct statfs fs;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (statfs(places[i], &fs) == 0 && fs.f_type == CGROUP2_MAGIC)
            return places[i];
    return NULL;
}

/* The cgroup of this process: the line "0::/path". */
static bool own_group(char *path, size_t size)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return false;
    bool found = false;
    char line[PATH_BYTES];
    while (!found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, "0::/", 4) == 0;
        if (found)
            snprintf(path, size, "%s", strcmp(line, "0::/") == 0 ? "" : line + 3);
    }
    fclose(file);
    return found;
}

bool cgroup_find(char *path, size_t size)
{
    char own[PATH_BYTES];
    const char *mount = mount_point();
    if (!mount || !own_group(own, sizeof own))
        return false;
    int length = snprintf(path, size, "%s%s", mount, own);
    return length > 0 && (size_t)length < size && access(path, W_OK) == 0;
}

bool cgroup_make(const char *path)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST;
}

/*
 * Older kernels have no cgroup.kill: kill one by one, which a process that forks
 * quickly may outrun.
 */
static bool kill_each(const char *path)
{
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "%s/cgroup.procs", path);
    FILE *file = fopen(name, "re");
    if (!file)
        return false;
    bool any = false;
    for (int pid; fscanf(file, "%d", &pid) == 1;)
        any = kill(pid, SIGKILL) == 0 || any;
    fclose(file);
    return any;
}

static bool is_populated(const char *path)
{
    char name[PATH_BYTES], text[128] = "";
    snprintf(name, sizeof name, "%s/cgroup.events", path);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t count = read(fd, text, sizeof text - 1);
    close(fd);
    return count > 0 && strstr(text, "populated 1");
}

bool cgroup_kill(const char *path)
{
    if (!is_populated(path))
        return false;
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "%s/cgroup.kill", path);
    int fd = open(name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return kill_each(path);
    bool done = write(fd, "1", 1) == 1;
    close(fd);
    return done || kill_each(path);
}

bool cgroup_remove(const char *path)
{
    return rmdir(path) == 0 || errno == ENOENT;
}
