/* Growing bytes: put together piece by piece, up to a ceiling. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"

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

/* A file of its own with 'count' times "x". */
static void write_file(char *path, size_t count)
{
    snprintf(path, 64, "/tmp/berth-buf-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(write(file, "x", 1), 1);
    close(file);
}

static void a_file_is_read_whole_up_to_the_ceiling(void **state)
{
    struct buf *buf = *state;
    static const size_t sizes[] = { 0, 1, 8192, 8193, ROOM };
    struct error err;
    char path[64];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        buf_reset(buf);
        write_file(path, sizes[i]);
        assert_int_equal(buf_read(buf, path, &err), 0);
        unlink(path);
        assert_int_equal(buf->count, sizes[i]);
        assert_int_equal(strlen(buf->bytes), sizes[i]); /* "" too is a text */
    }
}

static void what_cannot_be_read_is_named(void **state)
{
    struct buf *buf = *state;
    struct error err;
    char path[64];
    assert_int_equal(buf_read(buf, "/nowhere/x", &err), -ENOENT);
    assert_string_equal(err.text, "/nowhere/x: No such file or directory");
    assert_int_equal(buf_read(buf, "/", &err), -EISDIR);
    assert_string_equal(err.text, "/: Is a directory");

    write_file(path, ROOM + 1);
    assert_int_equal(buf_read(buf, path, &err), -EINVAL);
    unlink(path);
    assert_non_null(strstr(err.text, ": more than 9 KiB"));

    struct buf large;
    buf_init(&large, 2 << 20);
    assert_int_equal(buf_read(&large, "/dev/zero", &err), -EINVAL);
    assert_string_equal(err.text, "/dev/zero: more than 2 MiB");
    buf_release(&large);
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

RUN_CASES(CASE(pieces_become_one_text), CASE(a_long_print_is_not_cut),
          CASE(the_ceiling_itself_can_be_reached),
          CASE(past_the_ceiling_nothing_is_added_any_more),
          CASE(a_reset_buffer_starts_anew), CASE(a_released_buffer_may_be_used_again),
          CASE(a_file_is_read_whole_up_to_the_ceiling),
          CASE(what_cannot_be_read_is_named));
