/* The event stream: which client gets which events, from where, and clients that lag. */
#include "support/cases.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "http/stream.h"
#include "support/http_fixture.h"

static struct scene {
    struct http_fixture fixture;
    struct stream *stream;
    uint64_t stored; /* events 1 to this one are in the store */
    int reads;
    bool broken;    /* the store cannot be read */
    uint32_t blind; /* may not see events of 7 */
    uint32_t owner; /* of what is in the store; 0: everyone */
} scene;

static void add(uint64_t seq, uint32_t owner)
{
    char json[64];
    int count = snprintf(json, sizeof json, "{\"seq\":%" PRIu64 "}", seq);
    stream_add(scene.stream, seq, owner, json, (size_t)count);
}

static int older(void *context, uint64_t seq, uint32_t max, stream_put *put, void *sink)
{
    scene.reads++;
    if (scene.broken)
        return -5;
    int count = 0;
    for (uint64_t i = seq + 1; i <= scene.stored && count < (int)max; i++, count++) {
        char json[64];
        int size = snprintf(json, sizeof json, "{\"old\":%" PRIu64 "}", i);
        put(sink, i, scene.owner ? scene.owner : STREAM_EVERYONE, json, (size_t)size);
    }
    return count;
}

static bool may_see(void *context, uint32_t uid, uint32_t owner)
{
    return !(scene.blind && owner == 7);
}

static void serve(void *context, const struct http_request *request,
                  struct http_reply *reply)
{
    stream_reply(scene.stream, request, reply);
}

static void open_scene(struct stream_setup setup)
{
    scene = (struct scene){ .stored = setup.last_seq };
    http_fixture_open(&scene.fixture, (struct http_setup){ .handler = serve });
    setup.loop = &scene.fixture.loop;
    setup.may_see = may_see;
    stream_open(&scene.stream, &setup);
}

static int setup(void **state)
{
    open_scene(
        (struct stream_setup){ .lines_max = 8, .older = older, .last_seq = 100 });
    return 0;
}

static int teardown(void **state)
{
    http_close(scene.fixture.http);
    scene.fixture.http = NULL;
    stream_close(scene.stream);
    http_fixture_close(&scene.fixture);
    return 0;
}

static int watch(const char *query)
{
    char request[200];
    snprintf(request, sizeof request, "GET /v1/events%s HTTP/1.1\r\nHost: x\r\n\r\n",
             query);
    int fd = http_fixture_connect(&scene.fixture);
    http_fixture_send_text(&scene.fixture, fd, request);
    http_fixture_run(&scene.fixture, 20);
    return fd;
}

/* What came, without the chunks' sizes. */
static const char *heard(int fd, struct buf *got)
{
    http_fixture_read(&scene.fixture, fd, got, 60);
    return got->bytes;
}

static void a_client_gets_the_events_from_now_on(void **state)
{
    struct buf got;
    buf_init(&got, 100000);
    add(101, 5);
    int fd = watch("");
    assert_null(strstr(heard(fd, &got), "101"));
    assert_non_null(strstr(got.bytes, "text/event-stream"));
    add(102, 5);
    add(105, 5); /* numbers may leave some out */
    assert_non_null(
        strstr(heard(fd, &got),
               "id: 102\ndata: {\"seq\":102}\n\nid: 105\ndata: {\"seq\":105}\n\n"));
    assert_int_equal(scene.reads, 0);
    buf_release(&got);
    close(fd);
}

static void a_client_that_reconnects_continues_after_its_last_event(void **state)
{
    struct buf got;
    buf_init(&got, 100000);
    for (uint64_t seq = 101; seq <= 105; seq++)
        add(seq, 5);
    int fd = watch("?since=103");
    assert_null(strstr(heard(fd, &got), "id: 103"));
    assert_non_null(strstr(got.bytes, "id: 104"));
    assert_non_null(strstr(got.bytes, "id: 105"));
    close(fd);

    buf_reset(&got);
    fd = http_fixture_connect(&scene.fixture);
    http_fixture_send_text(
        &scene.fixture, fd,
        "GET /v1/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 104\r\n\r\n");
    assert_null(strstr(heard(fd, &got), "id: 104"));
    assert_non_null(strstr(got.bytes, "id: 105"));
    buf_release(&got);
    close(fd);
}

static void lines_older_than_the_ring_come_from_the_store(void **state)
{
    struct buf got;
    buf_init(&got, 100000);
    for (uint64_t seq = 101; seq <= 120; seq++) /* 113 to 120 are left in the ring */
        add(seq, 5);
    scene.stored = 112;
    int fd = watch("?since=0");
    heard(fd, &got);
    const char *at = got.bytes;
    for (uint64_t seq = 1; seq <= 120; seq++) {
        char want[80];
        snprintf(want, sizeof want, "id: %" PRIu64 "\ndata: {\"%s\":%" PRIu64 "}\n\n",
                 seq, seq <= 112 ? "old" : "seq", seq);
        at = strstr(at, want);
        assert_non_null(at);
    }
    assert_int_equal(scene.reads, 2); /* in pieces */
    buf_release(&got);
    close(fd);
}

static void events_that_are_kept_nowhere_are_skipped(void **state)
{
    struct buf got;
    buf_init(&got, 100000);
    scene.stored = 0;
    add(101, 5);
    int fd = watch("?since=50");
    assert_non_null(strstr(heard(fd, &got), "id: 101"));
    assert_null(strstr(got.bytes, "lagged"));
    buf_release(&got);
    close(fd);
}

static void a_client_that_lagged_without_a_store_is_told_and_disconnected(void **state)
{
    struct buf got;
    buf_init(&got, 100000);
    scene.broken = true;
    int fd = watch("?since=50");
    assert_non_null(strstr(heard(fd, &got), "event: lagged\ndata: {\"after\":50}\n\n"));
    assert_memory_equal(got.bytes + got.count - 5, "0\r\n\r\n", 5);
    assert_int_equal(stream_clients(scene.stream), 0);
    buf_release(&got);
    close(fd);
}

static void events_of_other_users_are_hidden(void **state)
{
    struct buf got;
    buf_init(&got, 100000);
    scene.blind = true;
    int fd = watch("");
    add(101, 7);
    add(102, 8);
    add(103, STREAM_EVERYONE);
    assert_null(strstr(heard(fd, &got), "id: 101"));
    assert_non_null(strstr(got.bytes, "id: 102"));
    assert_non_null(strstr(got.bytes, "id: 103"));
    assert_non_null(strstr(got.bytes, "event: others\ndata: {\"seq\":103}"));
    buf_release(&got);
    close(fd);
}

static void a_store_full_of_events_of_others_is_passed_over_in_pieces(void **state)
{
    teardown(state);
    open_scene((struct stream_setup){ .older = older, .last_seq = 5000 });
    scene.blind = true;
    scene.owner = 7;
    struct buf got;
    buf_init(&got, 100000);
    add(5001, 8);
    int fd = watch("?since=0");
    assert_true(http_fixture_read_until(&scene.fixture, fd, &got, "id: 5001\ndata:"));
    assert_null(strstr(got.bytes, "old"));
    /* Others were served in between. */
    assert_non_null(strstr(got.bytes, "event: others\ndata: {\"seq\":1024}"));
    assert_non_null(strstr(got.bytes, "event: others\ndata: {\"seq\":4096}"));
    buf_release(&got);
    close(fd);
}

static void a_silent_stream_has_a_heartbeat(void **state)
{
    teardown(state);
    open_scene((struct stream_setup){ .heartbeat_ms = 30 });
    struct buf got;
    buf_init(&got, 100000);
    int fd = watch("");
    assert_true(http_fixture_read_until(&scene.fixture, fd, &got, "\r\n:\n\n\r\n"));
    buf_release(&got);
    close(fd);
}

static void lines_survive_the_wrap_of_the_ring(void **state)
{
    teardown(state);
    open_scene(
        (struct stream_setup){ .lines_max = 1000, .bytes_max = STREAM_LINE_MAX });
    static char json[30001];
    struct buf got;
    buf_init(&got, 10000000);
    int fd = watch("");
    heard(fd, &got);
    buf_reset(&got);
    for (uint64_t seq = 1; seq <= 20; seq++) {
        memset(json, 'a' + (int)seq, sizeof json - 1);
        stream_add(scene.stream, seq, 5, json, sizeof json - 1);
        heard(fd, &got);
    }
    size_t counts[26] = { 0 };
    for (size_t i = 0; i < got.count; i++)
        if (got.bytes[i] > 'd' && got.bytes[i] <= 'u' && got.bytes[i] != 't')
            counts[got.bytes[i] - 'a']++;
    for (int c = 'g'; c <= 's'; c++)
        assert_true(counts[c - 'a'] >= 30000);
    buf_release(&got);
    close(fd);
}

static void a_slow_reader_is_served_in_the_end(void **state)
{
    int fd = watch("");
    for (uint64_t seq = 101; seq <= 20000;
         seq++) { /* far more than socket and ring hold */
        scene.stored = seq;
        add(seq, 5);
        if (seq % 100 == 0)
            http_fixture_run(&scene.fixture, 0);
    }
    struct buf got;
    buf_init(&got, 10000000);
    for (int i = 0; i < 100 && !(got.bytes && strstr(got.bytes, "id: 20000\n")); i++)
        heard(fd, &got);
    uint64_t want = 101;
    for (const char *at = strstr(got.bytes, "id: "); at; at = strstr(at + 1, "id: "))
        assert_int_equal(strtoull(at + 4, NULL, 10), want++);
    assert_int_equal(want, 20001);
    buf_release(&got);
    close(fd);
}

static void a_notice_comes_after_the_events_and_has_no_number(void **state)
{
    struct buf got;
    buf_init(&got, 100000);
    int fd = watch("?since=100");
    stream_notice(scene.stream, "forecast", "{\"made\":1}");
    add(101, 5);
    const char *text = heard(fd, &got);
    const char *event = strstr(text, "id: 101\n");
    const char *notice = strstr(text, "event: forecast\ndata: {\"made\":1}\n\n");
    assert_non_null(event);
    assert_non_null(notice);
    assert_null(strstr(notice + 1, "event: forecast")); /* once */
    assert_true(notice > event);
    assert_null(strstr(event + 1, "id: "));
    buf_release(&got);
    close(fd);
}

/* One that has not read for a while needs the newest alone; one that comes gets it, too. */
static void the_newest_notice_replaces_the_others(void **state)
{
    struct buf got;
    char json[64];
    buf_init(&got, 100000);
    for (int i = 1; i <= 1000; i++) {
        snprintf(json, sizeof json, "{\"made\":%d}", i);
        stream_notice(scene.stream, "forecast", json);
    }
    int fd = watch("");
    const char *text = heard(fd, &got);
    assert_non_null(strstr(text, "{\"made\":1000}"));
    assert_null(strstr(text, "{\"made\":999}"));
    stream_notice(scene.stream, "forecast", "{\"made\":1001}");
    add(101, 5);
    assert_non_null(strstr(heard(fd, &got), "{\"made\":1001}"));
    buf_release(&got);
    close(fd);
}

/* The longest that berthd writes. */
static void a_long_notice_arrives_whole(void **state)
{
    static char json[STREAM_LINE_MAX];
    struct buf got;
    buf_init(&got, 1 << 20);
    memset(json, 'x', sizeof json - 1);
    int fd = watch("");
    stream_notice(scene.stream, "forecast", json);
    heard(fd, &got);
    const char *notice = strstr(got.bytes, "event: forecast\ndata: x");
    assert_non_null(notice);
    buf_release(&got);
    close(fd);
}

static void a_malformed_event_number_is_refused(void **state)
{
    static const char *const bad[] = { "?since=x", "?since=-1", "?since=01",
                                       "?since=99999999999999999999" };
    for (size_t i = 0; i < 4; i++) {
        char request[200];
        snprintf(request, sizeof request, "GET /e%s HTTP/1.1\r\nHost: x\r\n\r\n",
                 bad[i]);
        assert_int_equal(http_fixture_request(&scene.fixture, request, NULL), 400);
    }
}

static void the_number_of_clients_is_limited(void **state)
{
    teardown(state);
    open_scene((struct stream_setup){ .clients_max = 2 });
    int a = watch(""), b = watch("");
    assert_int_equal(stream_clients(scene.stream), 2);
    assert_int_equal(http_fixture_request(&scene.fixture,
                                          "GET /e HTTP/1.1\r\nHost: x\r\n\r\n", NULL),
                     503);
    close(a);
    close(b);
}

RUN_CASES(CASE(a_client_gets_the_events_from_now_on),
          CASE(a_client_that_reconnects_continues_after_its_last_event),
          CASE(lines_older_than_the_ring_come_from_the_store),
          CASE(events_that_are_kept_nowhere_are_skipped),
          CASE(a_client_that_lagged_without_a_store_is_told_and_disconnected),
          CASE(events_of_other_users_are_hidden),
          CASE(a_store_full_of_events_of_others_is_passed_over_in_pieces),
          CASE(a_silent_stream_has_a_heartbeat),
          CASE(lines_survive_the_wrap_of_the_ring),
          CASE(a_slow_reader_is_served_in_the_end),
          CASE(a_notice_comes_after_the_events_and_has_no_number),
          CASE(the_newest_notice_replaces_the_others),
          CASE(a_long_notice_arrives_whole), CASE(a_malformed_event_number_is_refused),
          CASE(the_number_of_clients_is_limited));
