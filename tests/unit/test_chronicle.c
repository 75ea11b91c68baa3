/* Who held which accelerators lately: from lines of the event log to rows. */
#include "support/cases.h"

#include <string.h>

#include "base/buf.h"
#include "daemon/chronicle.h"

static struct chronicle chronicle;
static struct buf text;

static int setup(void **state)
{
    chronicle_init(&chronicle);
    buf_init(&text, 4u << 20);
    return 0;
}

static int teardown(void **state)
{
    chronicle_release(&chronicle);
    buf_release(&text);
    return 0;
}

static void take(const char *line)
{
    chronicle_take(&chronicle, line, strlen(line), false);
}

static void happens(int job, int at, const char *kind, const char *more)
{
    char line[300];
    snprintf(
        line, sizeof line,
        "{\"seq\":1,\"at\":%d.000000000,\"kind\":\"%s\",\"job\":%d,\"attempt\":0%s}",
        at, kind, job, more);
    take(line);
}

static void place(int job, int at)
{
    happens(job, at, "placed",
            ",\"seats\":[{\"node\":0,\"gpus\":[0,1]},{\"node\":2,\"gpus\":[63]}]");
}

static const char *told(int64_t since_s, uint32_t max)
{
    buf_reset(&text);
    buf_text(&text, "[");
    chronicle_write(&chronicle, &text, since_s * 1000000000, max);
    return text.bytes;
}

static uint32_t rows_told(int64_t since_s, uint32_t max)
{
    uint32_t count = 0;
    for (const char *at = told(since_s, max); (at = strstr(at, "{\"job\"")); at++)
        count++;
    return count;
}

static void a_job_holds_its_seats_from_start_to_end(void **state)
{
    place(7, 10);
    assert_null(strstr(told(0, 9), "start")); /* promised so far */
    assert_int_equal(rows_told(0, 9), 2);
    happens(7, 12, "started", "");
    happens(7, 30, "finished", ",\"exit_code\":0");
    assert_non_null(strstr(told(0, 9), "{\"job\":7,\"attempt\":0,\"class\":\"be\","
                                       "\"node\":2,\"gpus\":[63],\"start\":12.000000,"
                                       "\"end\":30.000000,\"how\":\"finished\"}"));
    assert_non_null(strstr(text.bytes, "\"node\":0,\"gpus\":[0,1]"));
    assert_int_equal(rows_told(30, 9), 2);
    assert_int_equal(rows_told(31, 9), 0);
}

static void who_leaves_was_preempted_unless_its_owner_wanted_it(void **state)
{
    place(1, 0);
    happens(1, 1, "started", "");
    happens(1, 5, "stopped", "");
    assert_non_null(strstr(told(0, 9), "preempted"));
    place(1, 6);
    happens(1, 7, "started", "");
    happens(1, 8, "cancelled", "");
    happens(1, 9, "stopped", "");
    assert_non_null(strstr(told(8, 9), "\"end\":9.000000,\"how\":\"cancelled\""));
}

static void a_promise_that_is_not_kept_is_not_told(void **state)
{
    place(1, 0);
    happens(1, 1, "cancelled", "");
    assert_int_equal(rows_told(0, 9), 0);
    place(2, 0);
    happens(2, 1, "lost", "");
    assert_int_equal(rows_told(0, 9), 0);
}

static void a_resize_ends_one_row_and_begins_another(void **state)
{
    place(1, 0);
    happens(1, 1, "started", "");
    happens(1, 2, "resizing", ",\"seats\":[{\"node\":1,\"gpus\":[5]}]");
    happens(1, 3, "resized", "");
    assert_non_null(strstr(told(0, 9), "\"end\":3.000000,\"how\":\"resized\""));
    assert_non_null(strstr(text.bytes, "\"node\":1,\"gpus\":[5],\"start\":3.000000}"));
}

static void lines_that_make_no_sense_change_nothing(void **state)
{
    static const char *const lines[] = {
        "",
        "{}",
        "{\"kind\":\"placed\"}",
        "{\"at\":1,\"kind\":\"started\",\"job\":9}",
        "{\"at\":1,\"kind\":\"placed\",\"job\":-1,\"seats\":[]}",
        "{\"at\":1,\"kind\":\"placed\",\"job\":3,\"seats\":7}",
        "{\"at\":1,\"kind\":\"placed\",\"job\":3,\"seats\":[]",
        "{\"at\":\"x\",\"kind\":\"placed\",\"job\":3,\"seats\":[{}]}",
        "{\"at\":1e300,\"kind\":\"placed\",\"job\":3,\"seats\":[{}]}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        take(lines[i]);
    happens(9, 4, "finished", "");
    assert_int_equal(rows_told(0, 99), 0);
}

/* Twice as many as there is room for: the newest are there, and those that are written over
 * end without harm. */
static void the_oldest_are_written_over(void **state)
{
    for (int job = 1; job <= CHRONICLE_ROWS; job++) {
        place(job, job);
        happens(job, job, "started", "");
    }
    assert_int_equal(rows_told(0, UINT32_MAX), CHRONICLE_ROWS);
    assert_int_equal(rows_told(0, 5), 5);
    happens(1, 99999, "finished", "");
    assert_null(strstr(told(0, UINT32_MAX), "finished"));
    happens(CHRONICLE_ROWS, 99999, "finished", "");
    assert_non_null(strstr(told(0, 2), "finished"));
}

RUN_CASES(CASE(a_job_holds_its_seats_from_start_to_end),
          CASE(who_leaves_was_preempted_unless_its_owner_wanted_it),
          CASE(a_promise_that_is_not_kept_is_not_told),
          CASE(a_resize_ends_one_row_and_begins_another),
          CASE(lines_that_make_no_sense_change_nothing),
          CASE(the_oldest_are_written_over));
