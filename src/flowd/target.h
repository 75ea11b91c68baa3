/*
 * target.h - a job as a marker sees it: where it is on this host, and its code point.
 *
 * A cgroup is known by its number, which the kernel never uses again: one that was
 * removed and made anew under the same name is another one.  It is looked up when berthd
 * has said something, and until it is there; what takes its place later is not marked
 * before berthd says that it is the job's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct levels;
struct wanted;

#define CGROUP_ROOT "/sys/fs/cgroup"
#define TARGET_DEPTH_MAX 16
#define PATTERNS_MAX 8

struct target {
    uint64_t id;
    uint32_t attempt;
    uint32_t point;     /* in struct levels */
    uint32_t level;     /* as berthd said */
    uint32_t depth;     /* of its cgroup below the root of version 2 */
    uint64_t group;     /* the cgroup's number; 0: it has none (yet) */
    const char *cgroup; /* path below CGROUP_ROOT; NULL: nobody knows */
    int pid;            /* 0: unknown */
    bool slurm;
    bool elsewhere; /* some of its processes are in another network namespace */
};

struct targets {
    struct arena arenas[2]; /* of the list that holds, and of the one before */
    uint32_t arena;
    struct target *list; /* by id */
    uint32_t count;
};

/* Where Slurm's jobs may be, below the root of version 2; %j is the job's number. */
struct patterns {
    const char *list[PATTERNS_MAX];
    uint32_t count;
};
extern const struct patterns patterns_standard;

/* Whether there is a %j in it and the rest is a plain path. */
bool pattern_is_fit(const char *pattern);

/* Where version 2 is below CGROUP_ROOT: "" (alone), "unified/" or NULL (nowhere). */
const char *target_hierarchy(void);

void targets_init(struct targets *targets);
void targets_release(struct targets *targets);

/* From what berthd wants, all cgroups looked up anew. */
void targets_fill(struct targets *targets, const struct wanted *wanted,
                  const struct levels *levels, const struct patterns *patterns);

/* Look for cgroups that were not there; true: some are now. */
bool targets_look(struct targets *targets, const struct patterns *patterns);

/*
 * Look in which network namespaces the processes of jobs with a cgroup are; true: of
 * some it is news.  Without CAP_SYS_PTRACE nothing is seen, and all seem to be here.
 */
bool targets_locate(struct targets *targets);
