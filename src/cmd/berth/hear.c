/* hear.c - what another program says, within some seconds. */
#include "cmd/berth/hear.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

extern char **environ;

static int spawn(const char *const *argv, int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
    int r =
        posix_spawnp(ret_pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* Until its end, or the time is over; what does not fit is read and thrown away. */
static bool listen_to(int fd, int64_t end_ms, char *text, size_t size)
{
    size_t used = 0;
    for (;;) {
        char more[1024];
        int64_t left_ms = end_ms - clock_now_ms();
        struct pollfd one = { .fd = fd, .events = POLLIN };
        if (left_ms <= 0 || poll(&one, 1, (int)left_ms) == 0)
            return false;
        ssize_t count = read(fd, more, sizeof more);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return true;
        for (ssize_t i = 0; i < count && used + 1 < size; i++)
            text[used++] = more[i];
        text[used] = '\0';
    }
}

int hear(const char *const *argv, int limit_ms, char *text, size_t size)
{
    int ends[2], status;
    pid_t pid;
    text[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int r = spawn(argv, ends[1], &pid);
    close(ends[1]);
    bool done = r == 0 && listen_to(ends[0], clock_now_ms() + limit_ms, text, size);
    close(ends[0]);
    if (r < 0)
        return r;
    if (!done)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (!done)
        return -ETIMEDOUT;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -ECANCELED;
}
