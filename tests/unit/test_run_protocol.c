/* What a supervisor and berthd send each other: lines, ends, orders. */
#include "support/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "host/launch_order.h"
#include "host/run_protocol.h"

static void an_end_is_read_as_it_was_written(void **state)
{
    struct run_end end = { .how = RUN_STOPPED,
                           .code = 143,
                           .signal = 15,
                           .steps = 1234.5678901234567,
                           .saved = 0.1,
                           .clean = true,
                           .why = "a reason\nin two lines" };
    struct run_end got;
    char line[RUN_LINE_MAX];

    size_t length = run_end_write(&end, line, sizeof line);

    assert_int_equal(line[length - 1], '\n');
    assert_true(run_end_read(&got, line));
    assert_int_equal(got.how, RUN_STOPPED);
    assert_int_equal(got.code, 143);
    assert_int_equal(got.signal, 15);
    assert_near(got.steps, end.steps, 0);
    assert_near(got.saved, end.saved, 0);
    assert_true(got.clean);
    assert_string_equal(got.why, "a reason in two lines");
}

static void what_is_no_end_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "ended",
        "ended finished",
        "ended gone 0 0 0 0 1",
        "ended finished 0 0 0 0",
        "ended finished 256 0 0 0 1",
        "ended finished -1 0 0 0 1",
        "ended finished 0 0 nan 0 1",
        "ended finished 0 0 inf 0 1",
        "ended finished 0 0 0x 0 1",
        "started 5",
    };
    struct run_end end;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(run_end_read(&end, bad[i]));
}

#define JOINED_MAX 64

static bool join(void *context, char *text)
{
    char *got = context;
    size_t used = strlen(got);
    snprintf(got + used, JOINED_MAX - used, "%s|", text);
    return strcmp(text, "enough") != 0;
}

static void lines_are_complete_however_they_arrive(void **state)
{
    static const char text[] = "one\ntwo words\n\nthree\nfo";
    for (size_t piece = 1; piece < sizeof text; piece++) {
        struct run_lines lines = { .count = 0 };
        char got[JOINED_MAX] = "";
        for (size_t at = 0; at < sizeof text - 1; at += piece) {
            size_t left = sizeof text - 1 - at;
            assert_true(run_lines_add(&lines, text + at, left < piece ? left : piece,
                                      16, join, got));
        }
        assert_string_equal(got, "one|two words||three|");
    }
}

static void long_lines_and_nonsense_are_refused(void **state)
{
    struct run_lines lines = { .count = 0 };
    char got[JOINED_MAX] = "";
    assert_true(run_lines_add(&lines, "123456789012345\n", 16, 16, join, got));
    assert_false(run_lines_add(&lines, "1234567890123456\n", 17, 16, join, got));
    lines.count = 0;
    assert_false(run_lines_add(&lines, "a\0b\n", 4, 16, join, got));
    lines.count = 0;
    assert_false(run_lines_add(&lines, "enough\nmore\n", 12, 16, join, got));
    assert_null(strstr(got, "more"));
}

static const char *const argv_of[] = { "sh", "-c", "echo a=b\nc", "", NULL };
static const char *const env_of[] = { "A=1", "B=x=y\n", "EMPTY=", NULL };

static struct launch_order an_order(void)
{
    return (struct launch_order){ .launch = { .id = UINT64_MAX,
                                              .argv = argv_of,
                                              .env = env_of,
                                              .cwd = "/a folder",
                                              .out = "/o",
                                              .ckpt_dir = "/c",
                                              .limit_ns = INT64_MAX,
                                              .signal = 10,
                                              .uid = UINT32_MAX - 1,
                                              .te = true },
                                  .attempt = 7,
                                  .gpus = "",
                                  .steps_kept = 0.1,
                                  .dscp = 40,
                                  .denied = { { 195, 1 }, { 195, 255 } },
                                  .denied_count = 2 };
}

static void an_order_is_read_as_it_was_written(void **state)
{
    struct launch_order order = an_order(), got;
    struct error err;
    struct buf buf;
    buf_init(&buf, LAUNCH_ORDER_MAX);

    launch_order_write(&order, &buf);

    assert_int_equal(launch_order_read(&got, buf.bytes, buf.count, &err), 0);
    assert_true(got.launch.id == UINT64_MAX);
    for (int i = 0; i < 4; i++)
        assert_string_equal(got.launch.argv[i], argv_of[i]);
    assert_null(got.launch.argv[4]);
    for (int i = 0; i < 3; i++)
        assert_string_equal(got.launch.env[i], env_of[i]);
    assert_null(got.launch.env[3]);
    assert_string_equal(got.launch.cwd, "/a folder");
    assert_null(got.launch.script);
    assert_true(got.launch.limit_ns == INT64_MAX);
    assert_true(got.launch.uid == UINT32_MAX - 1);
    assert_true(got.launch.te);
    assert_int_equal(got.attempt, 7);
    assert_near(got.steps_kept, 0.1, 0);
    assert_int_equal(got.dscp, 40);
    assert_int_equal(got.denied_count, 2);
    assert_int_equal(got.denied[1].minor, 255);
    launch_order_release(&got);
    buf_release(&buf);
}

static void an_order_cut_short_is_refused_wherever_it_is_cut(void **state)
{
    struct launch_order order = an_order(), got;
    struct error err;
    struct buf buf;
    buf_init(&buf, LAUNCH_ORDER_MAX);
    launch_order_write(&order, &buf);
    char *copy = malloc(buf.count + 1);
    assert_non_null(copy);
    for (size_t count = 0; count < buf.count; count++) {
        memcpy(copy, buf.bytes, count);
        copy[count] = '\0';
        assert_int_equal(launch_order_read(&got, copy, count, &err), -EINVAL);
    }
    free(copy);
    buf_release(&buf);
}

static void only_sealed_memory_is_an_order(void **state)
{
    struct launch_order order = an_order(), got;
    struct error err;
    int sealed = launch_order_seal(&order, &err);
    assert_true(sealed >= 0);
    assert_int_equal(write(sealed, "x", 1), -1);
    assert_int_equal(launch_order_unseal(&got, sealed, &err), 0);
    assert_true(got.launch.id == UINT64_MAX);
    launch_order_release(&got);
    char bytes[65536];
    ssize_t count = pread(sealed, bytes, sizeof bytes, 0);
    int open_memory = memfd_create("order", MFD_ALLOW_SEALING);
    assert_int_equal(write(open_memory, bytes, (size_t)count), count);
    assert_int_equal(launch_order_unseal(&got, open_memory, &err), -EPERM);
    assert_string_equal(err.text, "order: not sealed");
    close(open_memory);
    close(sealed);
}

static void memory_with_more_seals_is_an_order(void **state)
{
    struct launch_order order = an_order(), got;
    struct error err;
    char bytes[65536];
    int sealed = launch_order_seal(&order, &err);
    ssize_t count = pread(sealed, bytes, sizeof bytes, 0);
    int more = memfd_create("order", MFD_ALLOW_SEALING);
    assert_int_equal(write(more, bytes, (size_t)count), count);
    assert_int_equal(fcntl(more, F_ADD_SEALS,
                           F_SEAL_FUTURE_WRITE | F_SEAL_WRITE | F_SEAL_SHRINK |
                               F_SEAL_GROW | F_SEAL_SEAL),
                     0);

    assert_int_equal(launch_order_unseal(&got, more, &err), 0);

    assert_true(got.launch.id == UINT64_MAX);
    launch_order_release(&got);
    close(more);
    close(sealed);
}

static void a_bad_value_is_named(void **state)
{
    static char text[] = "id=-1\0arg=x\0end=";
    static char number[] = "attempt=4x\0end=";
    static char bare[] = "rubbish\0end=";
    static char empty[] = "id=1\0end=";
    struct launch_order got;
    struct error err;
    assert_int_equal(launch_order_read(&got, text, sizeof text, &err), -EINVAL);
    assert_string_equal(err.text, "order: id is '-1'");
    assert_int_equal(launch_order_read(&got, number, sizeof number, &err), -EINVAL);
    assert_string_equal(err.text, "order: attempt is '4x'");
    assert_int_equal(launch_order_read(&got, bare, sizeof bare, &err), -EINVAL);
    assert_int_equal(launch_order_read(&got, empty, sizeof empty, &err), -EINVAL);
    assert_string_equal(err.text, "order: no command");
}

/* Records of an order that would be complete after them. */
static int read_records(const char *records, size_t count, struct error *err)
{
    static const char rest[] = "arg=x\0cwd=/\0out=/o\0ckpt_dir=/c\0gpus=\0end=";
    char text[4096];
    struct launch_order got;
    memcpy(text, records, count);
    memcpy(text + count, rest, sizeof rest);
    int r = launch_order_read(&got, text, count + sizeof rest, err);
    if (r == 0)
        launch_order_release(&got);
    return r;
}

static void numbers_have_the_bounds_of_their_field(void **state)
{
    static const struct {
        const char *record;
        bool fits;
    } cases[] = {
        { "signal=-2147483648", true },
        { "signal=-2147483649", false },
        { "signal=2147483648", false },
        { "signal=-", false },
        { "signal=-1x", false },
        { "te=1", true },
        { "te=2", false },
        { "te=yes", false },
        { "uid=4294967295", true },
        { "uid=4294967296", false },
        { "uid=-1", false },
        { "limit_ns=-9223372036854775808", true },
        { "limit_ns=-9223372036854775809", false },
        { "id=18446744073709551615", true },
        { "id=18446744073709551616", false },
        { "dscp=63", true },
        { "dscp=64", false },
        { "dscp=-1", true },
        { "dscp=-2", false },
        { "steps_kept=1e-3", true },
        { "steps_kept=", false },
        { "steps_kept=1s", false },
        { "denied=7:8", true },
        { "denied=7", false },
        { "of_a_newer_berthd=1", true },
    };
    struct error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (read_records(cases[i].record, strlen(cases[i].record) + 1, &err) !=
            (cases[i].fits ? 0 : -EINVAL))
            fail_msg("%s", cases[i].record);
}

static void devices_and_folders_are_checked(void **state)
{
    char devices[(LAUNCH_DENIED_MAX + 1) * 11];
    struct launch_order got;
    struct error err;
    for (size_t i = 0; i <= LAUNCH_DENIED_MAX; i++)
        memcpy(devices + i * 11, "denied=7:8", 11);
    assert_int_equal(read_records(devices, LAUNCH_DENIED_MAX * 11, &err), 0);
    assert_int_equal(read_records(devices, sizeof devices, &err), -EINVAL);
    assert_string_equal(err.text, "order: bad device '7:8'");

    static char bare[] = "script=/x\0cwd=/\0out=/o\0ckpt_dir=/c\0end=";
    assert_int_equal(launch_order_read(&got, bare, sizeof bare, &err), -EINVAL);
    assert_string_equal(err.text, "order: cwd or gpus missing");
}

RUN_CASES(TEST(an_end_is_read_as_it_was_written), TEST(what_is_no_end_is_refused),
          TEST(lines_are_complete_however_they_arrive),
          TEST(long_lines_and_nonsense_are_refused),
          TEST(an_order_is_read_as_it_was_written),
          TEST(an_order_cut_short_is_refused_wherever_it_is_cut),
          TEST(only_sealed_memory_is_an_order),
          TEST(memory_with_more_seals_is_an_order), TEST(a_bad_value_is_named),
          TEST(numbers_have_the_bounds_of_their_field),
          TEST(devices_and_folders_are_checked));
