/* folder.c - when something was last written in a checkpoint folder. */
#include "run/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 4
#define FILES_MAX 4096 /* looked at in one go */
#define WRITTEN (IN_CLOSE_WRITE | IN_MOVED_TO)

struct look {
    struct folder *folder;
    int64_t newest_ns;
    uint32_t file_count;
};

/* The newest file at 'path' and below; watches every folder that it comes by. */
static void look_into(struct look *look, const char *path, int depth)
{
    if (look->folder->fd >= 0)
        inotify_add_watch(look->folder->fd, path,
                          WRITTEN | IN_CREATE | IN_ONLYDIR | IN_EXCL_UNLINK);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat stat;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            look->file_count++ >= FILES_MAX ||
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(stat.st_mode)) {
            int64_t at_ns =
                stat.st_mtim.tv_sec * INT64_C(1000000000) + stat.st_mtim.tv_nsec;
            look->newest_ns = at_ns > look->newest_ns ? at_ns : look->newest_ns;
        } else if (S_ISDIR(stat.st_mode) && depth < DEPTH_MAX) {
            char below[PATH_MAX];
            int length = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            if (length > 0 && (size_t)length < sizeof below)
                look_into(look, below, depth + 1);
        }
    }
    closedir(dir);
}

/* Whether a file is newer than all seen so far. */
static bool look_again(struct folder *folder)
{
    struct look look = { .folder = folder };
    look_into(&look, folder->path, 0);
    bool newer = look.newest_ns > folder->newest_ns;
    if (newer)
        folder->newest_ns = look.newest_ns;
    return newer;
}

void folder_watch(struct folder *folder, const char *path, int64_t since_ns)
{
    *folder = (struct folder){ .path = path,
                               .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                               .newest_ns = since_ns };
    struct look look = { .folder = folder };
    look_into(&look, path, 0); /* what is newer is found by the first question */
}

void folder_release(struct folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    folder->fd = -1;
}

/* Files written since the last question; a new folder may hold some that we missed. */
static bool read_events(struct folder *folder)
{
    _Alignas(struct inotify_event) char bytes[4096];
    bool written = false, folders = false;
    for (ssize_t got; (got = read(folder->fd, bytes, sizeof bytes)) > 0;)
        for (char *at = bytes; at < bytes + got;) {
            const struct inotify_event *event = (const void *)at;
            at += sizeof *event + event->len;
            bool is_folder = event->mask & IN_ISDIR;
            written = written || (!is_folder && event->mask & WRITTEN);
            folders = folders || is_folder || event->mask & IN_Q_OVERFLOW;
        }
    return (folders && look_again(folder)) || written;
}

bool folder_written(struct folder *folder)
{
    if (folder->fd < 0 || !folder->asked) {
        folder->asked = true;
        return look_again(folder);
    }
    return read_events(folder);
}
