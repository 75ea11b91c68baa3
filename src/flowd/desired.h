/*
 * desired.h - the marks that berthd wants on this host: its jobs and their levels.
 *
 * Each event from berthd is the complete desired state.  It is accepted as a whole or not
 * at all: one malformed job, and all of it is refused.
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
    int pid;            /* of the root of its processes; 0: unknown */
    bool slurm;         /* Slurm started it: its cgroup is searched for here */
    const char *cgroup; /* below /sys/fs/cgroup; NULL: unknown */
};

struct desired_marks {
    struct arena arena; /* holds the jobs */
    char flow[64];      /* the name of the flow policy, for messages */
    char host[256];     /* as berthd calls it */
    uint32_t levels;
    int64_t valid_ns;         /* from when it arrived */
    struct desired_job *jobs; /* by id */
    uint32_t count;
};

void desired_init(struct desired_marks *desired);
void desired_release(struct desired_marks *desired);

/* Parse the data of an event.  -EINVAL with a sentence, and 'desired' is then empty. */
int desired_parse(struct desired_marks *desired, const char *text, size_t count,
                  struct error *err);

/* Whether a path stays below its folder and needs no quoting. */
bool desired_path_is_plain(const char *path);
