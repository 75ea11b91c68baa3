/* JSON: what is put in comes out, in order; what is wrong is refused with its line. */
#include "support/cases.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

/* What 'json' looks like; it is freed. */
static void assert_text(struct json *json, const char *want)
{
    char *text = json_text(json);
    assert_string_equal(text, want);
    free(text);
    json_free(json);
}

static void members_stay_in_the_order_they_were_put(void **state)
{
    struct json *object = json_new_object();
    json_put_text(object, "policy", "las");
    json_put_count(object, "seed", INT64_MAX);
    json_put_flag(object, "aware", true);
    json_put(object, "jobs", json_new_object());
    assert_text(object, "{\"policy\":\"las\",\"seed\":9223372036854775807,"
                        "\"aware\":true,\"jobs\":{}}");
}

static void numbers_stay_readable(void **state)
{
    struct json *array = json_new_array();
    json_add_number(array, 0.1);
    json_add_number(array, 1.0 / 3.0);
    json_add_number(array, 1e300);
    json_add_count(array, -4);
    json_add_text(array, "x\n\"");
    assert_text(array, "[0.1,0.333333333333,1e300,-4,\"x\\n\\\"\"]");
}

static void text_that_is_not_utf8_still_gives_valid_json(void **state)
{
    struct json *array = json_new_array();
    json_add_number(array, INFINITY);
    json_add_number(array, NAN);
    json_add_text(array, "\xff\xfe");
    assert_text(array, "[0.0,0.0,\"(not UTF-8)\"]");
}

static void parsed_values_can_be_read(void **state)
{
    const char text[] = "{\"a\": [1, 2.5, \"x\"], \"n\": null, \"o\": {}}";
    struct json *json;
    double number;
    assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);

    const struct json *a = json_get(json, "a");
    assert_true(json_is_array(a));
    assert_int_equal(json_count(a), 3);
    assert_true(json_as_number(json_item(a, 0), &number));
    assert_true(number == 1.0);
    assert_true(json_as_number(json_item(a, 1), &number));
    assert_true(number == 2.5);
    assert_string_equal(json_as_text(json_item(a, 2)), "x");
    assert_true(json_is_null(json_get(json, "n")));
    assert_true(json_is_object(json_get(json, "o")));
    json_free(json);
}

static void absent_members_and_other_types_give_nothing(void **state)
{
    struct json *json;
    double number = 7;
    assert_int_equal(json_parse("{\"a\":\"1\"}", 9, &json, NULL), 0);

    assert_null(json_get(json, "b"));
    assert_null(json_get(json_get(json, "b"), "c"));
    assert_null(json_item(json, 0));
    assert_null(json_as_text(json));
    assert_null(json_as_text(NULL));
    assert_false(json_as_number(json_get(json, "a"), &number));
    assert_false(json_as_number(NULL, &number));
    assert_true(number == 7);
    assert_int_equal(json_count(json), 0);
    assert_false(json_is_object(NULL));
    assert_false(json_is_array(NULL));
    assert_false(json_is_null(NULL));
    json_free(json);
}

static void an_object_can_be_walked(void **state)
{
    struct json *json;
    assert_int_equal(json_parse("{\"x\":1,\"y\":2}", 13, &json, NULL), 0);
    const char *key;
    const struct json *value;
    char seen[8] = "";
    for (void *at = NULL; (at = json_member(json, at, &key, &value));)
        strncat(seen, key, 1);
    assert_string_equal(seen, "xy");
    json_free(json);
}

static void a_wrong_text_is_refused_with_its_line(void **state)
{
    static const char *const wrong[] = {
        "",    "{",       "[1,]",          "{\"a\":1}x", "{\"a\":1,\"a\":2}",
        "nul", "[1e999]", "[\"\\ud800\"]",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct json *json = NULL;
        struct error err = { "" };
        assert_int_equal(json_parse(wrong[i], strlen(wrong[i]), &json, &err), -EINVAL);
        assert_null(json);
        assert_int_equal(strncmp(err.text, "line 1: ", 8), 0);
    }
    struct json *json;
    struct error err;
    assert_int_equal(json_parse("[1,\n2,\n?]", 9, &json, &err), -EINVAL);
    assert_int_equal(strncmp(err.text, "line 3: ", 8), 0);
}

static void a_deep_text_is_refused(void **state)
{
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH);
    struct json *json;
    memset(text, '[', DEPTH);
    assert_int_equal(json_parse(text, DEPTH, &json, NULL), -EINVAL);
    free(text);
}

static void printing_ends_the_line(void **state)
{
    char text[64] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    struct json *object = json_new_object();
    json_put_count(object, "n", 1);
    json_print(object, file, /* indented= */ false);
    json_print(object, file, /* indented= */ true);
    fclose(file);
    assert_string_equal(text, "{\"n\":1}\n{\n  \"n\": 1\n}\n");
    json_free(object);
}

static void whole_numbers_and_flags_are_told_from_others(void **state)
{
    struct json *json;
    const char *text = "[5, 5.0, true, \"5\"]";
    int64_t count = 0;
    bool flag = false;
    assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
    assert_true(json_as_count(json_item(json, 0), &count));
    assert_int_equal(count, 5);
    assert_false(json_as_count(json_item(json, 1), &count));
    assert_false(json_as_count(json_item(json, 3), &count));
    assert_true(json_as_flag(json_item(json, 2), &flag));
    assert_true(flag);
    assert_false(json_as_flag(json_item(json, 0), &flag));
    assert_false(json_as_flag(NULL, &flag));
    assert_true(json_is_text(json_item(json, 3)));
    assert_false(json_is_text(json_item(json, 0)));
    json_free(json);
}

static void exact_texts_have_all_digits(void **state)
{
    struct json *array = json_new_array();
    json_add_number(array, 1800000000.123456);
    char *text = json_text_exact(array);
    struct json *again;
    double number = 0;
    assert_int_equal(json_parse(text, strlen(text), &again, NULL), 0);
    assert_true(json_as_number(json_item(again, 0), &number));
    assert_true(number == 1800000000.123456);
    free(text);
    json_free(array);
    json_free(again);
}

RUN_CASES(TEST(members_stay_in_the_order_they_were_put), TEST(numbers_stay_readable),
          TEST(text_that_is_not_utf8_still_gives_valid_json),
          TEST(parsed_values_can_be_read),
          TEST(absent_members_and_other_types_give_nothing),
          TEST(an_object_can_be_walked), TEST(a_wrong_text_is_refused_with_its_line),
          TEST(a_deep_text_is_refused), TEST(printing_ends_the_line),
          TEST(whole_numbers_and_flags_are_told_from_others),
          TEST(exact_texts_have_all_digits));
