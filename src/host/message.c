/* message.c - messages with descriptors. */
#include "host/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(MESSAGE_FDS_MAX * sizeof(int))];
};

int message_send(int socket, const void *bytes, size_t size, const int *fds,
                 uint32_t fd_count)
{
    union control control;
    struct iovec part = { (void *)(uintptr_t)bytes, size };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    if (fd_count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size ? 0 : sent < 0 ? -errno : -EIO;
}

static uint32_t take_descriptors(struct msghdr *message, int fds[MESSAGE_FDS_MAX])
{
    uint32_t count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here && count < MESSAGE_FDS_MAX; i++)
            memcpy(&fds[count++], CMSG_DATA(header) + i * sizeof(int), sizeof(int));
    }
    return count;
}

ssize_t message_receive(int socket, void *bytes, size_t size, int *fds,
                        uint32_t *fd_count, int flags)
{
    union control control;
    struct iovec part = { bytes, size };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    int came[MESSAGE_FDS_MAX];
    ssize_t got;
    do
        got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    uint32_t count = take_descriptors(&message, came);
    if (count > *fd_count || (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC))) {
        for (uint32_t i = 0; i < count; i++)
            close(came[i]);
        *fd_count = 0;
        return -EPROTO;
    }
    memcpy(fds, came, count * sizeof(int));
    *fd_count = count;
    return got;
}
