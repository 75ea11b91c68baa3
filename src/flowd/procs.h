/*
 * procs.h - the processes of a job: by its cgroup, else by descent, else by environment.
 *
 * A job's cgroup names all of them.  Where there is none, they are the descendants of its
 * first process and whoever is in that one's session, even if its parent is gone; of a job
 * of Slurm that has neither, those with its SLURM_JOB_ID in their environment, which a
 * user can write into his own as well, so it is the last resort.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct mark_target;

/* One process as it was when we looked. */
struct proc {
    int pid, parent, session;
    uint64_t start; /* in ticks since boot: with the pid, it is that process */
    uint64_t slurm; /* the job of Slurm it says it is of; 0: of none         */
};

/* All of this machine; looked at once for all jobs, and only if one needs it. */
struct procs {
    struct arena arena;
    struct proc *list; /* by pid */
    uint32_t count;
    bool looked, asked; /* for processes; for their environments */
};

void procs_init(struct procs *procs);
void procs_release(struct procs *procs);

/* Forget what was seen: the next question looks again. */
void procs_reset(struct procs *procs);

/*
 * Call 'each' with a handle of every process of the job, open during the call, until it
 * returns false.  Whoever is named is known to be the job's after the handle was opened, so that a number which
 * the kernel has given to somebody else meanwhile does no harm.  'start' is when the
 * job's first process began, 0 before it was seen; kept by the caller between looks.
 */
void procs_for_each(struct procs *procs, const struct mark_target *target,
                    uint64_t *start, bool (*each)(void *context, int pid, int handle),
                    void *context);
