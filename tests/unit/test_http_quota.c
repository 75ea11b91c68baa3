/* HTTP under limits by user: bodies in flight, stalled clients, clients that are not known. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "http/guard.h"
#include "support/http_fixture.h"

static struct http_fixture fixture;
static struct quota_limit limit;
static uint32_t token_uid;     /* the user of TOKEN               */
static uint32_t slow_requests; /* that were handled               */
static uint32_t slow_before;   /* of these, before the quick one  */

#define BIG_BYTES 2000000 /* more than a socket holds */
#define SLOW_NS 20000000  /* more than a user has in one turn */
#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void serve(void *context, const struct http_request *request,
                  struct http_reply *reply)
{
    uint64_t until_ns = uv_hrtime() + SLOW_NS;
    bool is_slow = strcmp(request->path, "/slow") == 0;
    while (is_slow && uv_hrtime() < until_ns)
        continue;
    slow_requests += is_slow;
    if (strcmp(request->path, "/quick") == 0)
        slow_before = slow_requests;
    for (int i = 0; i < BIG_BYTES && strcmp(request->path, "/big") == 0; i++)
        buf_text(&reply->body, "x");
    buf_print(&reply->body, "%zu", request->body_size);
}

static struct quota_limit limit_of(void *context, uint32_t uid)
{
    return limit;
}

static bool is_public(void *context, const char *method, const char *target)
{
    return strcmp(target, "/public") == 0;
}

static bool identify(void *context, const char *bearer,
                     struct http_identity *ret_identity)
{
    *ret_identity = (struct http_identity){ .uid = token_uid, .gid = getegid() };
    return strcmp(bearer, TOKEN) == 0;
}

static void open_site(struct http_setup setup)
{
    limit = (struct quota_limit){ UINT32_MAX, UINT64_MAX };
    token_uid = geteuid();
    slow_requests = slow_before = 0;
    setup.handler = serve;
    setup.limit_of = limit_of;
    setup.listen = "127.0.0.1:0";
    setup.identify = identify;
    setup.is_public = is_public;
    http_fixture_open(&fixture, setup);
}

static int setup(void **state)
{
    open_site((struct http_setup){ .limits = { .stall_s = 1, .anonymous_max = 4 } });
    return 0;
}

static int teardown(void **state)
{
    http_fixture_close(&fixture);
    return 0;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

/* A request of so many bytes, of which all but the last are sent. */
static int stall_body(size_t size)
{
    static char bytes[1 << 16];
    char head[100];
    int fd = http_fixture_connect(&fixture);
    snprintf(head, sizeof head,
             "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", size);
    http_fixture_send_text(&fixture, fd, head);
    for (size_t left = size - 1; left > 0;) {
        size_t count = left < sizeof bytes ? left : sizeof bytes;
        http_fixture_send(&fixture, fd, bytes, count);
        left -= count;
    }
    http_fixture_run(&fixture, 20);
    return fd;
}

static int read_status(int fd, struct fixture_reply *answer)
{
    http_fixture_read_reply(&fixture, fd, answer);
    return answer->status;
}

static void bytes_in_flight_are_limited_and_given_back(void **state)
{
    struct fixture_reply answer;
    limit.bytes = 100000;
    int first = stall_body(60000);
    assert_int_equal(http_used(fixture.http, getuid()).bytes, 59999);
    int second = http_fixture_connect(&fixture);
    http_fixture_send_text(
        &fixture, second,
        "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n");
    assert_int_equal(read_status(second, &answer), 503);
    assert_non_null(strstr(answer.head, "Retry-After: 1"));
    assert_non_null(strstr(answer.body, "\"retry_after_s\":1"));
    assert_non_null(strstr(answer.body, "your limit is 100000"));
    fixture_reply_free(&answer);
    close(second);

    http_fixture_send_text(&fixture, first, "x"); /* the last byte */
    assert_int_equal(read_status(first, &answer), 200);
    assert_string_equal(answer.body, "60000");
    fixture_reply_free(&answer);
    close(first);
    http_fixture_run(&fixture, 20);
    assert_int_equal(http_used(fixture.http, getuid()).bytes, 0);
    assert_int_equal(http_used(fixture.http, getuid()).connections, 0);
}

static void a_body_without_a_size_stops_at_the_limit(void **state)
{
    struct fixture_reply answer;
    limit.bytes = 10;
    int fd = http_fixture_connect(&fixture);
    http_fixture_send_text(
        &fixture, fd,
        "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "8\r\n12345678\r\n8\r\n12345678\r\n0\r\n\r\n");
    assert_int_equal(read_status(fd, &answer), 503);
    assert_non_null(strstr(answer.body, "in flight"));
    fixture_reply_free(&answer);
    close(fd);
}

static bool is_empty(void *context)
{
    return http_counts(fixture.http)->connections == 0;
}

static void a_body_that_stops_moving_is_given_up(void **state)
{
    int fd = stall_body(60000);
    assert_int_equal(http_counts(fixture.http)->connections, 1);
    assert_true(http_fixture_run_until(&fixture, is_empty, NULL));
    assert_int_equal(http_used(fixture.http, getuid()).bytes, 0);
    close(fd);
}

static void a_connection_between_requests_is_kept(void **state)
{
    int fd = http_fixture_connect(&fixture);
    struct fixture_reply answer;
    http_fixture_send_text(&fixture, fd, GET("/x"));
    assert_int_equal(read_status(fd, &answer), 200);
    fixture_reply_free(&answer);
    http_fixture_run(&fixture, 3000); /* stall_s is 1 */
    http_fixture_send_text(&fixture, fd, GET("/x"));
    assert_int_equal(read_status(fd, &answer), 200);
    fixture_reply_free(&answer);
    close(fd);
}

static int ask_tcp(const char *headers)
{
    char request[600];
    struct fixture_reply answer;
    int fd = http_fixture_connect_tcp(http_address(fixture.http, false)->port);
    snprintf(request, sizeof request, "GET /x HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n",
             http_address(fixture.http, false)->port, headers);
    http_fixture_send_text(&fixture, fd, request);
    int status = read_status(fd, &answer);
    fixture_reply_free(&answer);
    close(fd);
    return status;
}

static void silent_clients_of_tcp_keep_nobody_out(void **state)
{
    int fds[20];
    for (int i = 0; i < 20; i++) {
        fds[i] = http_fixture_connect_tcp(http_address(fixture.http, false)->port);
        http_fixture_send_text(&fixture, fds[i], "POST /pub");
        http_fixture_run(&fixture, 5);
    }
    assert_int_equal(http_used(fixture.http, QUOTA_ANONYMOUS).connections, 4);
    assert_int_equal(ask_tcp("Authorization: Bearer " TOKEN "\r\n"), 200);
    assert_int_equal(ask_tcp(""), 401);
    assert_true(http_fixture_run_until(&fixture, is_empty, NULL)); /* they time out */
    for (int i = 0; i < 20; i++)
        close(fds[i]);
}

static void a_client_of_tcp_counts_for_its_user_once_it_is_known(void **state)
{
    char request[300];
    struct fixture_reply answer;
    int fd = http_fixture_connect_tcp(http_address(fixture.http, false)->port);
    http_fixture_run(&fixture, 20);
    assert_int_equal(http_used(fixture.http, QUOTA_ANONYMOUS).connections, 1);
    snprintf(request, sizeof request,
             "GET /x HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAuthorization: Bearer " TOKEN
             "\r\n\r\n",
             http_address(fixture.http, false)->port);
    http_fixture_send_text(&fixture, fd, request);
    assert_int_equal(read_status(fd, &answer), 200);
    fixture_reply_free(&answer);
    assert_int_equal(http_used(fixture.http, QUOTA_ANONYMOUS).connections, 0);
    assert_int_equal(http_used(fixture.http, geteuid()).connections, 1);
    close(fd);
}

static void what_needs_no_token_takes_small_bodies_only(void **state)
{
    char request[300];
    struct fixture_reply answer;
    int fd = http_fixture_connect_tcp(http_address(fixture.http, false)->port);
    snprintf(request, sizeof request,
             "POST /public HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Length: "
             "1000000\r\n\r\n",
             http_address(fixture.http, false)->port);
    http_fixture_send_text(&fixture, fd, request);
    assert_int_equal(read_status(fd, &answer), 413);
    fixture_reply_free(&answer);
    close(fd);
}

/* Without running the loop: what is sent by several clients arrives at once. */
static void put_text(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void replies_that_are_not_read_are_limited(void **state)
{
    struct fixture_reply answer;
    int fds[3];
    limit.bytes = 3000000;
    for (int i = 0; i < 3; i++)
        fds[i] = http_fixture_connect(&fixture);
    http_fixture_run(&fixture, 20);
    for (int i = 0; i < 3; i++) /* all have begun before the first is answered */
        put_text(fds[i], GET("/big"));
    http_fixture_run(&fixture, 100);
    uint32_t refused = 0;
    for (int i = 0; i < 3; i++) {
        if (read_status(fds[i], &answer) == 503) {
            refused++;
            assert_non_null(strstr(answer.body, "\"retry_after_s\":1"));
            assert_non_null(strstr(answer.body, "your limit is 3000000"));
        }
        fixture_reply_free(&answer);
    }
    assert_int_equal(refused, 1);
    int fd = http_fixture_connect(&fixture);
    http_fixture_send_text(&fixture, fd, GET("/big"));
    assert_int_equal(read_status(fd, &answer), 200);
    fixture_reply_free(&answer);
    close(fd);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

/* A client over TCP that is this user and keeps its connection: the status of its request. */
static int connect_as(uint32_t uid, int *ret_fd)
{
    char request[300];
    struct fixture_reply answer;
    token_uid = uid;
    *ret_fd = http_fixture_connect_tcp(http_address(fixture.http, false)->port);
    snprintf(request, sizeof request,
             "GET /x HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAuthorization: Bearer " TOKEN
             "\r\n\r\n",
             http_address(fixture.http, false)->port);
    http_fixture_send_text(&fixture, *ret_fd, request);
    int status = read_status(*ret_fd, &answer);
    fixture_reply_free(&answer);
    return status;
}

static void however_many_users_there_are_root_finds_a_connection(void **state)
{
    struct fixture_reply answer;
    int fds[64];
    uint32_t count = 0;
    teardown(state);
    open_site(
        (struct http_setup){ .any_user = true, .limits = { .connections_max = 32 } });
    for (uint32_t uid = geteuid() + 1; connect_as(uid, &fds[count]) == 200; uid++)
        assert_in_range(++count, 1, 30); /* two are kept */
    assert_int_equal(count, 30);
    int own = http_fixture_connect(&fixture);
    http_fixture_send_text(&fixture, own, GET("/x"));
    assert_int_equal(read_status(own, &answer), 200);
    fixture_reply_free(&answer);
    close(own);
    for (uint32_t i = 0; i <= count; i++)
        close(fds[i]);
}

static void a_user_whose_requests_take_long_waits_for_others(void **state)
{
    teardown(state);
    open_site((struct http_setup){ .any_user = true });
    token_uid = geteuid() + 1;
    char request[300];
    int slow[8];
    struct fixture_reply answer;
    for (int i = 0; i < 8; i++)
        slow[i] = http_fixture_connect(&fixture);
    int quick = http_fixture_connect_tcp(http_address(fixture.http, false)->port);
    http_fixture_run(&fixture, 50); /* all are accepted */
    snprintf(request, sizeof request,
             "GET /quick HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAuthorization: Bearer " TOKEN
             "\r\n\r\n",
             http_address(fixture.http, false)->port);
    for (int i = 0; i < 8; i++) {
        if (i == 4)
            put_text(quick, request);
        put_text(slow[i], GET("/slow"));
    }
    assert_int_equal(read_status(quick, &answer), 200);
    assert_in_range(slow_before, 0, 2);
    fixture_reply_free(&answer);
    close(quick);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(read_status(slow[i], &answer), 200);
        fixture_reply_free(&answer);
        close(slow[i]);
    }
    assert_int_equal(slow_requests, 8);
}

RUN_CASES(CASE(bytes_in_flight_are_limited_and_given_back),
          CASE(a_body_without_a_size_stops_at_the_limit),
          CASE(a_body_that_stops_moving_is_given_up),
          CASE(a_connection_between_requests_is_kept),
          CASE(silent_clients_of_tcp_keep_nobody_out),
          CASE(a_client_of_tcp_counts_for_its_user_once_it_is_known),
          CASE(what_needs_no_token_takes_small_bodies_only),
          CASE(replies_that_are_not_read_are_limited),
          CASE(however_many_users_there_are_root_finds_a_connection),
          CASE(a_user_whose_requests_take_long_waits_for_others));
