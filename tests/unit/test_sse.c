/* Server-sent events: however the bytes are cut, the same events come out. */
#include "support/cases.h"

#include <string.h>

#include "base/buf.h"
#include "flowd/sse.h"

struct heard {
    struct buf text;
    uint32_t refused;
};

static void hear(void *context, const char *name, const char *data, size_t count)
{
    struct heard *heard = context;
    buf_print(&heard->text, "[%s|", name);
    buf_add(&heard->text, data, count);
    buf_text(&heard->text, "]");
}

static void hear_no(void *context, const char *why)
{
    struct heard *heard = context;
    assert_non_null(strstr(why, "1 MB"));
    heard->refused++;
}

/* What comes of these bytes when they come 'piece' at a time. */
static struct heard listen_to(const char *bytes, size_t count, size_t piece)
{
    struct heard heard = { .refused = 0 };
    struct sse_handler ears = { hear, hear_no, &heard };
    struct sse_parser events;
    buf_init(&heard.text, 64 << 20);
    buf_text(&heard.text, "");
    sse_init(&events);
    for (size_t at = 0; at < count; at += piece)
        sse_add(&events, bytes + at, count - at < piece ? count - at : piece, &ears);
    sse_release(&events);
    return heard;
}

static void expect(const char *text, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        struct heard heard = listen_to(text, strlen(text), piece);
        assert_string_equal(heard.text.bytes, expected);
        assert_int_equal(heard.refused, 0);
        buf_release(&heard.text);
    }
}

static void events_come_whole_however_they_are_cut(void **state)
{
    expect("event: flows\ndata: {\"a\":1}\n\n", "[flows|{\"a\":1}]");
    expect("event:flows\r\ndata:x\r\n\r\ndata: y\r\n\r\n", "[flows|x][message|y]");
    expect("event: flows\rdata: x\r\rdata: y\r\r", "[flows|x][message|y]");
    expect("data: a\ndata: b\n\n", "[message|a\nb]");
    expect("data\n\n", "[message|]");
}

static void what_is_no_event_is_passed_over(void **state)
{
    expect(": a comment\n\n:\n\n", "");
    expect("id: 7\nretry: 10\nevent: flows\n\n", "");
    expect("event: flows\ndata: half of i", "");
    expect("\n\n\ndata: x\n\n", "[message|x]");
    expect("dat: x\ndatas: y\n\n", "");
    expect("event: a name longer than any that there is here\ndata: x\n\n",
           "[a name longer than any that the|x]");
}

/* One event, its data in lines of 'line' bytes. */
static struct heard long_event(size_t lines, size_t line)
{
    struct buf text;
    buf_init(&text, 64 << 20);
    buf_text(&text, "event: flows\n");
    char *bytes = malloc(line);
    assert_non_null(bytes);
    memset(bytes, 'x', line);
    for (size_t i = 0; i < lines; i++) {
        buf_text(&text, "data: ");
        buf_add(&text, bytes, line);
        buf_text(&text, "\n");
    }
    buf_text(&text, "\nevent: flows\ndata: y\n\n");
    struct heard heard = listen_to(text.bytes, text.count, 60000);
    free(bytes);
    buf_release(&text);
    return heard;
}

static void what_is_too_long_is_refused_and_the_next_is_heard(void **state)
{
    struct heard heard = long_event(1, SSE_LINE_MAX - 6);
    assert_int_equal(heard.refused, 0);
    assert_true(heard.text.count > SSE_LINE_MAX);
    buf_release(&heard.text);

    heard = long_event(1, SSE_LINE_MAX - 5);
    assert_int_equal(heard.refused, 1);
    assert_string_equal(heard.text.bytes, "[flows|y]");
    buf_release(&heard.text);

    heard = long_event(20, 100000);
    assert_int_equal(heard.refused, 1);
    assert_string_equal(heard.text.bytes, "[flows|y]");
    buf_release(&heard.text);
}

static void a_new_connection_begins_afresh(void **state)
{
    struct heard heard = { .refused = 0 };
    struct sse_handler ears = { hear, hear_no, &heard };
    struct sse_parser events;
    buf_init(&heard.text, 1000);
    buf_text(&heard.text, "");
    sse_init(&events);
    sse_add(&events, "event: flows\ndata: ol", 21, &ears);
    sse_reset(&events);
    sse_add(&events, "data: new\n\n", 11, &ears);
    assert_string_equal(heard.text.bytes, "[message|new]");
    sse_release(&events);
    buf_release(&heard.text);
}

RUN_CASES(TEST(events_come_whole_however_they_are_cut),
          TEST(what_is_no_event_is_passed_over),
          TEST(what_is_too_long_is_refused_and_the_next_is_heard),
          TEST(a_new_connection_begins_afresh));
