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
};
