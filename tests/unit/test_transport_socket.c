/* HTTP over a UNIX socket: answers in every form and in pieces, and those that are none. */
#include "support/cases.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <curl/curl.h>

#include "api/transport.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/rng.h"

#define ANSWERS_MAX 8

/* A server for the test: one connection after the other, each for as many answers as it
 * has before it is to hang up. */
struct server {
    char folder[32], path[64];
    int listener;
    pthread_t thread;
    const char *answers[ANSWERS_MAX]; /* "": hang up; NULL: that was all */
    size_t piece;                     /* bytes that are sent at a time   */
    bool hasty;                       /* answer at the first byte, and hang up */
    struct buf heard;
    uint32_t connections;
};

/* Whether a request is there as a whole: its head, and as much as that says. */
static bool is_whole(const struct buf *heard, size_t from)
{
    const char *text = heard->bytes ? heard->bytes + from : "";
    const char *end = strstr(text, "\r\n\r\n");
    if (!end)
        return false;
    const char *length = strstr(text, "Content-Length: ");
    size_t body = length && length < end ? strtoull(length + 16, NULL, 10) : 0;
    return heard->count - from >= (size_t)(end + 4 - text) + body;
}

/* False: the other side has left. */
static bool hear(struct server *server, int fd)
{
    char bytes[4096];
    size_t from = server->heard.count;
    while (!is_whole(&server->heard, from)) {
        ssize_t count = recv(fd, bytes, sizeof bytes, 0);
        if (count <= 0)
            return false;
        buf_add(&server->heard, bytes, (size_t)count);
        if (server->hasty)
            return true;
    }
    return true;
}

static void say(const struct server *server, int fd, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        size_t piece = left < server->piece ? left : server->piece;
        if (send(fd, text, piece, MSG_NOSIGNAL) != (ssize_t)piece)
            return;
        text += piece;
        left -= piece;
    }
}

static void *serve(void *context)
{
    struct server *server = context;
    uint32_t next = 0;
    while (server->answers[next]) {
        int fd = accept(server->listener, NULL, NULL);
        server->connections++;
        while (server->answers[next] && hear(server, fd)) {
            const char *answer = server->answers[next++];
            if (!*answer)
                break;
            say(server, fd, answer);
            if (server->hasty)
                break;
        }
        close(fd);
    }
    return NULL;
}

static void start(struct server *server)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    snprintf(server->folder, sizeof server->folder, "/tmp/berth-test-XXXXXX");
    assert_non_null(mkdtemp(server->folder));
    snprintf(server->path, sizeof server->path, "%s/s", server->folder);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", server->path);
    buf_init(&server->heard, 64u << 20);
    server->piece = server->piece ? server->piece : SIZE_MAX;
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(server->listener, 5), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

/* When it has given all its answers. */
static void stop(struct server *server)
{
    pthread_join(server->thread, NULL);
    close(server->listener);
    unlink(server->path);
    rmdir(server->folder);
}

static bool keep(void *context, long status, const char *bytes, size_t count)
{
    buf_add(context, bytes, count);
    return true;
}

static int ask_for(struct transport *t, const char *method, const char *body,
                   struct buf *answer, long *ret_status, struct error *err)
{
    buf_reset(answer);
    return t->ask(t,
                  &(struct transport_request){ .method = method,
                                               .path = "/v1/jobs",
                                               .body = body,
                                               .answer_s = 60,
                                               .take = keep,
                                               .context = answer },
                  ret_status, err);
}

#define HEAD "HTTP/1.1 200 OK\r\n"
#define SIZED HEAD "Content-Length: 5\r\n\r\nhello"
#define CHUNKED \
    "HTTP/1.1 201 Created\r\nX: y\r\ntransfer-encoding: chunked\r\n\r\n" \
    "3\r\nhel\r\n2;more=1\r\nlo\r\n0\r\n\r\n"

/* Every form of an answer, whole and byte by byte, over one connection. */
static void reads_answers(void **state)
{
    for (size_t piece = 1; piece < 40; piece += 6) {
        struct server server = { .answers = { SIZED, CHUNKED,
                                              "HTTP/1.1 100 Continue\r\n\r\n" SIZED,
                                              "HTTP/1.1 204 No Content\r\n\r\n",
                                              HEAD "Content-Length: 0\r\n\r\n" },
                                 .piece = piece };
        static const long statuses[] = { 200, 201, 200, 204, 200 };
        static const char *const texts[] = { "hello", "hello", "hello", "", "" };
        struct buf answer;
        struct error err;
        long status;
        buf_init(&answer, 1000);
        start(&server);
        struct transport *t = transport_socket(server.path);
        for (uint32_t i = 0; i < 5; i++) {
            assert_int_equal(ask_for(t, "GET", NULL, &answer, &status, &err), 0);
            assert_int_equal(status, statuses[i]);
            assert_string_equal(answer.bytes ? answer.bytes : "", texts[i]);
        }
        t->close(t);
        assert_int_equal(server.connections, 1);
        buf_release(&answer);
        stop(&server);
        buf_release(&server.heard);
    }
}

/* The request, word for word. */
static void says_what_is_asked(void **state)
{
    struct server server = { .answers = { SIZED } };
    struct buf answer;
    struct error err;
    long status;
    buf_init(&answer, 1000);
    start(&server);
    struct transport *t = transport_socket(server.path);
    struct transport_request q = { .method = "POST",
                                   .path = "/v1/jobs?dry=1",
                                   .token = "secret",
                                   .body = "{}",
                                   .take = keep,
                                   .context = &answer };
    assert_int_equal(t->ask(t, &q, &status, &err), 0);
    t->close(t);
    stop(&server);
    assert_string_equal(server.heard.bytes,
                        "POST /v1/jobs?dry=1 HTTP/1.1\r\nHost: localhost\r\n"
                        "Accept: */*\r\nContent-Type: application/json\r\n"
                        "Authorization: Bearer secret\r\nContent-Length: 2\r\n\r\n{}");
    buf_release(&server.heard);
    buf_release(&answer);

    /* A path with a space would be another request. */
    t = transport_socket("/nowhere");
    q.path = "/v1 HTTP/1.1\r\n";
    assert_int_equal(t->ask(t, &q, &status, &err), -EINVAL);
    t->close(t);
}

/* What has no length ends with the connection, and the next question has a new one. */
static void ends_with_the_connection(void **state)
{
    struct server server = {
        .answers = { "HTTP/1.0 200 OK\r\n\r\nhello",
                     HEAD "Connection: close\r\nContent-Length: 5\r\n\r\nhello",
                     SIZED },
        .hasty = true
    };
    struct buf answer;
    struct error err;
    long status;
    buf_init(&answer, 1000);
    start(&server);
    struct transport *t = transport_socket(server.path);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(ask_for(t, "GET", NULL, &answer, &status, &err), 0);
        assert_string_equal(answer.bytes, "hello");
    }
    t->close(t);
    stop(&server);
    assert_int_equal(server.connections, 3);
    buf_release(&server.heard);
    buf_release(&answer);
}

/* Asked again is only what changes nothing, and only if it may not have been heard. */
static void asks_again(void **state)
{
    static const char *const methods[] = { "GET", "POST" };
    for (uint32_t i = 0; i < 2; i++) {
        struct server server = { .answers = { SIZED, "", SIZED } };
        struct buf answer;
        struct error err;
        long status;
        buf_init(&answer, 1000);
        start(&server);
        struct transport *t = transport_socket(server.path);
        assert_int_equal(ask_for(t, "GET", NULL, &answer, &status, &err), 0);
        int r = ask_for(t, methods[i], NULL, &answer, &status, &err);
        assert_int_equal(r, i == 0 ? 0 : -EPIPE);
        if (i > 0) {
            assert_non_null(strstr(err.text, "berthd has gone away"));
            assert_int_equal(ask_for(t, "POST", NULL, &answer, &status, &err), 0);
        }
        assert_int_equal(server.connections, 2);
        t->close(t);
        stop(&server);
        buf_release(&server.heard);
        buf_release(&answer);
    }
}

/* What is no answer is said to be none; what ends too soon is known to. */
static void refuses_what_is_no_answer(void **state)
{
    static char endless[1 << 17];
    struct buf lines;
    buf_init(&lines, 1 << 16);
    buf_text(&lines, HEAD);
    for (int i = 0; i < 500; i++)
        buf_text(&lines, "A: b\r\n");
    memset(endless, 'x', sizeof endless - 1);
    const struct {
        const char *answer;
        int code;
        long status;
    } cases[] = {
        { "SSH-2.0-OpenSSH_9.2\r\n", -EIO, 0 },
        { "HTTP/2 200\r\n\r\n", -EIO, 0 },
        { "HTTP/1.1 20\r\n\r\n", -EIO, 0 },
        { "HTTP/1.1 abc\r\n\r\n", -EIO, 0 },
        { endless, -EIO, 0 },
        { lines.bytes, -EIO, 0 },
        { HEAD "Content-Length: five\r\n\r\n", -EIO, 0 },
        { HEAD "Content-Length: -5\r\n\r\n", -EIO, 0 },
        { HEAD "Content-Length: 99999999999999999999999\r\n\r\n", -EIO, 0 },
        { HEAD "Transfer-Encoding: gzip\r\n\r\n", -EIO, 0 },
        { HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n", -EIO, 200 },
        { HEAD "Transfer-Encoding: chunked\r\n\r\n\r\n", -EIO, 200 },
        { HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", -EIO, 200 },
        { HEAD "Transfer-Encoding: chunked\r\n\r\n9\r\nhello", -EPIPE, 200 },
        { HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", -EPIPE, 200 },
        { HEAD "Content-Length: 6\r\n\r\nhello", -EPIPE, 200 },
        { HEAD "Content-Le", -EPIPE, 0 },
        { "HTTP/1.1 100 Continue\r\n\r\n", -EPIPE, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct server server = { .answers = { cases[i].answer }, .hasty = true };
        struct buf answer;
        struct error err;
        long status;
        buf_init(&answer, 1000);
        start(&server);
        struct transport *t = transport_socket(server.path);
        assert_int_equal(ask_for(t, "GET", NULL, &answer, &status, &err),
                         cases[i].code);
        assert_int_equal(status, cases[i].status);
        t->close(t);
        stop(&server);
        buf_release(&server.heard);
        buf_release(&answer);
    }
    buf_release(&lines);
}

/* No server; and an answer that comes before the request was sent. */
static void is_refused(void **state)
{
    struct server server = {
        .answers = { "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno" },
        .hasty = true
    };
    struct buf answer;
    struct error err;
    long status;
    buf_init(&answer, 1000);
    struct transport *t = transport_socket("/nowhere/api.sock");
    assert_int_equal(ask_for(t, "GET", NULL, &answer, &status, &err), -ECONNREFUSED);
    assert_string_equal(err.text, "no berthd answers at /nowhere/api.sock");
    t->close(t);

    size_t size = 8u << 20;
    char *large = malloc(size + 1);
    memset(large, 'x', size);
    large[size] = '\0';
    start(&server);
    t = transport_socket(server.path);
    assert_int_equal(ask_for(t, "POST", large, &answer, &status, &err), 0);
    assert_int_equal(status, 413);
    assert_string_equal(answer.bytes, "no");
    t->close(t);
    stop(&server);
    buf_release(&server.heard);
    free(large);
    buf_release(&answer);
}

static bool take_one(void *context, long status, const char *bytes, size_t count)
{
    *(size_t *)context += count;
    return false;
}

static bool stop_at_once(void *context)
{
    return false;
}

static void is_told_to_stop(void **state)
{
    struct server server = { .answers = { SIZED, "", "" } };
    struct error err;
    long status;
    size_t taken = 0;
    start(&server);
    struct transport *t = transport_socket(server.path);
    struct transport_request q = {
        .method = "GET", .path = "/", .take = take_one, .context = &taken
    };
    assert_int_equal(t->ask(t, &q, &status, &err), -ECANCELED);
    assert_int_equal(status, 200);
    assert_true(taken > 0);
    q.idle = stop_at_once;
    assert_int_equal(t->ask(t, &q, &status, &err), -ECANCELED);
    assert_int_equal(status, 0);
    q.idle = NULL;
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(t->ask(t, &q, &status, &err), -EPIPE);
    t->close(t);
    stop(&server);
    buf_release(&server.heard);
}

/* A server that takes the question and says nothing. */
static void does_not_wait_for_ever(void **state)
{
    struct server server = { .answers = { SIZED } };
    struct error err;
    long status;
    struct buf answer;
    buf_init(&answer, 1000);
    start(&server);
    struct transport *waiting = transport_socket(server.path);
    struct transport *second = transport_socket(server.path);
    /* The first is served; the second is connected and stands in line. */
    assert_int_equal(ask_for(waiting, "GET", NULL, &answer, &status, &err), 0);
    struct transport_request q = {
        .method = "GET", .path = "/", .answer_s = 1, .take = keep, .context = &answer
    };
    assert_int_equal(second->ask(second, &q, &status, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.text, "no answer within 1 s"));
    waiting->close(waiting);
    second->close(second);
    stop(&server);
    buf_release(&server.heard);
    buf_release(&answer);
}

/* --- libcurl as the judge --------------------------------------------------------------- */

static size_t keep_curl(char *bytes, size_t size, size_t count, void *context)
{
    buf_add(context, bytes, size * count);
    return size * count;
}

/* The same question by the library; false if it does not take the answer for one. */
static bool ask_curl(const char *path, struct buf *answer, long *ret_status)
{
    CURL *curl = curl_easy_init();
    assert_non_null(curl);
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, path);
    curl_easy_setopt(curl, CURLOPT_URL, "http://localhost/v1/jobs");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_curl);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    bool good = curl_easy_perform(curl) == CURLE_OK;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
    curl_easy_cleanup(curl);
    return good;
}

/* Some answer as a server might write it: sized, in chunks, or up to the end. */
static void draw_answer(struct rng *rng, struct buf *text)
{
    static const char *const more[] = { "Server: x\r\n", "date:\tnow\r\n",
                                        "X-Empty:\r\n", "Content-Lengthy: 9\r\n" };
    static const long statuses[] = { 200, 201, 204, 304, 400, 404, 409, 500, 503 };
    long status = statuses[rng_below(rng, 9)];
    uint32_t size = rng_below(rng, 200);
    if (rng_below(rng, 4) == 0)
        buf_text(text, "HTTP/1.1 100 Continue\r\n\r\n");
    buf_print(text, "HTTP/1.1 %ld Word and word\r\n", status);
    for (uint32_t i = rng_below(rng, 4); i > 0; i--)
        buf_text(text, more[rng_below(rng, 4)]);
    if (status == 204 || status == 304) {
        buf_text(text, "\r\n");
        return;
    }
    switch (rng_below(rng, 3)) {
    case 0:
        buf_print(text, "CONTENT-LENGTH:  %u\r\n\r\n", size);
        for (uint32_t i = 0; i < size; i++)
            buf_print(text, "%c", (int)('a' + rng_below(rng, 26)));
        break;
    case 1:
        buf_text(text, "Transfer-Encoding: chunked\r\n\r\n");
        for (uint32_t left = size; left > 0;) {
            uint32_t part = 1 + rng_below(rng, left);
            buf_print(text, rng_below(rng, 2) ? "%x\r\n" : "%X;a=b\r\n", part);
            for (uint32_t i = 0; i < part; i++)
                buf_print(text, "%c", (int)('a' + rng_below(rng, 26)));
            buf_text(text, "\r\n");
            left -= part;
        }
        buf_text(text, "0\r\n\r\n");
        break;
    default:
        buf_text(text, "Connection: close\r\n\r\n");
        for (uint32_t i = 0; i < size; i++)
            buf_print(text, "%c", "ab\r\n: 0"[rng_below(rng, 7)]);
    }
}

/* What one of them makes of an answer, from a server that then hangs up. */
static bool hear_answer(const char *text, size_t piece, bool by_curl,
                        struct buf *answer, long *ret_status)
{
    struct server server = { .answers = { text }, .piece = piece };
    buf_reset(answer);
    start(&server);
    bool good;
    if (by_curl) {
        good = ask_curl(server.path, answer, ret_status);
    } else {
        struct error err;
        struct transport *t = transport_socket(server.path);
        good = ask_for(t, "GET", NULL, answer, ret_status, &err) == 0;
        t->close(t);
    }
    stop(&server);
    buf_release(&server.heard);
    return good;
}

static void hears_what_libcurl_hears(void **state)
{
    struct rng rng;
    rng_init(&rng, 7, "answers");
    for (uint32_t i = 0; i < 300; i++) {
        struct buf text, ours, theirs;
        long status = 0, their_status = 0;
        buf_init(&text, 10000);
        buf_init(&ours, 10000);
        buf_init(&theirs, 10000);
        draw_answer(&rng, &text);
        bool breaks_off = rng_below(&rng, 5) == 0 && text.count > 20;
        if (breaks_off)
            text.bytes[text.count -= 1 + rng_below(&rng, (uint32_t)text.count - 20)] =
                '\0';
        size_t piece = 1 + rng_below(&rng, (uint32_t)text.count);
        bool good = hear_answer(text.bytes, piece, false, &ours, &status);
        bool theirs_good = hear_answer(text.bytes, piece, true, &theirs, &their_status);
        /* The library is content with half a head; we are not. */
        if (good ? !theirs_good || status != their_status : !breaks_off)
            fail_msg("answer %u: %d %ld, libcurl: %d %ld\n%s", i, good, status,
                     theirs_good, their_status, text.bytes);
        if (good) {
            assert_int_equal(ours.count, theirs.count);
            assert_memory_equal(ours.bytes ? ours.bytes : "",
                                theirs.bytes ? theirs.bytes : "", ours.count);
        }
        buf_release(&text);
        buf_release(&ours);
        buf_release(&theirs);
    }
}

RUN_CASES(TEST(reads_answers), TEST(says_what_is_asked), TEST(ends_with_the_connection),
          TEST(asks_again), TEST(refuses_what_is_no_answer), TEST(is_refused),
          TEST(is_told_to_stop), TEST(does_not_wait_for_ever),
          TEST(hears_what_libcurl_hears));
