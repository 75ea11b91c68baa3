/*
 * procs.h - the processes of a job: by its cgroup, else by descent, else by environment.
 *
 * A job's cgroup lists all of them.  Without one, they are the descendants of its first
 * process and the members of that process's session, even if their parent is gone.  For a
 * job of Slurm with neither, they are the processes with its SLURM_JOB_ID in their
 * environment: the last resort, since a user can set that variable in any process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct mark_target;

/* One process as it was when it was listed. */
struct proc {
    int pid, parent, session;
    uint64_t start; /* in ticks since boot: pid and start identify a process */
    uint64_t slurm; /* SLURM_JOB_ID of its environment; 0: none              */
};

/* All processes of this machine: listed once for all jobs, and only if one needs it. */
struct procs {
    struct arena arena;
    struct proc *list; /* by pid */
    uint32_t count;
    bool listed, has_slurm_ids;
};

static inline void procs_init(struct procs *procs)
{
    *procs = (struct procs){ .count = 0 };
    arena_init(&procs->arena, 64 * 1024);
}

static inline void procs_release(struct procs *procs)
{
    arena_release(&procs->arena);
}

/* Forget the list: the next call makes a new one. */
static inline void procs_reset(struct procs *procs)
{
    arena_reset(&procs->arena);
    procs->list = NULL;
    procs->count = 0;
    procs->listed = procs->has_slurm_ids = false;
}

/*
 * Call 'each' with a handle (pidfd) of every process of the job, open during the call,
 * until it returns false.  That a process belongs to the job is checked after its handle
 * was opened, so that a pid which was reused meanwhile does no harm.  'start' is when the
 * job's first process began, 0 before it was seen; the caller keeps it between calls.
 */
void procs_for_each(struct procs *procs, const struct mark_target *target,
                    uint64_t *start, bool (*each)(void *context, int pid, int handle),
                    void *context);
