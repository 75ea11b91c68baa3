/*
 * checkpoint_watch.h - when a file was last written in a job's checkpoint folder.
 *
 * By inotify, in the folder and those below it; where inotify is exhausted, by the
 * times of the files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct checkpoint_watch {
    const char *path;
    int fd;     /* of inotify; -1: compare file times */
    bool asked; /* the first poll compares times, for files older than the watch */
    int64_t newest_ns; /* wall clock time of the newest file seen */
};

/* Existing files do not count, unless they are newer than 'since_ns'. */
void checkpoint_watch_open(struct checkpoint_watch *watch, const char *path,
                           int64_t since_ns);
void checkpoint_watch_release(struct checkpoint_watch *watch);

/* Whether a file was written, or moved here, since the last poll. */
bool checkpoint_watch_poll(struct checkpoint_watch *watch);
