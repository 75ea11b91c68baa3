/*
 * mark_target.h - a job as a marker sees it: where it is on this host, and its code point.
 *
 * A cgroup is identified by its number, which the kernel never uses again: a cgroup that
 * was removed and created again under the same name is another one.  It is looked up when
 * an event of berthd arrives, and again until it exists.  A cgroup that replaces it later
 * is not marked before berthd names it in an event.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct dscp_levels;
struct desired_marks;

#define CGROUP_ROOT "/sys/fs/cgroup"
#define MARK_TARGET_DEPTH_MAX 16
#define CGROUP_PATTERNS_MAX 8

struct mark_target {
    uint64_t id;
    uint32_t attempt;
    uint32_t point;     /* in struct dscp_levels */
    uint32_t level;     /* as in the event */
    uint32_t depth;     /* of its cgroup below the root of version 2 */
    uint64_t group;     /* the cgroup's number; 0: it has none (yet) */
    const char *cgroup; /* path below CGROUP_ROOT; NULL: unknown */
    int pid;            /* 0: unknown */
    bool slurm;
    bool elsewhere; /* some of its processes are in another network namespace */
};

struct mark_targets {
    struct arena arenas[2]; /* of the current list, and of the one before */
    uint32_t arena;
    struct mark_target *list; /* by id */
    uint32_t count;
};

/* Where the cgroups of Slurm's jobs may be, below the root of version 2; %j is the id. */
struct cgroup_patterns {
    const char *list[CGROUP_PATTERNS_MAX];
    uint32_t count;
};
extern const struct cgroup_patterns cgroup_patterns_standard;

/* Whether it has one %j and is a plain path otherwise. */
bool mark_target_pattern_is_valid(const char *pattern);

/* Where version 2 is mounted below CGROUP_ROOT: "", "unified/", or NULL (nowhere). */
const char *mark_target_hierarchy(void);

void mark_targets_init(struct mark_targets *targets);
void mark_targets_release(struct mark_targets *targets);

/* Make the list from the desired marks, with all cgroups looked up again. */
void mark_targets_fill(struct mark_targets *targets,
                       const struct desired_marks *desired,
                       const struct dscp_levels *levels,
                       const struct cgroup_patterns *patterns);

/* Look up the cgroups that were missing; true: some exist now. */
bool mark_targets_find_missing(struct mark_targets *targets,
                               const struct cgroup_patterns *patterns);

/*
 * Check in which network namespaces the processes of jobs with a cgroup are; true: some
 * jobs are found to be elsewhere.  Without CAP_SYS_PTRACE all seem to be here.
 */
bool mark_targets_check_namespaces(struct mark_targets *targets);
