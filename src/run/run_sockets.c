/* run_sockets.c - the two sockets of a supervisor. */
#include "run/run_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

/*
 * The name is relative to the current folder, so that the length of its path does not
 * matter.
 */
static int listen_at(const char *name, struct error *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    memcpy(at.sun_path, name, strlen(name) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 64) < 0)
        return error_set(err, -errno, "%s: %s", name, strerror(errno));
    return fd;
}

int run_sockets_open(struct run_sockets *sockets, int link, struct error *err)
{
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        sockets->links[i].fd = -1;
    sockets->links[0].fd = link;
    if (link >= 0)
        fcntl(link, F_SETFD, FD_CLOEXEC); /* inherited; the job must not inherit it */
    sockets->job_listener = listen_at("job.sock", err);
    if (sockets->job_listener < 0)
        return sockets->job_listener;
    sockets->run_listener = listen_at("run.sock", err);
    return sockets->run_listener < 0 ? sockets->run_listener : 0;
}

static void close_peer(struct socket_peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    peer->lines.count = 0;
}

void run_sockets_close_job(struct run_sockets *sockets)
{
    for (uint32_t i = 0; i < sockets->rank_count; i++)
        close_peer(&sockets->ranks[i]);
    sockets->rank_count = 0;
    free(sockets->ranks);
    sockets->ranks = NULL;
    if (sockets->job_listener >= 0)
        close(sockets->job_listener);
    sockets->job_listener = -1;
}

uint32_t run_sockets_fill_fds(const struct run_sockets *sockets, struct pollfd *fds)
{
    uint32_t count = 0;
    fds[count++] = (struct pollfd){ sockets->job_listener, POLLIN, 0 };
    fds[count++] = (struct pollfd){ sockets->run_listener, POLLIN, 0 };
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        fds[count++] = (struct pollfd){ sockets->links[i].fd, POLLIN, 0 };
    for (uint32_t i = 0; i < sockets->rank_count; i++)
        fds[count++] = (struct pollfd){ sockets->ranks[i].fd, POLLIN, 0 };
    return count;
}

static int accept_connection(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static struct socket_peer *free_link(struct run_sockets *sockets)
{
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        if (sockets->links[i].fd < 0)
            return &sockets->links[i];
    close_peer(
        &sockets->links[0]); /* the newest berthd replaces the oldest connection */
    return &sockets->links[0];
}

static struct socket_peer *free_rank(struct run_sockets *sockets)
{
    if (!sockets->ranks)
        sockets->ranks = calloc(PROTOCOL_CONNECTIONS_MAX, sizeof *sockets->ranks);
    if (!sockets->ranks)
        return NULL;
    for (uint32_t i = 0; i < sockets->rank_count; i++)
        if (sockets->ranks[i].fd < 0)
            return &sockets->ranks[i];
    return sockets->rank_count < PROTOCOL_CONNECTIONS_MAX
               ? &sockets->ranks[sockets->rank_count++]
               : NULL;
}

static void accept_link(struct run_sockets *sockets)
{
    int fd = accept_connection(sockets->run_listener);
    if (fd < 0)
        return;
    struct socket_peer *peer = free_link(sockets);
    *peer = (struct socket_peer){ .fd = fd };
    sockets->run_greet(sockets->context, peer);
}

static void accept_rank(struct run_sockets *sockets)
{
    int fd = accept_connection(sockets->job_listener);
    if (fd < 0)
        return;
    struct socket_peer *peer = free_rank(sockets);
    if (!peer) {
        close(fd);
        return;
    }
    *peer = (struct socket_peer){ .fd = fd };
    sockets->job_greet(sockets->context, peer);
}

/* One read: the rest is read in the next turn of the loop. */
static void read_peer(struct socket_peer *peer, size_t line_max,
                      bool (*line)(void *context, char *text), void *context)
{
    char bytes[4096];
    ssize_t count = recv(peer->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0 ||
        !run_lines_add(&peer->lines, bytes, (size_t)count, line_max, line, context))
        close_peer(peer);
}

void run_sockets_handle_ready(struct run_sockets *sockets, const struct pollfd *fds,
                              uint32_t count)
{
    for (uint32_t i = 2 + RUN_SOCKETS_BERTHDS_MAX; i < count; i++)
        if (fds[i].revents && sockets->ranks)
            read_peer(&sockets->ranks[i - 2 - RUN_SOCKETS_BERTHDS_MAX],
                      PROTOCOL_LINE_MAX, sockets->job_line, sockets->context);
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        if (fds[2 + i].revents)
            read_peer(&sockets->links[i], RUN_LINE_MAX, sockets->run_line,
                      sockets->context);
    if (fds[0].revents && sockets->job_listener >= 0)
        accept_rank(sockets);
    if (fds[1].revents)
        accept_link(sockets);
}

void run_sockets_send(struct socket_peer *peer, const char *text, size_t length)
{
    if (peer->fd >= 0 &&
        send(peer->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)length)
        close_peer(peer);
}

void run_sockets_send_to_berthd(struct run_sockets *sockets, const char *text,
                                size_t length)
{
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        run_sockets_send(&sockets->links[i], text, length);
}

void run_sockets_send_to_ranks(struct run_sockets *sockets, const char *text,
                               size_t length)
{
    for (uint32_t i = 0; i < sockets->rank_count; i++)
        run_sockets_send(&sockets->ranks[i], text, length);
}

bool run_sockets_have_berthd(const struct run_sockets *sockets)
{
    for (uint32_t i = 0; i < RUN_SOCKETS_BERTHDS_MAX; i++)
        if (sockets->links[i].fd >= 0)
            return true;
    return false;
}
