/* The streaming JSON writer: reading gives back what was written. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "base/json.h"

static void commas_are_added_where_needed(void **state)
{
    struct buf buf;
    buf_init(&buf, 1000);
    json_write_open(&buf, NULL, '{');
    json_write_count(&buf, "a", -1);
    json_write_open(&buf, "list", '[');
    json_write_count(&buf, NULL, 1);
    json_write_open(&buf, NULL, '{');
    json_write_close(&buf, '}');
    json_write_open(&buf, NULL, '[');
    json_write_close(&buf, ']');
    json_write_text(&buf, NULL, "{");
    json_write_count(&buf, NULL, 2);
    json_write_close(&buf, ']');
    json_write_flag(&buf, "yes", true);
    json_write_text_if(&buf, "absent", NULL);
    json_write_raw(&buf, "as", "[null]");
    json_write_number(&buf, "n", 0.125);
    json_write_bits(&buf, "bits", UINT64_C(1) << 63 | 5);
    json_write_close(&buf, '}');
    assert_string_equal(buf.bytes, "{\"a\":-1,\"list\":[1,{},[],\"{\",2],\"yes\":true,"
                                   "\"as\":[null],\"n\":0.125,\"bits\":[0,2,63]}");
    buf_release(&buf);
}

static void numbers_keep_their_digits(void **state)
{
    struct buf buf;
    buf_init(&buf, 1000);
    json_write_open(&buf, NULL, '[');
    json_write_count(&buf, NULL, 0);
    json_write_count(&buf, NULL, INT64_MAX);
    json_write_count(&buf, NULL, INT64_MIN);
    json_write_time(&buf, NULL, 0);
    json_write_time(&buf, NULL, 1999);
    json_write_time(&buf, NULL, INT64_C(1750000000250001000));
    json_write_time(&buf, NULL, INT64_MAX);
    json_write_time_ns(&buf, NULL, 1999);
    json_write_exact(&buf, NULL, 0.1);
    json_write_exact(&buf, NULL, INFINITY);
    json_write_close(&buf, ']');
    assert_string_equal(buf.bytes,
                        "[0,9223372036854775807,-9223372036854775808,0.000000,0.000001,"
                        "1750000000.250001,9223372036.854775,0.000001999,"
                        "0.10000000000000001,null]");
    buf_release(&buf);
}

static void text_with_control_characters_is_read_back(void **state)
{
    char text[400] = "\" \\ / \xc3\xa4 \xe2\x82\xac";
    size_t count = strlen(text);
    for (int c = 1; c <= 0x7f; c++)
        text[count++] = (char)c;
    struct buf buf;
    buf_init(&buf, 10000);
    json_write_open(&buf, NULL, '{');
    json_write_text(&buf, "text", text);
    json_write_text(&buf, "empty", "");
    json_write_close(&buf, '}');
    struct json *json;
    assert_int_equal(json_parse(buf.bytes, buf.count, &json, NULL), 0);
    assert_string_equal(json_as_text(json_get(json, "text")), text);
    assert_string_equal(json_as_text(json_get(json, "empty")), "");
    json_free(json);
    buf_release(&buf);
}

RUN_CASES(TEST(commas_are_added_where_needed), TEST(numbers_keep_their_digits),
          TEST(text_with_control_characters_is_read_back));
