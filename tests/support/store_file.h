/* store_file.h - the file of a test's store, and what SQLite keeps beside it. */
#pragma once

#include <stdio.h>
#include <unistd.h>

/* Of this process; in memory if possible: there are thousands of commits. */
static inline void store_file_path(char *path, size_t size, const char *test)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, size, "%s/berth-%s-%d.db", folder, test, (int)getpid());
}

static inline void store_file_remove(const char *path)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char file[300];
        snprintf(file, sizeof file, "%s%s", path, ends[i]);
        unlink(file);
    }
}
