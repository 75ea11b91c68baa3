/* talk.c - the two sockets of a supervisor. */
#include "run/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

/* The name is relative to the folder we are in, so that its length does not matter. */
static int listen_at(const char *name, struct error *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    memcpy(at.sun_path, name, strlen(name) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 64) < 0)
        return error_set(err, -errno, "%s: %s", name, strerror(errno));
    return fd;
}

int talk_open(struct talk *talk, int link, struct error *err)
{
    for (uint32_t i = 0; i < TALK_LINKS_MAX; i++)
        talk->links[i].fd = -1;
    talk->links[0].fd = link;
    if (link >= 0)
        fcntl(link, F_SETFD,
              FD_CLOEXEC); /* it came to us open; the job is not to have it */
    talk->job_listener = listen_at("job.sock", err);
    if (talk->job_listener < 0)
        return talk->job_listener;
    talk->run_listener = listen_at("run.sock", err);
    return talk->run_listener < 0 ? talk->run_listener : 0;
}

static void shut(struct talker *talker)
{
    if (talker->fd >= 0)
        close(talker->fd);
    talker->fd = -1;
    talker->lines.count = 0;
}

void talk_close_jobs(struct talk *talk)
{
    for (uint32_t i = 0; i < talk->rank_count; i++)
        shut(&talk->ranks[i]);
    talk->rank_count = 0;
    free(talk->ranks);
    talk->ranks = NULL;
    if (talk->job_listener >= 0)
        close(talk->job_listener);
    talk->job_listener = -1;
}

uint32_t talk_fds(const struct talk *talk, struct pollfd *fds)
{
    uint32_t count = 0;
    fds[count++] = (struct pollfd){ talk->job_listener, POLLIN, 0 };
    fds[count++] = (struct pollfd){ talk->run_listener, POLLIN, 0 };
    for (uint32_t i = 0; i < TALK_LINKS_MAX; i++)
        fds[count++] = (struct pollfd){ talk->links[i].fd, POLLIN, 0 };
    for (uint32_t i = 0; i < talk->rank_count; i++)
        fds[count++] = (struct pollfd){ talk->ranks[i].fd, POLLIN, 0 };
    return count;
}

static int answer_call(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static struct talker *free_link(struct talk *talk)
{
    for (uint32_t i = 0; i < TALK_LINKS_MAX; i++)
        if (talk->links[i].fd < 0)
            return &talk->links[i];
    shut(&talk->links[0]); /* the newest berthd is the one that counts */
    return &talk->links[0];
}

static struct talker *free_rank(struct talk *talk)
{
    if (!talk->ranks)
        talk->ranks = calloc(PROTOCOL_CONNECTIONS_MAX, sizeof *talk->ranks);
    if (!talk->ranks)
        return NULL;
    for (uint32_t i = 0; i < talk->rank_count; i++)
        if (talk->ranks[i].fd < 0)
            return &talk->ranks[i];
    return talk->rank_count < PROTOCOL_CONNECTIONS_MAX
               ? &talk->ranks[talk->rank_count++]
               : NULL;
}

static void accept_link(struct talk *talk)
{
    int fd = answer_call(talk->run_listener);
    if (fd < 0)
        return;
    struct talker *talker = free_link(talk);
    *talker = (struct talker){ .fd = fd };
    talk->run_greet(talk->context, talker);
}

static void accept_rank(struct talk *talk)
{
    int fd = answer_call(talk->job_listener);
    if (fd < 0)
        return;
    struct talker *talker = free_rank(talk);
    if (!talker) {
        close(fd);
        return;
    }
    *talker = (struct talker){ .fd = fd };
    talk->job_greet(talk->context, talker);
}

/* One read: who has more to say is heard again in the next round. */
static void hear(struct talker *talker, size_t line_max,
                 bool (*line)(void *context, char *text), void *context)
{
    char bytes[4096];
    ssize_t count = recv(talker->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0 ||
        !run_lines_add(&talker->lines, bytes, (size_t)count, line_max, line, context))
        shut(talker);
}

void talk_ready(struct talk *talk, const struct pollfd *fds, uint32_t count)
{
    for (uint32_t i = 2 + TALK_LINKS_MAX; i < count; i++)
        if (fds[i].revents && talk->ranks)
            hear(&talk->ranks[i - 2 - TALK_LINKS_MAX], PROTOCOL_LINE_MAX,
                 talk->job_line, talk->context);
    for (uint32_t i = 0; i < TALK_LINKS_MAX; i++)
        if (fds[2 + i].revents)
            hear(&talk->links[i], RUN_LINE_MAX, talk->run_line, talk->context);
    if (fds[0].revents && talk->job_listener >= 0)
        accept_rank(talk);
    if (fds[1].revents)
        accept_link(talk);
}

void talk_send(struct talker *talker, const char *text, size_t length)
{
    if (talker->fd >= 0 &&
        send(talker->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)length)
        shut(talker);
}

void talk_send_links(struct talk *talk, const char *text, size_t length)
{
    for (uint32_t i = 0; i < TALK_LINKS_MAX; i++)
        talk_send(&talk->links[i], text, length);
}

void talk_send_ranks(struct talk *talk, const char *text, size_t length)
{
    for (uint32_t i = 0; i < talk->rank_count; i++)
        talk_send(&talk->ranks[i], text, length);
}

bool talk_has_link(const struct talk *talk)
{
    for (uint32_t i = 0; i < TALK_LINKS_MAX; i++)
        if (talk->links[i].fd >= 0)
            return true;
    return false;
}
