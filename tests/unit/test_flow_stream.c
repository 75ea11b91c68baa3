/* Levels to agents: the whole truth, soon after a change, and again when nothing happens. */
#include "support/cases.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "http/flow_stream.h"
#include "support/http_fixture.h"

static struct scene {
    struct http_fixture fixture;
    struct flow_stream *flows;
    uint32_t truth;
    uint32_t writes;
    bool dumb; /* nobody can say just now */
    size_t padding;
} scene;

static bool write_truth(void *context, const char *host, struct buf *buf)
{
    scene.writes++;
    if (scene.dumb)
        return false;
    buf_print(buf, "{\"host\":\"%s\",\"truth\":%u}", host, scene.truth);
    for (size_t i = 0; i < scene.padding; i++)
        buf_text(buf, " ");
    return true;
}

static void serve(void *context, const struct http_request *request,
                  struct http_reply *reply)
{
    const char *host = http_query(request, "host");
    flow_stream_reply(scene.flows, host ? host : "", reply);
}

static void open_scene(struct flow_stream_setup setup)
{
    scene = (struct scene){ .truth = 1 };
    http_fixture_open(&scene.fixture, (struct http_setup){ .handler = serve });
    setup.loop = &scene.fixture.loop;
    setup.write = write_truth;
    flow_stream_open(&scene.flows, &setup);
}

static int setup(void **state)
{
    open_scene((struct flow_stream_setup){ .clients_max = 3 });
    return 0;
}

static int teardown(void **state)
{
    http_close(scene.fixture.http);
    scene.fixture.http = NULL;
    flow_stream_close(scene.flows);
    http_fixture_close(&scene.fixture);
    return 0;
}

static int follow(const char *query)
{
    char request[200];
    snprintf(request, sizeof request, "GET /v1/flows%s HTTP/1.1\r\nHost: x\r\n\r\n",
             query);
    int fd = http_fixture_connect(&scene.fixture);
    http_fixture_send_text(&scene.fixture, fd, request);
    http_fixture_run(&scene.fixture, 20);
    return fd;
}

static const char *heard(int fd, struct buf *got)
{
    buf_reset(got);
    http_fixture_read(&scene.fixture, fd, got, 60);
    return got->bytes ? got->bytes : "";
}

static uint32_t times(const char *text, const char *what)
{
    uint32_t count = 0;
    for (; (text = strstr(text, what)); text++)
        count++;
    return count;
}

static void who_comes_is_told_how_things_stand(void **state)
{
    struct buf got;
    buf_init(&got, 1 << 20);
    int fd = follow("?host=a");
    heard(fd, &got);
    assert_non_null(strstr(got.bytes, "text/event-stream"));
    assert_non_null(
        strstr(got.bytes, "event: flows\ndata: {\"host\":\"a\",\"truth\":1}\n\n"));
    assert_int_equal(flow_stream_clients(scene.flows), 1);
    assert_string_equal(flow_stream_client_host(scene.flows, 0), "a");
    assert_string_equal(heard(fd, &got), "");
    buf_release(&got);
    close(fd);
    http_fixture_run(&scene.fixture, 1500);
    assert_int_equal(flow_stream_clients(scene.flows), 0);
}

static void changes_that_come_together_are_one_event(void **state)
{
    struct buf got;
    buf_init(&got, 1 << 20);
    int one = follow("?host=a");
    int other = follow("?host=b");
    heard(one, &got);
    heard(other, &got);
    for (scene.truth = 2; scene.truth < 500; scene.truth++)
        flow_stream_changed(scene.flows);
    assert_int_equal(times(heard(one, &got), "event: flows"), 1);
    assert_non_null(strstr(got.bytes, "\"truth\":500"));
    assert_non_null(strstr(heard(other, &got), "{\"host\":\"b\",\"truth\":500}"));
    buf_release(&got);
    close(one);
    close(other);
}

static void who_reads_slowly_gets_the_newest(void **state)
{
    struct buf got;
    buf_init(&got, 16 << 20);
    scene.padding = 900000; /* more than a socket holds */
    int fd = follow("");
    for (scene.truth = 2; scene.truth < 50; scene.truth++) {
        flow_stream_changed(scene.flows);
        http_fixture_run(&scene.fixture, 12);
    }
    flow_stream_changed(scene.flows);
    for (int i = 0; i < 20; i++)
        http_fixture_read(&scene.fixture, fd, &got, 30);
    assert_in_range(times(got.bytes, "event: flows"), 2, 10);
    assert_non_null(strstr(got.bytes, "\"truth\":50}"));
    buf_release(&got);
    close(fd);
}

static void it_is_said_again_when_nothing_happens(void **state)
{
    teardown(state);
    open_scene((struct flow_stream_setup){ .heartbeat_ms = 60 });
    struct buf got;
    buf_init(&got, 1 << 20);
    int fd = follow("");
    heard(fd, &got);
    heard(fd, &got);
    assert_true(times(heard(fd, &got), "event: flows") >= 1);
    buf_release(&got);
    close(fd);
}

static void while_nobody_can_say_nothing_is_said(void **state)
{
    struct buf got;
    buf_init(&got, 1 << 20);
    int fd = follow("");
    heard(fd, &got);
    scene.dumb = true;
    flow_stream_changed(scene.flows);
    assert_string_equal(heard(fd, &got), "");
    scene.dumb = false;
    flow_stream_changed(scene.flows);
    assert_int_equal(times(heard(fd, &got), "event: flows"), 1);
    buf_release(&got);
    close(fd);
}

static void there_is_a_limit(void **state)
{
    int fds[3];
    struct buf body;
    buf_init(&body, 1 << 20);
    for (int i = 0; i < 3; i++)
        fds[i] = follow("");
    assert_int_equal(http_fixture_request(&scene.fixture,
                                          "GET /v1/flows HTTP/1.1\r\nHost: x\r\n\r\n",
                                          &body),
                     503);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    buf_release(&body);
}

RUN_CASES(CASE(who_comes_is_told_how_things_stand),
          CASE(changes_that_come_together_are_one_event),
          CASE(who_reads_slowly_gets_the_newest),
          CASE(it_is_said_again_when_nothing_happens),
          CASE(while_nobody_can_say_nothing_is_said), CASE(there_is_a_limit));
