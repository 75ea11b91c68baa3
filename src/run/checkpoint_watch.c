/* checkpoint_watch.c - when a file was last written in a checkpoint folder. */
#include "run/checkpoint_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 4
#define FILES_MAX 4096 /* examined in one scan */
#define WRITTEN (IN_CLOSE_WRITE | IN_MOVED_TO)

struct folder_scan {
    struct checkpoint_watch *watch;
    int64_t newest_ns;
    uint32_t file_count;
};

/* Find the newest file at 'path' and below, and watch every folder on the way. */
static void scan_folder(struct folder_scan *scan, const char *path, int depth)
{
    if (scan->watch->fd >= 0)
        inotify_add_watch(scan->watch->fd, path,
                          WRITTEN | IN_CREATE | IN_ONLYDIR | IN_EXCL_UNLINK);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat stat;
        if (scan->file_count++ >= FILES_MAX)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(stat.st_mode)) {
            int64_t at_ns =
                stat.st_mtim.tv_sec * INT64_C(1000000000) + stat.st_mtim.tv_nsec;
            scan->newest_ns = at_ns > scan->newest_ns ? at_ns : scan->newest_ns;
        } else if (S_ISDIR(stat.st_mode) && depth < DEPTH_MAX) {
            char below[PATH_MAX];
            int length = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            if (length > 0 && (size_t)length < sizeof below)
                scan_folder(scan, below, depth + 1);
        }
    }
    closedir(dir);
}

/* Whether a file is newer than all seen so far. */
static bool find_newer_file(struct checkpoint_watch *watch)
{
    struct folder_scan scan = { .watch = watch };
    scan_folder(&scan, watch->path, 0);
    bool newer = scan.newest_ns > watch->newest_ns;
    if (newer)
        watch->newest_ns = scan.newest_ns;
    return newer;
}

void checkpoint_watch_open(struct checkpoint_watch *watch, const char *path,
                           int64_t since_ns)
{
    *watch = (struct checkpoint_watch){ .path = path,
                                        .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                                        .newest_ns = since_ns };
    struct folder_scan scan = { .watch = watch };
    scan_folder(&scan, path, 0); /* newer files are found by the first poll */
}

void checkpoint_watch_release(struct checkpoint_watch *watch)
{
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
}

/*
 * Whether files were written since the last poll; a new folder may hold some that we
 * missed.
 */
static bool read_events(struct checkpoint_watch *watch)
{
    _Alignas(struct inotify_event) char bytes[4096];
    bool written = false, folders = false;
    for (ssize_t got; (got = read(watch->fd, bytes, sizeof bytes)) > 0;)
        for (char *at = bytes; at < bytes + got;) {
            const struct inotify_event *event = (const void *)at;
            at += sizeof *event + event->len;
            bool is_folder = event->mask & IN_ISDIR;
            written = written || (!is_folder && event->mask & WRITTEN);
            folders = folders || is_folder || event->mask & IN_Q_OVERFLOW;
        }
    return (folders && find_newer_file(watch)) || written;
}

bool checkpoint_watch_poll(struct checkpoint_watch *watch)
{
    if (watch->fd < 0 || !watch->asked) {
        watch->asked = true;
        return find_newer_file(watch);
    }
    return read_events(watch);
}
