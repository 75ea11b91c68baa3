/* plain_file.c - open a file whose path was chosen by somebody else. */
#include "base/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

#define OPEN_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

/* A regular file and none of /proc, which shows processes; 'fd' may be a negative errno. */
static int check_opened(int fd, const char *path, struct error *err)
{
    struct stat file;
    struct statfs system;
    if (fd < 0)
        return error_set(err, fd, "%.200s: %s", path,
                         fd == -ELOOP ? "is a link" : strerror(-fd));
    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && fstatfs(fd, &system) == 0 &&
        system.f_type != PROC_SUPER_MAGIC)
        return fd;
    close(fd);
    return error_set(err, -EINVAL, "%.200s: not a regular file", path);
}

int plain_file_open(const char *path, struct error *err)
{
    if (path[0] != '/')
        return error_set(err, -EINVAL, "%.200s: not an absolute path", path);
    int fd = open(path, OPEN_FLAGS);
    return check_opened(fd < 0 ? -errno : fd, path, err);
}

/* Whether both are on the same mount; their file systems are not asked. */
static bool is_same_mount(int a, int b)
{
    struct statx of_a, of_b;
    const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
    return statx(a, "", flags, STATX_MNT_ID, &of_a) == 0 &&
           statx(b, "", flags, STATX_MNT_ID, &of_b) == 0 &&
           of_a.stx_mask & of_b.stx_mask & STATX_MNT_ID &&
           of_a.stx_mnt_id == of_b.stx_mnt_id;
}

/* Without openat2(): what was found is looked at before it is opened. */
static int open_found(int folder, const char *name)
{
    char path[32];
    int found = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (found < 0)
        return -errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", found);
    int fd = -EXDEV;
    if (is_same_mount(folder, found)) {
        fd = open(path, OPEN_FLAGS & ~O_NOFOLLOW); /* a link gives ELOOP */
        fd = fd < 0 ? -errno : fd;
    }
    close(found);
    return fd;
}

/* systemd keeps openat2() from services with RestrictSUIDSGID, and some containers do. */
static int open_unmounted(int folder, const char *name)
{
    struct open_how how = { .flags = OPEN_FLAGS, .resolve = RESOLVE_NO_XDEV };
    int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return open_found(folder, name);
    return fd < 0 ? -errno : fd;
}

int plain_file_open_own(const char *path, struct error *err)
{
    char folder[PATH_MAX];
    const char *name = strrchr(path, '/');
    if (path[0] != '/' || strlen(path) >= sizeof folder)
        return error_set(err, -EINVAL, "%.200s: not an absolute path", path);
    snprintf(folder, sizeof folder, "%.*s", (int)(name - path) + 1, path);
    int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = at < 0 ? -errno : open_unmounted(at, name + 1);
    if (at >= 0)
        close(at);
    return check_opened(fd, path, err);
}
