/*
 * local.h - jobs as processes on this machine, each with its own supervisor
 * (berth-run).
 *
 * Supervisors outlive berthd: local_close() leaves the jobs running, local_reattach()
 * connects to them again.  Every attempt has a folder (host/attempt.h), which is removed
 * when its end is durable in the log: that is what local_event() and local_commit() are for.
 *
 * A supervisor warns and kills its job when berthd says so, and at its time limit.  berthd
 * does not rely on that: a job that is still there some seconds later is killed with all
 * its processes, and then its supervisor as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "executor/executor.h"

struct error;
struct event;
struct cgroup_device;
struct launch;
struct launcher_client;
struct local;
struct outbox;
struct uv_loop_s;

#define LOCAL_RUN_DIR_MAX 62 /* bytes: paths of sockets below it are limited */

struct local_setup {
    struct uv_loop_s *loop;
    const char *state_dir;   /* absolute and existing */
    const char *run_dir;     /* absolute and existing */
    const char *run_program; /* path of berth-run */
    const char *mps;         /* folder of NVIDIA's MPS, for jobs that share; or NULL */
    bool mps_for_all; /* others need it as well: GPUs take one process at a time */
    struct launcher_client *launcher; /* jobs of several users; NULL: only our own */
    const struct view *view;          /* jobs by slot */
    struct outbox **outbox;           /* the owner exchanges outboxes: add to *outbox */

    /* An event was added to the outbox: wake the loop, which reads it. */
    void (*wake)(void *context);

    /*
     * What is needed to run this job; valid until the next call.  Negative: the job is
     * gone.
     */
    int (*launch)(void *context, uint64_t id, const struct launch **ret,
                  struct error *err);
    int64_t (*now_ns)(void *context);

    /* Optional.  The DSCP of the job's packets; -1: none. */
    int (*mark)(void *context, job_id job);

    /* Optional.  A job reported its total number of steps. */
    void (*total)(void *context, job_id job, double steps);

    /* Optional.  The GPUs that a job with 'gpus' ("0,3") must not open; how many. */
    uint32_t (*deny_others)(void *context, const char *gpus,
                            struct cgroup_device *denied, uint32_t max);

    /* Optional.  The permanent names of 'gpus' ("0,3"), by commas; false: not known. */
    bool (*name_gpus)(void *context, const char *gpus, char *text, size_t size);

    /* By node * NODE_GPUS_MAX + bit: the GPU number given to jobs; NULL: the bit. */
    const uint32_t *gpu_index;

    /* Optional, the same: the processor that jobs of a fake GPU are bound to, or -1. */
    const int *gpu_core;
    void *context;
};

int local_open(struct local **ret, const struct local_setup *setup, struct error *err);

/* Jobs run on.  Run the loop until it is idle before you close it. */
void local_close(void *self);

/* Its self is the struct local.  A resize is a stop and a start. */
extern const struct executor executor_local;

/*
 * Call it after a restart for every job that is placed, running or stopping: connects
 * to its supervisor again; without a supervisor reads how the job ended, or reports it
 * lost.  A placed job that was never started is started once the jobs in lease->after
 * have left; so reattach all jobs before the loop runs again.
 */
int local_reattach(void *self, const struct lease *lease, bool stopping,
                   int64_t grace_left_ns, struct error *err);

/*
 * For engine_add_observer(), behind the store: forget attempts when their ends are durable.
 * Without these no supervisor ever exits.
 */
void local_event(void *self, const struct view *view, const struct event *event);
int local_commit(void *self, struct error *err);

/* Remove folders of attempts that were not reattached, and kill their processes. */
void local_remove_orphans(void *self);

/* Attempts under way, for tests and metrics. */
uint32_t local_count(const void *self);
