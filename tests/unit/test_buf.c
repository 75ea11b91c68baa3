/* Growing bytes: put together piece by piece, up to a ceiling. */
#include "support/cases.h"

#include <string.h>

#include "base/buf.h"

#define ROOM 10000

static void pieces_become_one_text(void **state)
{
    struct buf *buf = *state;
    buf_text(buf, "gpus=");
    buf_print(buf, "%d,%s", 8, "v100");
    buf_add(buf, "\0!", 2);

    assert_int_equal(buf->count, 13);
    assert_memory_equal(buf->bytes, "gpus=8,v100\0!", 14); /* with the NUL */
    assert_false(buf->full);
}

static void a_long_print_is_not_cut(void **state)
{
    struct buf *buf = *state;
    for (int width = 250; width < 260; width++) { /* about the size of the small one */
        buf_reset(buf);
        buf_print(buf, "%*d|", width, 1);
        assert_int_equal(buf->count, width + 1);
        assert_int_equal(strlen(buf->bytes), width + 1);
    }
}

static void the_ceiling_itself_can_be_reached(void **state)
{
    struct buf *buf = *state;
    for (int i = 0; i < ROOM; i++)
        buf_add(buf, "x", 1);
    assert_int_equal(buf->count, ROOM);
    assert_false(buf->full);
}

static void past_the_ceiling_nothing_is_added_any_more(void **state)
{
    struct buf *buf = *state;
    buf_print(buf, "%*d", ROOM - 2, 1);
    buf_text(buf, "four");
    assert_true(buf->full);
    assert_int_equal(buf->count, ROOM - 2);

    buf_text(buf,
             "1"); /* would fit, but a text with a hole is worse than a short one */
    buf_print(buf, "%300d", 1);
    assert_int_equal(buf->count, ROOM - 2);
    assert_int_equal(strlen(buf->bytes), ROOM - 2);
}

static void a_reset_buffer_starts_anew(void **state)
{
    struct buf *buf = *state;
    buf_print(buf, "%*d", ROOM, 1);
    buf_text(buf, "too much");
    buf_reset(buf);
    assert_false(buf->full);
    assert_string_equal(buf->bytes, "");
    buf_text(buf, "again");
    assert_string_equal(buf->bytes, "again");
}

static void a_released_buffer_may_be_used_again(void **state)
{
    struct buf *buf = *state;
    buf_text(buf, "once");
    buf_release(buf);
    assert_null(buf->bytes);
    buf_text(buf, "twice");
    assert_string_equal(buf->bytes, "twice");
}

static int setup(void **state)
{
    static struct buf buf;
    buf_init(&buf, ROOM);
    *state = &buf;
    return 0;
}

static int teardown(void **state)
{
    buf_release(*state);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(pieces_become_one_text),
        CASE(a_long_print_is_not_cut),
        CASE(the_ceiling_itself_can_be_reached),
        CASE(past_the_ceiling_nothing_is_added_any_more),
        CASE(a_reset_buffer_starts_anew),
        CASE(a_released_buffer_may_be_used_again),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
