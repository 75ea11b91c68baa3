/*
 * cgroup.h - a cgroup per job: what all its processes are in, and what they may use.
 *
 * A process cannot leave its cgroup by itself, whatever it does with sessions, parents
 * and its environment, so all processes of a job are found and killed even when its
 * supervisor is gone.  Machines differ:
 *
 *     version 2 alone       membership, killing and limits in one tree
 *     both versions         membership and killing in version 2, limits in version 1
 *     version 1 alone       limits; processes are killed one by one
 *     none                  nothing; a supervisor kills the processes that it can find
 *
 * The cgroups of one berthd's jobs are children of one cgroup per hierarchy, which has the
 * name of that berthd.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_MAX 320
#define CGROUP_NAME_MAX 48
#define CGROUP_WHY_MAX 400

/* Limits that a kernel can enforce for a job, and the means to end all of it. */
enum cgroup_feature {
    CGROUP_KILL = 1,    /* all processes are found, and killed at once */
    CGROUP_MEMORY = 2,  /* --mem is a limit                            */
    CGROUP_PIDS = 4,    /* the number of processes is limited          */
    CGROUP_CPU = 8,     /* processors are shared by what was asked for */
    CGROUP_DEVICES = 16 /* other jobs' GPUs cannot be opened           */
};

enum cgroup_v1 { CGROUP_V1_MEMORY, CGROUP_V1_PIDS, CGROUP_V1_CPU, CGROUP_V1_DEVICES };
#define CGROUP_V1_COUNT 4

struct cgroup_tree {
    char v2[CGROUP_PATH_MAX]; /* parent of the jobs' cgroups; "": none */
    char v1[CGROUP_V1_COUNT]
           [CGROUP_PATH_MAX];       /* the same, by controller              */
    uint32_t features;              /* set of enum cgroup_feature            */
    char why[CGROUP_WHY_MAX];       /* why some are missing; "": none is     */
    int locks[1 + CGROUP_V1_COUNT]; /* say that the parents are in use; -1: none */
};

/* A device that a job must not open. */
struct cgroup_device {
    uint32_t major, minor;
};

/* What a job may use; 0: no limit. */
struct cgroup_limits {
    uint64_t memory_bytes;
    uint32_t cpu_milli;
    uint32_t pids;
    const struct cgroup_device *denied;
    uint32_t denied_count;
};

/*
 * Make or find the parents named 'name'; at the top of the hierarchies, or else in a cgroup
 * that this user may divide: that of the user's berth-jobs.service beside ours, or ours.
 * What cannot be had is left out; see 'features' and 'why'.  Empty cgroups of berthds that
 * are gone are removed.
 */
void cgroup_tree_open(struct cgroup_tree *tree, const char *name, bool at_top);
void cgroup_tree_close(struct cgroup_tree *tree); /* parents without children go */

/*
 * The parents of the cgroups of a job with such limits, as texts, for a process that is told
 * of them; NULL: there is none.
 */
#define CGROUP_PARENTS (1 + CGROUP_V1_COUNT)
void cgroup_tree_list(const struct cgroup_tree *tree,
                      const struct cgroup_limits *limits,
                      const char *parents[CGROUP_PARENTS]);
void cgroup_tree_join(struct cgroup_tree *tree,
                      const char *const parents[CGROUP_PARENTS]);

/* Make the cgroups of a job.  False: it has none; limits that cannot be set are missing. */
bool cgroup_make(const struct cgroup_tree *tree, const char *job,
                 const struct cgroup_limits *limits);

/* The cgroup of version 2; false: there is none. */
bool cgroup_path(const struct cgroup_tree *tree, const char *job,
                 char path[CGROUP_PATH_MAX]);

enum cgroup_fork_kind {
    CGROUP_FORK_CHILD,
    CGROUP_FORK_UNNOTICED, /* waitpid() finds it with __WCLONE only, until it executes a
                              program; no signal when it ends */
    CGROUP_FORK_SIBLING    /* a child of our parent */
};

/*
 * Fork a process that is in the job's cgroups from its first instruction on.  As fork();
 * -1 also if it could not be put there.
 */
int cgroup_fork(const struct cgroup_tree *tree, const char *job,
                enum cgroup_fork_kind kind);

/*
 * The same for a child that calls 'run', which executes a program or exits.  Until it has
 * done so the child shares our memory and we wait, which saves copying it; so it must have our
 * rights.  'run' has CGROUP_STACK_BYTES of stack.
 */
#define CGROUP_STACK_BYTES 65536
int cgroup_spawn(const struct cgroup_tree *tree, const char *job,
                 void (*run)(void *context), void *context);

/* A descriptor that kills all processes when "1" is written to it; -1: none. */
int cgroup_open_kill(const struct cgroup_tree *tree, const char *job);

/* A descriptor that tells how often the job was out of memory; -1: none. */
int cgroup_open_oom(const struct cgroup_tree *tree, const char *job);
/* How many of its processes the kernel has killed because the job was out of memory. */
uint64_t cgroup_count_oom_kills(int fd);

/* Send SIGKILL to all its processes; true: there were some. */
bool cgroup_kill(const struct cgroup_tree *tree, const char *job);

/* Remove it if it is empty; false: it is not yet. */
bool cgroup_remove(const struct cgroup_tree *tree, const char *job);

/* Remove all cgroups of jobs for which 'is_known' is false, and kill what is in them. */
void cgroup_sweep(const struct cgroup_tree *tree,
                  bool (*is_known)(void *context, const char *job), void *context);
