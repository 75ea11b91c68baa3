/*
 * executor.h - what carries a plan out: simulated, local or Slurm.
 *
 * Every call is a request.  Its outcome arrives later as an event in the outbox, in the
 * same form from every executor, so the engine cannot tell a simulated cluster from a
 * real one.  A negative return means that the request was not accepted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/view.h"

struct error;
struct event;

/* One job's allocation: per node, which GPUs and how much CPU and memory. */
struct lease {
    job_id job;
    uint32_t generation;
    uint32_t attempt; /* events of another attempt are ignored */
    uint32_t type;    /* of its GPUs */
    uint32_t gpus;
    bool spread;              /* over more nodes than needed */
    job_id beside;            /* shares the GPUs of this job */
    const struct seat *seats; /* borrowed for the call */
    uint32_t seat_count;
    const job_id *after; /* jobs that must vacate these GPUs first */
    uint32_t after_count;
    uint64_t steps_max; /* report lease_done after this many steps; 0: open */
    bool
        together; /* only when the partner's lease, if 'together' as well, is done too */
};

#define JOB_CGROUP_MAX 320

/* Where a job's processes are found. */
struct job_processes {
    uint32_t attempt;
    int32_t pid;                 /* all of them descend from it; 0: not known */
    char cgroup[JOB_CGROUP_MAX]; /* all of them are in it; "": there is none */
};

struct executor {
    const char *name;

    /*
     * Start the job once all jobs in 'after' have left.  It is sent just before their
     * stops, so an executor that can queue the successor (Slurm) hands the GPUs over
     * at once; one that cannot waits.  All ranks or none: 'started' when all are up,
     * otherwise one 'lost' and nothing left running.
     */
    int (*start)(void *self, const struct lease *lease, struct error *err);

    /* Ask the job to save a checkpoint and exit; kill it after the grace period. */
    int (*stop)(void *self, job_id job, int64_t grace_ns, struct error *err);

    /* End it now; nothing is kept.  It may not have started yet. */
    int (*cancel)(void *self, job_id job, struct error *err);

    /* Optional.  Change the size of a running job; without it: stop and start. */
    int (*resize)(void *self, const struct lease *lease, struct error *err);

    /* Let a job that idles at the end of its lease continue on its GPUs. */
    int (*renew)(void *self, job_id job, uint64_t steps_max, bool together,
                 struct error *err);

    /*
     * The rest is for executors of the real world, which berthd opens by their own
     * functions.  Jobs run on while berthd is down: close() leaves them running,
     * reattach() connects to them again.  Run the loop until it is idle before you
     * close it.
     */
    void (*close)(void *self);

    /*
     * Call it after a restart for every job that is placed, running or stopping.  Its
     * state arrives as events.  Reattach all jobs before the loop runs again; then
     * call settle().
     */
    int (*reattach)(void *self, const struct lease *lease, bool stopping,
                    int64_t grace_left_ns, struct error *err);
    void (*settle)(void *self);

    /* For engine_add_observer(), behind the store: an event was applied; it is durable. */
    void (*event)(void *self, const struct view *view, const struct event *event);
    int (*commit)(void *self, struct error *err);

    /*
     * Optional.  What the kernel enforces for each job: a set of enum cgroup_feature, and
     * why some are missing; "": none is.
     */
    uint32_t (*enforced)(const void *self, const char **ret_why);

    /* Attempts under way, for metrics. */
    uint32_t (*count)(const void *self);

    bool remote;                /* jobs run on other hosts than berthd's */
    const char *submit_command; /* how jobs are submitted; NULL: through berthd */

    /* Optional.  Where a job's processes are; false: it has none now. */
    bool (*find_processes)(const void *self, job_id job, struct job_processes *ret);

    /*
     * Optional.  A job reports its step to berthd itself, 'total' 0 and 'loss' NAN
     * where unknown; and that all steps before 'step' are in a checkpoint.
     */
    void (*report)(void *self, job_id job, double step, double loss, double total);
    void (*saved)(void *self, job_id job, double step);

    /*
     * Optional, all three or none.  Why the cluster manager does not answer, why it does not
     * start a job, and why it has taken a node out of service; "" if there is no reason.
     */
    const char *(*trouble)(const void *self);
    const char *(*job_reason)(const void *self, uint64_t id);
    const char *(*node_reason)(const void *self, node_id node);
};
