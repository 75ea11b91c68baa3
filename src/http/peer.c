/* peer.c - the other end of a connection. */
#include "http/peer.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool peer_read(int fd, struct peer_user *ret_peer)
{
    struct ucred cred;
    socklen_t size = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
        return false;
    *ret_peer = (struct peer_user){ .uid = cred.uid, .gid = cred.gid, .pid = cred.pid };
    return true;
}

uint64_t peer_address(int fd)
{
    struct sockaddr_storage peer = { 0 };
    socklen_t size = sizeof peer;
    uint64_t address = 0;
    if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0)
        return 0;
    if (peer.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&peer)->sin_addr.s_addr;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)&peer)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(six))
        memcpy(&address, six->s6_addr + 12, 4);
    else
        memcpy(&address, six->s6_addr, sizeof address); /* one host has all the rest */
    return address;
}

/* Not by reading: over TLS a farewell comes before the end. */
bool peer_has_left(int fd)
{
    struct pollfd wait = { .fd = fd, .events = POLLRDHUP };
    return poll(&wait, 1, 0) > 0;
}

void peer_refuse(int fd, const char *status, const char *sentence, bool retry)
{
    char body[300], text[600];
    int size = snprintf(body, sizeof body, "{\"error\":\"%.200s\"%s}\n", sentence,
                        retry ? ",\"retry_after_s\":1" : "");
    int count = snprintf(text, sizeof text,
                         "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                         "Content-Length: %d\r\nConnection: close\r\n%s\r\n%s",
                         status, size, retry ? "Retry-After: 1\r\n" : "", body);
    /* An empty socket has room for it; otherwise the client gets no reason. */
    (void)!send(fd, text, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}
