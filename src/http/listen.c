/* listen.c - sockets to listen on. */
#include "http/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

#define BACKLOG 512

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

int listen_unix(const char *path, bool any_user, struct error *err)
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

int listen_renew_unix(const char *path, bool any_user, int fd, struct stat *file,
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

void listen_remove_unix(const char *path, const struct stat *file)
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

int listen_tcp(const char *where, char *host, size_t host_size, uint16_t *ret_port,
               bool *ret_loopback, struct error *err)
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
