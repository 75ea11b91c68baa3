/* listeners.c - the sockets that a server listens on, and accepting from them. */
#include "http/listeners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "http/listen.h"

#define ACCEPT_MAX 64    /* connections taken in one go */
#define ACCEPT_TLS_MAX 8 /* the same where each costs a handshake */

static struct listener *add_listener(struct listeners *listeners, int fd,
                                     enum listener_kind kind)
{
    struct listener *listener = &listeners->list[listeners->count++];
    *listener = (struct listener){ .listeners = listeners, .fd = fd, .kind = kind };
    return listener;
}

const struct listener *listeners_find(const struct listeners *listeners,
                                      enum listener_kind kind)
{
    for (uint32_t i = 0; i < listeners->count; i++)
        if (listeners->list[i].kind == kind)
            return &listeners->list[i];
    return NULL;
}

int listeners_open_unix(struct listeners *listeners, const char *path, bool any_user,
                        struct error *err)
{
    int fd = listen_unix(path, any_user, err);
    if (fd < 0)
        return fd;
    add_listener(listeners, fd, LISTENER_UNIX);
    listeners->path = memory_text(path);
    lstat(path, &listeners->file);
    return 0;
}

int listeners_open_tcp(struct listeners *listeners, const char *where,
                       struct error *err)
{
    struct guard guard = { 0 };
    bool is_loopback;
    int fd = listen_tcp(where, guard.host, sizeof guard.host, &guard.port, &is_loopback,
                        err);
    if (fd < 0)
        return fd;
    guard.tls = !is_loopback;
    enum listener_kind kind = guard.tls ? LISTENER_TLS : LISTENER_PLAIN;
    const struct listener *same = listeners_find(listeners, kind);
    if (same) {
        close(fd);
        return error_set(err, -EALREADY, "it listens on port %u already",
                         same->guard.port);
    }
    add_listener(listeners, fd, kind)->guard = guard;
    return 0;
}

/* Out of descriptors: the socket stays readable, so stop polling it for a while. */
static void pause_accepting(struct listeners *listeners)
{
    listeners->paused = true;
    for (uint32_t i = 0; i < listeners->count; i++)
        uv_poll_stop(&listeners->list[i].poll);
}

static void on_connect(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    struct listeners *listeners = listener->listeners;
    int most = listener->kind == LISTENER_TLS ? ACCEPT_TLS_MAX : ACCEPT_MAX;
    for (int i = 0; i < most; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            listeners->accepted(listeners->context, fd, listener);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(listeners);
        if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
    listeners->finished(listeners->context);
}

static void watch_listener(struct listeners *listeners, struct listener *listener)
{
    uv_poll_init(listeners->loop, &listener->poll, listener->fd);
    listener->poll.data = listener;
    listeners->handles++;
}

void listeners_resume(struct listeners *listeners)
{
    listeners->paused = false;
    for (uint32_t i = 0; i < listeners->count; i++) {
        if (i >= listeners->handles)
            watch_listener(listeners, &listeners->list[i]);
        uv_poll_start(&listeners->list[i].poll, UV_READABLE, on_connect);
    }
}

int listeners_renew_unix(struct listeners *listeners, bool any_user, struct error *err)
{
    const struct listener *unix_socket = listeners_find(listeners, LISTENER_UNIX);
    if (!unix_socket)
        return 0;
    int r = listen_renew_unix(listeners->path, any_user, unix_socket->fd,
                              &listeners->file, err);
    if (r == 1) { /* the old socket is closed: poll the new one */
        pause_accepting(listeners);
        listeners_resume(listeners);
    }
    return r;
}

void listeners_drop(struct listeners *listeners)
{
    for (uint32_t i = 0; i < listeners->count; i++)
        close(listeners->list[i].fd);
    if (listeners->path)
        listen_remove_unix(listeners->path, &listeners->file);
    free(listeners->path);
    listeners->path = NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct listeners *listeners = listener->listeners;
    if (--listeners->handles == 0)
        listeners->closed(listeners->context);
}

void listeners_close(struct listeners *listeners, void (*closed)(void *context))
{
    listeners->closed = closed;
    for (uint32_t i = 0; i < listeners->count; i++)
        uv_close((uv_handle_t *)&listeners->list[i].poll, on_closed);
    listeners_drop(listeners);
}
