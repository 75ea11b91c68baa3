/* When a job will start, in words: clocks, days, horizons, and what nothing can be said of. */
#include "support/cases.h"

#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/berth/expected_times.h"

#define FILE_MAX (1 << 20)

/* tests/support/expected_times.json: cases that the dashboard's tests read as well. */
static struct json *listed;

static int read_cases(void **state)
{
    struct buf buf;
    struct error err;
    buf_init(&buf, FILE_MAX);
    if (buf_read(&buf, EXPECTED_TIMES_CASES, &err) < 0 ||
        json_parse(buf.bytes, buf.count, &listed, &err) < 0)
        fail_msg("%s", err.text);
    buf_release(&buf);
    return 0;
}

static int free_cases(void **state)
{
    json_free(listed);
    unsetenv("TZ");
    tzset();
    return 0;
}

static void set_zone(const char *zone)
{
    char path[200];
    snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", zone);
    FILE *file = fopen(path, "r");
    if (!file)
        SKIP("no time zones are installed: %s is missing", path);
    fclose(file);
    setenv("TZ", zone, 1);
    tzset();
}

static const char *with_hyphens(char *text)
{
    for (char *dash; (dash = strstr(text, "–"));) {
        *dash = '-';
        memmove(dash + 1, dash + strlen("–"), strlen(dash + strlen("–")) + 1);
    }
    return text;
}

static void assert_words(const struct json *one)
{
    char verb[16], text[EXPECTED_TIMES_LENGTH], want[EXPECTED_TIMES_LENGTH];
    const struct json *expected = json_get(one, "expected");
    double now = json_number_or(one, "now", 0);
    snprintf(verb, sizeof verb, "%ss ", json_text_at(one, "verb"));
    snprintf(want, sizeof want, "%s", json_text_at(one, "words"));
    print_message("# %s\n", json_text_at(one, "case"));
    assert_string_equal(
        expected_times_format(text, sizeof text, verb, expected, now, true), want);
    assert_string_equal(
        expected_times_format(text, sizeof text, verb, expected, now, false),
        with_hyphens(want));
}

static void every_case_has_its_words(void **state)
{
    assert_true(json_count(listed) > 20);
    for (size_t i = 0; i < json_count(listed); i++) {
        set_zone(json_text_at(json_item(listed, i), "zone"));
        assert_words(json_item(listed, i));
    }
}

static void every_case_has_its_sentences(void **state)
{
    for (size_t i = 0; i < json_count(listed); i++) {
        const struct json *one = json_item(listed, i);
        struct buf buf;
        buf_init(&buf, 4096);
        set_zone(json_text_at(one, "zone"));
        expected_times_explain(&buf, json_text_at(one, "verb"),
                               json_get(one, "expected"),
                               json_number_or(one, "now", 0));
        assert_string_equal(buf.count ? buf.bytes : "", json_text_at(one, "sentence"));
        buf_release(&buf);
    }
}

static struct json *parsed(const char *text)
{
    struct json *json;
    assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
    return json;
}

static void assert_of_job(const char *job_text, const char *want)
{
    char text[EXPECTED_TIMES_LENGTH];
    struct json *job = parsed(job_text);
    setenv("TZ", "UTC0", 1);
    tzset();
    assert_string_equal(expected_times_format_job(text, sizeof text, job, 36000, false),
                        want);
    json_free(job);
}

static void of_a_job_the_next_thing_is_said(void **state)
{
    assert_of_job("{\"expected_start\":{\"p10\":39600,\"p90\":43200},"
                  "\"expected_end\":{\"p10\":50400,\"p90\":54000}}",
                  "starts 11:00-12:00");
    assert_of_job("{\"expected_end\":{\"p10\":50400,\"p90\":54000}}",
                  "ends 14:00-15:00");
    assert_of_job("{}", "");
}

static void a_text_is_cut_and_never_overrun(void **state)
{
    char text[8] = "unused";
    struct json *expected = parsed("{\"p10\":39600,\"p90\":43200}");
    expected_times_format(text, sizeof text, "starts ", expected, 36000, true);
    assert_string_equal(text, "starts ");
    json_free(expected);
}

RUN_GROUP(read_cases, free_cases, TEST(every_case_has_its_words),
          TEST(every_case_has_its_sentences), TEST(of_a_job_the_next_thing_is_said),
          TEST(a_text_is_cut_and_never_overrun));
