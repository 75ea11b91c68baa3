/* A job's output as a stream: from where, until when, and which files may be read. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plain_file.h"
#include "http/tail.h"
#include "support/cases.h"
#include "support/http_fixture.h"

static struct scene {
    struct http_fixture fixture;
    struct tails *tails;
    char path[80];
    struct tail_setup asked;
    bool ended;
    int result;
} scene;

static bool job_ended(void *context, uint64_t job)
{
    return scene.ended;
}

static void serve(void *context, const struct http_request *request,
                  struct http_reply *reply)
{
    struct error err;
    scene.asked.path = scene.path;
    scene.result = tail_reply(scene.tails, &scene.asked, reply, &err);
    if (scene.result < 0)
        http_reply_error(reply, 404, NULL, err.text);
}

static int setup(void **state)
{
    scene = (struct scene){ .asked = { .uid = getuid(), .job = 7 } };
    http_fixture_open(&scene.fixture, (struct http_setup){ .handler = serve });
    tails_open(&scene.tails, &scene.fixture.loop, job_ended, NULL);
    snprintf(scene.path, sizeof scene.path, "%s/7.out", scene.fixture.folder);
    return 0;
}

static int teardown(void **state)
{
    http_close(scene.fixture.http);
    scene.fixture.http = NULL;
    tails_close(scene.tails);
    http_fixture_close(&scene.fixture);
    return 0;
}

static void write_file(const char *text, int flags)
{
    int fd = open(scene.path, O_WRONLY | O_CREAT | flags, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

#define REQUEST "GET /log HTTP/1.1\r\nHost: x\r\n\r\n"

static void assert_reads(int64_t offset, const char *want)
{
    struct buf body;
    buf_init(&body, 1000000);
    scene.asked.offset = offset;
    assert_int_equal(http_fixture_request(&scene.fixture, REQUEST, &body), 200);
    assert_string_equal(body.bytes ? body.bytes : "", want);
    buf_release(&body);
}

static void a_file_is_read_from_any_offset(void **state)
{
    write_file("0123456789", 0);
    assert_reads(0, "0123456789");
    assert_reads(3, "3456789");
    assert_reads(10, "");
    assert_reads(1000, "");
    assert_reads(INT64_MAX, "");
    assert_reads(-4, "6789");
    assert_reads(-1000, "0123456789");
    assert_reads(INT64_MIN, "0123456789");
    assert_int_equal(tails_count(scene.tails), 0);
}

static void a_follower_sees_what_is_added_until_the_job_ends(void **state)
{
    write_file("one ", 0);
    scene.asked.follow = true;
    int fd = http_fixture_connect(&scene.fixture);
    struct buf got;
    buf_init(&got, 100000);
    http_fixture_send_text(&scene.fixture, fd, REQUEST);
    assert_true(http_fixture_read_until(&scene.fixture, fd, &got, "one "));

    write_file("two ", O_APPEND);
    assert_true(http_fixture_read_until(&scene.fixture, fd, &got, "two "));

    write_file("three ", O_APPEND);
    scene.ended = true;
    tails_wake(scene.tails, 7);
    struct buf rest;
    buf_init(&rest, 100000);
    assert_true(http_fixture_read_until(&scene.fixture, fd, &rest, "three "));
    assert_true(http_fixture_read_until(&scene.fixture, fd, &rest, "0\r\n\r\n"));
    assert_int_equal(tails_count(scene.tails), 0);
    buf_release(&got);
    buf_release(&rest);
    close(fd);
}

static void a_follower_waits_for_a_file_that_is_not_there_yet(void **state)
{
    scene.asked.follow = true;
    int fd = http_fixture_connect(&scene.fixture);
    struct buf got;
    buf_init(&got, 100000);
    http_fixture_send_text(&scene.fixture, fd, REQUEST);
    assert_true(http_fixture_read_until(&scene.fixture, fd, &got, "200 OK"));
    write_file("late", 0);
    assert_true(http_fixture_read_until(&scene.fixture, fd, &got, "late"));
    buf_release(&got);
    close(fd);

    /* Without following it is simply not there. */
    unlink(scene.path);
    scene.asked.follow = false;
    assert_int_equal(http_fixture_request(&scene.fixture, REQUEST, NULL), 404);

    /* A job that ended without one. */
    scene.asked.follow = scene.ended = true;
    assert_reads(0, "");
}

static void a_truncated_file_is_read_from_its_start(void **state)
{
    write_file("a long beginning", 0);
    scene.asked.follow = true;
    int fd = http_fixture_connect(&scene.fixture);
    struct buf got;
    buf_init(&got, 100000);
    http_fixture_send_text(&scene.fixture, fd, REQUEST);
    http_fixture_read(&scene.fixture, fd, &got, 50);
    write_file("anew", O_TRUNC);
    assert_true(http_fixture_read_until(&scene.fixture, fd, &got, "anew"));
    buf_release(&got);
    close(fd);
}

static void a_large_file_arrives_whole(void **state)
{
    struct buf text;
    buf_init(&text, 4000000);
    for (int i = 0; i < 300000; i++)
        buf_print(&text, "%09d\n", i);
    write_file(text.bytes, 0);
    int fd = http_fixture_connect(&scene.fixture);
    http_fixture_send_text(&scene.fixture, fd, REQUEST);
    struct fixture_reply answer;
    http_fixture_read_reply(&scene.fixture, fd, &answer);
    assert_int_equal(answer.body_size, text.count);
    assert_memory_equal(answer.body, text.bytes, text.count);
    fixture_reply_free(&answer);
    buf_release(&text);
    close(fd);
}

static void a_follower_that_leaves_is_forgotten(void **state)
{
    write_file("x", 0);
    scene.asked.follow = true;
    int fd = http_fixture_connect(&scene.fixture);
    http_fixture_send_text(&scene.fixture, fd, REQUEST);
    http_fixture_run(&scene.fixture, 30);
    assert_int_equal(tails_count(scene.tails), 1);
    close(fd);
    for (int i = 0; i < 100 && tails_count(scene.tails) > 0; i++)
        http_fixture_run(&scene.fixture, 50);
    assert_int_equal(tails_count(scene.tails), 0);
}

static void only_regular_files_are_read(void **state)
{
    struct error err;
    char path[120];
    snprintf(path, sizeof path, "%s/pipe", scene.fixture.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(plain_file_open(path, &err), -EINVAL);
    snprintf(path, sizeof path, "%s/link", scene.fixture.folder);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(plain_file_open(path, &err), -ELOOP);
    assert_int_equal(plain_file_open("/tmp", &err), -EINVAL);
    assert_int_equal(plain_file_open("/dev/null", &err), -EINVAL);
    assert_int_equal(plain_file_open("7.out", &err), -EINVAL);
    assert_int_equal(plain_file_open("/proc/version", &err), -EINVAL);
}

static void a_file_of_berthd_is_read_in_the_loop(void **state)
{
    scene.asked.ours = true;
    assert_int_equal(http_fixture_request(&scene.fixture, REQUEST, NULL), 404);
    assert_int_equal(scene.result, -ENOENT);
    write_file("0123456789", 0);
    assert_reads(0, "0123456789");
    assert_reads(-4, "6789");
}

static void what_is_mounted_over_a_file_of_berthd_is_not_read(void **state)
{
    struct error err;
    write_file("ours", 0);
    if (getuid() != 0 || mount("/etc/hostname", scene.path, NULL, MS_BIND, NULL) < 0)
        SKIP("needs root: it mounts something");
    int fd = plain_file_open_own(scene.path, &err);
    int plain = plain_file_open(scene.path, &err);
    assert_int_equal(umount2(scene.path, MNT_DETACH), 0);
    assert_int_equal(fd, -EXDEV);
    assert_true(plain >= 0); /* it can be read otherwise */
    close(plain);
    fd = plain_file_open_own(scene.path, &err);
    assert_true(fd >= 0);
    close(fd);
}

static void root_shows_nothing_that_is_not_the_owners(void **state)
{
    if (getuid() != 0)
        SKIP("needs root: it has files of other users");
    enum { SOMEBODY = 54321 };
    write_file("secret", 0);
    scene.asked.uid = SOMEBODY;
    struct buf body;
    buf_init(&body, 1000000);
    assert_int_equal(http_fixture_request(&scene.fixture, REQUEST, &body), 403);
    assert_int_equal(chown(scene.path, SOMEBODY, SOMEBODY), 0);
    buf_release(&body);
    assert_reads(0, "secret");
}

RUN_CASES(CASE(a_file_is_read_from_any_offset),
          CASE(a_follower_sees_what_is_added_until_the_job_ends),
          CASE(a_follower_waits_for_a_file_that_is_not_there_yet),
          CASE(a_truncated_file_is_read_from_its_start),
          CASE(a_large_file_arrives_whole), CASE(a_follower_that_leaves_is_forgotten),
          CASE(only_regular_files_are_read), CASE(a_file_of_berthd_is_read_in_the_loop),
          CASE(what_is_mounted_over_a_file_of_berthd_is_not_read),
          CASE(root_shows_nothing_that_is_not_the_owners));
