/* token.c - the secret for TCP. */
#include "http/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static int read_token(int dir, char *token, struct error *err)
{
    int fd = openat(dir, "token", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, -errno, "token: %s", strerror(errno));
    struct stat there;
    char text[TOKEN_CHARS + 2] = "";
    int r = 0;
    if (fstat(fd, &there) < 0)
        r = error_set(err, -errno, "token: %s", strerror(errno));
    else if (!S_ISREG(there.st_mode) || there.st_uid != geteuid() ||
             (there.st_mode & 077))
        r = error_set(err, -EPERM,
                      "token: must be a file of our own that nobody else can read");
    else if (read(fd, text, sizeof text) != TOKEN_CHARS + 1 ||
             strspn(text, "0123456789abcdef") != TOKEN_CHARS ||
             text[TOKEN_CHARS] != '\n')
        r = error_set(err, -EINVAL,
                      "token: want %d hexadecimal digits; remove it to have a new one",
                      TOKEN_CHARS);
    close(fd);
    if (r == 0)
        snprintf(token, TOKEN_CHARS + 1, "%.*s", TOKEN_CHARS, text);
    return r;
}

int token_generate(char token[static TOKEN_CHARS + 1], struct error *err)
{
    unsigned char bytes[TOKEN_CHARS / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(err, -errno, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, TOKEN_CHARS + 1 - 2 * i, "%02x", bytes[i]);
    return 0;
}

bool token_equals(const char *given, const char *token)
{
    size_t count = strlen(token);
    size_t given_count = strlen(given);
    unsigned char differ = given_count != count;
    for (size_t i = 0; i < given_count; i++)
        differ |= (unsigned char)(given[i] ^ token[count > 0 ? i % count : 0]);
    return count > 0 && !differ;
}

/* Write it under another name first, so that the file is never incomplete. */
static int make_token(int dir, struct error *err)
{
    char text[TOKEN_CHARS + 1];
    int r = token_generate(text, err);
    if (r < 0)
        return r;
    text[TOKEN_CHARS] = '\n';
    unlinkat(dir, "token.new", 0);
    int fd = openat(dir, "token.new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(err, -errno, "token: %s", strerror(errno));
    bool whole = write(fd, text, sizeof text) == (ssize_t)sizeof text && fsync(fd) == 0;
    int why = errno;
    close(fd);
    if (whole && renameat(dir, "token.new", dir, "token") == 0)
        return 0;
    why = whole ? errno : why;
    unlinkat(dir, "token.new", 0);
    return error_set(err, why ? -why : -EIO, "token: %s", strerror(why ? why : EIO));
}

int token_load(const char *dir, char token[static TOKEN_CHARS + 1], struct error *err)
{
    int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return error_set(err, -errno, "%s: %s", dir, strerror(errno));
    int r = read_token(folder, token, err);
    if (r == -ENOENT) {
        r = make_token(folder, err);
        if (r == 0)
            r = read_token(folder, token, err);
    }
    close(folder);
    return r;
}
