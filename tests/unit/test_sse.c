/* Server-sent events: the same events however the bytes are cut. */
#include "support/cases.h"

#include <string.h>

#include "base/buf.h"
#include "api/sse.h"

struct received {
    struct buf text;
    uint32_t refused;
};

static void store_event(void *context, const char *name, const char *data, size_t count)
{
    struct received *received = context;
    buf_print(&received->text, "[%s|", name);
    buf_add(&received->text, data, count);
    buf_text(&received->text, "]");
}

static void count_refused(void *context, const char *why)
{
    struct received *received = context;
    assert_non_null(strstr(why, "1 MB"));
    received->refused++;
}

/* The events of these bytes when they arrive in pieces of 'piece' bytes. */
static struct received parse_in_pieces(const char *bytes, size_t count, size_t piece)
{
    struct received received = { .refused = 0 };
    struct sse_handler handler = { store_event, count_refused, &received };
    struct sse_parser parser;
    buf_init(&received.text, 64 << 20);
    buf_text(&received.text, "");
    sse_init(&parser);
    for (size_t at = 0; at < count; at += piece)
        sse_add(&parser, bytes + at, count - at < piece ? count - at : piece, &handler);
    sse_release(&parser);
    return received;
}

static void assert_events(const char *text, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        struct received received = parse_in_pieces(text, strlen(text), piece);
        assert_string_equal(received.text.bytes, expected);
        assert_int_equal(received.refused, 0);
        buf_release(&received.text);
    }
}

static void events_are_whole_however_the_bytes_are_cut(void **state)
{
    assert_events("event: flows\ndata: {\"a\":1}\n\n", "[flows|{\"a\":1}]");
    assert_events("event:flows\r\ndata:x\r\n\r\ndata: y\r\n\r\n",
                  "[flows|x][message|y]");
    assert_events("event: flows\rdata: x\r\rdata: y\r\r", "[flows|x][message|y]");
    assert_events("data: a\ndata: b\n\n", "[message|a\nb]");
    assert_events("data\n\n", "[message|]");
}

static void other_lines_are_ignored(void **state)
{
    assert_events(": a comment\n\n:\n\n", "");
    assert_events("id: 7\nretry: 10\nevent: flows\n\n", "");
    assert_events("event: flows\ndata: half of i", "");
    assert_events("\n\n\ndata: x\n\n", "[message|x]");
    assert_events("dat: x\ndatas: y\n\n", "");
    assert_events("event: a name longer than any that there is here\ndata: x\n\n",
                  "[a name longer than any that the|x]");
}

/* One event, its data in lines of 'line' bytes. */
static struct received parse_long_event(size_t lines, size_t line)
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
    struct received received = parse_in_pieces(text.bytes, text.count, 60000);
    free(bytes);
    buf_release(&text);
    return received;
}

static void a_long_event_is_refused_and_the_next_is_read(void **state)
{
    struct received received = parse_long_event(1, SSE_LINE_MAX - 6);
    assert_int_equal(received.refused, 0);
    assert_true(received.text.count > SSE_LINE_MAX);
    buf_release(&received.text);

    received = parse_long_event(1, SSE_LINE_MAX - 5);
    assert_int_equal(received.refused, 1);
    assert_string_equal(received.text.bytes, "[flows|y]");
    buf_release(&received.text);

    received = parse_long_event(20, 100000);
    assert_int_equal(received.refused, 1);
    assert_string_equal(received.text.bytes, "[flows|y]");
    buf_release(&received.text);
}

static void a_new_connection_starts_a_new_event(void **state)
{
    struct received received = { .refused = 0 };
    struct sse_handler handler = { store_event, count_refused, &received };
    struct sse_parser parser;
    buf_init(&received.text, 1000);
    buf_text(&received.text, "");
    sse_init(&parser);
    sse_add(&parser, "event: flows\ndata: ol", 21, &handler);
    sse_reset(&parser);
    sse_add(&parser, "data: new\n\n", 11, &handler);
    assert_string_equal(received.text.bytes, "[message|new]");
    sse_release(&parser);
    buf_release(&received.text);
}

RUN_CASES(TEST(events_are_whole_however_the_bytes_are_cut),
          TEST(other_lines_are_ignored),
          TEST(a_long_event_is_refused_and_the_next_is_read),
          TEST(a_new_connection_starts_a_new_event));
