/* What one request cancels: fields read, numbers and ranges in order, the rest refused. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "daemon/routes/bulk_cancel.h"

ARENA_FIXTURE(arena);

static struct cancel_filter filter;
static struct error err;

static int read_filter(const char *text)
{
    return cancel_filter_read(&filter, &arena, text, strlen(text), &err);
}

static void numbers_and_ranges_are_sorted_and_each_is_there_once(void **state)
{
    static const uint64_t want[] = { 3, 7, 8, 9, 20 };
    assert_int_equal(read_filter("{\"ids\": [20, \"7-9\", 3, 8, \"20\"]}"), 0);
    assert_int_equal(filter.id_count, 5);
    assert_memory_equal(filter.ids, want, sizeof want);
    assert_false(cancel_filter_selects(&filter));
}

static void filters_are_read(void **state)
{
    assert_int_equal(read_filter("{\"user\": \"ada\", \"name\": \"a*\", "
                                 "\"state\": \"HELD,PENDING\"}"),
                     0);
    assert_string_equal(filter.user, "ada");
    assert_string_equal(filter.name, "a*");
    assert_int_equal(filter.states, 9);
    assert_true(cancel_filter_selects(&filter));
    assert_null(filter.ids);
}

static void every_job_has_to_be_asked_for(void **state)
{
    assert_int_equal(read_filter("{}"), -EINVAL);
    assert_int_equal(read_filter("{\"all\": false}"), -EINVAL);
    assert_int_equal(read_filter("{\"all\": true}"), 0);
    assert_true(filter.all);
}

static void wrong_fields_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "5",
        "{\"ids\": 5}",
        "{\"ids\": [-1]}",
        "{\"ids\": [1.5]}",
        "{\"ids\": [\"\"]}",
        "{\"ids\": [\"1-2-3\"]}",
        "{\"ids\": [\"-3\"]}",
        "{\"ids\": [\"1-18446744073709551615\"]}",
        "{\"ids\": [\"1-100000\", 100001]}",
        "{\"state\": \"PENDING,\\u0000\"}",
        "{\"state\": \"pending\"}",
        "{\"state\": []}",
        "{\"user\": \"\"}",
        "{\"id\": 5}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (read_filter(texts[i]) != -EINVAL)
            fail_msg("%s was accepted", texts[i]);
        assert_true(err.text[0]);
    }
}

RUN_CASES(CASE(numbers_and_ranges_are_sorted_and_each_is_there_once),
          CASE(filters_are_read), CASE(every_job_has_to_be_asked_for),
          CASE(wrong_fields_are_refused));
