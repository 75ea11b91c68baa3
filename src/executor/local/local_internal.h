/* local_internal.h - an attempt of a job, shared by the files of executor/local. */
#pragma once

#include <math.h>

#include <uv.h>

#include "base/units.h"
#include "executor/local/local.h"
#include "host/attempt.h"
#include "host/run_protocol.h"
#include "model/event.h"

#define GPU_TEXT_MAX 512

enum local_phase {
    LOCAL_WAITING,  /* for other jobs to vacate its GPUs */
    LOCAL_STARTING, /* its supervisor was started, or is searched */
    LOCAL_RUNNING,  /* its processes run */
    LOCAL_CLEARING, /* the supervisor is gone: kill the remaining processes */
    LOCAL_ENDED,    /* its end is in the outbox */
    LOCAL_RECORDED, /* the engine has applied it */
};

/* One attempt of a job. */
struct local_run {
    struct local *local;
    struct local_run *next, *prev; /* list of all attempts */
    struct local_run *same_slot;   /* older attempts in this slot */
    enum local_phase phase;
    job_id job;
    uint32_t generation, attempt;
    uint64_t id;

    job_id *after; /* jobs that have to leave first */
    uint32_t after_count;

    /* its allocation */
    char gpus[GPU_TEXT_MAX], cores[GPU_TEXT_MAX];
    uint32_t type, gpu_count, cpu_milli, mem_mib;

    bool said_end; /* by its supervisor, over the link: that one removes the attempt */
    bool reattached; /* and not looked for yet: it may have been started */

    /* orders */
    bool stopping, cancelled;
    int64_t grace_ns;
    int64_t limit_ns; /* longest run of an attempt; 0: none */

    /* When berthd itself ends it; INT64_MAX: never.  See check_deadline(). */
    int64_t deadline_ns;
    bool killed; /* its processes were, by berthd */

    /* reports */
    bool started, loaded, own_steps, expects_reports, reported;
    double steps_kept, steps, saved, rate_per_s, loss;
    int64_t started_ns, loaded_at_ns; /* when a silent job counts as loaded */

    /* the lease */
    bool leased, together, lease_done;
    job_id beside;
    double lease_end;

    int64_t due_ns; /* when to examine it; INT64_MAX: never */
    uint32_t tries; /* failed connections */
    char why[RUN_WHY_MAX];

    /* the connection to its supervisor */
    uv_poll_t link;
    int fd; /* -1: none */
    bool polled, closing;
    struct run_lines lines;
};

#define LOCAL_LEFT_MAX 4096

/* An attempt whose supervisor was told to remove it. */
struct local_left {
    uint64_t id;
    uint32_t attempt;
};

struct local {
    struct local_setup setup;
    char state_dir[512], run_dir[LOCAL_RUN_DIR_MAX + 1], run_program[512];
    struct attempts attempts;
    int starter; /* socket of the process that forks supervisors; -1: none yet */
    pid_t starter_pid;
    bool settled; /* every attempt of a live job is one of 'runs' */
    struct local_run *runs;
    struct local_run **slots; /* by job */
    uint32_t count;
    uint32_t recorded_count;                /* ends recorded since the last commit */
    struct local_left left[LOCAL_LEFT_MAX]; /* to be looked at again at 'left_ns' */
    uint32_t left_count;
    int64_t left_ns;
    uv_timer_t timer;
    int64_t timer_ns;
    bool closing;
};

/* A job that saved, declared its steps and reports none has made as many as was expected. */
static inline double local_unreported_steps(const struct local_run *run)
{
    const struct local_setup *setup = &run->local->setup;
    const struct job *job = &setup->view->jobs[run->job];
    double per_s = job->rate_per_s > 0 ? job->rate_per_s : job->rate_best_per_s;
    int64_t ran_ns = setup->now_ns(setup->context) - run->started_ns - job->load_ns;
    double steps = run->steps_kept + (ran_ns > 0 ? (double)ran_ns * 1e-9 * per_s : 0);
    return job->steps_total > 0 && steps > job->steps_total ? job->steps_total : steps;
}

/*
 * It declared its steps and has ended without a report: it has made all of them if it is done, and
 * as many as was expected if it saved.
 */
static inline void local_guess_steps(struct local_run *run, const struct run_end *end)
{
    double steps = 0;
    if (end->how == RUN_FINISHED)
        steps = run->local->setup.view->jobs[run->job].steps_total;
    else if (end->how == RUN_STOPPED && end->clean && end->saved <= run->steps_kept)
        steps = local_unreported_steps(run);
    if (steps > 0)
        run->steps = run->saved = fmax(end->saved, steps);
}

/* local.c: what a supervisor reports; the context is a struct local_run. */
bool local_handle_message(void *context, char *line);
/* The connection was closed or sent nonsense: search for the supervisor again. */
void local_handle_lost_link(struct local_run *run);

/* local_supervisor.c: starting and ending a supervisor */
bool local_cgroup(const struct local_run *run, char path[CGROUP_PATH_MAX]);
int local_start_supervisor(struct local_run *run, struct error *err);
/* A supervisor has taken the attempt; ret_alive: it still runs. */
bool local_was_claimed(const struct local_run *run, bool *ret_alive);
bool local_read_status(const struct local_run *run, struct run_end *end);
/* The supervisor is told that the end is durable; true: it is to remove the attempt. */
bool local_remove_attempt(struct local_run *run);
/* Send SIGKILL to all processes of an attempt; true: none is left. */
bool local_kill_attempt(const struct local_run *run);
/* To the job's processes alone: the supervisor reports the end. */
void local_kill_job(const struct local_run *run);

/*
 * The starter ends when its socket is closed.  Those that are ending are reaped: they are the
 * process's own and outlive an executor, which is closed and opened again whenever the
 * store could not be written.
 */
void local_close_starter(struct local *local);
uint32_t local_reap_starters(void); /* returns how many are left */

/* and the connection to it */
bool local_link_connect(struct local_run *run);
void local_link_close(struct local_run *run);
bool local_send(struct local_run *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
