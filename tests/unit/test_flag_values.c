/* Values of flags in sbatch's forms and in our own; wrong ones are refused. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/error.h"
#include "cmd/berth/flag_values.h"

static struct arena arena;
static struct error err;

static int setup(void **state)
{
    setenv("TZ", "UTC", 1);
    tzset();
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    arena_release(&arena);
    return 0;
}

static double limit(const char *text)
{
    double seconds = -1;
    if (flag_value_limit(text, &seconds, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return seconds;
}

static void limits_are_in_minutes_first(void **state)
{
    assert_near(limit("10"), 600, 0);
    assert_near(limit("10:30"), 630, 0);
    assert_near(limit("1:00:00"), 3600, 0);
    assert_near(limit("1-12"), 1.5 * 86400, 0);
    assert_near(limit("1-12:30"), 1.5 * 86400 + 1800, 0);
    assert_near(limit("2-00:00:01"), 2 * 86400 + 1, 0);
    assert_near(limit("90s"), 90, 0);
    assert_near(limit("10m"), 600, 0);
    assert_near(limit("1.5h"), 5400, 0);
    assert_near(limit("UNLIMITED"), 0, 0);
    assert_near(limit("0"), 0, 0);
}

static void wrong_limits_are_refused(void **state)
{
    static const char *const wrong[] = { "",        "x",           "1:",   ":1",
                                         "1:2:3:4", "-5",          "1-",   "-",
                                         "1-x",     "5x",          "1.5",  "--",
                                         "1 2",     "99999999999", "-1-1", "1e3" };
    double seconds;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (flag_value_limit(wrong[i], &seconds, &err) != -EINVAL)
            fail_msg("accepted '%s' as %g", wrong[i], seconds);
}

/* Sunday, 16 November 2026, 12:00:00 UTC */
#define NOON INT64_C(1794830400)

static double moment(const char *text)
{
    double seconds = -1;
    if (flag_value_time(text, NOON, &seconds, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return seconds - (double)NOON;
}

static void times_are_relative_daily_or_dates(void **state)
{
    assert_near(moment("now"), 0, 0);
    assert_near(moment("now+1hour"), 3600, 0);
    assert_near(moment("now+2days"), 2 * 86400, 0);
    assert_near(moment("now+90"), 90, 0);
    assert_near(moment("now+10m"), 600, 0);
    assert_near(moment("16:30"), 4.5 * 3600, 0);
    assert_near(moment("11:00:30"), 23 * 3600 + 30, 0); /* passed: tomorrow */
    assert_near(moment("noon"), 86400, 0);
    assert_near(moment("midnight"), 43200, 0);
    assert_near(moment("tomorrow"), 43200, 0);
    assert_near(moment("2026-11-17"), 43200, 0);
    assert_near(moment("2026-11-17T12:00"), 86400, 0);
    assert_near(moment("2026-11-16T12:00:05"), 5, 0);
}

static void wrong_times_are_refused(void **state)
{
    static const char *const wrong[] = { "",
                                         "soon",
                                         "now+",
                                         "now-1",
                                         "25:00",
                                         "12:60",
                                         "2026-13-01",
                                         "2026-11-17T",
                                         "12",
                                         "now+1e99",
                                         "now+5fortnights",
                                         "2026-11-17T12:00:00:00" };
    double seconds;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (flag_value_time(wrong[i], NOON, &seconds, &err) != -EINVAL)
            fail_msg("accepted '%s'", wrong[i]);
}

static void gpus(const char *text, bool gres, uint32_t want, const char *want_type)
{
    uint32_t count = 0;
    const char *type = "?";
    if (flag_value_gpus(&arena, text, gres, &count, &type, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(count, want);
    assert_true(want_type ? type && strcmp(type, want_type) == 0 : type == NULL);
}

static void gpus_have_a_number_and_perhaps_a_type(void **state)
{
    uint32_t count;
    const char *type;
    gpus("2", false, 2, NULL);
    gpus("v100:2", false, 2, "v100");
    gpus("0", false, 0, NULL);
    gpus("gpu:2", true, 2, NULL);
    gpus("gpu:v100:2", true, 2, "v100");
    gpus("gpu", true, 1, NULL);
    gpus("gpu:v100", true, 1, "v100");
    assert_int_equal(flag_value_gpus(&arena, "", false, &count, &type, &err), -EINVAL);
    assert_int_equal(flag_value_gpus(&arena, "v100", false, &count, &type, &err),
                     -EINVAL);
    assert_int_equal(flag_value_gpus(&arena, ":2", false, &count, &type, &err),
                     -EINVAL);
    assert_int_equal(flag_value_gpus(&arena, "v100:", false, &count, &type, &err),
                     -EINVAL);
    assert_int_equal(flag_value_gpus(&arena, "-1", false, &count, &type, &err),
                     -EINVAL);
    assert_int_equal(flag_value_gpus(&arena, "shard:2", true, &count, &type, &err),
                     -EINVAL);
    assert_int_equal(flag_value_gpus(&arena, "v:1,p:1", false, &count, &type, &err),
                     -EINVAL);
}

static void memory_is_in_mebibytes(void **state)
{
    uint64_t bytes;
    assert_int_equal(flag_value_memory("512", &bytes, &err), 0);
    assert_int_equal(bytes, 512u << 20);
    assert_int_equal(flag_value_memory("2G", &bytes, &err), 0);
    assert_int_equal(bytes, UINT64_C(2) << 30);
    assert_int_equal(flag_value_memory("much", &bytes, &err), -EINVAL);
    assert_int_equal(flag_value_memory("-1G", &bytes, &err), -EINVAL);
    assert_int_equal(flag_value_memory("", &bytes, &err), -EINVAL);
}

static void signals_may_come_before_the_limit(void **state)
{
    struct flag_value_signal asked;
    assert_int_equal(flag_value_signal("USR1", &asked, &err), 0);
    assert_string_equal(asked.name, "USR1");
    assert_false(asked.warns);
    assert_int_equal(flag_value_signal("B:USR1@120", &asked, &err), 0);
    assert_string_equal(asked.name, "USR1");
    assert_true(asked.warns && asked.warn_s == 120);
    assert_int_equal(flag_value_signal("10@5", &asked, &err), 0);
    assert_string_equal(asked.name, "10");
    assert_int_equal(flag_value_signal("", &asked, &err), -EINVAL);
    assert_int_equal(flag_value_signal("@60", &asked, &err), -EINVAL);
    assert_int_equal(flag_value_signal("NOPE", &asked, &err), -EINVAL);
    assert_int_equal(flag_value_signal("USR1@", &asked, &err), -EINVAL);
    assert_int_equal(flag_value_signal("X:USR1", &asked, &err), -EINVAL);
}

static void arrays_are_lists_and_ranges(void **state)
{
    struct flag_value_array array;
    assert_int_equal(flag_value_array(&arena, "0-3,12%2", &array, &err), 0);
    assert_int_equal(array.count, 5);
    assert_int_equal(array.indices[4], 12);
    assert_int_equal(array.limit, 2);
    assert_int_equal(flag_value_array(&arena, "0-9%2,12", &array, &err), 0);
    assert_int_equal(array.count, 11);
    assert_int_equal(array.limit, 2);
    assert_int_equal(flag_value_array(&arena, "7,1,0-20:10", &array, &err), 0);
    assert_int_equal(array.count, 5);
    assert_int_equal(array.indices[1], 1); /* in order */
    assert_int_equal(array.limit, 0);
}

static void wrong_arrays_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",      "x",  "1-",    "5-1", "1,1",        "0-9:0",   "1%",  "1%0",
        "1%2%3", "-1", "0-3,2", "1,",  "0-99999999", "1%2,3%4", "1 2", "99999999999"
    };
    struct flag_value_array array;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (flag_value_array(&arena, wrong[i], &array, &err) != -EINVAL)
            fail_msg("accepted '%s'", wrong[i]);
}

static void parameters_have_values_or_a_range(void **state)
{
    struct flag_value_param param;
    assert_int_equal(flag_value_param(&arena, "lr=1e-3,1e-4", &param, &err), 0);
    assert_string_equal(param.name, "lr");
    assert_int_equal(param.count, 2);
    assert_string_equal(param.values[1], "1e-4");
    assert_int_equal(flag_value_param(&arena, "seed=1..5", &param, &err), 0);
    assert_int_equal(param.count, 5);
    assert_string_equal(param.values[4], "5");
    assert_int_equal(flag_value_param(&arena, "x=a=b", &param, &err), 0);
    assert_string_equal(param.values[0], "a=b");
    assert_int_equal(flag_value_param(&arena, "lr", &param, &err), -EINVAL);
    assert_int_equal(flag_value_param(&arena, "=1", &param, &err), -EINVAL);
    assert_int_equal(flag_value_param(&arena, "a b=1", &param, &err), -EINVAL);
    assert_int_equal(flag_value_param(&arena, "lr=", &param, &err), -EINVAL);
}

static void words_are_split_as_a_shell_does(void **state)
{
    char *words[4];
    uint32_t count;
    assert_int_equal(flag_value_words(&arena, "  -J 'a b' --x=\"c\\\"d\"  # remark",
                                      words, 4, &count, &err),
                     0);
    assert_int_equal(count, 3);
    assert_string_equal(words[1], "a b");
    assert_string_equal(words[2], "--x=c\"d");
    assert_int_equal(flag_value_words(&arena, "'open", words, 4, &count, &err),
                     -EINVAL);
    assert_int_equal(flag_value_words(&arena, "1 2 3 4 5", words, 4, &count, &err),
                     -EINVAL);
    assert_int_equal(flag_value_words(&arena, "", words, 4, &count, &err), 0);
    assert_int_equal(count, 0);
}

RUN_CASES(CASE(limits_are_in_minutes_first), CASE(wrong_limits_are_refused),
          CASE(times_are_relative_daily_or_dates), CASE(wrong_times_are_refused),
          CASE(gpus_have_a_number_and_perhaps_a_type), CASE(memory_is_in_mebibytes),
          CASE(signals_may_come_before_the_limit), CASE(arrays_are_lists_and_ranges),
          CASE(wrong_arrays_are_refused), CASE(parameters_have_values_or_a_range),
          CASE(words_are_split_as_a_shell_does));
