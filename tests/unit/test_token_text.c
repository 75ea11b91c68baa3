/* The text of a token: what is one, what is not, and the forms of its parts. */
#include "support/cases.h"

#include <string.h>

#include "api/token_text.h"

#define SECRET "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
#define PRINT "__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA"

static void thirty_two_bytes_are_encoded_as_base64url(void **state)
{
    unsigned char up[TOKEN_TEXT_BYTES], down[TOKEN_TEXT_BYTES];
    char text[TOKEN_TEXT_PART + 1];
    for (int i = 0; i < TOKEN_TEXT_BYTES; i++) {
        up[i] = (unsigned char)i;
        down[i] = (unsigned char)(255 - i);
    }
    token_text_encode(up, text);
    assert_string_equal(text, SECRET);
    token_text_encode(down, text);
    assert_string_equal(text, PRINT);
}

static void what_is_printed_is_parsed(void **state)
{
    struct token_text token = { .id = 17, .secret = SECRET, .fingerprint = PRINT };
    struct token_text read;
    char text[TOKEN_TEXT_MAX];
    token_text_print(&token, text);
    assert_string_equal(text, "bt1.17." SECRET "." PRINT);
    assert_true(token_text_parse(&read, text));
    assert_int_equal(read.id, 17);
    assert_string_equal(read.secret, SECRET);
    assert_string_equal(read.fingerprint, PRINT);
}

static void a_fingerprint_may_be_absent_and_the_longest_text_fits(void **state)
{
    struct token_text read;
    char text[TOKEN_TEXT_MAX];
    assert_true(token_text_parse(&read, "bt1.9223372036854775807." SECRET));
    assert_string_equal(read.fingerprint, "");
    memcpy(read.fingerprint, PRINT, sizeof read.fingerprint);
    token_text_print(&read, text);
    assert_string_equal(text, "bt1.9223372036854775807." SECRET "." PRINT);
}

static void anything_else_is_no_token_and_changes_nothing(void **state)
{
    static const char *const wrong[] = {
        "",
        "bt1",
        "bt1.",
        "bt1.1",
        "bt1.1.",
        "bt2.1." SECRET,
        "BT1.1." SECRET,
        "bt1.0." SECRET,
        "bt1.01." SECRET,
        "bt1.-1." SECRET,
        "bt1.+1." SECRET,
        "bt1. 1." SECRET,
        "bt1.x." SECRET,
        "bt1..1." SECRET,
        "bt1.9223372036854775808." SECRET,
        "bt1.99999999999999999999." SECRET,
        "bt1.1.A" SECRET,
        "bt1.1." SECRET ".",
        "bt1.1." SECRET "." PRINT ".",
        "bt1.1." SECRET "." PRINT "A",
        "bt1.1." SECRET "=",
        "bt1.1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+",
        "bt1.1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    };
    struct token_text token = { .id = 4711 };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (token_text_parse(&token, wrong[i]))
            fail_msg("%s was taken for a token", wrong[i]);
    assert_int_equal(token.id, 4711);
}

static void a_pin_is_what_libcurl_reads(void **state)
{
    char pin[TOKEN_TEXT_PIN_MAX];
    token_text_pin(PRINT, pin);
    assert_string_equal(pin, "sha256//"
                             "//79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA=");
}

RUN_CASES(TEST(thirty_two_bytes_are_encoded_as_base64url),
          TEST(what_is_printed_is_parsed),
          TEST(a_fingerprint_may_be_absent_and_the_longest_text_fits),
          TEST(anything_else_is_no_token_and_changes_nothing),
          TEST(a_pin_is_what_libcurl_reads));
