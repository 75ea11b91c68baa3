/*
 * forecast_worker.h - a thread that plays the engine forward while the loop goes on.
 *
 *     forecast_worker_add(worker, &task);      in the loop, at any time between passes
 *     task->work(task, engine)                 in the thread: 'engine' is a snapshot
 *     task->done(task)                         in the loop again
 *
 * One task is worked on at a time, those for which a client waits first; of these, and of the
 * others, users have theirs in turn.  One for which no client waits is interrupted by one that is
 * urgent, and begun anew after it, a few times at most.  Of the loop's time a task takes no more than
 * the snapshot, which is taken when the task begins.  The thread has the lowest priority, so that
 * jobs and decisions go before it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct error;
struct forecast_task;
struct forecast_worker;
struct forecast_history;
struct scheduler;

#define FORECAST_TASKS_MAX 64          /* that wait               */
#define FORECAST_TASKS_OF_USER 4       /* that wait or are worked on */
#define FORECAST_OWNER_NONE UINT32_MAX /* berthd's own */

struct forecast_task {
    /* Optional.  In the thread: add a job; then the snapshot's policy is told of all jobs. */
    void (*prepare)(struct forecast_task *task, struct engine *engine);
    /* -ECANCELED: it was interrupted, and can be begun anew. */
    int (*work)(struct forecast_task *task, struct engine *engine,
                const char *settings);
    void (*done)(struct forecast_task *task); /* it may be freed there */
    bool urgent;                              /* a client waits        */
    uint32_t owner; /* the user who asks, or FORECAST_OWNER_NONE */
    uint32_t
        more_jobs; /* room in the snapshot for so many that are yet to be submitted */
    atomic_bool cancelled; /* work() is to end soon */
    bool dropped;          /* it is not begun, nor begun anew: forecast_task_drop() */
    uint32_t interruptions;
    int status; /* negative: it was not worked on: -ECANCELED, or the reason */
    char why[240];
    int64_t took_ns; /* processor time of the thread */
    struct forecast_task *next;
};

/*
 * 'history' is frozen while a task is worked on.  No task is begun while somebody else has frozen
 * it, who calls forecast_worker_wake() afterwards.
 */
struct forecast_worker *forecast_worker_new(struct scheduler *scheduler,
                                            struct forecast_history *history);

/* It is not wanted any more: it ends soon, or is not begun; then done() is called all the same. */
void forecast_task_drop(struct forecast_task *task);

/* -EBUSY: too many wait, or too many of this user. */
int forecast_worker_add(struct forecast_worker *worker, struct forecast_task *task,
                        struct error *err);

void forecast_worker_wake(struct forecast_worker *worker);

/*
 * The thread did not come back when it was told to, as the policy decides for ever: it is left
 * alone with what it uses, and no task is worked on any more.
 */
bool forecast_worker_is_lost(const struct forecast_worker *worker);

/* What the last snapshot took of the loop's time. */
int64_t forecast_worker_copy_ns(const struct forecast_worker *worker);

/* Cancel all tasks and wait, for some seconds, for the one that is worked on: the engine may go. */
void forecast_worker_cancel(struct forecast_worker *worker);

/* Before the loop is closed; then, after that, the memory is freed. */
void forecast_worker_stop(struct forecast_worker *worker);
void forecast_worker_free(struct forecast_worker *worker);
