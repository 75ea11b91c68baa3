/* spawn.c - a child process with two pipes and a deadline. */
#include "slurm/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"

#define SAID_MAX_BYTES 65536

extern char **environ;

struct command_pipes {
    int out[2];
    int err[2];
};

static int open_pipes(struct command_pipes *pipes, struct error *err)
{
    if (pipe2(pipes->out, O_CLOEXEC) < 0)
        return error_set(err, -errno, "pipe: %s", strerror(errno));
    if (pipe2(pipes->err, O_CLOEXEC) == 0)
        return 0;
    close(pipes->out[0]);
    close(pipes->out[1]);
    return error_set(err, -EMFILE, "no more pipes");
}

static int begin(const char *const *words, struct command_pipes *pipes, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t about;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE); /* we ignore it */
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&about);
    posix_spawnattr_setsigmask(&about, &none);
    posix_spawnattr_setsigdefault(&about, &usual);
    posix_spawnattr_setflags(&about, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, pipes->out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, pipes->err[1], STDERR_FILENO);
    int r = posix_spawnp(ret_pid, words[0], &files, &about,
                         (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&about);
    close(pipes->out[1]);
    close(pipes->err[1]);
    return -r;
}

/* Read both until both are closed; false: it took too long. */
static bool listen_to(struct command_pipes *pipes, int64_t until_ms, struct buf *output,
                      struct buf *said)
{
    struct pollfd wait[2] = { { .fd = pipes->out[0], .events = POLLIN },
                              { .fd = pipes->err[0], .events = POLLIN } };
    struct buf *to[2] = { output, said };
    char bytes[65536];
    while (wait[0].fd >= 0 || wait[1].fd >= 0) {
        int64_t left = until_ms - clock_now_ms();
        if (left <= 0)
            return false;
        if (poll(wait, 2, (int)left) < 0 && errno != EINTR)
            return false;
        for (int i = 0; i < 2; i++) {
            if (wait[i].fd < 0 || !(wait[i].revents & (POLLIN | POLLHUP | POLLERR)))
                continue;
            ssize_t n = read(wait[i].fd, bytes, sizeof(bytes));
            if (n > 0)
                buf_add(to[i], bytes, (size_t)n);
            else if (n == 0 || errno != EINTR)
                wait[i].fd = -1;
        }
    }
    return true;
}

/* "scontrol: error: text" to "text"; the last line that is not empty. */
static void keep_last_line(const struct buf *said, char *text, size_t size)
{
    text[0] = '\0';
    if (said->count == 0)
        return;
    const char *end = said->bytes + said->count;
    while (end > said->bytes && (end[-1] == '\n' || end[-1] == ' '))
        end--;
    const char *from = end;
    while (from > said->bytes && from[-1] != '\n')
        from--;
    for (const char *at; (at = memchr(from, ':', (size_t)(end - from))) != NULL;) {
        size_t length = (size_t)(at - from);
        bool label = length <= 10 && !memchr(from, ' ', length);
        if (!label || at + 2 > end || at[1] != ' ')
            break;
        from = at + 2;
    }
    size_t count = (size_t)(end - from) < size ? (size_t)(end - from) : size - 1;
    memcpy(text, from, count);
    text[count] = '\0';
}

int spawn_wait(const char *const *words, int seconds, struct buf *output, char *said,
               size_t size, struct error *err)
{
    struct command_pipes pipes;
    struct buf errors;
    pid_t pid;
    int status;
    said[0] = '\0';
    int r = open_pipes(&pipes, err);
    if (r < 0)
        return r;
    buf_init(&errors, SAID_MAX_BYTES);
    r = begin(words, &pipes, &pid);
    if (r < 0)
        error_set(err, r, "%s: %s", words[0], strerror(-r));
    else {
        bool ended = listen_to(&pipes, clock_now_ms() + (int64_t)seconds * 1000, output,
                               &errors);
        if (!ended)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        keep_last_line(&errors, said, size);
        r = !ended
                ? error_set(err, -ETIMEDOUT, "%s: no answer in %d s", words[0], seconds)
            : WIFEXITED(status) ? WEXITSTATUS(status)
                                : 128 + WTERMSIG(status);
    }
    close(pipes.out[0]);
    close(pipes.err[0]);
    buf_release(&errors);
    return r;
}
