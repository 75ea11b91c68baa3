/*
 * tail.c - a job's output as a stream.
 *
 * Files in berthd's own folder are read in the loop.  A user's file is touched only by a
 * thread of that user, from its opening to its end: even closing it may wait for its file
 * system.
 */
#include "http/tail.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <uv.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/plain_file.h"
#include "http/http.h"

#define CHECK_MS 250
#define OPEN_AGAIN_MS 1000
#define READ_BYTES 65536
#define TAILS_OF_ONE 64 /* users' files that one user can have open here */
#define THREADS_MAX 32
#define CLOSE_THREADS_S 1
#define STACK_BYTES (512 * 1024)

/* --- operations on users' files outside the loop -------------------------------------------- */

/*
 * A file system may take for ever to answer, and a user may have made it.  So each user has
 * one thread at most, and what is to be done for that user waits for it: a user with a slow
 * file system waits alone.  The threads are not joined.  The process ends when the kernel can end
 * one that hangs: at once, or for FUSE when its server answers or the mount is aborted.
 */

/* Part of a larger structure that stays until 'done' was called. */
struct file_task {
    uint32_t uid;                         /* the user                   */
    void (*work)(struct file_task *task); /* in a thread                */
    void (*done)(struct file_task *task); /* in the loop, afterwards    */
    struct file_task *next;
};

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

static void add_task(struct file_workers *workers, struct file_task *task)
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

static void open_workers(struct file_workers **ret_workers, struct uv_loop_s *loop)
{
    struct file_workers *workers = memory_checked(calloc(1, sizeof *workers));
    pthread_mutex_init(&workers->mutex, NULL);
    pthread_cond_init(&workers->idle, NULL);
    uv_async_init(loop, &workers->wake, on_wake);
    uv_unref((uv_handle_t *)&workers->wake); /* it alone keeps no loop going */
    workers->wake.data = workers;
    *ret_workers = workers;
}

static void on_workers_closed(uv_handle_t *handle)
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
    until.tv_sec += CLOSE_THREADS_S;
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

/*
 * Tasks that have not begun are dropped, others are waited for, but not long: 'done' is not
 * called any more.  Freed when the loop has run.
 */
static void close_workers(struct file_workers *workers,
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
    uv_close((uv_handle_t *)&workers->wake, on_workers_closed);
    pthread_mutex_unlock(&workers->mutex);
}

/* --- tails ----------------------------------------------------------------------------------- */

struct tail {
    struct http_stream http;
    struct http_delayed later; /* connected until the file was opened or refused */
    struct tails *tails;
    struct tail *next;
    struct tail_setup setup;
    char *path;
    int fd;       /* -1: not there yet */
    bool placed;  /* 'position' was set */
    bool opening; /* by the opener or a thread */
    bool failed;  /* it cannot be read */
    uint64_t tried_ms;
    off_t position;
    uv_fs_event_t watcher;
    bool is_watching; /* 'watcher' was set up */

    /* For a user's file. */
    struct file_task task;
    bool busy;    /* the task is a thread's: nothing below is touched meanwhile */
    bool leaving; /* closed when the task is done */
    bool last;    /* the job had ended when the task began */
    bool ended;   /* all was read */
    ssize_t result;
    char *bytes; /* READ_BYTES that were read ... */
    size_t at, count;
};

struct tails {
    uv_loop_t *loop;
    uv_timer_t timer; /* while there are tails */
    struct tail *first, *leaving;
    uint32_t count;
    bool (*ended)(void *context, uint64_t job);
    void *context;
    struct tail_opener opener; /* 'open' is NULL: there is none */
    struct file_workers *workers;
};

static void on_file_event(uv_fs_event_t *watcher, const char *name, int events,
                          int status)
{
    struct tail *tail = watcher->data;
    http_stream_wake(&tail->http);
}

/* By descriptor, not by path: the name may lead to another file by now. */
static void watch_file(struct tail *tail)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", tail->fd);
    uv_fs_event_init(tail->tails->loop, &tail->watcher);
    tail->watcher.data = tail;
    tail->is_watching = true;
    uv_fs_event_start(&tail->watcher, on_file_event, self,
                      0); /* if it fails, the timer finds new bytes */
}

static void place_in_file(struct tail *tail, int64_t size)
{
    int64_t offset = tail->setup.offset;
    if (offset < 0)
        offset = offset > -size ? size + offset : 0;
    tail->position = offset;
    tail->placed = true;
}

/* Read from the position on: bytes, 0: nothing new, or a negative errno. */
static ssize_t read_open_file(struct tail *tail, char *room, size_t size)
{
    struct stat file;
    if (!tail->placed) {
        if (fstat(tail->fd, &file) < 0)
            return -errno;
        place_in_file(tail, file.st_size);
    }
    ssize_t count = pread(tail->fd, room, size, tail->position);
    if (count == 0 && tail->setup.follow && fstat(tail->fd, &file) == 0 &&
        file.st_size < tail->position && tail->setup.offset <= file.st_size) {
        tail->position = 0; /* truncated: it is being written anew */
        count = pread(tail->fd, room, size, 0);
    }
    if (count < 0)
        return -errno;
    tail->position += count;
    return count;
}

/* --- a file of berthd -------------------------------------------------------------------- */

static int open_own_file(struct tail *tail, struct error *err)
{
    const struct tail_setup *setup = &tail->setup;
    struct stat file;
    int fd = plain_file_open_own(tail->path, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &file) < 0 ||
        (file.st_uid != setup->uid && file.st_uid != geteuid())) {
        close(fd);
        return error_set(err, -EACCES, "%.200s: belongs to somebody else", tail->path);
    }
    tail->fd = fd;
    place_in_file(tail, file.st_size);
    if (setup->follow)
        watch_file(tail);
    return 0;
}

static ssize_t read_own_file(struct tail *tail, char *room, size_t size)
{
    int r = tail->fd < 0 ? open_own_file(tail, NULL) : 0;
    if (r < 0)
        return r == -ENOENT || r == -EACCES ? 0 : r;
    return read_open_file(tail, room, size);
}

/* --- a user's file ------------------------------------------------------------------------ */

static struct tail *tail_of(struct file_task *task)
{
    return (struct tail *)((char *)task - offsetof(struct tail, task));
}

static void free_tail(struct tail *tail)
{
    free(tail->bytes);
    free(tail->path);
    free(tail);
}

static void begin_task(struct tail *tail, void (*work)(struct file_task *task),
                       void (*done)(struct file_task *task))
{
    tail->busy = true;
    tail->task.uid = tail->setup.uid;
    tail->task.work = work;
    tail->task.done = done;
    add_task(tail->tails->workers, &tail->task);
}

static void forget_leaving(struct tail *tail)
{
    struct tail **at = &tail->tails->leaving;
    while (*at != tail)
        at = &(*at)->next;
    *at = tail->next;
    free_tail(tail);
}

static void work_close(struct file_task *task)
{
    close(tail_of(task)->fd);
}

static void done_close(struct file_task *task)
{
    forget_leaving(tail_of(task));
}

/* Once nothing else is done with it. */
static void leave_file(struct tail *tail)
{
    if (tail->busy || tail->opening)
        return;
    if (tail->fd >= 0)
        begin_task(tail, work_close, done_close);
    else
        forget_leaving(tail);
}

static void on_opened(void *context, int fd);

/* Root can read any file; a path that a user chose must not lead to another user's. */
static void work_open(struct file_task *task)
{
    struct tail *tail = tail_of(task);
    struct stat file;
    int fd = plain_file_open(tail->path, NULL);
    tail->result = fd;
    if (fd < 0 || geteuid() != 0 ||
        (fstat(fd, &file) == 0 && file.st_uid == tail->setup.uid))
        return;
    close(fd);
    tail->result = -EACCES;
}

static void done_open(struct file_task *task)
{
    struct tail *tail = tail_of(task);
    tail->busy = false;
    on_opened(tail, (int)tail->result);
}

static int begin_opening(struct tail *tail)
{
    const struct tail_opener *opener = &tail->tails->opener;
    int r = 0;
    if (opener->open)
        r = opener->open(opener->self, tail->setup.uid, tail->path, on_opened, tail);
    else
        begin_task(tail, work_open, done_open);
    tail->opening = r == 0;
    return r;
}

static void work_read(struct file_task *task)
{
    struct tail *tail = tail_of(task);
    tail->result = read_open_file(tail, tail->bytes, READ_BYTES);
}

static void done_read(struct file_task *task)
{
    struct tail *tail = tail_of(task);
    tail->busy = false;
    tail->at = 0;
    tail->count = tail->result > 0 ? (size_t)tail->result : 0;
    tail->failed = tail->result < 0;
    tail->ended = tail->result == 0 && tail->last;
    if (tail->leaving)
        leave_file(tail);
    else if (tail->count > 0 || tail->failed || tail->ended)
        http_stream_wake(&tail->http);
}

/* Not there yet: ask again, unless that was done a moment ago. */
static void open_again(struct tail *tail)
{
    uint64_t now_ms = uv_now(tail->tails->loop);
    if (now_ms < tail->tried_ms + OPEN_AGAIN_MS)
        return;
    tail->tried_ms = now_ms;
    begin_opening(tail);
}

static ssize_t take_bytes(struct tail *tail, char *room, size_t size)
{
    size_t count = tail->count - tail->at;
    count = count < size ? count : size;
    memcpy(room, tail->bytes + tail->at, count);
    tail->at += count;
    return (ssize_t)count;
}

static ssize_t read_users_file(struct tail *tail, char *room, size_t size, bool last)
{
    if (tail->busy || tail->opening)
        return 0;
    if (tail->at < tail->count)
        return take_bytes(tail, room, size);
    if (tail->failed || tail->ended || (tail->fd < 0 && last))
        return -1;
    if (tail->fd < 0) {
        open_again(tail);
        return 0;
    }
    if (!tail->bytes)
        tail->bytes = memory_checked(malloc(READ_BYTES));
    tail->last = last;
    begin_task(tail, work_read, done_read);
    return 0;
}

/* --- both --------------------------------------------------------------------------------- */

static ssize_t read_tail(void *self, char *room, size_t size)
{
    struct tail *tail = self;
    const struct tails *tails = tail->tails;
    /* Ask first: the read that follows then finds all that the job wrote. */
    bool last = !tail->setup.follow || tails->ended(tails->context, tail->setup.job);
    if (!tail->setup.ours)
        return read_users_file(tail, room, size, last);
    ssize_t count = read_own_file(tail, room, size);
    if (count < 0 || (count == 0 && last))
        return -1;
    return count;
}

static void free_own_tail(struct tail *tail)
{
    if (tail->fd >= 0)
        close(tail->fd);
    free_tail(tail);
}

static void on_watcher_closed(uv_handle_t *handle)
{
    free_own_tail(handle->data);
}

static void close_tail(void *self)
{
    struct tail *tail = self;
    struct tails *tails = tail->tails;
    struct tail **at = &tails->first;
    while (*at != tail)
        at = &(*at)->next;
    *at = tail->next;
    if (--tails->count == 0)
        uv_timer_stop(&tails->timer);
    if (!tail->setup.ours) {
        tail->leaving = true;
        tail->next = tails->leaving;
        tails->leaving = tail;
        leave_file(tail);
    } else if (tail->is_watching) {
        uv_close((uv_handle_t *)&tail->watcher, on_watcher_closed);
    } else {
        free_own_tail(tail);
    }
}

/* No client waits for tails whose reply has not begun yet. */
static bool is_streaming(const struct tail *tail)
{
    return !tail->later.connection;
}

static void on_timer(uv_timer_t *timer)
{
    struct tails *tails = timer->data;
    for (struct tail *tail = tails->first; tail; tail = tail->next)
        if (is_streaming(tail))
            http_stream_wake(&tail->http);
}

static void begin_stream(struct tail *tail, struct http_reply *reply)
{
    reply->type = "application/octet-stream";
    reply->stream = &tail->http;
}

/* The delayed reply: the file, or why it cannot be had. */
static void reply_opened(struct tail *tail, int fd)
{
    struct http_reply *reply = http_delayed_reply(&tail->later);
    struct error err;
    if (fd >= 0 || (fd == -ENOENT && tail->setup.follow)) {
        begin_stream(tail, reply);
        http_delayed_send(&tail->later);
        return;
    }
    error_set(&err, fd, "%.200s: %s", tail->path,
              fd == -ELOOP    ? "is a link"
              : fd == -EINVAL ? "not a regular file"
                              : strerror(-fd));
    http_reply_error(reply, fd == -ENOENT ? 404 : 403, NULL, err.text);
    http_delayed_send(&tail->later);
    close_tail(tail);
}

static void on_opened(void *context, int fd)
{
    struct tail *tail = context;
    tail->opening = false;
    tail->fd = fd >= 0 ? fd : -1;
    tail->failed = fd < 0 && fd != -ENOENT && fd != -EACCES && fd != -EAGAIN;
    if (tail->leaving)
        leave_file(tail);
    else if (!is_streaming(tail))
        reply_opened(tail, fd);
    else
        http_stream_wake(&tail->http);
}

/* Also those whose client has left, until their file system answers. */
static uint32_t count_users_files(const struct tails *tails, uint32_t uid)
{
    uint32_t count = 0;
    const struct tail *const lists[] = { tails->first, tails->leaving };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const struct tail *tail = lists[i]; tail; tail = tail->next)
            count += !tail->setup.ours && tail->setup.uid == uid;
    return count;
}

static int begin_tail(struct tail *tail, struct error *err)
{
    const struct tail_setup *setup = &tail->setup;
    if (setup->ours) {
        int r = open_own_file(tail, err);
        /* A file that was made this moment is not readable for the service yet. */
        return (r == -ENOENT || r == -EACCES) && setup->follow ? 0 : r;
    }
    if (count_users_files(tail->tails, setup->uid) >= TAILS_OF_ONE)
        return error_set(err, -EAGAIN,
                         "%d files of this user are being read: try again later",
                         TAILS_OF_ONE);
    int r = begin_opening(tail);
    return r < 0 ? error_set(err, r, "the output cannot be opened now") : 0;
}

int tail_reply(struct tails *tails, const struct tail_setup *setup,
               struct http_reply *reply, struct error *err)
{
    struct tail *tail = memory_checked(calloc(1, sizeof *tail));
    *tail = (struct tail){
        .http = { .read = read_tail, .closed = close_tail, .self = tail },
        .later = { .closed = close_tail, .self = tail },
        .tails = tails,
        .setup = *setup,
        .path = memory_text(setup->path),
        .fd = -1,
    };
    int r = begin_tail(tail, err);
    if (r < 0) {
        free_own_tail(tail);
        return r;
    }
    tail->next = tails->first;
    tails->first = tail;
    if (tails->count++ == 0)
        uv_timer_start(&tails->timer, on_timer, CHECK_MS, CHECK_MS);
    if (setup->ours)
        begin_stream(tail, reply);
    else
        reply->delayed = &tail->later;
    return 0;
}

void tails_wake(struct tails *tails, uint64_t job)
{
    for (struct tail *tail = tails->first; tail; tail = tail->next)
        if (tail->setup.job == job && is_streaming(tail))
            http_stream_wake(&tail->http);
}

uint32_t tails_count(const struct tails *tails)
{
    return tails->count;
}

void tails_open(struct tails **ret_tails, struct uv_loop_s *loop,
                bool (*ended)(void *context, uint64_t job), void *context)
{
    struct tails *tails = memory_checked(calloc(1, sizeof *tails));
    *tails = (struct tails){ .loop = loop, .ended = ended, .context = context };
    open_workers(&tails->workers, loop);
    uv_timer_init(loop, &tails->timer);
    tails->timer.data = tails;
    *ret_tails = tails;
}

void tails_set_opener(struct tails *tails, const struct tail_opener *opener)
{
    tails->opener = *opener;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* Its file goes with the process: closing it might wait. */
static void drop_task(struct file_task *task)
{
    forget_leaving(tail_of(task));
}

void tails_close(struct tails *tails)
{
    assert(!tails->first);
    close_workers(tails->workers, drop_task);
    for (struct tail *tail = tails->leaving, *next; tail; tail = next) {
        next = tail->next;
        if (!tail->busy) /* else its thread hangs, and has it still */
            free_tail(tail);
    }
    uv_close((uv_handle_t *)&tails->timer, on_closed);
}
