/* file_workers.c - a thread for each user whose files are used. */
#include "http/file_workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"

#define THREADS_MAX 32
#define CLOSE_S 1
#define STACK_BYTES (512 * 1024)

/* What is to be done for one user, in this order. */
struct file_lane {
    struct file_lane *next;
    uint32_t uid;
    bool busy; /* a thread is at it */
    struct file_task *first, **end;
};

struct file_workers {
    pthread_mutex_t mutex; /* for all that follows */
    pthread_cond_t idle;   /* no thread is left    */
    struct file_lane *lanes;
    struct file_task *finished;
    uint32_t thread_count;
    bool closed;
    uv_async_t wake;
};

static struct file_lane *find_lane(struct file_workers *workers, uint32_t uid)
{
    struct file_lane *lane = workers->lanes;
    while (lane && lane->uid != uid)
        lane = lane->next;
    if (lane)
        return lane;
    lane = memory_checked(calloc(1, sizeof *lane));
    *lane = (struct file_lane){ .next = workers->lanes, .uid = uid };
    lane->end = &lane->first;
    workers->lanes = lane;
    return lane;
}

/* Remove lanes without tasks; NULL: none needs a thread. */
static struct file_lane *choose_lane(struct file_workers *workers)
{
    for (struct file_lane **at = &workers->lanes; *at;) {
        struct file_lane *lane = *at;
        if (lane->first && !lane->busy)
            return lane;
        if (lane->busy) {
            at = &lane->next;
            continue;
        }
        *at = lane->next;
        free(lane);
    }
    return NULL;
}

/* With the mutex, which is given back meanwhile. */
static void run_task(struct file_workers *workers, struct file_lane *lane)
{
    struct file_task *task = lane->first;
    lane->first = task->next;
    if (!lane->first)
        lane->end = &lane->first;
    lane->busy = true;
    pthread_mutex_unlock(&workers->mutex);
    task->work(task);
    pthread_mutex_lock(&workers->mutex);
    lane->busy = false;
    task->next = workers->finished;
    workers->finished = task;
    if (!workers->closed)
        uv_async_send(&workers->wake);
}

static void *run_thread(void *context)
{
    struct file_workers *workers = context;
    pthread_mutex_lock(&workers->mutex);
    for (struct file_lane *lane; !workers->closed && (lane = choose_lane(workers));)
        run_task(workers, lane);
    workers->thread_count--;
    pthread_cond_signal(&workers->idle);
    pthread_mutex_unlock(&workers->mutex);
    return NULL;
}

/* With the mutex.  If there can be none now, the next task tries again. */
static void start_thread(struct file_workers *workers)
{
    pthread_attr_t how;
    pthread_t thread;
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&how, STACK_BYTES);
    if (pthread_create(&thread, &how, run_thread, workers) == 0)
        workers->thread_count++;
    pthread_attr_destroy(&how);
}

void file_workers_add(struct file_workers *workers, struct file_task *task)
{
    pthread_mutex_lock(&workers->mutex);
    struct file_lane *lane = find_lane(workers, task->uid);
    task->next = NULL;
    *lane->end = task;
    lane->end = &task->next;
    if (!lane->busy && workers->thread_count < THREADS_MAX)
        start_thread(workers);
    pthread_mutex_unlock(&workers->mutex);
}

static struct file_task *take_finished(struct file_workers *workers)
{
    pthread_mutex_lock(&workers->mutex);
    struct file_task *task = workers->finished;
    if (task)
        workers->finished = task->next;
    pthread_mutex_unlock(&workers->mutex);
    return task;
}

static void on_wake(uv_async_t *wake)
{
    struct file_workers *workers = wake->data;
    for (struct file_task *task; (task = take_finished(workers));)
        task->done(task);
}

void file_workers_open(struct file_workers **ret_workers, struct uv_loop_s *loop)
{
    struct file_workers *workers = memory_checked(calloc(1, sizeof *workers));
    pthread_mutex_init(&workers->mutex, NULL);
    pthread_cond_init(&workers->idle, NULL);
    uv_async_init(loop, &workers->wake, on_wake);
    uv_unref((uv_handle_t *)&workers->wake); /* it alone keeps no loop going */
    workers->wake.data = workers;
    *ret_workers = workers;
}

static void on_closed(uv_handle_t *handle)
{
    struct file_workers *workers = handle->data;
    if (workers->thread_count > 0)
        return; /* one hangs, and still needs it */
    pthread_cond_destroy(&workers->idle);
    pthread_mutex_destroy(&workers->mutex);
    free(workers);
}

/* With the mutex: threads that do not hang end in a moment. */
static void wait_for_threads(struct file_workers *workers)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_S;
    while (workers->thread_count > 0 &&
           pthread_cond_timedwait(&workers->idle, &workers->mutex, &until) == 0)
        continue;
}

static void drop_tasks(struct file_task *first, void (*dropped)(struct file_task *task))
{
    for (struct file_task *next; first; first = next) {
        next = first->next;
        dropped(first);
    }
}

void file_workers_close(struct file_workers *workers,
                        void (*dropped)(struct file_task *task))
{
    pthread_mutex_lock(&workers->mutex);
    workers->closed = true;
    wait_for_threads(workers);
    drop_tasks(workers->finished, dropped);
    workers->finished = NULL;
    for (struct file_lane *lane = workers->lanes, *next; lane; lane = next) {
        next = lane->next;
        drop_tasks(lane->first, dropped);
        lane->first = NULL;
        lane->end = &lane->first;
        if (!lane->busy)
            free(lane);
    }
    workers->lanes = NULL;
    uv_close((uv_handle_t *)&workers->wake, on_closed);
    pthread_mutex_unlock(&workers->mutex);
}
