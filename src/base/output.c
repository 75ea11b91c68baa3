/*
 * output.c - a file that appears only when it is complete.
 *
 * Where the file system allows, it has no name until then: a program that is killed
 * leaves nothing behind.
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

static int failed(const struct output *output, struct error *err)
{
    int code = errno;
    return error_set(err, -(code ? code : EIO), "cannot write %s: %s",
                     output->path ? output->path : "to standard output",
                     strerror(code));
}

/* A file without a name in the folder of 'path', or -1. */
static int open_unnamed(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    free(folder);
    return fd;
}

static int name_temporary(struct output *output, struct error *err)
{
    if (asprintf(&output->temporary, "%s.XXXXXX", output->path) >= 0)
        return 0;
    output->temporary = NULL;
    return error_set(err, -ENOMEM, "out of memory");
}

/* Give a file without a name the temporary one: only that can be renamed over another. */
static int link_unnamed(struct output *output, struct error *err)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fileno(output->file));
    int r = name_temporary(output, err);
    if (r < 0)
        return r;
    int fd = mkstemp(output->temporary); /* the name is ours from here on */
    if (fd < 0)
        return failed(output, err);
    close(fd);
    unlink(output->temporary);
    if (linkat(AT_FDCWD, self, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) < 0)
        return failed(output, err);
    return 0;
}

int output_open(struct output *output, const char *path, struct error *err)
{
    *output = (struct output){ .path = path };
    if (!path || strcmp(path, "-") == 0) {
        output->path = NULL;
        output->file = tmpfile();
        return output->file ? 0 : failed(output, err);
    }
    int fd = open_unnamed(path);
    if (fd < 0) {
        int r = name_temporary(output, err);
        if (r < 0)
            return r;
        fd = mkstemp(output->temporary);
    }
    if (fd < 0) {
        free(output->temporary);
        output->temporary = NULL;
        return failed(output, err);
    }
    mode_t mask = umask(0);
    umask(mask);
    output->file = fdopen(fd, "w");
    if (!output->file || fchmod(fd, 0666 & ~mask) < 0) {
        int r = failed(output, err);
        if (!output->file)
            close(fd);
        output_release(output);
        return r;
    }
    return 0;
}

static int copy_out(struct output *output, struct error *err)
{
    char bytes[64 * 1024];
    size_t count;
    rewind(output->file);
    while ((count = fread(bytes, 1, sizeof bytes, output->file)) > 0)
        if (fwrite(bytes, 1, count, stdout) != count)
            return failed(output, err);
    return ferror(output->file) || fflush(stdout) != 0 ? failed(output, err) : 0;
}

int output_commit(struct output *output, struct error *err)
{
    errno = 0;
    if (fflush(output->file) != 0 || ferror(output->file))
        return failed(output, err);
    if (!output->path)
        return copy_out(output, err);
    int r = output->temporary ? 0 : link_unnamed(output, err);
    if (r < 0)
        return r;
    r = fclose(output->file);
    output->file = NULL;
    if (r != 0 || rename(output->temporary, output->path) < 0)
        return failed(output, err);
    free(output->temporary);
    output->temporary = NULL;
    return 0;
}

void output_release(struct output *output)
{
    if (output->file)
        fclose(output->file);
    if (output->temporary)
        unlink(output->temporary);
    free(output->temporary);
    *output = (struct output){ 0 };
}
