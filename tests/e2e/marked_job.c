/*
 * marked_job.c - a job that leaves marks, for tests that kill what supervises it.
 *
 *     marked_job MARK LOCKS MS CODE
 *
 * Appends a line to MARK when an attempt begins and when it ends, so that what really ran can
 * be compared with what berthd says.  It locks a file of the job and one in LOCKS of each GPU
 * that it was given, and so finds another attempt of itself and another holder of a GPU.  A
 * child in a session of its own holds the locks too: it has to be gone before anything else
 * starts there.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define SAVED 85 /* the exit status of a job that has saved its state */

static const char *mark;
static volatile sig_atomic_t told;

static void handle_signal(int number)
{
    (void)number;
    told = 1;
}

/* One write, at the end of the file, whoever else writes there. */
static void add_mark(const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    int fd = open(mark, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)length) != length)
        exit(70);
    close(fd);
}

/* Held until the process and its child are gone. */
static void lock_file(const char *path, const char *what)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        exit(71);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        add_mark("twice %s\n", what);
}

static void lock_gpus(const char *folder)
{
    char path[4096];
    const char *gpus = getenv("CUDA_VISIBLE_DEVICES");
    char *list = strdup(gpus ? gpus : ""), *rest = list;
    for (char *gpu; (gpu = strsep(&rest, ","));) {
        if (!*gpu)
            continue;
        snprintf(path, sizeof path, "%s/gpu%s", folder, gpu);
        lock_file(path, "gpu");
    }
    free(list);
}

static void start_child(void)
{
    pid_t pid = fork();
    if (pid < 0)
        exit(72);
    if (pid > 0)
        return;
    setsid();
    signal(SIGTERM, SIG_IGN);
    for (;;)
        pause();
}

static void wait_ms(long ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    while (!told && nanosleep(&left, &left) < 0 && errno == EINTR)
        continue;
}

int main(int argc, char **argv)
{
    char path[4096];
    const char *attempt = getenv("BERTH_ATTEMPT");
    if (argc != 5 || !attempt)
        return 64;
    mark = argv[1];
    signal(SIGTERM, handle_signal);
    snprintf(path, sizeof path, "%s.lock", mark);
    lock_file(path, "attempt");
    lock_gpus(argv[2]);
    start_child();
    add_mark("begin %s\n", attempt);
    wait_ms(strtol(argv[3], NULL, 10));
    if (told) {
        add_mark("saved %s\n", attempt);
        return SAVED;
    }
    add_mark("end %s\n", attempt);
    return (int)strtol(argv[4], NULL, 10);
}
