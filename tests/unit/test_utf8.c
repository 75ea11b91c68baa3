/* Characters of UTF-8, and what stands for bytes that are none. */
#include "support/cases.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/utf8.h"

static void characters_have_one_to_four_bytes(void **state)
{
    assert_int_equal(utf8_length("a"), 1);
    assert_int_equal(utf8_length("é"), 2);
    assert_int_equal(utf8_length("…"), 3);
    assert_int_equal(utf8_length("\xf0\x9f\x98\x80"), 4);
    static const char *const wrong[] = {
        "\x80",         "\xff",         "\xc3",     "\xe2\x80",        "\xc0\xaf",
        "\xe0\x80\xaf", "\xed\xa0\x80", "\xf8\x88", "\xf4\x90\x80\x80"
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(utf8_length(wrong[i]), 0);
}

static void bytes_that_are_no_character_are_replaced(void **state)
{
    char *clean = utf8_clean("a\xff\xc3z é\xe2\x80");
    assert_string_equal(clean, "a" UTF8_REPLACEMENT UTF8_REPLACEMENT
                               "z é" UTF8_REPLACEMENT UTF8_REPLACEMENT);
    assert_true(json_can_say(clean));
    free(clean);
}

static void the_writer_writes_json_whatever_it_is_given(void **state)
{
    struct buf buf;
    buf_init(&buf, 1000);
    json_write_text(&buf, NULL, "a\"\xff\\\x01é\xc3");
    assert_string_equal(buf.bytes, "\"a\\\"" UTF8_REPLACEMENT
                                   "\\\\\\u0001é" UTF8_REPLACEMENT "\"");
    buf_release(&buf);
}

RUN_CASES(TEST(characters_have_one_to_four_bytes),
          TEST(bytes_that_are_no_character_are_replaced),
          TEST(the_writer_writes_json_whatever_it_is_given));
