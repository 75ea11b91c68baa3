/* listeners.c - the sockets that a server listens on, and accepting from them. */
#include "http/listeners.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

#define BACKLOG 512
#define ACCEPT_MAX 64    /* connections taken in one go */
#define ACCEPT_TLS_MAX 8 /* the same where each costs a handshake */

/* --- sockets ----------------------------------------------------------------------------- */

/* Remove the file of a socket without a listener.  The caller holds the lock of the state
 * folder, so no other berthd binds between the check and the unlink. */
static int remove_dead_socket(const struct sockaddr_un *address, struct error *err)
{
    const char *path = address->sun_path;
    struct stat there;
    if (lstat(path, &there) < 0)
        return errno == ENOENT
                   ? 0
                   : error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISSOCK(there.st_mode))
        return error_set(err, -EEXIST, "%s: is there and not a socket", path);

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(err, -errno, "socket: %s", strerror(errno));
    int r = connect(fd, (const struct sockaddr *)address, sizeof *address);
    int why = errno;
    close(fd);
    if (r == 0 || why == EAGAIN) /* EAGAIN: there is a busy listener */
        return error_set(err, -EADDRINUSE, "%s: somebody listens there already", path);
    if (why != ECONNREFUSED)
        return error_set(err, -why, "%s: %s", path, strerror(why));
    if (unlink(path) < 0 && errno != ENOENT)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    return 0;
}

/*
 * A listening UNIX socket, its file with mode 0600, or 0666 for 'any_user'.  A socket
 * file without a listener is replaced; -EADDRINUSE if it has one, -EEXIST if it
 * is something else.
 */
static int listen_unix(const char *path, bool any_user, struct error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path)
        return error_set(err, -ENAMETOOLONG, "%s: too long for a socket (%zu bytes)",
                         path, sizeof address.sun_path - 1);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);

    int r = remove_dead_socket(&address, err);
    if (r < 0)
        return r;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(err, -errno, "socket: %s", strerror(errno));

    /* The mode must never be wider than wanted, not even for an instant. */
    mode_t before = umask(0177);
    r = bind(fd, (const struct sockaddr *)&address, sizeof address);
    int why = errno;
    umask(before);
    if (r == 0 && any_user && chmod(path, 0666) < 0) {
        r = -1;
        why = errno;
    }
    if (r == 0 && listen(fd, BACKLOG) < 0) {
        r = -1;
        why = errno;
    }
    if (r < 0) {
        close(fd);
        return error_set(err, -why, "%s: %s", path, strerror(why));
    }
    return fd;
}

static bool is_file(const char *path, const struct stat *file)
{
    struct stat there;
    return lstat(path, &there) == 0 && there.st_ino == file->st_ino &&
           there.st_dev == file->st_dev;
}

/*
 * If 'file', the socket's file as it was made, is not at its path any more: make it again, and
 * put the new socket in the place of 'fd'.  1: that was done; 0: it is there.
 */
static int renew_unix(const char *path, bool any_user, int fd, struct stat *file,
                      struct error *err)
{
    if (!path || is_file(path, file))
        return 0;
    int made = listen_unix(path, any_user, err);
    if (made < 0)
        return made;
    lstat(path, file);
    int r = dup3(made, fd, O_CLOEXEC);
    int why = errno;
    close(made);
    return r < 0 ? error_set(err, -why, "%s: %s", path, strerror(why)) : 1;
}

/* Remove the socket's file, unless another process has replaced it. */
static void remove_unix(const char *path, const struct stat *file)
{
    if (is_file(path, file))
        unlink(path);
}

/* "HOST:PORT", where an IPv6 address stands in brackets, into two texts. */
static bool split_address(const char *where, char *host, size_t host_size, char *port,
                          size_t port_size)
{
    const char *colon = strrchr(where, ':');
    if (!colon || colon == where)
        return false;
    size_t host_count = (size_t)(colon - where);
    size_t port_count = strlen(colon + 1);
    if (host_count >= host_size || port_count == 0 || port_count >= port_size)
        return false;
    if (strspn(colon + 1, "0123456789") != port_count)
        return false;
    snprintf(host, host_size, "%.*s", (int)host_count, where);
    snprintf(port, port_size, "%s", colon + 1);
    return true;
}

static int bind_tcp(const struct addrinfo *found)
{
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int why = errno;
        close(fd);
        return -why;
    }
    return fd;
}

static uint16_t read_port(int fd)
{
    struct sockaddr_storage address = { 0 };
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return 0;
    if (address.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&address)->sin_port);
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct in_addr *four = &((const struct sockaddr_in *)address)->sin_addr;
        return ntohl(four->s_addr) >> 24 == IN_LOOPBACKNET;
    }
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) ||
           (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == IN_LOOPBACKNET);
}

/*
 * A listening TCP socket on "HOST:PORT"; the host as written goes into 'host', and whether only
 * this machine can reach it into 'ret_loopback'.
 */
static int listen_tcp(const char *where, char *host, size_t host_size,
                      uint16_t *ret_port, bool *ret_loopback, struct error *err)
{
    char port[6];
    if (!split_address(where, host, host_size, port, sizeof port))
        return error_set(err, -EINVAL, "%.200s: want HOST:PORT", where);

    /* getaddrinfo() wants an IPv6 address without its brackets. */
    char bare[256];
    size_t count = strlen(host);
    bool brackets = count > 2 && host[0] == '[' && host[count - 1] == ']';
    snprintf(bare, sizeof bare, "%.*s", (int)(count - 2u * brackets), host + brackets);

    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    int r = getaddrinfo(bare, port, &hints, &found);
    if (r != 0)
        return error_set(err, -EINVAL, "%s: %s", where, gai_strerror(r));

    int fd = bind_tcp(found);
    *ret_loopback = is_loopback(found->ai_addr);
    freeaddrinfo(found);
    if (fd < 0)
        return error_set(err, fd, "%s: %s", where, strerror(-fd));
    *ret_port = read_port(fd);
    return fd;
}

/* --- accepting --------------------------------------------------------------------------- */

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
    bool is_loopback = false;
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
    int r =
        renew_unix(listeners->path, any_user, unix_socket->fd, &listeners->file, err);
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
        remove_unix(listeners->path, &listeners->file);
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
