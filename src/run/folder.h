/*
 * folder.h - the checkpoint folder of a job: when something was last written in it.
 *
 * By inotify, in the folder and those below it; where the system has none left, by looking
 * at the times of the files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct folder {
    const char *path;
    int fd;            /* of inotify; -1: we look at times */
    bool asked;        /* the first question finds what was there before us */
    int64_t newest_ns; /* wall clock time of the newest file seen           */
};

/* Files that are there already do not count, unless they are newer than 'since_ns'. */
void folder_watch(struct folder *folder, const char *path, int64_t since_ns);
void folder_release(struct folder *folder);

/* Whether a file was written, or moved here, since the last question. */
bool folder_written(struct folder *folder);
