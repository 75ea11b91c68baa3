/* YAML: what it says as JSON, where its keys stand, and what is refused. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/yaml.h"
#include "base/error.h"
#include "base/json.h"

static struct error err;

static void assert_read(const char *yaml, const char *want)
{
    struct json *json, *lines;
    if (yaml_read(yaml, strlen(yaml), "f", &json, &lines, &err) < 0)
        fail_msg("%s", err.text);
    char *text = json_text(json);
    assert_string_equal(text, want);
    free(text);
    json_free(json);
    json_free(lines);
}

static void assert_wrong(const char *yaml, const char *says)
{
    struct json *json, *lines;
    assert_int_equal(yaml_read(yaml, strlen(yaml), "f", &json, &lines, &err), -EINVAL);
    if (strncmp(err.text, says, strlen(says)) != 0)
        fail_msg("said \"%s\", want \"%s\"", err.text, says);
}

static void values_are_what_they_look_like(void **state)
{
    assert_read(
        "a: 5\nb: 2.5\nc: true\nd: text\ne: '5'\nf: [x, 1]\ng: {h: \"no\"}\n",
        "{\"a\":5,\"b\":2.5,\"c\":true,\"d\":\"text\",\"e\":\"5\",\"f\":[\"x\",1],"
        "\"g\":{\"h\":\"no\"}}");
    assert_read("a: v100:2\nb: 1-2\n", "{\"a\":\"v100:2\",\"b\":\"1-2\"}");
    assert_read("s: |\n  #!/bin/sh\n  true\n", "{\"s\":\"#!/bin/sh\\ntrue\\n\"}");
}

static void keys_know_their_lines(void **state)
{
    struct json *json, *lines;
    int64_t line = 0;
    const char *text = "# remark\na: 1\n\nb: 2\n";
    assert_int_equal(yaml_read(text, strlen(text), "f", &json, &lines, &err), 0);
    assert_true(json_as_count(json_get(lines, "b"), &line));
    assert_int_equal(line, 4);
    json_free(json);
    json_free(lines);
}

static void what_is_wrong_is_refused_with_its_line(void **state)
{
    assert_wrong("", "f:1: want lines");
    assert_wrong("- a\n", "f:1: want lines");
    assert_wrong("a: 1\na: 2\n", "f:2: a: is there twice");
    assert_wrong("a: [1\nb: 2\n", "f:");
    assert_wrong("a: 1\n[b]: 2\n", "f:2: a key");
    assert_wrong("a: \"\\0\"\n", "f:1: has a zero byte");
}

static void a_file_that_says_too_much_is_refused(void **state)
{
    char text[2000] = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
    for (int i = 1; i < 9; i++) {
        size_t count = strlen(text);
        snprintf(text + count, sizeof text - count,
                 "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    }
    struct json *json, *lines;
    assert_int_equal(yaml_read(text, strlen(text), "f", &json, &lines, &err), -EINVAL);
    assert_non_null(strstr(err.text, "says too much"));
}

RUN_CASES(TEST(values_are_what_they_look_like), TEST(keys_know_their_lines),
          TEST(what_is_wrong_is_refused_with_its_line),
          TEST(a_file_that_says_too_much_is_refused));
