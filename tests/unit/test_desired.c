/* The marks that berthd wants: accepted as a whole, or refused as a whole. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/units.h"
#include "flowd/desired.h"

#define HEAD "{\"flow\":\"jpas\",\"levels\":6,\"host\":\"n1\",\"valid_s\":45,\"jobs\":"

static int parse_text(struct desired_marks *desired, const char *text,
                      struct error *err)
{
    return desired_parse(desired, text, strlen(text), err);
}

static void all_fields_are_read_and_jobs_sorted(void **state)
{
    struct desired_marks *desired = *state;
    struct error err;
    assert_int_equal(
        parse_text(desired,
                   HEAD "[{\"id\":12,\"level\":5,\"attempt\":2,\"cgroup\":"
                        "\"unified/berth/12.2\",\"pid\":4711,\"executor\":\"local\"},"
                        "{\"id\":3,\"level\":0,\"executor\":\"slurm\",\"new\":[1]}],"
                        "\"more\":{}}",
                   &err),
        0);
    assert_int_equal(desired->count, 2);
    assert_string_equal(desired->flow, "jpas");
    assert_string_equal(desired->host, "n1");
    assert_int_equal(desired->levels, 6);
    assert_int_equal(desired->valid_ns, 45 * NS_PER_S);
    assert_int_equal(desired->jobs[0].id, 3);
    assert_true(desired->jobs[0].slurm);
    assert_null(desired->jobs[0].cgroup);
    assert_int_equal(desired->jobs[0].pid, 0);
    assert_int_equal(desired->jobs[1].id, 12);
    assert_int_equal(desired->jobs[1].level, 5);
    assert_int_equal(desired->jobs[1].attempt, 2);
    assert_int_equal(desired->jobs[1].pid, 4711);
    assert_string_equal(desired->jobs[1].cgroup, "unified/berth/12.2");
}

static void no_jobs_is_valid(void **state)
{
    struct desired_marks *desired = *state;
    assert_int_equal(parse_text(desired, HEAD "[]}", NULL), 0);
    assert_int_equal(desired->count, 0);
}

static void malformed_text_is_refused(void **state)
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
    struct desired_marks *desired = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = { "" };
        if (parse_text(desired, cases[i].text, &err) != -EINVAL)
            fail_msg("was accepted: %s", cases[i].text);
        if (!err.text[0] || !strstr(err.text, cases[i].says))
            fail_msg("%s: says %s", cases[i].text, err.text);
        assert_int_equal(desired->count, 0);
    }
}

static void names_made_by_systemd_are_plain(void **state)
{
    assert_true(desired_path_is_plain("system.slice/a\\x2db.service/job_1"));
    assert_true(desired_path_is_plain("...")); /* a name like any other */
    char path[DESIRED_CGROUP_MAX + 1];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_false(desired_path_is_plain(path));
}

static int parse_many(struct desired_marks *desired, uint32_t count)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_text(&text, HEAD "[");
    for (uint32_t i = count; i > 0; i--)
        buf_print(&text, "%s{\"id\":%u,\"level\":%u}", i < count ? "," : "", i, i % 6);
    buf_text(&text, "]}");
    int r = desired_parse(desired, text.bytes, text.count, NULL);
    buf_release(&text);
    return r;
}

static void the_number_of_jobs_is_limited(void **state)
{
    struct desired_marks *desired = *state;
    assert_int_equal(parse_many(desired, DESIRED_JOBS_MAX), 0);
    assert_int_equal(desired->count, DESIRED_JOBS_MAX);
    assert_int_equal(desired->jobs[17].id, 18);
    assert_int_equal(parse_many(desired, DESIRED_JOBS_MAX + 1), -EINVAL);
    assert_int_equal(desired->count, 0);
}

static int setup(void **state)
{
    static struct desired_marks desired;
    desired_init(&desired);
    *state = &desired;
    return 0;
}

static int teardown(void **state)
{
    desired_release(*state);
    return 0;
}

RUN_CASES(CASE(all_fields_are_read_and_jobs_sorted), CASE(no_jobs_is_valid),
          CASE(malformed_text_is_refused), CASE(names_made_by_systemd_are_plain),
          CASE(the_number_of_jobs_is_limited));
