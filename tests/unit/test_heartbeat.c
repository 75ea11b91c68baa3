/* The heartbeat of berthd: what is written is read again, and anything else is an old one. */
#include "support/cases.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "host/heartbeat.h"

static char path[] = "/tmp/berth-heartbeat.XXXXXX";
static struct heartbeat found;
static struct error err;

static int setup(void **state)
{
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    close(fd);
    return fd < 0;
}

static int teardown(void **state)
{
    rmdir(path);
    unlink(path);
    return 0;
}

static int64_t uptime_s(void)
{
    struct timespec up;
    clock_gettime(CLOCK_BOOTTIME, &up);
    return up.tv_sec;
}

static void what_is_written_is_read_again(void **state)
{
    struct stat file;
    assert_int_equal(heartbeat_write(path, time(NULL), 30, "v100 4 2\n", &err), 0);
    assert_int_equal(heartbeat_read(path, &found, &err), 0);
    assert_false(found.away);
    assert_int_equal(found.limit_s, 30);
    assert_true(found.silent_s <= 1);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0644);
}

/* As if the clock had been set back, or forth; but not more than since the machine runs. */
static void one_of_another_time_is_old(void **state)
{
    for (int64_t apart = -1000000; apart <= 1000000; apart += 2000000) {
        assert_int_equal(heartbeat_write(path, time(NULL) + apart, 5, "", &err), 0);
        assert_int_equal(heartbeat_read(path, &found, &err), 0);
        assert_int_equal(found.away, uptime_s() > 5);
        assert_true(found.silent_s <= uptime_s());
    }
}

static void without_a_limit_it_is_never_old(void **state)
{
    assert_int_equal(heartbeat_write(path, 1, 0, "", &err), 0);
    assert_int_equal(heartbeat_read(path, &found, &err), 0);
    assert_false(found.away);
}

static void what_is_no_heartbeat_counts_as_old(void **state)
{
    unlink(path);
    assert_int_equal(heartbeat_read(path, &found, &err), -ENOENT);
    assert_int_equal(found.limit_s, HEARTBEAT_LIMIT_S);
    assert_int_equal(found.away, uptime_s() > HEARTBEAT_LIMIT_S);
    assert_int_equal(mkfifo(path, 0600), 0); /* it is not waited for */
    assert_int_equal(heartbeat_read(path, &found, &err), -EINVAL);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(heartbeat_read(path, &found, &err), -EINVAL);
    assert_true(heartbeat_write(path, 1, 1, "", &err) < 0);
    assert_non_null(strstr(err.text, path));
    char fresh[sizeof path + 4];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh);
}

static void a_line_is_two_numbers(void **state)
{
    static const char *const wrong[] = {
        "",
        "\n",
        "1763600000",
        "1763600000 60",
        "1763600000 60 \n",
        " 1 2\n",
        "-1 60\n",
        "1763600000 -1\n",
        "1 86401\n",
        "1 999999999\n",
        "1\n60\n",
        "0x10 60\n",
        "1.5 60\n",
        "99999999999999999999 60\n",
    };
    int64_t time_s;
    uint32_t limit_s;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(heartbeat_parse(wrong[i], &time_s, &limit_s));
    assert_true(heartbeat_parse("1763600000 60\n", &time_s, &limit_s));
    assert_int_equal(time_s, 1763600000);
    assert_int_equal(limit_s, 60);
}

RUN_CASES(CASE(what_is_written_is_read_again), CASE(one_of_another_time_is_old),
          CASE(without_a_limit_it_is_never_old),
          CASE(what_is_no_heartbeat_counts_as_old), CASE(a_line_is_two_numbers));
