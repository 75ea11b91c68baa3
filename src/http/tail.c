/* tail.c - a job's output as a stream. */
#include "http/tail.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/plain_file.h"
#include "http/http.h"

#define CHECK_MS 250
#define OPEN_AGAIN_MS 1000

struct tail {
    struct http_stream http;
    struct http_delayed later; /* connected until the file was opened or refused */
    struct tails *tails;
    struct tail *next;
    struct tail_setup setup;
    char *path;
    int fd;       /* -1: not there yet */
    bool opening; /* by the opener */
    bool failed;  /* it cannot be read */
    uint64_t tried_ms;
    off_t position;
    uv_fs_event_t watcher;
    bool is_watching; /* 'watcher' was set up */
};

struct tails {
    uv_loop_t *loop;
    uv_timer_t timer; /* while there are tails */
    struct tail *first;
    uint32_t count;
    bool (*ended)(void *context, uint64_t job);
    void *context;
    struct tail_opener opener; /* 'open' is NULL: there is none */
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

static void take_file(struct tail *tail, int fd, int64_t size)
{
    int64_t offset = tail->setup.offset;
    if (offset < 0)
        offset = offset > -size ? size + offset : 0;
    tail->fd = fd;
    tail->position = offset;
    if (tail->setup.follow)
        watch_file(tail);
}

static bool needs_opener(const struct tail *tail)
{
    return !tail->setup.ours && tail->tails->opener.open;
}

static void on_opened(void *context, int fd);

/* Root can read any file; a path that a user chose must not lead to another user's. */
static bool is_foreign(const struct tail_setup *setup, uint32_t owner)
{
    return owner != setup->uid && (setup->ours ? owner != geteuid() : geteuid() == 0);
}

static int open_file(struct tail *tail, struct error *err)
{
    const struct tail_setup *setup = &tail->setup;
    int fd = plain_file_open(tail->path, err);
    if (fd < 0)
        return fd;
    struct stat file;
    if (fstat(fd, &file) < 0 || is_foreign(setup, file.st_uid)) {
        close(fd);
        return error_set(err, -EACCES, "%.200s: belongs to somebody else", tail->path);
    }
    take_file(tail, fd, file.st_size);
    return 0;
}

/* Ask the opener, unless it is at it or was asked a moment ago. */
static void ask_opener(struct tail *tail)
{
    const struct tails *tails = tail->tails;
    uint64_t now_ms = uv_now(tails->loop);
    if (tail->opening || now_ms < tail->tried_ms + OPEN_AGAIN_MS)
        return;
    tail->tried_ms = now_ms;
    tail->opening = tails->opener.open(tails->opener.self, tail->setup.uid, tail->path,
                                       on_opened, tail) == 0;
}

/* Read from the position on: bytes, 0: nothing new, or a negative errno. */
static ssize_t read_file(struct tail *tail, char *room, size_t size)
{
    if (tail->fd < 0 && needs_opener(tail)) {
        ask_opener(tail);
        return tail->failed ? -EACCES : 0;
    }
    if (tail->fd < 0) {
        int r = open_file(tail, NULL);
        if (r < 0)
            return r == -ENOENT || r == -EACCES ? 0 : r;
    }
    ssize_t count = pread(tail->fd, room, size, tail->position);
    if (count == 0 && tail->setup.follow) {
        struct stat file;
        if (fstat(tail->fd, &file) == 0 && file.st_size < tail->position &&
            tail->setup.offset <= file.st_size) {
            tail->position = 0; /* truncated: it is being written anew */
            count = pread(tail->fd, room, size, 0);
        }
    }
    if (count < 0)
        return -errno;
    tail->position += count;
    return count;
}

static ssize_t read_tail(void *self, char *room, size_t size)
{
    struct tail *tail = self;
    const struct tails *tails = tail->tails;
    /* Ask first: the read that follows then finds all that the job wrote. */
    bool last = !tail->setup.follow || tails->ended(tails->context, tail->setup.job);
    ssize_t count = read_file(tail, room, size);
    if (count < 0 || (count == 0 && last))
        return -1;
    return count;
}

static void free_tail(struct tail *tail)
{
    if (tail->fd >= 0)
        close(tail->fd);
    free(tail->path);
    free(tail);
}

static void on_watcher_closed(uv_handle_t *handle)
{
    free_tail(handle->data);
}

static void close_tail(void *self)
{
    struct tail *tail = self;
    struct tails *tails = tail->tails;
    if (tail->opening)
        tails->opener.forget(tails->opener.self, tail);
    struct tail **at = &tails->first;
    while (*at != tail)
        at = &(*at)->next;
    *at = tail->next;
    if (--tails->count == 0)
        uv_timer_stop(&tails->timer);
    if (tail->is_watching)
        uv_close((uv_handle_t *)&tail->watcher, on_watcher_closed);
    else
        free_tail(tail);
}

/* Tails whose reply has not begun yet are waited for by nobody. */
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
    struct stat file;
    tail->opening = false;
    if (fd >= 0 && fstat(fd, &file) == 0)
        take_file(tail, fd, file.st_size);
    tail->failed = fd < 0 && fd != -ENOENT && fd != -EACCES && fd != -EAGAIN;
    if (!is_streaming(tail))
        reply_opened(tail, fd);
    else
        http_stream_wake(&tail->http);
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
    bool later = needs_opener(tail);
    int r = 0;
    if (later)
        tail->opening = (r = tails->opener.open(tails->opener.self, setup->uid,
                                                tail->path, on_opened, tail)) == 0;
    else
        r = open_file(tail, err);
    if (r < 0 && (later || !(r == -ENOENT && setup->follow))) {
        free_tail(tail);
        return later ? error_set(err, r, "the output cannot be opened now") : r;
    }
    tail->next = tails->first;
    tails->first = tail;
    if (tails->count++ == 0)
        uv_timer_start(&tails->timer, on_timer, CHECK_MS, CHECK_MS);
    if (later)
        reply->delayed = &tail->later;
    else
        begin_stream(tail, reply);
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

void tails_close(struct tails *tails)
{
    assert(!tails->first);
    uv_close((uv_handle_t *)&tails->timer, on_closed);
}
