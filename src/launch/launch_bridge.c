/* launch_bridge.c - berth-slurm, started for a berthd that has no rights in Slurm. */
#include "launch/launch_bridge.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "host/capabilities.h"
#include "host/launcher_protocol.h"

#define NAME_MAX_BYTES 64
#define BELL_FD 3
#define STANDARD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* --- what berthd asks for ---------------------------------------------------------------- */

int launch_bridge_check_partition(const char *name, struct error *err)
{
    size_t length = strlen(name);
    bool good = length > 0 && length <= NAME_MAX_BYTES && *name != '-';
    for (const char *at = name; good && *at; at++)
        good = isalnum((unsigned char)*at) || strchr("._-", *at);
    return good ? 0
                : error_set(err, -EINVAL,
                            "partition \"%.64s\": want at most %d letters, digits, "
                            "\".\", \"_\" and \"-\"",
                            name, NAME_MAX_BYTES);
}

static bool is_allowed(const struct launch_bridge_setup *setup, const char *partition)
{
    for (uint32_t i = 0; i < setup->partition_count; i++)
        if (strcmp(partition, setup->partitions[i]) == 0)
            return true;
    return setup->partition_count == 0;
}

static void add_word(struct launch_bridge_words *words, const char *word)
{
    words->list[words->count++] = (char *)(uintptr_t)word;
    words->list[words->count] = NULL;
}

static void add_partition(struct launch_bridge_words *words, const char *name)
{
    add_word(words, "--partition");
    add_word(words, name);
}

static int read_driver(const char *driver, struct launch_bridge_words *words,
                       struct error *err)
{
    if (*driver == '\0')
        return 0;
    if (strcmp(driver, "auto") != 0 && strcmp(driver, "libslurm") != 0 &&
        strcmp(driver, "commands") != 0)
        return error_set(err, -EINVAL, "driver: want auto, libslurm or commands");
    add_word(words, "--driver");
    add_word(words, driver);
    return 0;
}

static int read_partitions(const struct launch_bridge_setup *setup, char *names,
                           struct launch_bridge_words *words, struct error *err)
{
    uint32_t count = 0;
    char *rest = *names ? names : NULL;
    for (char *name; (name = strsep(&rest, ","));) {
        int r = launch_bridge_check_partition(name, err);
        if (r < 0)
            return r;
        if (!is_allowed(setup, name))
            return error_set(err, -EPERM,
                             "partition %s is not one that berth-launch was told of",
                             name);
        if (count++ == LAUNCH_BRIDGE_PARTITIONS_MAX)
            return error_set(err, -E2BIG, "more than %d partitions",
                             LAUNCH_BRIDGE_PARTITIONS_MAX);
        add_partition(words, name);
    }
    for (uint32_t i = 0; count == 0 && i < setup->partition_count; i++)
        add_partition(words, setup->partitions[i]);
    return 0;
}

int launch_bridge_read(const struct launch_bridge_setup *setup,
                       struct launcher_bridge_request *request,
                       struct launch_bridge_words *ret_words, struct error *err)
{
    *ret_words = (struct launch_bridge_words){ .count = 0 };
    if (!setup->program)
        return error_set(err, -ENOSYS, "berth-launch was started without --bridge");
    if (!memchr(request->driver, '\0', sizeof request->driver) ||
        !memchr(request->partitions, '\0', sizeof request->partitions))
        return error_set(err, -EINVAL, "a text without end");
    add_word(ret_words, "berth-slurm");
    int r = read_driver(request->driver, ret_words, err);
    return r < 0 ? r : read_partitions(setup, request->partitions, ret_words, err);
}

/* --- the process ------------------------------------------------------------------------- */

/* The socket is its input and output, the bell its descriptor 3; it has no other. */
static bool place_descriptors(const int *fds, uint32_t fd_count)
{
    int socket = fcntl(fds[0], F_DUPFD, 10);
    int bell = fd_count > 1 ? fcntl(fds[1], F_DUPFD, 10) : -1;
    if (socket < 0 || dup2(socket, STDIN_FILENO) < 0 ||
        dup2(socket, STDOUT_FILENO) < 0 || (bell >= 0 && dup2(bell, BELL_FD) < 0))
        return false;
    return syscall(SYS_close_range, bell >= 0 ? BELL_FD + 1 : BELL_FD, ~0U, 0) == 0;
}

/*
 * Slurm knows it by its user alone, so it needs no capability, also not as root: with
 * no_new_privs root's program does not gain any when it starts.
 */
static int give_up_rights(const struct launch_bridge_setup *setup, struct error *err)
{
    static const int none[] = { -1 };
    const int *lists[] = { none };
    if (initgroups(setup->user, setup->gid) < 0 ||
        setresgid(setup->gid, setup->gid, setup->gid) < 0 ||
        setresuid(setup->uid, setup->uid, setup->uid) < 0)
        return error_set(err, -errno, "berth-slurm cannot run as user %s: %s",
                         setup->user, strerror(errno));
    return capabilities_keep(lists, 1, err);
}

/* Our own: what leads to Slurm's configuration and commands must not be berthd's choice. */
static void make_environment(char *list[3], char *room, size_t size)
{
    const char *path = getenv("PATH"), *conf = getenv("SLURM_CONF");
    uint32_t count = 0;
    int length = snprintf(room, size, "PATH=%s", path ? path : STANDARD_PATH);
    list[count++] = room;
    if (conf && length >= 0 && (size_t)length + 1 < size) {
        char *rest = room + length + 1;
        snprintf(rest, size - (size_t)length - 1, "SLURM_CONF=%s", conf);
        list[count++] = rest;
    }
    list[count] = NULL;
}

static _Noreturn void run_bridge(const struct launch_bridge_setup *setup,
                                 const struct launch_bridge_words *words,
                                 const int *fds, uint32_t fd_count)
{
    static char room[8192];
    char *environment[3];
    struct error err = { "" };
    sigset_t none;
    sigemptyset(&none);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    umask(077);
    make_environment(environment, room, sizeof room);
    if (!place_descriptors(fds, fd_count) || chdir("/") < 0)
        error_set(&err, -errno, "berth-slurm: descriptors: %s", strerror(errno));
    else if (give_up_rights(setup, &err) == 0) {
        execve(setup->program, words->list, environment);
        error_set(&err, -errno, "%s: %s", setup->program, strerror(errno));
    }
    fprintf(stderr, "berth-launch: %s\n", err.text);
    _exit(1);
}

static bool is_stream_socket(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           type == SOCK_STREAM;
}

static void end_bridge(int *pidfd)
{
    if (*pidfd < 0)
        return;
    syscall(SYS_pidfd_send_signal, *pidfd, SIGKILL, NULL, 0);
    close(*pidfd);
    *pidfd = -1;
}

int launch_bridge_start(const struct launch_bridge_setup *setup,
                        struct launcher_bridge_request *request, const int *fds,
                        uint32_t fd_count, int *pidfd, struct error *err)
{
    struct launch_bridge_words words;
    int r = launch_bridge_read(setup, request, &words, err);
    if (r < 0)
        return r;
    if (fd_count == 0 || !is_stream_socket(fds[0]))
        return error_set(err, -EINVAL, "berth-slurm: want a stream socket");
    if (access(setup->program, X_OK) < 0)
        return error_set(err, -errno, "%s: %s", setup->program, strerror(errno));
    if (fd_count > 1) {
        add_word(&words, "--bell-fd");
        add_word(&words, "3");
    }
    end_bridge(pidfd);
    pid_t pid = fork();
    if (pid == 0)
        run_bridge(setup, &words, fds, fd_count);
    if (pid < 0)
        return error_set(err, -errno, "fork: %s", strerror(errno));
    *pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* -1: it has ended already */
    return 0;
}
