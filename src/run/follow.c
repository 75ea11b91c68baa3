/* follow.c - reading a job's output as it grows. */
#include "run/follow.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int follow_init(struct follow *follow, const char *pattern, struct error *err)
{
    follow->fd = -1;
    follow->count = 0;
    return pattern_init(&follow->pattern, pattern, err);
}

void follow_open(struct follow *follow, const char *path, int64_t offset)
{
    struct stat stat;
    follow->offset = offset;
    follow->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (follow->fd >= 0 && (fstat(follow->fd, &stat) < 0 || !S_ISREG(stat.st_mode))) {
        close(follow->fd); /* a pipe or a terminal is read by somebody else */
        follow->fd = -1;
    }
}

void follow_release(struct follow *follow)
{
    pattern_release(&follow->pattern);
    if (follow->fd >= 0)
        close(follow->fd);
    follow->fd = -1;
}

/* Progress bars end their lines with '\r'. */
static bool take(struct follow *follow, const char *bytes, size_t count, double *step,
                 double *loss)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '\n' && bytes[i] != '\r') {
            if (follow->count < sizeof follow->line - 1)
                follow->line[follow->count++] = bytes[i] ? bytes[i] : ' ';
            continue;
        }
        follow->line[follow->count] = '\0';
        follow->count = 0;
        double new_step, new_loss;
        if (!pattern_match(&follow->pattern, follow->line, &new_step, &new_loss))
            continue;
        *step = isnan(new_step) ? *step : new_step;
        *loss = isnan(new_loss) ? *loss : new_loss;
        found = true;
    }
    return found;
}

bool follow_look(struct follow *follow, double *ret_step, double *ret_loss)
{
    struct stat stat;
    if (follow->fd < 0 || fstat(follow->fd, &stat) < 0)
        return false;
    if (stat.st_size < follow->offset) /* it was emptied */
        follow->offset = 0;
    if (stat.st_size - follow->offset > FOLLOW_LOOK_MAX) {
        follow->offset = stat.st_size - FOLLOW_LOOK_MAX;
        follow->count = 0;
    }
    double step = NAN, loss = NAN;
    bool found = false;
    char bytes[16384];
    for (ssize_t got;
         follow->offset < stat.st_size &&
         (got = pread(follow->fd, bytes, sizeof bytes, follow->offset)) > 0;) {
        follow->offset += got;
        found = take(follow, bytes, (size_t)got, &step, &loss) || found;
    }
    if (found) {
        *ret_step = step;
        *ret_loss = loss;
    }
    return found;
}
