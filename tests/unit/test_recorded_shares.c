/* Reading recorded shares, and the errors for wrong ones. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "lab/recorded_shares.h"

ARENA_FIXTURE(arena);
static struct error err;
static char path[64];

static int read_text(const char *text, struct gavel_recorded *recorded)
{
    snprintf(path, sizeof path, "/tmp/berth-recorded-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int r = recorded_shares_read(recorded, path, 3, &arena, &err);
    unlink(path);
    return r;
}

static void jobs_and_pairs_are_read_with_their_shares(void **state)
{
    struct gavel_recorded recorded;
    assert_int_equal(
        read_text("{\"round\": 0, \"t\": 0.0, \"alloc\": {\"0\": [0.25, 0, 1]}}\n"
                  "\n"
                  "{\"round\": 5, \"t\": 1799.5, \"alloc\": {\"7\": [0, 0, 0], "
                  "\"3,16\": [0.1, 0.2, 0.3]}}\n",
                  &recorded),
        0);
    assert_int_equal(recorded.count, 2);
    assert_int_equal(recorded.records[0].share_count, 1);
    assert_true(recorded.records[0].shares[0].x[0] == 0.25);
    assert_int_equal(recorded.records[0].shares[0].second, RECORDED_ALONE);
    const struct gavel_record *last = &recorded.records[1];
    assert_int_equal(last->round, 5);
    assert_true(last->at_s == 1799.5);
    assert_int_equal(last->line, 3);
    assert_int_equal(last->shares[1].first, 3);
    assert_int_equal(last->shares[1].second, 16);
    assert_true(last->shares[1].x[2] == 0.3);
}

static void assert_wrong(const char *text, const char *says)
{
    struct gavel_recorded recorded;
    assert_int_equal(read_text(text, &recorded), -EINVAL);
    const char *colon = strstr(err.text, ":1: ");
    assert_non_null(colon);
    assert_string_equal(colon + 4, says);
}

static void errors_name_the_line_and_the_field(void **state)
{
    assert_wrong("{\"t\": 0, \"alloc\": {}}\n",
                 "round is \"\", want the number of a round");
    assert_wrong("{\"round\": 1.5, \"t\": 0, \"alloc\": {}}\n",
                 "round is \"\", want the number of a round");
    assert_wrong("{\"round\": 1, \"t\": -1, \"alloc\": {}}\n",
                 "t is \"\", want a time in seconds");
    assert_wrong("{\"round\": 1, \"t\": 1}\n", "alloc is \"\", want an object");
    assert_wrong("{\"round\": 1, \"t\": 1, \"alloc\": {\"x\": [0, 0, 0]}}\n",
                 "alloc is \"x\", want the number of a job, or of two: \"3,16\"");
    assert_wrong("{\"round\": 1, \"t\": 1, \"alloc\": {\"3,3\": [0, 0, 0]}}\n",
                 "alloc is \"3,3\", want the number of a job, or of two: \"3,16\"");
    assert_wrong("{\"round\": 1, \"t\": 1, \"alloc\": {\"3\": [0, 0]}}\n",
                 "alloc is \"3\", want a number per type that the cluster has");
    assert_wrong("{\"round\": 1, \"t\": 1, \"alloc\": {\"3\": [0, 0, \"a\"]}}\n",
                 "alloc is \"3\", want shares that are numbers");
}

static void a_missing_file_is_reported(void **state)
{
    struct gavel_recorded recorded;
    assert_int_equal(
        recorded_shares_read(&recorded, "/nowhere/at.all", 3, &arena, &err), -EINVAL);
    assert_string_equal(err.text, "/nowhere/at.all: no such file");
}

RUN_CASES(CASE(jobs_and_pairs_are_read_with_their_shares),
          CASE(errors_name_the_line_and_the_field), CASE(a_missing_file_is_reported));
