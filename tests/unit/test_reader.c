/* Lines of a file: plain or packed, whole or refused. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "workload/reader.h"

static struct error err;

static int open_text(struct reader *reader, const char *text)
{
    return reader_open_memory(reader, "trace", text, strlen(text), &err);
}

/* gzip of 'text'; how many bytes. */
static size_t pack(const char *text, size_t count, unsigned char *packed, size_t room)
{
    z_stream z = { 0 };
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)count;
    z.next_out = packed;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static void assert_line(struct reader *reader, const char *want)
{
    char *line;
    size_t bytes;
    assert_int_equal(reader_line(reader, &line, &bytes, &err), 1);
    assert_string_equal(line, want);
    assert_int_equal(bytes, strlen(want));
}

static void assert_end(struct reader *reader)
{
    char *line;
    size_t bytes;
    assert_int_equal(reader_line(reader, &line, &bytes, &err), 0);
}

static void lines_come_without_their_ends(void **state)
{
    struct reader reader;
    assert_int_equal(open_text(&reader, "\xef\xbb\xbf"
                                        "a,b\r\n\nlast"),
                     0);
    assert_line(&reader, "a,b");
    assert_line(&reader, "");
    assert_false(reader.cut);
    assert_line(&reader, "last");
    assert_true(reader.cut);
    assert_int_equal(reader.line, 3);
    assert_end(&reader);
    reader_release(&reader);
}

static void many_lines_come_through_small_chunks(void **state)
{
    enum { LINES = 200000 };
    char *text = malloc(LINES * 8);
    unsigned char *packed = malloc(LINES * 8);
    assert_non_null(text);
    assert_non_null(packed);
    size_t count = 0;
    for (uint32_t i = 0; i < LINES; i++)
        count += (size_t)snprintf(text + count, 8, "%u\n", i);
    size_t packed_count = pack(text, count, packed, LINES * 8);

    struct reader reader;
    assert_int_equal(reader_open_memory(&reader, "t", packed, packed_count, &err), 0);
    for (uint32_t i = 0; i < LINES; i++) {
        char want[8];
        snprintf(want, sizeof want, "%u", i);
        assert_line(&reader, want);
    }
    assert_end(&reader);
    reader_release(&reader);
    free(text);
    free(packed);
}

static int read_all(const void *bytes, size_t count)
{
    struct reader reader;
    char *line;
    size_t line_bytes;
    int r = reader_open_memory(&reader, "trace", bytes, count, &err);
    if (r < 0)
        return r;
    do
        r = reader_line(&reader, &line, &line_bytes, &err);
    while (r > 0);
    reader_release(&reader);
    return r;
}

static void a_packed_file_cut_short_is_refused(void **state)
{
    unsigned char packed[256];
    size_t count = pack("one\ntwo\nthree\n", 14, packed, sizeof packed);
    assert_int_equal(read_all(packed, count), 0);
    for (size_t n = 2; n < count; n++)
        assert_int_equal(read_all(packed, n), -EINVAL);
    packed[count / 2] ^= 0xff;
    assert_int_equal(read_all(packed, count), -EINVAL);
}

static void a_zstd_file_is_whole_or_refused(void **state)
{
    static const char text[] = "one\ntwo\nthree\none\ntwo\nthree\n";
    unsigned char packed[256];
    size_t count = ZSTD_compress(packed, sizeof packed, text, sizeof text - 1, 1);
    struct reader reader;
    assert_int_equal(reader_open_memory(&reader, "t", packed, count, &err), 0);
    assert_line(&reader, "one");
    assert_line(&reader, "two");
    reader_release(&reader);
    assert_int_equal(read_all(packed, count), 0);
    for (size_t n = 4; n < count; n++) {
        assert_int_equal(read_all(packed, n), -EINVAL);
        assert_string_equal(err.text,
                            "trace: the zstd stream ends before its end mark, "
                            "want the whole file");
    }
    packed[4] ^= 0xff; /* the frame's own description */
    assert_int_equal(read_all(packed, count), -EINVAL);
    assert_non_null(strstr(err.text, "trace: the zstd stream is damaged ("));
}

static void nothing_packed_is_nothing(void **state)
{
    unsigned char packed[64];
    assert_int_equal(read_all(packed, pack("", 0, packed, sizeof packed)), -EINVAL);
    assert_string_equal(err.text, "trace: the file is empty");
    assert_int_equal(read_all(packed, ZSTD_compress(packed, sizeof packed, "", 0, 1)),
                     -EINVAL);
    assert_string_equal(err.text, "trace: the file is empty");
}

/* What follows a packed file and is none is damage, not silence. */
static void something_else_behind_a_packed_file_is_refused(void **state)
{
    unsigned char packed[256];
    size_t count = pack("one\n", 4, packed, sizeof packed);
    memcpy(packed + count, "and a line", 10);
    assert_int_equal(read_all(packed, count + 10), -EINVAL);
    assert_non_null(strstr(err.text, "trace: the gzip stream is damaged ("));
}

static void a_packed_file_on_disk_is_read_as_one_in_memory(void **state)
{
    char path[] = "/tmp/berth-reader-XXXXXX";
    unsigned char packed[256];
    size_t count = pack("one\ntwo\n", 8, packed, sizeof packed);
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, packed, count), count);
    close(file);
    struct reader reader;
    assert_int_equal(reader_open(&reader, path, &err), 0);
    unlink(path);
    assert_line(&reader, "one");
    assert_line(&reader, "two");
    assert_end(&reader);
    reader_release(&reader);
}

static void two_packed_files_in_one_are_one(void **state)
{
    unsigned char packed[256];
    size_t count = pack("one\n", 4, packed, sizeof packed);
    count += pack("two\n", 4, packed + count, sizeof packed - count);
    struct reader reader;
    assert_int_equal(reader_open_memory(&reader, "t", packed, count, &err), 0);
    assert_line(&reader, "one");
    assert_line(&reader, "two");
    assert_end(&reader);
    reader_release(&reader);
}

static void empty_and_binary_files_are_refused(void **state)
{
    assert_int_equal(read_all("", 0), -EINVAL);
    assert_string_equal(err.text, "trace: the file is empty");
    assert_int_equal(read_all("a\nb\0c\n", 6), -EINVAL);
    assert_string_equal(err.text, "trace:2: a NUL byte, want text: the file is binary");
}

static void a_line_beyond_the_ceiling_is_refused(void **state)
{
    size_t count = READER_LINE_MAX + 10;
    char *text = malloc(count);
    assert_non_null(text);
    memset(text, 'x', count);
    assert_int_equal(read_all(text, count), -EINVAL);
    assert_non_null(strstr(err.text, "trace:1: the line is longer"));
    free(text);
}

static void a_file_that_is_not_there_says_so(void **state)
{
    struct reader reader;
    assert_int_equal(reader_open(&reader, "no-such-file", &err), -ENOENT);
    assert_int_equal(reader_open(&reader, ".", &err), -EISDIR);
}

RUN_CASES(TEST(lines_come_without_their_ends),
          TEST(many_lines_come_through_small_chunks),
          TEST(a_packed_file_cut_short_is_refused),
          TEST(a_zstd_file_is_whole_or_refused), TEST(nothing_packed_is_nothing),
          TEST(something_else_behind_a_packed_file_is_refused),
          TEST(a_packed_file_on_disk_is_read_as_one_in_memory),
          TEST(two_packed_files_in_one_are_one),
          TEST(empty_and_binary_files_are_refused),
          TEST(a_line_beyond_the_ceiling_is_refused),
          TEST(a_file_that_is_not_there_says_so));
