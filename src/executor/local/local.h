/*
 * local.h - jobs as processes on this machine, each under a berth-run of its own.
 *
 * A supervisor outlives us: local_close() lets go of the jobs, local_reattach() takes them
 * up again.  Every attempt has a folder <run_dir>/jobs/ID.ATTEMPT, which goes when its end
 * is durable in the log: that is what local_event() and local_commit() are for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "executor/executor.h"

struct error;
struct event;
struct launch;
struct local;
struct outbox;
struct uv_loop_s;

#define LOCAL_RUN_DIR_MAX 62 /* bytes: sockets below it must have a name that fits */

struct local_setup {
    struct uv_loop_s *loop;
    const char *state_dir;   /* absolute, and there                             */
    const char *run_dir;     /* the same                                        */
    const char *run_program; /* path of berth-run                               */
    bool system;             /* we are root: jobs run as their users            */
    const struct view *view; /* jobs by slot                                    */
    struct outbox **outbox;  /* who feeds the engine swaps them: add to *outbox */

    /* Something was put into the outbox: have the loop turn, and read it there. */
    void (*wake)(void *context);

    /* What it takes to run this job; valid until the next call.  Negative: it is gone. */
    int (*launch)(void *context, uint64_t id, const struct launch **ret,
                  struct error *err);
    int64_t (*now_ns)(void *context);

    /* Optional.  The code point that its packets are to have; -1: none. */
    int (*mark)(void *context, job_id job);

    /* Optional.  A job said how many steps there will be. */
    void (*total)(void *context, job_id job, double steps);

    /* By node * NODE_GPUS_MAX + bit: what a job is told; NULL: the bit. */
    const uint32_t *gpu_index;
    void *context;
};

int local_open(struct local **ret, const struct local_setup *setup, struct error *err);

/* Jobs go on.  Run the loop until it has nothing more to do before you close it. */
void local_close(void *self);

/* Its self is the struct local.  Resizing is stop and start. */
extern const struct executor executor_local;

/*
 * After a restart, for every job that the state says is placed, in its seats or stopping:
 * connect to its supervisor again; where there is none read how it ended, or report it
 * lost.  A placed job that was never begun is started, once those in lease->after have
 * left; so all jobs are named before the loop runs again.
 */
int local_reattach(void *self, const struct lease *lease, bool stopping,
                   int64_t grace_left_ns, struct error *err);

/*
 * For engine_listen(), behind the store: ends that were told and are durable now are
 * collected.  Without these no supervisor ever goes.
 */
void local_event(void *self, const struct view *view, const struct event *event);
int local_commit(void *self, struct error *err);

/* Folders of attempts that nobody named: removed, and what runs in them is ended. */
void local_sweep(void *self);

/* Attempts that are under way, for tests and metrics. */
uint32_t local_count(const void *self);
