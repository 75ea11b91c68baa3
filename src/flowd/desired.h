/*
 * desired.h - what berthd wants of a host: its jobs and their levels.
 *
 * Each word from berthd is the whole truth.  It is taken as a whole or not at all: one
 * job that makes no sense, and all of it is refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct error;

#define DESIRED_JOBS_MAX 4096
#define DESIRED_CGROUP_MAX 512
#define DESIRED_VALID_MAX_S 3600

struct desired_job {
    uint64_t id;
    uint32_t attempt;
    uint32_t level;     /* 0: first */
    int pid;            /* of the root of its processes; 0: unknown          */
    bool slurm;         /* Slurm started it: we look for its cgroup          */
    const char *cgroup; /* below /sys/fs/cgroup; NULL: unknown               */
};

struct desired_marks {
    struct arena arena; /* holds the jobs */
    char flow[64];      /* the flow policy's name, for people */
    char host[256];     /* as berthd calls it */
    uint32_t levels;
    int64_t valid_ns;         /* from when it came */
    struct desired_job *jobs; /* by id */
    uint32_t count;
};

void desired_init(struct desired_marks *desired);
void desired_release(struct desired_marks *desired);

/* Read what came in an event.  -EINVAL with a sentence, and 'wanted' is then empty. */
int desired_parse(struct desired_marks *desired, const char *text, size_t count,
                  struct error *err);

/* A path below a folder: no way out of it, nothing that needs quoting. */
bool desired_path_is_plain(const char *path);
