/* Decimal numbers and times of day: exact, or refused. */
#include "support/cases.h"

#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "base/units.h"
#include "base/number.h"

static void assert_scaled(const char *text, int64_t unit, int64_t want)
{
    int64_t got = -7;
    if (!number_scaled(text, strlen(text), unit, &got))
        fail_msg("\"%s\" was refused", text);
    assert_int_equal(got, want);
}

static void seconds_become_exact_nanoseconds(void **state)
{
    assert_scaled("0", NS_PER_S, 0);
    assert_scaled("1.5", NS_PER_S, 1500000000);
    assert_scaled("0.000000001", NS_PER_S, 1);
    assert_scaled("3155760000", NS_PER_S, TIME_MAX_NS);
    assert_scaled("2949342359.605325258", NS_PER_S, 2949342359605325258);
    assert_scaled("0.00032973289489746094", NS_PER_S, 329733);
    assert_scaled("1e3", NS_PER_S, 1000 * NS_PER_S);
    assert_scaled("-2.25", NS_PER_S, -2250000000);
}

static void other_units_are_rounded_once(void **state)
{
    assert_scaled("5095000", NS_PER_S / 1000, 5095 * NS_PER_S);
    assert_scaled("0.5", NS_PER_S * 60, 30 * NS_PER_S);
    assert_scaled("29.296875", 1024, 30000);
    assert_scaled("0.0004", 1000, 0);
    assert_scaled("0.0005", 1000, 1);
}

static void what_is_no_number_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",   " 1", "1 ", "nan", "inf", "0x10",  "1..2",
        "1e", ".",  "-",  "1,5", "5m",  "1e999", "99999999999999999999",
        "--1"
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int64_t ns;
        if (number_scaled(wrong[i], strlen(wrong[i]), NS_PER_S, &ns))
            fail_msg("\"%s\" was read as a time", wrong[i]);
    }
    uint64_t count;
    assert_false(number_count("18446744073709551616", 20, &count));
    assert_true(number_count("18446744073709551615", 20, &count));
    assert_false(number_count("-1", 2, &count));
    assert_false(number_count("", 0, &count));
}

static void a_double_is_the_one_strtod_gives(void **state)
{
    static const char alphabet[] = "01234567890123456789012345678901234567899..eE+-";
    struct rng rng;
    rng_init(&rng, 1, "numbers");
    for (uint32_t i = 0; i < 200000; i++) {
        char text[32];
        size_t bytes = 1 + rng_below(&rng, 24);
        for (size_t k = 0; k < bytes; k++)
            text[k] = alphabet[rng_below(&rng, sizeof alphabet - 1)];
        text[bytes] = '\0';
        char *end;
        double want = strtod(text, &end);
        double got = 0;
        bool good = number_real(text, bytes, &got);
        bool sane = *end == '\0' && want <= 1e308 && want >= -1e308;
        if (good != sane || (good && memcmp(&got, &want, sizeof got) != 0))
            fail_msg("\"%s\": %.17g, strtod says %.17g", text, got, want);
    }
}

static void assert_stamp(const char *text, int64_t seconds)
{
    int64_t ns = -1;
    if (!number_stamp(text, strlen(text), &ns))
        fail_msg("\"%s\" was refused", text);
    assert_int_equal(ns, seconds * NS_PER_S);
}

static void times_of_day_count_from_1970(void **state)
{
    assert_stamp("1970-01-01 00:00:00", 0);
    assert_stamp("2017-09-04 10:30:41", 1504521041);
    assert_stamp("2020-02-29T23:59:59Z", 1583020799);
    assert_stamp("2023-03-01 00:18:22+08:00", 1677601102);
    assert_stamp("2023-02-28T11:18:22-0500", 1677601102);
    int64_t ns;
    assert_true(number_stamp("2000-01-01 00:00:00.25", 22, &ns));
    assert_int_equal(ns, INT64_C(946684800250000000));
}

static void days_that_do_not_exist_are_refused(void **state)
{
    static const char *const wrong[] = {
        "2021-02-29 00:00:00",
        "2020-13-01 00:00:00",
        "2020-00-10 00:00:00",
        "2020-01-32 00:00:00",
        "2020-01-01 24:00:00",
        "2020-01-01 00:60:00",
        "1969-12-31 23:59:59",
        "2020-01-01",
        "2020-01-01 00:00:00+99:00",
        "2020-01-01 00:00:0x",
        "Unknown",
        "2020-01-01 00:00:00 PST",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int64_t ns;
        if (number_stamp(wrong[i], strlen(wrong[i]), &ns))
            fail_msg("\"%s\" was read as a time", wrong[i]);
    }
}

static void the_shortest_text_reads_back_as_the_same(void **state)
{
    static const double numbers[] = { 0, -0.0, 0.1, 1.0 / 3, 1e6, 123456.75, 5e-324 };
    char text[NUMBER_TEXT_BYTES];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        number_shortest(text, numbers[i], 6);
        assert_true(strtod(text, NULL) == numbers[i]);
    }
    number_shortest(text, 1e6, 6);
    assert_string_equal(text, "1e+06");
    number_shortest(text, 1e6, 15);
    assert_string_equal(text, "1000000");
    number_shortest(text, 0.1, 15);
    assert_string_equal(text, "0.1");
}

RUN_CASES(TEST(seconds_become_exact_nanoseconds), TEST(other_units_are_rounded_once),
          TEST(what_is_no_number_is_refused), TEST(a_double_is_the_one_strtod_gives),
          TEST(times_of_day_count_from_1970), TEST(days_that_do_not_exist_are_refused),
          TEST(the_shortest_text_reads_back_as_the_same));
