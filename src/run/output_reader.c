/* output_reader.c - reading a job's output as it grows. */
#include "run/output_reader.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

int output_reader_init(struct output_reader *reader, const char *pattern,
                       struct error *err)
{
    reader->fd = -1;
    reader->count = 0;
    struct error why = { "" };
    int r = pattern_init(&reader->pattern, pattern, &why);
    return r < 0 ? error_set(err, r, "pattern: %.300s", why.text) : 0;
}

void output_reader_open(struct output_reader *reader, const char *path, int64_t offset)
{
    struct stat stat;
    reader->offset = offset;
    reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (reader->fd >= 0 && (fstat(reader->fd, &stat) < 0 || !S_ISREG(stat.st_mode))) {
        close(reader->fd); /* a pipe or a terminal has its own reader */
        reader->fd = -1;
    }
}

void output_reader_release(struct output_reader *reader)
{
    pattern_release(&reader->pattern);
    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
}

/* Progress bars end their lines with '\r'. */
static bool read_lines(struct output_reader *reader, const char *bytes, size_t count,
                       double *step, double *loss)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '\n' && bytes[i] != '\r') {
            if (reader->count < sizeof reader->line - 1)
                reader->line[reader->count++] = bytes[i] ? bytes[i] : ' ';
            continue;
        }
        reader->line[reader->count] = '\0';
        reader->count = 0;
        double new_step, new_loss;
        if (!pattern_match(&reader->pattern, reader->line, &new_step, &new_loss))
            continue;
        *step = isnan(new_step) ? *step : new_step;
        *loss = isnan(new_loss) ? *loss : new_loss;
        found = true;
    }
    return found;
}

bool output_reader_read(struct output_reader *reader, double *ret_step,
                        double *ret_loss)
{
    struct stat stat;
    if (reader->fd < 0 || fstat(reader->fd, &stat) < 0)
        return false;
    if (stat.st_size < reader->offset) /* it was truncated */
        reader->offset = 0;
    if (stat.st_size - reader->offset > OUTPUT_READER_BYTES_MAX) {
        reader->offset = stat.st_size - OUTPUT_READER_BYTES_MAX;
        reader->count = 0;
    }
    double step = NAN, loss = NAN;
    bool found = false;
    char bytes[16384];
    for (ssize_t got;
         reader->offset < stat.st_size &&
         (got = pread(reader->fd, bytes, sizeof bytes, reader->offset)) > 0;) {
        reader->offset += got;
        found = read_lines(reader, bytes, (size_t)got, &step, &loss) || found;
    }
    if (found) {
        *ret_step = step;
        *ret_loss = loss;
    }
    return found;
}
