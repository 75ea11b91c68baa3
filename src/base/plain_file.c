/* plain_file.c - open a file whose path was chosen by somebody else. */
#include "base/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/error.h"

int plain_file_open(const char *path, struct error *err)
{
    struct stat file;
    struct statfs system;
    if (path[0] != '/')
        return error_set(err, -EINVAL, "%.200s: not an absolute path", path);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_set(err, -errno, "%.200s: %s", path,
                         errno == ELOOP ? "is a link" : strerror(errno));
    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && fstatfs(fd, &system) == 0 &&
        system.f_type != PROC_SUPER_MAGIC)
        return fd;
    close(fd);
    return error_set(err, -EINVAL, "%.200s: not a regular file", path);
}
