/* output.c - a file that appears only when it is complete. */
#include "base/output.h"

#include <errno.h>
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

int output_open(struct output *output, const char *path, struct error *err)
{
    *output = (struct output){ .path = path };
    if (!path || strcmp(path, "-") == 0) {
        output->path = NULL;
        output->file = tmpfile();
        return output->file ? 0 : failed(output, err);
    }
    if (asprintf(&output->temporary, "%s.XXXXXX", path) < 0) {
        output->temporary = NULL;
        return error_set(err, -ENOMEM, "out of memory");
    }
    int fd = mkstemp(output->temporary);
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
    int r = fclose(output->file);
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
