/*
 * executor.h - what carries a plan out: simulated, local or Slurm.
 *
 * Every call is a request.  What came of it arrives later as an event in the
 * outbox, in the same words whoever sends them, so the engine cannot tell a
 * simulated cluster from a real one.  A negative return means the request was
 * not even taken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/view.h"

struct error;
struct event;

/* One job's seats: per node, which accelerators and how much CPU and memory. */
struct lease {
    job_id job;
    uint32_t generation;
    uint32_t attempt; /* events of another attempt are ignored          */
    uint32_t type;    /* of its accelerators                            */
    uint32_t gpus;
    bool spread;              /* in more nodes than needed                      */
    job_id beside;            /* shares the accelerators of this job            */
    const struct seat *seats; /* borrowed for the call                          */
    uint32_t seat_count;
    const job_id *after; /* jobs that must leave these seats first         */
    uint32_t after_count;
    uint64_t steps_max; /* report lease_done after so many steps; 0: open */
    bool together;      /* when whoever shares, and says so too, is done as well */
};

#define JOB_CGROUP_MAX 320

/* Where a job's processes are found. */
struct job_processes {
    uint32_t attempt;
    int32_t pid;                 /* all of them descend from it; 0: not known */
    char cgroup[JOB_CGROUP_MAX]; /* all of them are in it; "": there is none  */
};

struct executor {
    const char *name;

    /*
     * Start the job once everyone in 'after' has left.  It is sent just before
     * their stops, so an executor that can queue the successor (Slurm) hands the
     * seats over at once; one that cannot waits.  All ranks or none: 'started' when
     * all are up, otherwise one 'lost' and nothing left running.
     */
    int (*start)(void *self, const struct lease *lease, struct error *err);

    /* Ask the job to save its state, then end it; kill it after the grace. */
    int (*stop)(void *self, job_id job, int64_t grace_ns, struct error *err);

    /* End it now; nothing is kept.  It may not have started yet. */
    int (*cancel)(void *self, job_id job, struct error *err);

    /* Optional.  Change the size of a running job; without it: stop and start. */
    int (*resize)(void *self, const struct lease *lease, struct error *err);

    /* Let a job that idles at the end of its lease go on in its seats. */
    int (*renew)(void *self, job_id job, uint64_t steps_max, bool together,
                 struct error *err);

    /*
     * The rest is for executors of the real world, which berthd opens by their own
     * functions.  Jobs go on while berthd is down: close() lets go of them, reattach()
     * takes them up again.  Run the loop until it is idle before you close that.
     */
    void (*close)(void *self);

    /*
     * After a restart, for every job that the state says is placed, in its seats or
     * stopping.  What has become of it arrives as events.  All jobs are named before the
     * loop runs again; then settle() is called.
     */
    int (*reattach)(void *self, const struct lease *lease, bool stopping,
                    int64_t grace_left_ns, struct error *err);
    void (*settle)(void *self);

    /* For engine_add_observer(), behind the store: an event was applied; it is durable. */
    void (*event)(void *self, const struct view *view, const struct event *event);
    int (*commit)(void *self, struct error *err);

    /* Attempts under way, for metrics. */
    uint32_t (*count)(const void *self);

    bool remote;                /* jobs run on other hosts than berthd's             */
    const char *submit_command; /* how jobs are submitted; NULL: through berthd      */

    /* Optional.  Where a job's processes are; false: it has none now. */
    bool (*find_processes)(const void *self, job_id job, struct job_processes *ret);

    /*
     * Optional.  A job reports its step to berthd itself, 'total' 0 and 'loss' NAN where it
     * does not say; and that all steps before 'step' are in a checkpoint.
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
