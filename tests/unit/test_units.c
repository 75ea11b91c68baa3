/* Times, sizes and numbers as people write them. */
#include "support/cases.h"

#include <math.h>
#include <stdbool.h>

#include "base/units.h"

static void assert_time(const char *text, int64_t ns)
{
    int64_t got = -1;
    assert_true(units_time(text, &got));
    assert_int_equal(got, ns);
}

static void a_time_has_a_unit_or_is_in_seconds(void **state)
{
    assert_time("0", 0);
    assert_time("90", 90 * NS_PER_S);
    assert_time("90s", 90 * NS_PER_S);
    assert_time("250ms", NS_PER_S / 4);
    assert_time("1us", 1000);
    assert_time("1ns", 1);
    assert_time("10m", 600 * NS_PER_S);
    assert_time("1.5h", 5400 * NS_PER_S);
    assert_time("1d", 86400 * NS_PER_S);
    assert_time("2w", 2 * 7 * 86400 * NS_PER_S);
    assert_time(".5", NS_PER_S / 2);
    assert_time("36525d", TIME_MAX_NS);
}

static void what_is_not_a_time_is_refused(void **state)
{
    static const char *const wrong[] = { "",       "s",     "-1", "+1",  " 1",
                                         "1 ",     "1 s",   "1x", "1sm", "nan",
                                         "inf",    "1e999", ".",  "1,5", "0x10",
                                         "36526d", "1h30m" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int64_t ns = 77;
        if (units_time(wrong[i], &ns))
            fail_msg("\"%s\" was read as a time", wrong[i]);
        assert_int_equal(ns, 77);
    }
}

static void a_size_is_in_powers_of_1024(void **state)
{
    uint64_t bytes;
    assert_true(units_size("20G", &bytes));
    assert_int_equal(bytes, UINT64_C(20) << 30);
    assert_true(units_size("512", &bytes));
    assert_int_equal(bytes, 512);
    assert_true(units_size("1.5K", &bytes));
    assert_int_equal(bytes, 1536);
    assert_true(units_size("1TiB", &bytes));
    assert_int_equal(bytes, UINT64_C(1) << 40);
    assert_false(units_size("1P", &bytes));
    assert_false(units_size("-1K", &bytes));
    assert_false(units_size("9999999T", &bytes));
    assert_false(units_size("20g!", &bytes));
}

static void a_number_is_the_whole_text(void **state)
{
    double number;
    assert_true(units_number("-1.5e3", &number));
    assert_true(number == -1500);
    static const char *const wrong[] = { "",    " 1",  "\t1",   "\n1", "1 ",   "1x",
                                         "nan", "inf", "1e999", "--1", "0x1f", "1,0" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (units_number(wrong[i], &number))
            fail_msg("\"%s\" was read as a number", wrong[i]);
    assert_true(number == -1500);
}

static void seconds_are_rounded_to_the_nearest_nanosecond(void **state)
{
    assert_int_equal(units_ns(0.1), 100000000);
    assert_int_equal(units_ns(1.0000000004), 1000000000);
    assert_int_equal(units_ns(1.0000000006), 1000000001);
}

static void people_read_times_in_a_fitting_unit(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } shown[] = {
        { 0, "0 ms" },        { 0.85, "850 ms" }, { 1, "1.0 s" },
        { 12.34, "12.3 s" },  { 119, "119 s" },   { 252, "4.2 min" },
        { 5760, "96.0 min" }, { 7200, "2.0 h" },  { 267840, "3.1 d" },
        { 8640000, "100 d" },
    };
    char text[32];
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        assert_string_equal(units_show_time(text, sizeof text, shown[i].seconds),
                            shown[i].text);
}

/* Halves and their neighbours, at every size of a double below 2^63. */
static void numbers_are_rounded_as_by_the_library(void **state)
{
    for (int power = -3; power < 63; power++)
        for (double part = 1; part < 2; part += 0x1p-7) {
            double number = ldexp(part, power);
            double half = floor(number) + 0.5;
            const double all[] = { number, half, nextafter(half, 0),
                                   nextafter(half, INFINITY) };
            for (int i = 0; i < 4; i++) {
                if (all[i] >= 0x1p63)
                    continue;
                assert_int_equal(units_round(all[i]), llround(all[i]));
                assert_int_equal(units_round(-all[i]), llround(-all[i]));
            }
        }
    assert_int_equal(units_round(0.49999999999999994), 0);
    assert_int_equal(units_round(-0.0), 0);
}

RUN_CASES(TEST(a_time_has_a_unit_or_is_in_seconds), TEST(what_is_not_a_time_is_refused),
          TEST(a_size_is_in_powers_of_1024), TEST(a_number_is_the_whole_text),
          TEST(seconds_are_rounded_to_the_nearest_nanosecond),
          TEST(people_read_times_in_a_fitting_unit),
          TEST(numbers_are_rounded_as_by_the_library));
