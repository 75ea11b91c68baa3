/*
 * transport_socket.c - HTTP/1.1 over a UNIX socket: what berthd uses of it, and no more.
 *
 * The connection is kept from request to request.  Where it has been closed meanwhile a new
 * one is made; but a request that berthd may have received is sent again only if it is a GET.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/transport.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

#define CONNECT_S 5
#define LINES_MAX 200        /* of an answer's head            */
#define BYTES_MAX (1u << 16) /* received at once, and in a line */
#define REQUEST_MAX (512u << 20)

struct socket_transport {
    struct transport transport; /* first */
    char *path;
    int fd; /* -1: none */

    /* the request under way */
    const struct transport_request *request;
    int64_t deadline_ms; /* INT64_MAX: none */
    char bytes[BYTES_MAX];
    size_t at, count; /* bytes used, of bytes received */
};

/* The status line and the headers of an answer. */
struct response_head {
    long status;
    bool chunked, sized, last; /* 'last': the connection is closed afterwards */
    uint64_t size;
};

static int set_no_http(const struct socket_transport *s, struct error *err)
{
    return error_set(err, -EIO, "%.200s: what answers there does not speak HTTP",
                     s->path);
}

static int set_closed(const struct socket_transport *s, struct error *err)
{
    return error_set(err, -EPIPE, "%.200s: berthd has gone away", s->path);
}

/* --- bytes ------------------------------------------------------------------------------ */

static void close_socket(struct socket_transport *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

static int connect_socket(struct socket_transport *s, struct error *err)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    const struct timeval patience = { .tv_sec = CONNECT_S };
    snprintf(name.sun_path, sizeof name.sun_path, "%s", s->path);
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return error_set(err, -errno, "no socket: %s", strerror(errno));
    setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int r;
    do
        r = connect(s->fd, (struct sockaddr *)&name, sizeof name);
    while (r < 0 && errno == EINTR);
    if (r == 0)
        return 0;
    bool is_busy = errno == EAGAIN; /* it listens, and has not accepted for a while */
    close_socket(s);
    if (is_busy)
        return error_set(err, -EAGAIN, "%.200s: berthd accepts no connection in %d s",
                         s->path, CONNECT_S);
    return error_set(err, -ECONNREFUSED, "no berthd answers at %.200s", s->path);
}

/* berthd sends nothing unasked: if there is something to read, it is the end. */
static bool is_open(const struct socket_transport *s)
{
    struct pollfd look = { .fd = s->fd, .events = POLLIN };
    return s->fd >= 0 && poll(&look, 1, 0) == 0;
}

/* Wait for one of 'events': those that happened, or an error. */
static int wait_for_events(struct socket_transport *s, short events, struct error *err)
{
    const struct transport_request *q = s->request;
    for (;;) {
        if (q->idle && !q->idle(q->context))
            return -ECANCELED;
        int64_t left_ms = s->deadline_ms - clock_now_ms();
        if (left_ms <= 0)
            return error_set(err, -ETIMEDOUT, "%.200s: no answer within %ld s", s->path,
                             q->answer_s);
        if (q->idle && left_ms > TRANSPORT_IDLE_MS)
            left_ms = TRANSPORT_IDLE_MS;
        struct pollfd look = { .fd = s->fd, .events = events };
        int r = poll(&look, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
        if (r > 0)
            return look.revents;
        if (r < 0 && errno != EINTR)
            return error_set(err, -errno, "%.200s: %s", s->path, strerror(errno));
    }
}

/* Read more; bytes that were not used yet are kept. */
static int read_more(struct socket_transport *s, struct error *err)
{
    memmove(s->bytes, s->bytes + s->at, s->count - s->at);
    s->count -= s->at;
    s->at = 0;
    if (s->count == sizeof s->bytes)
        return set_no_http(s, err);
    int r = wait_for_events(s, POLLIN, err);
    if (r < 0)
        return r;
    ssize_t count = recv(s->fd, s->bytes + s->count, sizeof s->bytes - s->count, 0);
    if (count <= 0)
        return set_closed(s, err);
    s->count += (size_t)count;
    return 0;
}

/* Send all of it, unless an answer comes before: then berthd does not want the rest. */
static int send_text(struct socket_transport *s, const struct buf *text,
                     struct error *err)
{
    for (size_t at = 0; at < text->count;) {
        int r = wait_for_events(s, POLLIN | POLLOUT, err);
        if (r < 0 || (r & POLLIN))
            return r < 0 ? r : 0;
        ssize_t count = send(s->fd, text->bytes + at, text->count - at,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count > 0)
            at += (size_t)count;
        else if (errno != EAGAIN && errno != EINTR)
            return 0; /* reading will report it */
    }
    return 0;
}

/* --- an answer -------------------------------------------------------------------------- */

/* The next line, without its end; or NULL and an error. */
static char *read_line(struct socket_transport *s, int *ret_error, struct error *err)
{
    size_t seen = 0;
    for (;;) {
        char *line = s->bytes + s->at;
        char *end = memchr(line + seen, '\n', s->count - s->at - seen);
        if (end) {
            s->at += (size_t)(end - line) + 1;
            if (end > line && end[-1] == '\r')
                end--;
            *end = '\0';
            return line;
        }
        seen = s->count - s->at;
        *ret_error = read_more(s, err);
        if (*ret_error < 0)
            return NULL;
    }
}

/* The value of a header line if it has this name, else NULL. */
static const char *header_value(const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    return line + length + 1 + strspn(line + length + 1, " \t");
}

static bool read_number(const char *text, int base, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, base);
    return errno == 0 && end > text && strchr("0123456789abcdefABCDEF", *text) &&
           (*end == '\0' || strchr(" \t;", *end));
}

static bool read_header(const char *line, struct response_head *head)
{
    const char *value;
    if ((value = header_value(line, "Content-Length"))) {
        head->sized = true;
        return read_number(value, 10, &head->size);
    }
    if ((value = header_value(line, "Transfer-Encoding"))) {
        head->chunked = true;
        return strcasecmp(value, "chunked") == 0;
    }
    if ((value = header_value(line, "Connection")) && strcasecmp(value, "close") == 0)
        head->last = true;
    return true;
}

static int read_head(struct socket_transport *s, struct response_head *head,
                     struct error *err)
{
    int r = 0;
    *head = (struct response_head){ 0 };
    const char *line = read_line(s, &r, err);
    if (!line)
        return r;
    if (sscanf(line, "HTTP/1.%*1[01] %3ld", &head->status) != 1 || head->status < 100)
        return set_no_http(s, err);
    for (uint32_t i = 0; i < LINES_MAX; i++) {
        line = read_line(s, &r, err);
        if (!line)
            return r;
        if (!*line)
            return 0;
        if (!read_header(line, head))
            return set_no_http(s, err);
    }
    return set_no_http(s, err);
}

/* Pass on so many bytes of the answer. */
static int pass_bytes(struct socket_transport *s, uint64_t size, long status,
                      struct error *err)
{
    const struct transport_request *q = s->request;
    while (size > 0) {
        int r = s->at == s->count ? read_more(s, err) : 0;
        if (r < 0)
            return r;
        size_t count = s->count - s->at < size ? s->count - s->at : (size_t)size;
        if (!q->take(q->context, status, s->bytes + s->at, count))
            return -ECANCELED;
        s->at += count;
        size -= count;
    }
    return 0;
}

static int read_chunks(struct socket_transport *s, long status, struct error *err)
{
    for (;;) {
        uint64_t size = 0;
        int r = 0;
        const char *line = read_line(s, &r, err);
        if (!line)
            return r;
        if (!read_number(line, 16, &size))
            return set_no_http(s, err);
        if (size > 0)
            r = pass_bytes(s, size, status, err);
        if (r < 0 || !(line = read_line(s, &r, err)))
            return r;
        if (*line) /* nothing follows a chunk, and berthd has no trailers */
            return set_no_http(s, err);
        if (size == 0)
            return 0;
    }
}

static int read_body(struct socket_transport *s, struct response_head *head,
                     struct error *err)
{
    if (head->status == 204 || head->status == 304)
        return 0;
    if (head->chunked)
        return read_chunks(s, head->status, err);
    if (head->sized)
        return pass_bytes(s, head->size, head->status, err);
    head->last = true; /* it ends with the connection */
    int r = pass_bytes(s, UINT64_MAX, head->status, err);
    return r == -EPIPE ? 0 : r;
}

/* --- a request ------------------------------------------------------------------------- */

static int write_request(const struct transport_request *q, struct buf *text,
                         struct error *err)
{
    for (const char *c = q->path; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return error_set(err, -EINVAL, "%.200s: no path of berthd's", q->path);
    buf_print(text, "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n", q->method,
              q->path);
    buf_text(text, "Content-Type: application/json\r\n");
    if (q->token)
        buf_print(text, "Authorization: Bearer %s\r\n", q->token);
    if (q->key)
        buf_print(text, "Idempotency-Key: %s\r\n", q->key);
    if (q->body)
        buf_print(text, "Content-Length: %zu\r\n", strlen(q->body));
    buf_text(text, "\r\n");
    if (q->body)
        buf_text(text, q->body);
    return text->full ? error_set(err, -E2BIG, "the request is too large") : 0;
}

static int exchange_messages(struct socket_transport *s, const struct buf *text,
                             long *ret_status, bool *ret_last, struct error *err)
{
    struct response_head head = { 0 };
    s->at = s->count = 0;
    int r = send_text(s, text, err);
    do
        r = r < 0 ? r : read_head(s, &head, err);
    while (r == 0 && head.status < 200);
    if (r < 0)
        return r;
    *ret_status = head.status;
    r = read_body(s, &head, err);
    *ret_last = head.last || s->at < s->count;
    return r;
}

static int socket_ask(struct transport *transport,
                      const struct transport_request *request, long *ret_status,
                      struct error *err)
{
    struct socket_transport *s = (struct socket_transport *)transport;
    struct buf text;
    buf_init(&text, REQUEST_MAX);
    s->request = request;
    s->deadline_ms =
        request->answer_s > 0 ? clock_now_ms() + request->answer_s * 1000 : INT64_MAX;
    *ret_status = 0;
    int r = write_request(request, &text, err);
    for (bool again = r == 0; again;) {
        bool kept = is_open(s);
        bool last = false;
        if (!kept) {
            close_socket(s);
            r = connect_socket(s, err);
        }
        if (s->fd >= 0)
            r = exchange_messages(s, &text, ret_status, &last, err);
        if (r < 0 || last)
            close_socket(s);
        again = kept && r == -EPIPE && *ret_status == 0 &&
                strcmp(request->method, "GET") == 0;
    }
    buf_release(&text);
    return r;
}

static void socket_rest(struct transport *transport)
{
    close_socket((struct socket_transport *)transport);
}

static void socket_close(struct transport *transport)
{
    struct socket_transport *s = (struct socket_transport *)transport;
    close_socket(s);
    free(s->path);
    free(s);
}

struct transport *transport_socket(const char *path)
{
    struct socket_transport *s = memory_checked(malloc(sizeof *s));
    s->transport = (struct transport){ .ask = socket_ask,
                                       .close = socket_close,
                                       .rest = socket_rest };
    s->path = memory_text(path);
    s->fd = -1;
    return &s->transport;
}
