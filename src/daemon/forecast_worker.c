/* forecast_worker.c - a thread that plays the engine forward while the loop goes on. */
#include "daemon/forecast_worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/scheduler.h"
#include "engine/engine_copy.h"
#include "forecast/history.h"

#define LOWEST_PRIORITY 19
#define INTERRUPTIONS_MAX 3
#define LOST_NS \
    (5 * NS_PER_S) /* after which a thread that was told to stop is given up */

struct forecast_worker {
    struct scheduler *scheduler;
    struct forecast_history *history;
    uv_thread_t thread;
    uv_async_t finished;
    struct forecast_task *waiting;
    uint32_t waiting_count;
    struct forecast_task *task; /* that is worked on, as the loop knows */
    struct engine_snapshot snapshot;
    char *settings; /* of the snapshot's policy, or NULL */
    int64_t copy_ns;
    bool interrupted;    /* the task, by one that is urgent */
    uint32_t last_owner; /* of the task that began last      */
    bool lost;

    uv_mutex_t mutex;
    uv_cond_t changed;
    struct forecast_task *given; /* to the thread, until it is done with it */
    int result;                  /* of the last                             */
    bool ended;                  /* the thread is to end                    */
};

/* --- in the thread -------------------------------------------------------------------- */

static int work_on(struct forecast_worker *worker, struct forecast_task *task)
{
    int64_t began_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    if (task->prepare) {
        task->prepare(task, &worker->snapshot.engine);
        engine_adopt_jobs(&worker->snapshot.engine);
    }
    int r = task->work(task, &worker->snapshot.engine, worker->settings);
    task->took_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
    return r;
}

static void run_thread(void *context)
{
    struct forecast_worker *worker = context;
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOWEST_PRIORITY);
    uv_mutex_lock(&worker->mutex);
    while (!worker->ended) {
        struct forecast_task *task = worker->given;
        if (!task) {
            uv_cond_wait(&worker->changed, &worker->mutex);
            continue;
        }
        uv_mutex_unlock(&worker->mutex);
        int r = work_on(worker, task);
        uv_mutex_lock(&worker->mutex);
        worker->result = r;
        worker->given = NULL;
        uv_cond_broadcast(&worker->changed);
        uv_async_send(&worker->finished);
    }
    uv_mutex_unlock(&worker->mutex);
}

/* --- in the loop ---------------------------------------------------------------------- */

static bool is_given(struct forecast_worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    bool given = worker->given != NULL;
    uv_mutex_unlock(&worker->mutex);
    return given;
}

/* Those that are urgent first, then those of another user than the last. */
static bool goes_before(const struct forecast_worker *worker,
                        const struct forecast_task *a, const struct forecast_task *b)
{
    if (a->urgent != b->urgent)
        return a->urgent;
    return a->owner != worker->last_owner && b->owner == worker->last_owner;
}

/* Where nothing says more, in the order in which they were added. */
static struct forecast_task *take_first(struct forecast_worker *worker)
{
    struct forecast_task **first = &worker->waiting;
    for (struct forecast_task **at = first; *at; at = &(*at)->next)
        if (goes_before(worker, *at, *first))
            first = at;
    struct forecast_task *task = *first;
    if (task) {
        *first = task->next;
        worker->waiting_count--;
    }
    return task;
}

static int take_snapshot(struct forecast_worker *worker, uint32_t more_jobs,
                         struct error *err)
{
    const struct scheduler *scheduler = worker->scheduler;
    if (!scheduler->alive)
        return error_set(err, -EAGAIN, "the store cannot be written just now");
    int64_t began_ns = clock_now_ns();
    const char *settings = strchr(scheduler->policy, ',');
    free(worker->settings);
    worker->settings = settings ? memory_text(settings + 1) : NULL;
    struct engine_copy_setup setup = { .settings = worker->settings,
                                       .more_jobs = more_jobs };
    int r = engine_snapshot_take(&worker->snapshot, &scheduler->engine, &setup, err);
    worker->snapshot.engine.state.view.now_ns = scheduler_now_ns(scheduler);
    worker->copy_ns = clock_now_ns() - began_ns;
    return r;
}

static void say_status(struct forecast_task *task, int status, const char *why)
{
    task->status = status;
    snprintf(task->why, sizeof task->why, "%s", why);
}

static void fail_task(struct forecast_task *task, int status, const char *why)
{
    say_status(task, status, why);
    task->done(task);
}

static void begin_next(struct forecast_worker *worker)
{
    struct forecast_task *task;
    struct error err = { "" };
    if (!worker->task && worker->history->frozen > 0)
        return; /* it is being read from the store: forecast_worker_wake() */
    while (!worker->task && (task = take_first(worker))) {
        int r = task->dropped ? error_set(&err, -ECANCELED, "cancelled")
                              : take_snapshot(worker, task->more_jobs, &err);
        if (r < 0) {
            fail_task(task, r, err.text);
            continue;
        }
        history_freeze(worker->history);
        worker->task = task;
        worker->last_owner = task->owner;
        worker->interrupted = false;
        uv_mutex_lock(&worker->mutex);
        worker->given = task;
        uv_cond_broadcast(&worker->changed);
        uv_mutex_unlock(&worker->mutex);
    }
}

/* It is begun anew, before the others that are not urgent. */
static void put_back(struct forecast_worker *worker, struct forecast_task *task)
{
    task->interruptions++;
    task->cancelled = false;
    task->next = worker->waiting;
    worker->waiting = task;
    worker->waiting_count++;
    worker->last_owner = FORECAST_OWNER_NONE;
}

/* The thread has done its task. */
static void finish_task(struct forecast_worker *worker)
{
    struct forecast_task *task = worker->task;
    if (!task || is_given(worker))
        return;
    worker->task = NULL;
    history_thaw(worker->history);
    engine_snapshot_release(&worker->snapshot);
    if (worker->interrupted && worker->result == -ECANCELED && !task->dropped)
        put_back(worker, task);
    else
        task->done(task);
}

static void on_finished(uv_async_t *handle)
{
    struct forecast_worker *worker = handle->data;
    finish_task(worker);
    begin_next(worker);
}

struct forecast_worker *forecast_worker_new(struct scheduler *scheduler,
                                            struct forecast_history *history)
{
    struct forecast_worker *worker = memory_checked(calloc(1, sizeof *worker));
    worker->scheduler = scheduler;
    worker->history = history;
    uv_mutex_init(&worker->mutex);
    uv_cond_init(&worker->changed);
    uv_async_init(scheduler->loop, &worker->finished, on_finished);
    uv_unref((uv_handle_t *)&worker->finished);
    worker->finished.data = worker;
    if (uv_thread_create(&worker->thread, run_thread, worker) != 0)
        abort();
    return worker;
}

void forecast_task_drop(struct forecast_task *task)
{
    task->dropped = true;
    task->cancelled = true;
}

static uint32_t count_of_user(const struct forecast_worker *worker, uint32_t owner)
{
    uint32_t count = worker->task && worker->task->owner == owner;
    for (const struct forecast_task *task = worker->waiting; task; task = task->next)
        count += task->owner == owner;
    return count;
}

static void interrupt(struct forecast_worker *worker)
{
    struct forecast_task *task = worker->task;
    if (!task || task->urgent || task->interruptions == INTERRUPTIONS_MAX)
        return;
    worker->interrupted = true;
    task->cancelled = true;
}

int forecast_worker_add(struct forecast_worker *worker, struct forecast_task *task,
                        struct error *err)
{
    struct forecast_task **last = &worker->waiting;
    if (worker->lost)
        return error_set(err, -EBUSY, "playing forward hangs in the policy");
    if (task->owner != FORECAST_OWNER_NONE &&
        count_of_user(worker, task->owner) >= FORECAST_TASKS_OF_USER)
        return error_set(err, -EBUSY,
                         "%d requests of this user wait for forecasts: try again later",
                         FORECAST_TASKS_OF_USER);
    if (worker->waiting_count >= FORECAST_TASKS_MAX)
        return error_set(err, -EBUSY,
                         "%d other requests wait for forecasts: try again later",
                         FORECAST_TASKS_MAX);
    while (*last)
        last = &(*last)->next;
    task->next = NULL;
    task->status = 0;
    *last = task;
    worker->waiting_count++;
    if (task->urgent)
        interrupt(worker);
    uv_async_send(&worker->finished); /* the task begins in the loop's next turn */
    return 0;
}

void forecast_worker_wake(struct forecast_worker *worker)
{
    uv_async_send(&worker->finished);
}

bool forecast_worker_is_lost(const struct forecast_worker *worker)
{
    return worker->lost;
}

int64_t forecast_worker_copy_ns(const struct forecast_worker *worker)
{
    return worker->copy_ns;
}

void forecast_worker_cancel(struct forecast_worker *worker)
{
    static const char begins_anew[] = "berthd begins anew";
    struct forecast_task *task;
    if (worker->task)
        forecast_task_drop(worker->task);
    uv_mutex_lock(&worker->mutex);
    int64_t until_ns = clock_now_ns() + LOST_NS;
    while (worker->given && clock_now_ns() < until_ns)
        uv_cond_timedwait(&worker->changed, &worker->mutex, LOST_NS / 50);
    worker->lost = worker->given != NULL;
    uv_mutex_unlock(&worker->mutex);
    if (worker->lost && worker->task)
        fprintf(stderr, "berthd: the policy does not stop deciding in a forecast; "
                        "there are no more of them\n");
    else if (worker->task)
        say_status(worker->task, -ECANCELED, begins_anew);
    finish_task(worker);
    while ((task = take_first(worker)))
        fail_task(task, -ECANCELED, begins_anew);
}

void forecast_worker_stop(struct forecast_worker *worker)
{
    if (!worker)
        return;
    forecast_worker_cancel(worker);
    uv_mutex_lock(&worker->mutex);
    worker->ended = true;
    uv_cond_broadcast(&worker->changed);
    uv_mutex_unlock(&worker->mutex);
    if (!worker->lost)
        uv_thread_join(&worker->thread);
    uv_close((uv_handle_t *)&worker->finished, NULL);
}

void forecast_worker_free(struct forecast_worker *worker)
{
    if (!worker || worker->lost)
        return;
    uv_cond_destroy(&worker->changed);
    uv_mutex_destroy(&worker->mutex);
    free(worker->settings);
    free(worker);
}
