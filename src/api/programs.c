/* programs.c - finding Berth's other programs, and starting berthd in the background. */
#include "api/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/call.h"
#include "api/paths.h"
#include "base/error.h"

#define READY_MS 20000 /* a long history takes a moment to read */
#define ARGS_MAX 32

const char *programs_find(const char *name)
{
    static char path[PATH_MAX + 32];
    ssize_t count = readlink("/proc/self/exe", path, PATH_MAX);
    if (count <= 0)
        return NULL;
    path[count] = '\0';
    char *slash = strrchr(path, '/');
    snprintf(slash + 1, 32, "%s", name);
    return access(path, X_OK) == 0 ? path : NULL;
}

/* Make a private folder, and those above it. */
static int make_folders(const char *path, struct error *err)
{
    char part[PATHS_MAX];
    for (const char *at = path; *at; at++) {
        size_t length = (size_t)(at - path) + strcspn(at + 1, "/") + 1;
        if (at != path && *at != '/')
            continue;
        if (length >= sizeof part)
            return error_set(err, -ENAMETOOLONG, "%.100s…: is too long", path);
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        if (mkdir(part, path[length] ? 0755 : 0700) < 0 && errno != EEXIST)
            return error_set(err, -errno, "%s: %s", part, strerror(errno));
    }
    return 0;
}

static int open_log(const char *state, char *path, size_t size, struct error *err)
{
    char folder[PATHS_MAX];
    int r = 0;
    if (state)
        snprintf(folder, sizeof folder, "%s", state);
    else
        r = paths_state(folder, sizeof folder, err);
    struct error inner;
    if (r == 0 && make_folders(folder, &inner) < 0)
        r = error_set(err, -EACCES, "no place for jobs and logs: %.150s; %s",
                      inner.text,
                      state ? "see --state" : "XDG_STATE_HOME says where else");
    if (r < 0)
        return r;
    if ((size_t)snprintf(path, size, "%s/berthd.log", folder) >= size)
        return error_set(err, -ENAMETOOLONG, "%.100s…: is too long", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : error_set(err, -errno, "%s: %s", path, strerror(errno));
}

_Noreturn void programs_exec_berthd(const char *const *argv, int ready, int log)
{
    int nothing = open("/dev/null", O_RDONLY);
    setsid();
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(nothing, STDIN_FILENO);
    dup2(ready, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    const char *program = programs_find("berthd");
    if (program)
        execv(program, (char *const *)argv);
    else
        execvp("berthd", (char *const *)argv);
    dprintf(STDERR_FILENO, "berthd: %s\n",
            errno == ENOENT ? "not installed; on Debian: apt install berthd"
                            : strerror(errno));
    _exit(127);
}

/* In the child. */
static void exec_berthd(const char *const *args, int ready, int log)
{
    const char *argv[ARGS_MAX + 2] = { "berthd" };
    for (uint32_t i = 0; args && args[i] && i < ARGS_MAX; i++)
        argv[i + 1] = args[i];
    programs_exec_berthd(argv, ready, log);
}

bool programs_wait_ready(int fd, int timeout_ms)
{
    struct pollfd poller = { .fd = fd, .events = POLLIN };
    for (int left_ms = timeout_ms; left_ms > 0; left_ms -= 100) {
        int r = poll(&poller, 1, 100);
        char bytes[256];
        ssize_t count = r > 0 ? read(fd, bytes, sizeof bytes) : -1;
        if (r > 0 && (count == 0 || (count > 0 && memchr(bytes, '\n', (size_t)count))))
            return count > 0;
    }
    return false;
}

void programs_last_line(const char *path, long from, char *line, size_t size)
{
    char next[256];
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    if (!file)
        return;
    fseek(file, from, SEEK_SET);
    while (fgets(next, sizeof next, file))
        snprintf(line, size, "%.*s", (int)strcspn(next, "\n"), next);
    fclose(file);
}

/* Another process may have started berthd at the same moment: that one will do as well. */
static bool answers_soon(struct call *call, int tries)
{
    for (int i = 0; i < tries; i++) {
        if (call_answers(call))
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    }
    return false;
}

int programs_start_berthd(struct call *call, const char *state, const char *const *args,
                          struct error *err)
{
    char path[PATHS_MAX + 16], said[256];
    int ready[2];
    int log = open_log(state, path, sizeof path, err);
    if (log < 0)
        return log;
    long from = lseek(log, 0, SEEK_END);
    if (pipe2(ready, O_CLOEXEC) < 0) {
        close(log);
        return error_set(err, -errno, "a pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0)
        exec_berthd(args, ready[1], log);
    close(ready[1]);
    close(log);
    bool up = pid > 0 && programs_wait_ready(ready[0], READY_MS);
    close(ready[0]);
    if (answers_soon(call, up ? 100 : 20))
        return 0;
    programs_last_line(path, from, said, sizeof said);
    return error_set(err, -ECONNREFUSED, "berthd did not start%s%s; see %.150s",
                     said[0] ? ": " : "", said, path);
}
