/*
 * output.c - a file that appears only when it is complete.
 *
 * Where the file system allows, it has no name until then: a program that is killed
 * leaves nothing behind.  What is at the path and no plain file (a device, a pipe, a link) is
 * never replaced: it is opened at the start, so that missing permission is reported before
 * the work, and written at the end.
 */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

static int set_failure(const struct output *output, struct error *err)
{
    int code = errno ? errno : EIO;
    return error_set(err, -code, "cannot write %s: %s",
                     output->path ? output->path : "to standard output",
                     strerror(code));
}

bool output_is_stdout(const char *path)
{
    if (!path || strcmp(path, "-") == 0)
        return true;
    struct stat at, out;
    return lstat(path, &at) == 0 && !S_ISREG(at.st_mode) && stat(path, &at) == 0 &&
           fstat(STDOUT_FILENO, &out) == 0 && at.st_dev == out.st_dev &&
           at.st_ino == out.st_ino && at.st_rdev == out.st_rdev;
}

/* A file without a name in the folder of 'path', or -1. */
static int open_unnamed(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? memory_checked(strndup(path, (size_t)(slash - path) + 1))
                         : memory_text(".");
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    free(folder);
    return fd;
}

static void name_temporary(struct output *output)
{
    if (asprintf(&output->temporary, "%s.XXXXXX", output->path) < 0)
        memory_exhausted();
}

/* Give a file without a name the temporary one: only that can be renamed over another. */
static int link_unnamed(struct output *output, struct error *err)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fileno(output->file));
    name_temporary(output);
    int fd = mkstemp(output->temporary); /* the name is ours from here on */
    if (fd < 0)
        return set_failure(output, err);
    close(fd);
    unlink(output->temporary);
    if (linkat(AT_FDCWD, self, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) < 0)
        return set_failure(output, err);
    return 0;
}

/* To be copied at the end: to standard output, or to what is at the path. */
static int open_through(struct output *output, bool to_stdout, struct error *err)
{
    output->copies = true;
    if (to_stdout) {
        output->path = NULL;
    } else {
        int fd = open(output->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        output->through = fd < 0 ? NULL : fdopen(fd, "w");
        if (!output->through)
            return set_failure(output, err);
    }
    output->file = tmpfile();
    if (output->file)
        return 0;
    int r = set_failure(output, err);
    output_release(output);
    return r;
}

int output_open(struct output *output, const char *path, struct error *err)
{
    *output = (struct output){ .path = path };
    if (output_is_stdout(path))
        return open_through(output, /* to_stdout= */ true, err);
    struct stat at;
    if (lstat(path, &at) == 0 && !S_ISREG(at.st_mode))
        return open_through(output, /* to_stdout= */ false, err);
    int fd = open_unnamed(path);
    if (fd < 0) {
        name_temporary(output);
        fd = mkstemp(output->temporary);
    }
    if (fd < 0) {
        free(output->temporary);
        output->temporary = NULL;
        return set_failure(output, err);
    }
    mode_t mask = umask(0);
    umask(mask);
    output->file = fdopen(fd, "w");
    if (!output->file || fchmod(fd, 0666 & ~mask) < 0) {
        int r = set_failure(output, err);
        if (!output->file)
            close(fd);
        output_release(output);
        return r;
    }
    return 0;
}

static int copy_out(struct output *output, struct error *err)
{
    FILE *to = output->through ? output->through : stdout;
    struct stat at;
    if (output->through && fstat(fileno(to), &at) == 0 && S_ISREG(at.st_mode) &&
        ftruncate(fileno(to), 0) < 0)
        return set_failure(output, err);
    char bytes[64 * 1024];
    size_t count;
    rewind(output->file);
    while ((count = fread(bytes, 1, sizeof bytes, output->file)) > 0)
        if (fwrite(bytes, 1, count, to) != count)
            return set_failure(output, err);
    return ferror(output->file) || fflush(to) != 0 ? set_failure(output, err) : 0;
}

int output_commit(struct output *output, struct error *err)
{
    errno = 0;
    if (fflush(output->file) != 0 || ferror(output->file))
        return set_failure(output, err);
    if (output->copies)
        return copy_out(output, err);
    int r = output->temporary ? 0 : link_unnamed(output, err);
    if (r < 0)
        return r;
    r = fclose(output->file);
    output->file = NULL;
    if (r != 0 || rename(output->temporary, output->path) < 0)
        return set_failure(output, err);
    free(output->temporary);
    output->temporary = NULL;
    return 0;
}

void output_release(struct output *output)
{
    if (output->file)
        fclose(output->file);
    if (output->through)
        fclose(output->through);
    if (output->temporary)
        unlink(output->temporary);
    free(output->temporary);
    *output = (struct output){ 0 };
}
