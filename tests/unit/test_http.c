/* HTTP: access, requests, when replies are sent, and hostile clients. */
#include "support/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "http/guard.h"
#include "support/http_fixture.h"

/* ---- a small site ---- */

struct source {
    struct http_stream stream;
    const char *text; /* not yet sent */
    bool ended;
    int gone;
};

static struct site {
    struct http_fixture fixture;
    struct source source;
    int calls;
    bool late; /* replies wait for a flush */
    uint32_t uid;
    int32_t pid;
    bool anonymous;
    struct http_delayed delayed;
    int delayed_closed;
} site;

static ssize_t source_read(void *self, char *room, size_t size)
{
    struct source *source = self;
    size_t count = source->text ? strlen(source->text) : 0;
    if (count == 0)
        return source->ended ? -1 : 0;
    count = count < size ? count : size;
    memcpy(room, source->text, count);
    source->text += count;
    return (ssize_t)count;
}

static void source_closed(void *self)
{
    ((struct source *)self)->gone++;
}

static void serve(void *context, const struct http_request *request,
                  struct http_reply *reply)
{
    site.calls++;
    site.uid = request->uid;
    site.pid = request->pid;
    site.anonymous = request->is_anonymous;
    reply->after_commit = site.late;
    if (strcmp(request->path, "/stream") == 0) {
        reply->type = "text/plain";
        reply->stream = &site.source.stream;
    } else if (strcmp(request->path, "/later") == 0) {
        reply->delayed = &site.delayed;
    } else if (strcmp(request->path, "/big") == 0) {
        for (int i = 0; i < 100000; i++)
            buf_text(&reply->body, "0123456789");
    } else {
        const char *q = http_query(request, "q");
        const char *note = http_header(request, "X-Note");
        reply->type = "text/plain";
        buf_print(&reply->body, "%s %s q=%s note=%s body=%zu", request->method,
                  request->path, q ? q : "-", note ? note : "-", request->body_size);
    }
}

static void on_delayed_closed(void *self)
{
    ((struct site *)self)->delayed_closed++;
}

static void open_site(struct http_setup setup)
{
    site = (struct site){ .delayed = { .closed = on_delayed_closed, .self = &site } };
    site.source.stream = (struct http_stream){ .read = source_read,
                                               .closed = source_closed,
                                               .self = &site.source };
    setup.handler = serve;
    http_fixture_open(&site.fixture, setup);
}

static int setup(void **state)
{
    open_site((struct http_setup){ .limits = { .body_max = 1 << 20 } });
    return 0;
}

static int teardown(void **state)
{
    http_fixture_close(&site.fixture);
    return 0;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

/* ---- requests ---- */

static void a_request_reaches_the_handler_with_its_user(void **state)
{
    struct buf body;
    buf_init(&body, 1000);
    int status = http_fixture_request(
        &site.fixture,
        "PATCH /a/b%20c?q=1+2%2B3&z HTTP/1.1\r\nHost: x\r\nX-Note: hi\r\n"
        "Content-Length: 3\r\n\r\nabc",
        &body);
    assert_int_equal(status, 200);
    assert_string_equal(body.bytes, "PATCH /a/b c q=1 2+3 note=hi body=3");
    assert_int_equal(site.uid, getuid());
    assert_int_equal(site.pid, getpid());
    buf_release(&body);
}

static void one_connection_serves_many_requests(void **state)
{
    int fd = http_fixture_connect(&site.fixture);
    for (int i = 0; i < 50; i++) {
        http_fixture_send_text(&site.fixture, fd, GET("/x"));
        struct fixture_reply answer;
        http_fixture_read_reply(&site.fixture, fd, &answer);
        assert_int_equal(answer.status, 200);
        assert_false(answer.closed);
        fixture_reply_free(&answer);
    }
    assert_int_equal(http_counts(site.fixture.http)->connections, 1);
    close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, GET("/1") GET("/2") GET("/3"));
    for (int i = 1; i <= 3; i++) {
        struct fixture_reply answer;
        char want[40];
        http_fixture_read_reply(&site.fixture, fd, &answer);
        snprintf(want, sizeof want, "GET /%d q=- note=- body=0", i);
        assert_string_equal(answer.body, want);
        fixture_reply_free(&answer);
    }
    close(fd);
}

static void head_is_get_without_the_body(void **state)
{
    int fd = http_fixture_connect(&site.fixture);
    struct buf got;
    buf_init(&got, 10000);
    http_fixture_send_text(&site.fixture, fd, "HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n");
    http_fixture_read(&site.fixture, fd, &got, 50);
    assert_non_null(strstr(got.bytes, "200 OK"));
    assert_memory_equal(got.bytes + got.count - 4, "\r\n\r\n", 4);
    buf_release(&got);
    close(fd);
}

static void a_large_reply_arrives_whole(void **state)
{
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, GET("/big"));
    struct fixture_reply answer;
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_int_equal(answer.body_size, 1000000);
    assert_memory_equal(answer.body + 999990, "0123456789", 10);
    fixture_reply_free(&answer);
    close(fd);
}

/* ---- after the commit ---- */

static void a_change_is_not_acknowledged_before_it_is_durable(void **state)
{
    site.late = true;
    int fds[3];
    struct buf got;
    buf_init(&got, 10000);
    for (int i = 0; i < 3; i++) {
        fds[i] = http_fixture_connect(&site.fixture);
        http_fixture_send_text(&site.fixture, fds[i], GET("/x"));
        http_fixture_read(&site.fixture, fds[i], &got, 20);
    }
    assert_int_equal(got.count, 0);
    assert_int_equal(site.calls, 3);
    assert_true(http_has_uncommitted(site.fixture.http));

    http_flush(site.fixture.http, true);
    for (int i = 0; i < 3; i++) {
        struct fixture_reply answer;
        http_fixture_read_reply(&site.fixture, fds[i], &answer);
        assert_int_equal(answer.status, 200);
        fixture_reply_free(&answer);
        close(fds[i]);
    }
    assert_false(http_has_uncommitted(site.fixture.http));
    assert_int_equal(site.calls, 3);
    buf_release(&got);
}

static void a_change_that_cannot_be_committed_gets_503(void **state)
{
    site.late = true;
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, GET("/x"));
    http_fixture_run(&site.fixture, 20);
    http_flush(site.fixture.http, false);
    struct fixture_reply answer;
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_int_equal(answer.status, 503);
    assert_non_null(strstr(answer.body, "\"error\""));
    fixture_reply_free(&answer);

    site.late = false; /* and the connection goes on */
    http_fixture_send_text(&site.fixture, fd, GET("/y"));
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_int_equal(answer.status, 200);
    fixture_reply_free(&answer);
    close(fd);
}

static void no_handler_is_called_while_replies_go_out(void **state)
{
    site.late = true;
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, GET("/x"));
    http_fixture_run(&site.fixture, 20);
    assert_int_equal(site.calls, 1);
    assert_int_equal(write(fd, GET("/y"), strlen(GET("/y"))), strlen(GET("/y")));
    http_flush(site.fixture.http, true);
    assert_int_equal(site.calls, 1); /* though the next request is there */
    assert_false(http_has_uncommitted(site.fixture.http));

    http_fixture_run(&site.fixture, 20);
    assert_int_equal(site.calls, 2);
    http_flush(site.fixture.http, true);
    for (int i = 0; i < 2; i++) {
        struct fixture_reply answer;
        http_fixture_read_reply(&site.fixture, fd, &answer);
        assert_int_equal(answer.status, 200);
        fixture_reply_free(&answer);
    }
    close(fd);
}

static bool user_is_known;

static bool is_user_known(void *context, uint32_t uid)
{
    (void)context;
    return uid == getuid() && user_is_known;
}

static void a_request_waits_until_its_user_is_known(void **state)
{
    http_fixture_close(&site.fixture);
    user_is_known = false;
    open_site((struct http_setup){ .ready = is_user_known });
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, GET("/x"));
    http_fixture_run(&site.fixture, 30);
    http_retry(site.fixture.http); /* still not */
    http_fixture_run(&site.fixture, 30);
    assert_int_equal(http_counts(site.fixture.http)->requests, 0);
    user_is_known = true;
    http_retry(site.fixture.http);
    struct fixture_reply answer;
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_int_equal(answer.status, 200);
    fixture_reply_free(&answer);
    close(fd);
}

static void a_client_that_disconnects_before_the_flush_does_no_harm(void **state)
{
    site.late = true;
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, GET("/x"));
    http_fixture_run(&site.fixture, 20);
    close(fd);
    http_fixture_run(&site.fixture, 20);
    http_flush(site.fixture.http, true);
    http_fixture_run(&site.fixture, 20);
    assert_int_equal(http_counts(site.fixture.http)->connections, 0);
}

static void closing_with_replies_and_streams_outstanding_is_clean(void **state)
{
    int stream = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, stream, GET("/stream"));
    http_fixture_run(&site.fixture, 20);
    site.late = true;
    int held = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, held, GET("/x"));
    int half = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, half, "GET /x HT");
    http_fixture_run(&site.fixture, 20);
    assert_int_equal(http_counts(site.fixture.http)->connections, 3);
    http_close(site.fixture.http);
    site.fixture.http = NULL;
    assert_int_equal(site.source.gone, 1);
    assert_int_not_equal(access(site.fixture.socket, F_OK), 0);
    close(stream);
    close(held);
    close(half);
}

/* ---- later ---- */

static void a_delayed_reply_is_sent_when_it_is_known(void **state)
{
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, GET("/later"));
    http_fixture_run(&site.fixture, 20);
    http_flush(site.fixture.http, true); /* is none of its business */
    assert_non_null(site.delayed.connection);
    http_reply_error(http_delayed_reply(&site.delayed), 403, NULL, "not you");
    http_delayed_send(&site.delayed);
    struct fixture_reply answer;
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_int_equal(answer.status, 403);
    fixture_reply_free(&answer);
    http_fixture_send_text(&site.fixture, fd,
                           GET("/x")); /* and the connection goes on */
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_int_equal(answer.status, 200);
    fixture_reply_free(&answer);
    close(fd);
    http_fixture_run(&site.fixture, 20);
    assert_int_equal(site.delayed_closed, 0);
}

static void a_delayed_reply_is_closed_when_its_client_disconnects(void **state)
{
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, GET("/later"));
    http_fixture_run(&site.fixture, 20);
    http_close(site.fixture.http);
    site.fixture.http = NULL;
    assert_int_equal(site.delayed_closed, 1);
    assert_null(site.delayed.connection);
    close(fd);
}

/* ---- streams ---- */

static bool is_gone(void *context)
{
    return site.source.gone == 1;
}

static void a_stream_sends_when_woken_and_ends_when_told(void **state)
{
    int fd = http_fixture_connect(&site.fixture);
    struct buf got;
    buf_init(&got, 10000);
    site.source.text = "one ";
    http_fixture_send_text(&site.fixture, fd, GET("/stream"));
    assert_true(http_fixture_read_until(&site.fixture, fd, &got, "one "));
    assert_int_equal(http_counts(site.fixture.http)->streams, 1);

    site.source.text = "two ";
    http_stream_wake(&site.source.stream);
    assert_true(http_fixture_read_until(&site.fixture, fd, &got, "two "));
    assert_int_equal(site.source.gone, 0);

    site.source.ended = true;
    http_stream_wake(&site.source.stream);
    assert_true(http_fixture_read_until(&site.fixture, fd, &got, "0\r\n\r\n"));
    assert_true(http_fixture_run_until(&site.fixture, is_gone, NULL));
    assert_int_equal(http_counts(site.fixture.http)->streams, 0);
    buf_release(&got);
    close(fd);
}

static void a_client_that_leaves_a_silent_stream_is_noticed(void **state)
{
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, GET("/stream"));
    http_fixture_run(&site.fixture, 20);
    close(fd);
    assert_true(http_fixture_run_until(&site.fixture, is_gone, NULL));
    assert_int_equal(http_counts(site.fixture.http)->connections, 0);
}

/* ---- hostile clients ---- */

static void bad_addresses_never_reach_the_handler(void **state)
{
    static const char *const bad[] = {
        "/v1/jobs/../..",
        "/v1/jobs/%2e%2e",
        "/..",
        "/./x",
        "/a//b",
        "/a%2fb",
        "/a%00b",
        "/a%0ab",
        "/%",
        "/%4",
        "/%zz",
        "/a?q=%",
        "/a?q=%0",
        "/a?q=%c3%28",
        "/%ff",
        "/a?q=1&q=2",
        "/a?x=%00",
        "/%c0%ae%c0%ae/",
        "/a#b",
        "*",
        "http://elsewhere/x",
        "/%ed%a0%80",
        "/%f5%80%80%80",
        "/?1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16&17",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char request[200];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", bad[i]);
        assert_int_equal(http_fixture_request(&site.fixture, request, NULL), 400);
    }
    assert_int_equal(site.calls, 0);
}

/* 400 to 499, or a closed connection: refused in any case. */
static void assert_refused(const char *bytes, size_t count)
{
    int calls = site.calls;
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send(&site.fixture, fd, bytes, count);
    shutdown(fd, SHUT_WR);
    struct fixture_reply answer;
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_true(answer.status == 0 || (answer.status >= 400 && answer.status < 600));
    assert_int_equal(site.calls, calls);
    fixture_reply_free(&answer);
    close(fd);
}

#define REFUSED(text) assert_refused(text, sizeof text - 1)

static void malformed_requests_are_refused(void **state)
{
    REFUSED("\r\n\r\n\r\n");
    REFUSED("GET\r\n\r\n");
    REFUSED("GET /x\r\nHost: x\r\n\r\n");
    REFUSED("GET /x HTTP/9.9\r\nHost: x\r\n\r\n");
    REFUSED("GET /x HTTP/1.1\r\n\r\n"); /* no Host */
    REFUSED("\0\0\0\0\0\0\0\0\r\n\r\n");
    REFUSED("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"); /* TLS */
    REFUSED("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\nabc");
    REFUSED("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\nabc");
    REFUSED("POST /x HTTP/1.1\r\nHost: x\r\n"
            "Content-Length: 99999999999999999999999999\r\n\r\nabc");
    REFUSED(
        "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc");
    REFUSED("POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            "ffffffffffffffffffff\r\nabc");
    REFUSED("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"); /* short */
    REFUSED("GET /x HTTP/1.1\r\nHost: x"); /* never ends */
}

static void long_addresses_and_headers_are_refused(void **state)
{
    static char many[10000000];
    static const struct {
        const char *before, *after;
    } shapes[] = {
        { "GET /", " HTTP/1.1\r\nHost: x\r\n\r\n" },
        { "GET /x?q=", " HTTP/1.1\r\nHost: x\r\n\r\n" },
        { "GET /x HTTP/1.1\r\nHost: x\r\nX-Long: ", "\r\n\r\n" },
        { "GET /x HTTP/1.1\r\nHost: x\r\nX-", ": long\r\n\r\n" },
    };
    const size_t sizes[] = { 33000, 100000, sizeof many };
    memset(many, 'a', sizeof many);
    for (size_t i = 0; i < 4 * 3; i++) {
        struct buf request;
        buf_init(&request, 20000000);
        buf_text(&request, shapes[i / 3].before);
        buf_add(&request, many, sizes[i % 3]);
        buf_text(&request, shapes[i / 3].after);
        assert_refused(request.bytes, request.count);
        buf_release(&request);
    }

    struct buf request; /* longer than an address may be, and still a request */
    buf_init(&request, 20000);
    buf_text(&request, "GET /");
    buf_add(&request, many, 9000);
    buf_text(&request, " HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(http_fixture_request(&site.fixture, request.bytes, NULL), 414);
    buf_release(&request);
    assert_int_equal(http_fixture_request(&site.fixture, GET("/x"), NULL), 200);
}

static void a_body_above_the_limit_is_refused_before_it_is_sent(void **state)
{
    assert_int_equal(http_fixture_request(&site.fixture,
                                          "POST /x HTTP/1.1\r\nHost: x\r\n"
                                          "Content-Length: 1048577\r\n\r\n",
                                          NULL),
                     413);
    assert_int_equal(site.calls, 0);
}

static void a_chunked_body_is_assembled_and_limited(void **state)
{
    struct buf body;
    buf_init(&body, 1000);
    assert_int_equal(
        http_fixture_request(&site.fixture,
                             "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
                             "\r\n\r\n3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\n\r\n",
                             &body),
        200);
    assert_string_equal(body.bytes, "POST /x q=- note=- body=7");
    buf_release(&body);

    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(
        &site.fixture, fd,
        "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    static char chunk[65536];
    memset(chunk, 'a', sizeof chunk);
    for (int i = 0; i < 17; i++) {
        http_fixture_send_text(&site.fixture, fd, "10000\r\n");
        http_fixture_send(&site.fixture, fd, chunk, sizeof chunk);
        http_fixture_send_text(&site.fixture, fd, "\r\n");
    }
    http_fixture_send_text(&site.fixture, fd, "0\r\n\r\n");
    struct fixture_reply answer;
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_int_equal(answer.status, 413);
    fixture_reply_free(&answer);
    close(fd);

    /* Who never comes to an end is cut off. */
    fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(
        &site.fixture, fd,
        "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    bool open = true;
    int sent = 0;
    for (; open && sent < 1000; sent++)
        open = http_fixture_send_text(&site.fixture, fd, "10000\r\n") &&
               http_fixture_send(&site.fixture, fd, chunk, sizeof chunk) &&
               http_fixture_send_text(&site.fixture, fd, "\r\n");
    assert_false(open);
    assert_true(sent < 100);
    assert_int_equal(site.calls, 1);
    close(fd);
}

static void a_request_may_arrive_byte_by_byte(void **state)
{
    static const char request[] =
        "POST /x?q=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na\0c";
    int fd = http_fixture_connect(&site.fixture);
    for (size_t i = 0; i < sizeof request - 1; i++) {
        http_fixture_send(&site.fixture, fd, request + i, 1);
        http_fixture_run(&site.fixture, 0);
    }
    struct fixture_reply answer;
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_string_equal(answer.body, "POST /x q=1 note=- body=3");
    fixture_reply_free(&answer);
    close(fd);
}

static bool nobody_is_left(void *context)
{
    return http_counts(site.fixture.http)->connections == 0;
}

static void a_client_too_slow_to_send_a_request_is_disconnected(void **state)
{
    http_fixture_close(&site.fixture);
    open_site((struct http_setup){ .limits = { .request_s = 1 } });
    int fd = http_fixture_connect(&site.fixture);
    http_fixture_send_text(&site.fixture, fd, "GET /x HTTP/1.1\r\nHost: x\r\n");
    bool open = true;
    for (int i = 0; open && i < 400; i++) { /* never idle, never done */
        open = http_fixture_send_text(&site.fixture, fd, "X-A: b\r\n");
        http_fixture_run(&site.fixture, 20);
    }
    assert_false(open);
    assert_int_equal(site.calls, 0);
    close(fd);
    assert_true(http_fixture_run_until(&site.fixture, nobody_is_left, NULL));
}

static void a_user_has_a_limited_number_of_connections(void **state)
{
    http_fixture_close(&site.fixture);
    open_site(
        (struct http_setup){ .limits = { .connections_max = 16, .per_user_max = 8 } });
    int fds[8];
    for (int i = 0; i < 8; i++)
        fds[i] = http_fixture_connect(&site.fixture);
    http_fixture_run(&site.fixture, 20);
    assert_int_equal(http_counts(site.fixture.http)->connections, 8);

    int fd = http_fixture_connect(&site.fixture);
    struct fixture_reply answer;
    http_fixture_read_reply(&site.fixture, fd, &answer);
    assert_int_equal(answer.status, 503);
    fixture_reply_free(&answer);
    close(fd);
    assert_int_equal(http_counts(site.fixture.http)->connections_refused, 1);

    close(fds[0]); /* one leaves, one may come */
    http_fixture_run(&site.fixture, 20);
    assert_int_equal(http_fixture_request(&site.fixture, GET("/x"), NULL), 200);
    for (int i = 1; i < 8; i++)
        close(fds[i]);
}

static void all_connections_together_are_limited(void **state)
{
    http_fixture_close(&site.fixture);
    open_site(
        (struct http_setup){ .limits = { .connections_max = 4, .per_user_max = 8 } });
    int fds[6];
    for (int i = 0; i < 6; i++)
        fds[i] = http_fixture_connect(&site.fixture);
    http_fixture_run(&site.fixture, 20);
    assert_int_equal(http_counts(site.fixture.http)->connections, 4);
    assert_int_equal(http_counts(site.fixture.http)->connections_refused, 2);
    for (int i = 0; i < 6; i++)
        close(fds[i]);
}

static void random_bytes_do_no_harm(void **state)
{
    uint64_t seed = 88172645463325252u;
    for (int round = 0; round < 200; round++) {
        char bytes[512];
        for (size_t i = 0; i < sizeof bytes; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bytes[i] = (char)seed;
        }
        int fd = http_fixture_connect(&site.fixture);
        if (round % 2)
            http_fixture_send_text(&site.fixture, fd, "GET /x HTTP/1.1\r\nHost: x\r\n");
        http_fixture_send(&site.fixture, fd, bytes, sizeof bytes);
        http_fixture_send_text(&site.fixture, fd, "\r\n\r\n");
        close(fd);
    }
    assert_int_equal(http_fixture_request(&site.fixture, GET("/x"), NULL), 200);
}

/* ---- the socket's file ---- */

static void the_socket_is_ours_alone(void **state)
{
    struct stat file;
    assert_int_equal(stat(site.fixture.socket, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
}

static void only_a_socket_without_a_listener_is_replaced(void **state)
{
    struct http *second;
    struct error err;
    struct http_setup again = { .loop = &site.fixture.loop,
                                .socket = site.fixture.socket,
                                .handler = serve };
    assert_int_equal(http_open(&second, &again, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, "listens"));
    assert_int_equal(http_fixture_request(&site.fixture, GET("/x"), NULL), 200);

    /* A socket that was bound by a process that died. */
    char dead[80];
    snprintf(dead, sizeof dead, "%s/dead.sock", site.fixture.folder);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", dead);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    again.socket = dead;
    again.any_user = true;
    assert_int_equal(http_open(&second, &again, &err), 0);
    struct stat file;
    assert_int_equal(stat(dead, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0666);
    http_close(second);
    assert_int_not_equal(access(dead, F_OK), 0);
}

static void what_is_not_a_socket_is_left_alone(void **state)
{
    char path[80];
    snprintf(path, sizeof path, "%s/precious", site.fixture.folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    struct http *second;
    struct error err;
    struct http_setup again = { .loop = &site.fixture.loop,
                                .socket = path,
                                .handler = serve };
    assert_int_equal(http_open(&second, &again, &err), -EEXIST);
    assert_int_equal(access(path, F_OK), 0);

    char longer[300];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    again.socket = longer;
    assert_int_equal(http_open(&second, &again, &err), -ENAMETOOLONG);
}

/* ---- TCP ---- */

static uint16_t port_of(bool tls)
{
    const struct guard *address = http_address(site.fixture.http, tls);
    return address ? address->port : 0;
}

static int ask_tcp(const char *headers)
{
    char request[600];
    snprintf(request, sizeof request, "GET /x HTTP/1.1\r\n%s\r\n", headers);
    int fd = http_fixture_connect_tcp(port_of(false));
    assert_true(http_fixture_send_text(&site.fixture, fd, request));
    struct fixture_reply answer;
    http_fixture_read_reply(&site.fixture, fd, &answer);
    int status = answer.status;
    fixture_reply_free(&answer);
    close(fd);
    return status;
}

static int ask_with(const char *host, const char *more)
{
    char headers[400];
    snprintf(headers, sizeof headers, "Host: %s:%u\r\n%s", host, port_of(false), more);
    return ask_tcp(headers);
}

static bool identify(void *context, const char *bearer,
                     struct http_identity *ret_identity)
{
    if (strcmp(bearer, "secret") == 0)
        *ret_identity = (struct http_identity){ .uid = getuid(), .scope = 1 };
    else if (strcmp(bearer, "session") == 0)
        *ret_identity = (struct http_identity){ .uid = 4711, .scope = 2 };
    else
        return false;
    return true;
}

#define TOKEN "Authorization: Bearer secret\r\n"

static void tcp_needs_the_token_the_host_and_no_foreign_origin(void **state)
{
    http_fixture_close(&site.fixture);
    open_site((struct http_setup){ .listen = "127.0.0.1:0", .identify = identify });
    uint16_t port = port_of(false);
    assert_int_not_equal(port, 0);
    char origin[100];

    assert_int_equal(ask_with("127.0.0.1", TOKEN), 200);
    assert_int_equal(ask_with("localhost", TOKEN), 200);
    assert_int_equal(ask_with("LOCALHOST", TOKEN), 200);
    assert_int_equal(ask_with("[::1]", TOKEN), 200);
    snprintf(origin, sizeof origin, TOKEN "Origin: http://localhost:%u\r\n", port);
    assert_int_equal(ask_with("localhost", origin), 200);
    int calls = site.calls;

    assert_int_equal(ask_with("localhost", ""), 401);
    assert_int_equal(ask_with("localhost", "Authorization: Bearer secre\r\n"), 401);
    assert_int_equal(ask_with("localhost", "Authorization: Bearer secrets\r\n"), 401);
    assert_int_equal(ask_with("localhost", "Authorization: Bearer \r\n"), 401);
    assert_int_equal(ask_with("localhost", "Authorization: Basic secret\r\n"), 401);
    assert_int_equal(ask_with("evil.example", TOKEN), 421);
    assert_int_equal(ask_with("localhost.evil.example", TOKEN), 421);
    assert_int_equal(ask_tcp("Host: localhost\r\n" TOKEN), 421);
    assert_int_equal(ask_tcp("Host: localhost:1\r\n" TOKEN), 421);
    assert_int_equal(ask_with("localhost", TOKEN "Host: evil.example\r\n"), 421);
    assert_int_equal(ask_with("localhost", TOKEN "Origin: http://evil.example\r\n"),
                     403);
    assert_int_equal(ask_with("localhost", TOKEN "Origin: null\r\n"), 403);
    snprintf(origin, sizeof origin, TOKEN "Origin: https://localhost:%u\r\n", port);
    assert_int_equal(ask_with("localhost", origin), 403);
    assert_int_equal(site.calls, calls);
}

static bool is_open(void *context, const char *method, const char *target)
{
    return strcmp(method, "GET") == 0 && strcmp(target, "/x") == 0;
}

static void a_port_can_be_opened_later_and_a_session_has_its_user(void **state)
{
    http_fixture_close(&site.fixture);
    open_site((struct http_setup){ .identify = identify });
    assert_int_equal(port_of(false), 0);
    assert_int_equal(http_listen(site.fixture.http, "127.0.0.1:0", NULL), 0);
    assert_int_equal(http_listen(site.fixture.http, "127.0.0.1:0", NULL), -EALREADY);
    assert_string_equal(http_address(site.fixture.http, false)->host, "127.0.0.1");

    assert_int_equal(ask_with("localhost", "Authorization: Bearer session\r\n"), 200);
    assert_int_equal(site.uid, 4711);
    assert_int_equal(ask_with("localhost", TOKEN), 200);
    assert_int_equal(site.uid, getuid());
    assert_int_equal(ask_with("localhost", "Authorization: Bearer sessions\r\n"), 401);
    assert_int_equal(ask_with("localhost", ""), 401);
}

static void
what_is_open_is_asked_for_by_nobody_and_still_not_from_elsewhere(void **state)
{
    http_fixture_close(&site.fixture);
    open_site((struct http_setup){
        .listen = "127.0.0.1:0", .identify = identify, .is_public = is_open });
    assert_int_equal(ask_with("localhost", ""), 200);
    assert_int_equal(site.uid, HTTP_ANONYMOUS);
    assert_int_equal(ask_with("evil.example", ""), 421);
    assert_int_equal(ask_with("localhost", "Origin: http://evil.example\r\n"), 403);
}

static void an_anonymous_client_is_served_where_allowed(void **state)
{
    http_fixture_close(&site.fixture);
    open_site((struct http_setup){
        .listen = "127.0.0.1:0", .identify = identify, .allows_anonymous = is_open });
    assert_int_equal(ask_with("localhost", TOKEN), 200);
    assert_false(site.anonymous);
    assert_int_equal(site.uid, geteuid());
    assert_int_equal(ask_with("head.cluster", ""), 200);
    assert_true(site.anonymous);
    assert_int_equal(site.uid, HTTP_ANONYMOUS);
    assert_int_equal(ask_with("localhost", "Authorization: Bearer other\r\n"), 200);
    assert_true(site.anonymous);
    /* Not from a page in a browser, and not with a book. */
    assert_int_equal(ask_with("localhost", "Origin: http://evil.example\r\n"), 403);
    assert_int_equal(ask_with("localhost", "Content-Length: 20000\r\n"), 413);
    /* On the UNIX socket the kernel names the user. */
    struct buf body;
    buf_init(&body, 1000);
    assert_int_equal(http_fixture_request(&site.fixture, GET("/x"), &body), 200);
    assert_false(site.anonymous);
    buf_release(&body);
}

static void a_malformed_listen_address_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "7777",
                                       ":7777",
                                       "localhost:",
                                       "localhost:x",
                                       "localhost:123456",
                                       "nowhere.invalid:1" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct http *second;
        struct error err;
        struct http_setup again = { .loop = &site.fixture.loop,
                                    .listen = bad[i],
                                    .identify = identify,
                                    .handler = serve };
        assert_int_equal(http_open(&second, &again, &err), -EINVAL);
    }
}

RUN_CASES(CASE(a_request_reaches_the_handler_with_its_user),
          CASE(one_connection_serves_many_requests),
          CASE(pipelined_requests_are_answered_in_order),
          CASE(head_is_get_without_the_body), CASE(a_large_reply_arrives_whole),
          CASE(a_change_is_not_acknowledged_before_it_is_durable),
          CASE(a_change_that_cannot_be_committed_gets_503),
          CASE(no_handler_is_called_while_replies_go_out),
          CASE(a_request_waits_until_its_user_is_known),
          CASE(a_client_that_disconnects_before_the_flush_does_no_harm),
          CASE(closing_with_replies_and_streams_outstanding_is_clean),
          CASE(a_stream_sends_when_woken_and_ends_when_told),
          CASE(a_client_that_leaves_a_silent_stream_is_noticed),
          CASE(bad_addresses_never_reach_the_handler),
          CASE(malformed_requests_are_refused),
          CASE(long_addresses_and_headers_are_refused),
          CASE(a_body_above_the_limit_is_refused_before_it_is_sent),
          CASE(a_chunked_body_is_assembled_and_limited),
          CASE(a_request_may_arrive_byte_by_byte),
          CASE(a_client_too_slow_to_send_a_request_is_disconnected),
          CASE(a_user_has_a_limited_number_of_connections),
          CASE(all_connections_together_are_limited), CASE(random_bytes_do_no_harm),
          CASE(the_socket_is_ours_alone),
          CASE(only_a_socket_without_a_listener_is_replaced),
          CASE(what_is_not_a_socket_is_left_alone),
          CASE(tcp_needs_the_token_the_host_and_no_foreign_origin),
          CASE(a_port_can_be_opened_later_and_a_session_has_its_user),
          CASE(what_is_open_is_asked_for_by_nobody_and_still_not_from_elsewhere),
          CASE(an_anonymous_client_is_served_where_allowed),
          CASE(a_delayed_reply_is_sent_when_it_is_known),
          CASE(a_delayed_reply_is_closed_when_its_client_disconnects),
          CASE(a_malformed_listen_address_is_refused));
