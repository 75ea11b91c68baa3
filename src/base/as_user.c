/*
 * as_user.c - open files with a user's rights.
 *
 * Without a process of its own: Linux keeps a file-system identity per thread, and with
 * one that is not root the privileges over files are gone as well.  So a path that a user
 * made lead to another user's file opens exactly what the user could open.
 */
#include "base/as_user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

#define GROUPS_MAX 256

struct rights {
    gid_t groups[GROUPS_MAX];
    int group_count;
};

/* Of this thread alone: the library's own would change all of them. */
static long set_groups(size_t count, const gid_t *groups)
{
    return syscall(SYS_setgroups, count, groups);
}

/* Take on a user's identity as far as files go.  False: not all of it; nothing is opened. */
static bool become_user(uint32_t uid, uint32_t gid, struct rights *before)
{
    before->group_count = getgroups(GROUPS_MAX, before->groups);
    if (before->group_count < 0)
        return false;

    gid_t groups[GROUPS_MAX] = { gid };
    int count = 1;
    struct passwd room, *user = NULL;
    char text[4096];
    if (getpwuid_r(uid, &room, text, sizeof text, &user) == 0 && user) {
        count = GROUPS_MAX;
        if (getgrouplist(user->pw_name, gid, groups, &count) < 0)
            count = 1;
    }
    if (set_groups((size_t)count, groups) < 0)
        return false;
    setfsgid(gid);
    setfsuid(uid);
    return (uint32_t)setfsuid((uid_t)-1) == uid && (uint32_t)setfsgid((gid_t)-1) == gid;
}

/* Return to our own identity.  Going on as another user would be worse than ending. */
static bool return_to(const struct rights *before)
{
    setfsuid(geteuid());
    setfsgid(getegid());
    return before->group_count < 0 ||
           (set_groups((size_t)before->group_count, before->groups) == 0 &&
            (uid_t)setfsuid((uid_t)-1) == geteuid());
}

static int open_plainly(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

static int open_becoming(const char *path, uint32_t uid, uint32_t gid)
{
    struct rights before;
    int fd = become_user(uid, gid, &before) ? open_plainly(path) : -EPERM;
    if (!return_to(&before))
        abort();
    return fd;
}

int as_user_open(const char *path, uint32_t uid, uint32_t gid, struct error *err)
{
    if (path[0] != '/')
        return error_set(err, -EINVAL, "%.200s: not an absolute path", path);
    int fd =
        geteuid() == 0 && uid != 0 ? open_becoming(path, uid, gid) : open_plainly(path);
    if (fd == -ELOOP)
        return error_set(err, fd, "%.200s: is a link", path);
    if (fd < 0)
        return error_set(err, fd, "%.200s: %s", path, strerror(-fd));

    /* /proc/self is refused: it shows this process, whatever the mode of its files. */
    struct stat file;
    struct statfs system;
    if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode) || fstatfs(fd, &system) < 0 ||
        system.f_type == PROC_SUPER_MAGIC) {
        close(fd);
        return error_set(err, -EINVAL, "%.200s: not a regular file", path);
    }
    return fd;
}
