/* What berthd wants of a host: read as a whole, or refused as a whole. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/units.h"
#include "flowd/wanted.h"

#define HEAD "{\"flow\":\"jpas\",\"levels\":6,\"host\":\"n1\",\"valid_s\":45,\"jobs\":"

static int read_text(struct wanted *wanted, const char *text, struct error *err)
{
    return wanted_parse(wanted, text, strlen(text), err);
}

static void all_is_read_and_sorted(void **state)
{
    struct wanted *wanted = *state;
    struct error err;
    assert_int_equal(
        read_text(wanted,
                  HEAD "[{\"id\":12,\"level\":5,\"attempt\":2,\"cgroup\":"
                       "\"unified/berth/12.2\",\"pid\":4711,\"executor\":\"local\"},"
                       "{\"id\":3,\"level\":0,\"executor\":\"slurm\",\"new\":[1]}],"
                       "\"more\":{}}",
                  &err),
        0);
    assert_int_equal(wanted->count, 2);
    assert_string_equal(wanted->flow, "jpas");
    assert_string_equal(wanted->host, "n1");
    assert_int_equal(wanted->levels, 6);
    assert_int_equal(wanted->valid_ns, 45 * NS_PER_S);
    assert_int_equal(wanted->jobs[0].id, 3);
    assert_true(wanted->jobs[0].slurm);
    assert_null(wanted->jobs[0].cgroup);
    assert_int_equal(wanted->jobs[0].pid, 0);
    assert_int_equal(wanted->jobs[1].id, 12);
    assert_int_equal(wanted->jobs[1].level, 5);
    assert_int_equal(wanted->jobs[1].attempt, 2);
    assert_int_equal(wanted->jobs[1].pid, 4711);
    assert_string_equal(wanted->jobs[1].cgroup, "unified/berth/12.2");
}

static void no_jobs_is_an_answer_too(void **state)
{
    struct wanted *wanted = *state;
    assert_int_equal(read_text(wanted, HEAD "[]}", NULL), 0);
    assert_int_equal(wanted->count, 0);
}

static void what_makes_no_sense_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "" },
        { "hello", "" },
        { "[]", "object" },
        { "{}", "levels" },
        { "{\"levels\":1,\"valid_s\":45,\"jobs\":[]}", "levels" },
        { "{\"levels\":9,\"valid_s\":45,\"jobs\":[]}", "levels" },
        { "{\"levels\":\"6\",\"valid_s\":45,\"jobs\":[]}", "levels" },
        { "{\"levels\":6,\"jobs\":[]}", "valid_s" },
        { "{\"levels\":6,\"valid_s\":0,\"jobs\":[]}", "valid_s" },
        { "{\"levels\":6,\"valid_s\":1e9,\"jobs\":[]}", "valid_s" },
        { "{\"levels\":6,\"valid_s\":45}", "jobs" },
        { "{\"levels\":6,\"valid_s\":45,\"host\":7,\"jobs\":[]}", "host" },
        { "{\"levels\":6,\"valid_s\":45,\"host\":\"a\\nb\",\"jobs\":[]}", "host" },
        { HEAD "{}}", "jobs" },
        { HEAD "[7]}", "jobs[0]" },
        { HEAD "[{\"level\":0}]}", "id" },
        { HEAD "[{\"id\":0,\"level\":0}]}", "id" },
        { HEAD "[{\"id\":-4,\"level\":0}]}", "id" },
        { HEAD "[{\"id\":1.5,\"level\":0}]}", "id" },
        { HEAD "[{\"id\":\"1\",\"level\":0}]}", "id" },
        { HEAD "[{\"id\":99999999999999999999,\"level\":0}]}", "" },
        { HEAD "[{\"id\":1}]}", "level" },
        { HEAD "[{\"id\":1,\"level\":6}]}", "job 1: level" },
        { HEAD "[{\"id\":1,\"level\":-1}]}", "level" },
        { HEAD "[{\"id\":1,\"level\":null}]}", "level" },
        { HEAD "[{\"id\":1,\"level\":0,\"pid\":0}]}", "pid" },
        { HEAD "[{\"id\":1,\"level\":0,\"pid\":99999999}]}", "pid" },
        { HEAD "[{\"id\":1,\"level\":0,\"attempt\":-1}]}", "attempt" },
        { HEAD "[{\"id\":1,\"level\":0,\"executor\":1}]}", "executor" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":7}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"/a\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"a/\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"a//b\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"a/../b\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"..\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"a/./b\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"a\\\" b\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"a' b\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0,\"cgroup\":\"a\\u0007\"}]}", "cgroup" },
        { HEAD "[{\"id\":1,\"level\":0},{\"id\":1,\"level\":1}]}", "twice" },
        { HEAD "[]} []", "" },
    };
    struct wanted *wanted = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = { "" };
        if (read_text(wanted, cases[i].text, &err) != -EINVAL)
            fail_msg("was taken: %s", cases[i].text);
        if (!err.text[0] || !strstr(err.text, cases[i].says))
            fail_msg("%s: says %s", cases[i].text, err.text);
        assert_int_equal(wanted->count, 0);
    }
}

static void names_that_systemd_makes_are_plain(void **state)
{
    assert_true(wanted_path_is_plain("system.slice/a\\x2db.service/job_1"));
    assert_true(wanted_path_is_plain("...")); /* is a name like any other */
    char path[WANTED_CGROUP_MAX + 1];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_false(wanted_path_is_plain(path));
}

static int read_many(struct wanted *wanted, uint32_t count)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_text(&text, HEAD "[");
    for (uint32_t i = count; i > 0; i--)
        buf_print(&text, "%s{\"id\":%u,\"level\":%u}", i < count ? "," : "", i, i % 6);
    buf_text(&text, "]}");
    int r = wanted_parse(wanted, text.bytes, text.count, NULL);
    buf_release(&text);
    return r;
}

static void there_is_room_for_so_many_and_no_more(void **state)
{
    struct wanted *wanted = *state;
    assert_int_equal(read_many(wanted, WANTED_JOBS_MAX), 0);
    assert_int_equal(wanted->count, WANTED_JOBS_MAX);
    assert_int_equal(wanted->jobs[17].id, 18);
    assert_int_equal(read_many(wanted, WANTED_JOBS_MAX + 1), -EINVAL);
    assert_int_equal(wanted->count, 0);
}

static int setup(void **state)
{
    static struct wanted wanted;
    wanted_init(&wanted);
    *state = &wanted;
    return 0;
}

static int teardown(void **state)
{
    wanted_release(*state);
    return 0;
}

RUN_CASES(CASE(all_is_read_and_sorted), CASE(no_jobs_is_an_answer_too),
          CASE(what_makes_no_sense_is_refused),
          CASE(names_that_systemd_makes_are_plain),
          CASE(there_is_room_for_so_many_and_no_more));
