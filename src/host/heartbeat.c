/* heartbeat.c - the file by which others see that berthd can place jobs on a Slurm cluster. */
#include "host/heartbeat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define LINE_MAX 64
#define PATH_BYTES_MAX 4096
#define TIME_DIGITS_MAX 12
#define NS_PER_S 1000000000

/* --- writing ------------------------------------------------------------------------- */

static bool write_text(int fd, const char *text)
{
    size_t length = strlen(text);
    return write(fd, text, length) == (ssize_t)length;
}

/* A new file, in place of what an earlier berthd may have left half written. */
static int write_file(const char *path, const char *line, const char *more,
                      struct error *err)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                  S_IRUSR | S_IWUSR);
    bool written = fd >= 0 && write_text(fd, line) && write_text(fd, more) &&
                   fchmod(fd, 0644) == 0;
    int code = errno;
    if (fd >= 0)
        close(fd);
    return written ? 0 : error_set(err, -code, "%s: %s", path, strerror(code));
}

int heartbeat_write(const char *path, int64_t now_s, uint32_t limit_s, const char *more,
                    struct error *err)
{
    char fresh[PATH_BYTES_MAX], line[LINE_MAX];
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return error_set(err, -ENAMETOOLONG, "%.60s: the name is too long", path);
    snprintf(line, sizeof line, "%" PRId64 " %" PRIu32 "\n", now_s, limit_s);
    int r = write_file(fresh, line, more, err);
    if (r == 0 && rename(fresh, path) < 0)
        r = error_set(err, -errno, "%s: %s", path, strerror(errno));
    return r;
}

/* --- reading ------------------------------------------------------------------------- */

/* Digits only, and not too many of them. */
static bool parse_number(const char **at, size_t digits_max, int64_t *ret)
{
    size_t count = strspn(*at, "0123456789");
    int64_t number = 0;
    if (count == 0 || count > digits_max)
        return false;
    for (size_t i = 0; i < count; i++)
        number = number * 10 + (*at)[i] - '0';
    *at += count;
    *ret = number;
    return true;
}

bool heartbeat_parse(const char *text, int64_t *ret_time_s, uint32_t *ret_limit_s)
{
    int64_t time_s, limit_s;
    if (!parse_number(&text, TIME_DIGITS_MAX, &time_s) || *text++ != ' ' ||
        !parse_number(&text, 5, &limit_s) || *text != '\n' ||
        limit_s > HEARTBEAT_LIMIT_MAX_S)
        return false;
    *ret_time_s = time_s;
    *ret_limit_s = (uint32_t)limit_s;
    return true;
}

/* Only of a regular file: reading anything else may take for ever. */
static int read_line(const char *path, char line[LINE_MAX], struct error *err)
{
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    bool regular = fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
    ssize_t count = regular ? read(fd, line, LINE_MAX - 1) : -1;
    close(fd);
    line[count > 0 ? count : 0] = '\0';
    return regular ? 0 : error_set(err, -EINVAL, "%s is no file", path);
}

static int64_t read_uptime_s(void)
{
    return clock_read_ns(CLOCK_BOOTTIME) / NS_PER_S;
}

int heartbeat_read(const char *path, struct heartbeat *ret, struct error *err)
{
    char line[LINE_MAX];
    int64_t time_s = 0, up_s = read_uptime_s();
    *ret = (struct heartbeat){ .silent_s = up_s, .limit_s = HEARTBEAT_LIMIT_S };
    int r = read_line(path, line, err);
    if (r == 0 && !heartbeat_parse(line, &time_s, &ret->limit_s))
        r = error_set(err, -EINVAL, "%s is no heartbeat of berthd", path);
    if (r == 0) {
        /* A clock that was set back must not make an old one last. */
        int64_t apart_s = (int64_t)time(NULL) - time_s;
        apart_s = apart_s < 0 ? -apart_s : apart_s;
        ret->silent_s = apart_s < up_s ? apart_s : up_s;
    }
    ret->away = ret->limit_s > 0 && ret->silent_s > ret->limit_s;
    return r;
}
