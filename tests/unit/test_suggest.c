/* "Did you mean": near names, best first, and silence when nothing is near. */
#include "support/cases.h"

#include <string.h>

#include "base/suggest.h"

static const char *const names[] = { "fifo", "fifo-backfill", "sjf", "srtf",
                                     "las",  "gavel-las",     NULL };

static const char *hint(const char *word)
{
    static char text[160];
    return suggest_names(text, sizeof text, word, names);
}

static void a_slip_finds_the_name(void **state)
{
    assert_string_equal(hint("fio"), " (did you mean 'fifo'?)");
    assert_non_null(strstr(hint("sfj"), "'sjf'")); /* two letters swapped */
    assert_non_null(strstr(hint("fifo-backfil"), "mean 'fifo-backfill'"));
}

static void the_nearest_comes_first(void **state)
{
    assert_non_null(strstr(hint("lass"), "mean 'las'"));
    assert_non_null(strstr(hint("srt"), "mean 'srtf'"));
}

static void a_second_is_named_only_where_it_is_as_near(void **state)
{
    assert_string_equal(hint("fif"), " (did you mean 'fifo'?)");
    assert_string_equal(hint("sxf"), " (did you mean 'sjf'?)");
}

static void capitals_do_not_matter(void **state)
{
    assert_string_equal(hint("LAS"), " (did you mean 'las'?)");
    assert_non_null(strstr(hint("BackFill"), "'fifo-backfill'"));
}

static void a_part_of_a_name_is_near(void **state)
{
    assert_non_null(strstr(hint("backfill"), "'fifo-backfill'"));
}

static void what_is_like_nothing_suggests_nothing(void **state)
{
    assert_string_equal(hint("quantum-annealing"), "");
    assert_string_equal(hint(""), "");
}

static void a_long_word_is_no_trouble(void **state)
{
    static char word[5000];
    memset(word, 'f', sizeof word - 1);
    assert_string_equal(hint(word), "");
}

static void a_short_buffer_is_filled_not_spilled(void **state)
{
    char text[8];
    suggest_names(text, sizeof text, "fifo", names);
    assert_int_equal(strlen(text), 7);
}

RUN_CASES(TEST(a_slip_finds_the_name), TEST(the_nearest_comes_first),
          TEST(a_second_is_named_only_where_it_is_as_near),
          TEST(capitals_do_not_matter), TEST(a_part_of_a_name_is_near),
          TEST(what_is_like_nothing_suggests_nothing), TEST(a_long_word_is_no_trouble),
          TEST(a_short_buffer_is_filled_not_spilled));
