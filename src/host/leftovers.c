/* leftovers.c - finding and killing the remaining processes of a job. */
#include "host/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRON_BYTES \
    (64 * 1024) /* our variables come last; few environments are that large */

/*
 * Read the end of a process's environment, where our variables are; returns the bytes.
 */
static size_t read_environ(int pid, char *bytes, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/environ", pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    size_t count = 0;
    for (ssize_t got; (got = read(fd, bytes + count, size - 1 - count)) > 0;) {
        count += (size_t)got;
        if (count == size - 1) { /* keep the second half */
            memmove(bytes, bytes + size / 2, count - size / 2);
            count -= size / 2;
        }
    }
    close(fd);
    bytes[count] = '\0';
    return count;
}

static bool has_mark(int pid, const char *mark)
{
    char bytes[ENVIRON_BYTES];
    size_t count = read_environ(pid, bytes, sizeof bytes);
    for (const char *at = bytes; at < bytes + count; at += strlen(at) + 1)
        if (strcmp(at, mark) == 0)
            return true;
    return false;
}

bool leftovers_read(int pid, const char *beginning, char *rest, size_t size)
{
    char bytes[ENVIRON_BYTES];
    size_t count = read_environ(pid, bytes, sizeof bytes);
    size_t length = strlen(beginning);
    for (const char *at = bytes; at < bytes + count; at += strlen(at) + 1)
        if (strncmp(at, beginning, length) == 0) {
            snprintf(rest, size, "%s", at + length);
            return true;
        }
    return false;
}

/* Through a pidfd, so that it is that process and not a later one of the same id. */
static bool kill_if_marked(int pid, const char *mark)
{
    if (!has_mark(pid, mark))
        return false;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return false;
    bool same = has_mark(pid, mark);
    if (same)
        syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    close(fd);
    return same;
}

/* By its real identity, which the kernel tells without looking into its memory. */
static bool is_of_user(int pid, uint32_t uid)
{
    char name[64], text[1024];
    snprintf(name, sizeof name, "/proc/%d/status", pid);
    int fd = uid == LEFTOVERS_ANY_USER ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return uid == LEFTOVERS_ANY_USER;
    ssize_t count = read(fd, text, sizeof text - 1);
    close(fd);
    text[count > 0 ? count : 0] = '\0';
    const char *line = strstr(text, "\nUid:");
    return line && strtoul(line + strlen("\nUid:"), NULL, 10) == uid;
}

uint32_t leftovers_kill(const char *mark, uint32_t uid)
{
    uint32_t count = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return count;
    for (struct dirent *entry; (entry = readdir(proc));) {
        int pid = atoi(entry->d_name);
        if (pid > 1 && pid != getpid() && is_of_user(pid, uid))
            count += kill_if_marked(pid, mark);
    }
    closedir(proc);
    return count;
}
