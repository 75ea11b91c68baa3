/* named_pipe.c - a named pipe that any user may write to. */
#include "base/named_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

int named_pipe_make(const char *path, struct error *err)
{
    struct stat found;
    if (lstat(path, &found) == 0 && !S_ISFIFO(found.st_mode))
        return error_set(err, -EEXIST, "%s is there, and is no named pipe", path);
    unlink(path);
    int fd = mkfifo(path, 0600) == 0
                 ? open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    /* By descriptor: the name may lead elsewhere by now, where others own the folder. */
    if (fd >= 0 && fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode) &&
        fchmod(fd, 0622) == 0)
        return fd;
    int code = errno;
    if (fd >= 0)
        close(fd);
    return error_set(err, code ? -code : -EIO, "%s: %s", path, strerror(code));
}

void named_pipe_remove(const char *path, int fd)
{
    struct stat ours, there;
    if (fd < 0)
        return;
    if (fstat(fd, &ours) == 0 && lstat(path, &there) == 0 &&
        ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
        unlink(path);
    close(fd);
}
