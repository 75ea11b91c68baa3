/* http_fixture.c - an HTTP server and its clients in one thread. */
#include "support/http_fixture.h"

#include "support/cases.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

#define TIMEOUT_MS 60000 /* a test that waits so long has failed */

void http_fixture_prepare(struct http_fixture *fixture)
{
    *fixture = (struct http_fixture){ .folder = "/tmp/berth-test-XXXXXX" };
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->socket, sizeof fixture->socket, "%s/api.sock", fixture->folder);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
}

void http_fixture_open(struct http_fixture *fixture, struct http_setup setup)
{
    http_fixture_prepare(fixture);
    setup.loop = &fixture->loop;
    setup.socket = fixture->socket;
    struct error err = { "" };
    int r = http_open(&fixture->http, &setup, &err);
    if (r < 0)
        print_message("# %s\n", err.text);
    assert_int_equal(r, 0);
}

void http_fixture_close(struct http_fixture *fixture)
{
    if (fixture->http)
        http_close(fixture->http);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", fixture->folder);
    assert_int_equal(system(command), 0);
}

static void run_once(struct http_fixture *fixture)
{
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    usleep(200);
}

void http_fixture_run(struct http_fixture *fixture, int milliseconds)
{
    uint64_t end = uv_hrtime() + (uint64_t)milliseconds * 1000000;
    int turns = 0; /* at least some, also on a slow machine */
    do
        run_once(fixture);
    while (++turns < milliseconds || uv_hrtime() < end);
}

bool http_fixture_run_until(struct http_fixture *fixture, bool (*holds)(void *),
                            void *context)
{
    uint64_t end = uv_hrtime() + (uint64_t)TIMEOUT_MS * 1000000;
    while (!holds(context)) {
        if (uv_hrtime() > end)
            return false;
        run_once(fixture);
    }
    return true;
}

int http_fixture_connect(struct http_fixture *fixture)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", fixture->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

int http_fixture_connect_tcp(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

bool http_fixture_send(struct http_fixture *fixture, int fd, const char *bytes,
                       size_t count)
{
    uint64_t end = uv_hrtime() + (uint64_t)TIMEOUT_MS * 1000000;
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN)
            return false;
        bytes += sent > 0 ? sent : 0;
        count -= sent > 0 ? (size_t)sent : 0;
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
        assert_true(uv_hrtime() < end);
    }
    return true;
}

bool http_fixture_send_text(struct http_fixture *fixture, int fd, const char *text)
{
    return http_fixture_send(fixture, fd, text, strlen(text));
}

/* Read some; false at the end of the connection. */
static bool read_some(struct http_fixture *fixture, int fd, char *room, size_t size,
                      size_t *ret_count)
{
    uint64_t end = uv_hrtime() + (uint64_t)TIMEOUT_MS * 1000000;
    for (;;) {
        ssize_t got = recv(fd, room, size, MSG_DONTWAIT);
        if (got > 0) {
            *ret_count = (size_t)got;
            return true;
        }
        if (got == 0 || errno != EAGAIN)
            return false;
        run_once(fixture);
        assert_true(uv_hrtime() < end);
    }
}

/* Read one byte at a time: what follows belongs to the next reply. */
static bool read_line(struct http_fixture *fixture, int fd, struct buf *head)
{
    size_t at = head->count;
    char byte;
    size_t count;
    do {
        if (!read_some(fixture, fd, &byte, 1, &count))
            return false;
        buf_add(head, &byte, 1);
    } while (byte != '\n');
    return head->count - at > 2; /* more than CR LF */
}

static bool read_count(struct http_fixture *fixture, int fd, struct buf *body,
                       size_t want)
{
    while (want > 0) {
        char room[65536];
        size_t count;
        if (!read_some(fixture, fd, room, want < sizeof room ? want : sizeof room,
                       &count))
            return false;
        buf_add(body, room, count);
        want -= count;
    }
    return true;
}

static bool read_chunks(struct http_fixture *fixture, int fd, struct buf *body)
{
    for (;;) {
        struct buf line;
        buf_init(&line, 100);
        bool there = read_line(fixture, fd, &line);
        size_t want = there ? strtoul(line.bytes, NULL, 16) : 0;
        buf_release(&line);
        struct buf end;
        buf_init(&end, 100);
        bool whole = there && read_count(fixture, fd, body, want) &&
                     read_count(fixture, fd, &end, 2);
        buf_release(&end);
        if (!whole || want == 0)
            return whole;
    }
}

void http_fixture_read_reply(struct http_fixture *fixture, int fd,
                             struct fixture_reply *answer)
{
    *answer = (struct fixture_reply){ 0 };
    struct buf head, body;
    buf_init(&head, 1 << 16);
    buf_init(&body, 1 << 28);
    while (read_line(fixture, fd, &head))
        ;
    if (head.count == 0) {
        answer->closed = true;
    } else {
        answer->status = atoi(head.bytes + strlen("HTTP/1.1 "));
        const char *length = strcasestr(head.bytes, "\r\nContent-Length:");
        if (length)
            answer->closed = !read_count(fixture, fd, &body,
                                         strtoul(strchr(length, ':') + 1, NULL, 10));
        else if (strcasestr(head.bytes, "\r\nTransfer-Encoding: chunked"))
            answer->closed = !read_chunks(fixture, fd, &body);
        if (strcasestr(head.bytes, "\r\nConnection: close"))
            answer->closed = true;
    }
    buf_add(&head, "", 0);
    buf_add(&body, "", 0);
    answer->head = head.bytes;
    answer->body = body.bytes;
    answer->body_size = body.count;
}

void fixture_reply_free(struct fixture_reply *answer)
{
    free(answer->head);
    free(answer->body);
}

int http_fixture_request(struct http_fixture *fixture, const char *request,
                         struct buf *body)
{
    int fd = http_fixture_connect(fixture);
    assert_true(http_fixture_send_text(fixture, fd, request));
    struct fixture_reply answer;
    http_fixture_read_reply(fixture, fd, &answer);
    int status = answer.status;
    if (body) {
        buf_reset(body);
        buf_add(body, answer.body, answer.body_size);
    }
    fixture_reply_free(&answer);
    close(fd);
    return status;
}

static void read_available(struct http_fixture *fixture, int fd, struct buf *got)
{
    char room[4096];
    ssize_t count = recv(fd, room, sizeof room, MSG_DONTWAIT);
    if (count > 0)
        buf_add(got, room, (size_t)count);
    run_once(fixture);
}

void http_fixture_read(struct http_fixture *fixture, int fd, struct buf *got,
                       int milliseconds)
{
    uint64_t end = uv_hrtime() + (uint64_t)milliseconds * 1000000;
    int turns = 0;
    do
        read_available(fixture, fd, got);
    while (++turns < milliseconds || uv_hrtime() < end);
}

bool http_fixture_read_until(struct http_fixture *fixture, int fd, struct buf *got,
                             const char *text)
{
    uint64_t end = uv_hrtime() + (uint64_t)TIMEOUT_MS * 1000000;
    while (got->count == 0 || !strstr(got->bytes, text)) {
        if (uv_hrtime() > end)
            return false;
        read_available(fixture, fd, got);
    }
    return true;
}
