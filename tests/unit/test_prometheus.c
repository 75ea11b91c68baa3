/* Figures for /metrics: both spellings, escaping, and what a real parser says. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "metrics/prometheus.h"
#include "support/cases.h"

static void write_some(struct buf *text, bool open)
{
    struct prometheus out;
    const struct prometheus_label te[] = { { "class", "te" },
                                           { "rule", "a\"b\\c\nd" },
                                           { NULL } };

    prometheus_begin(&out, text, open);
    prometheus_counter(&out, "berth_gpu_seconds", "seconds", "GPU-time held by jobs.");
    prometheus_value(&out, te, 12.5);
    prometheus_value(
        &out, (const struct prometheus_label[]){ { "class", "be" }, { NULL } }, 0.1);
    prometheus_gauge(&out, "berth_jobs", NULL, "Jobs by state; a \\ and\na line.");
    prometheus_count(&out, NULL, UINT64_MAX);
    prometheus_end(&out);
}

static void openmetrics_names_the_family_and_ends(void **state)
{
    struct buf text;
    buf_init(&text, 10000);
    write_some(&text, true);
    assert_string_equal(
        text.bytes,
        "# TYPE berth_gpu_seconds counter\n"
        "# UNIT berth_gpu_seconds seconds\n"
        "# HELP berth_gpu_seconds GPU-time held by jobs.\n"
        "berth_gpu_seconds_total{class=\"te\",rule=\"a\\\"b\\\\c\\nd\"} 12.5\n"
        "berth_gpu_seconds_total{class=\"be\"} 0.1\n"
        "# TYPE berth_jobs gauge\n"
        "# HELP berth_jobs Jobs by state; a \\\\ and\\na line.\n"
        "berth_jobs 18446744073709551615\n"
        "# EOF\n");
    buf_release(&text);
}

static void the_older_format_names_the_counter(void **state)
{
    struct buf text;
    buf_init(&text, 10000);
    write_some(&text, false);
    assert_non_null(strstr(text.bytes, "# TYPE berth_gpu_seconds_total counter\n"));
    assert_non_null(strstr(text.bytes, "# HELP berth_gpu_seconds_total "));
    assert_null(strstr(text.bytes, "# UNIT"));
    assert_null(strstr(text.bytes, "# EOF"));
    buf_release(&text);
}

static void numbers_are_read_back_equal(void **state)
{
    static const double numbers[] = { 0,        1,      -1,   0.1,           1.0 / 3.0,
                                      1e300,    5e-324, 1e15, 123456789.125, INFINITY,
                                      -INFINITY };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct buf text;
        struct prometheus out;
        buf_init(&text, 1000);
        prometheus_begin(&out, &text, true);
        prometheus_gauge(&out, "x", NULL, "X.");
        prometheus_value(&out, NULL, numbers[i]);
        const char *number = strrchr(text.bytes, ' ') + 1;
        assert_true(strtod(number, NULL) == numbers[i]);
        buf_release(&text);
    }
}

static void the_format_is_chosen_by_what_is_accepted(void **state)
{
    assert_false(prometheus_accepts_open(NULL));
    assert_false(prometheus_accepts_open("*/*"));
    assert_true(prometheus_accepts_open(
        "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"));
}

static int run(const char *command, const struct buf *text)
{
    FILE *pipe = popen(command, "w");
    assert_non_null(pipe);
    assert_int_equal(fwrite(text->bytes, 1, text->count, pipe), text->count);
    return pclose(pipe);
}

static void promtool_finds_nothing_wrong(void **state)
{
    if (system("command -v promtool >/dev/null") != 0)
        SKIP("promtool is not installed");
    struct buf text;
    buf_init(&text, 10000);
    write_some(&text, false);
    assert_int_equal(run("promtool check metrics >&2", &text), 0);

    buf_text(&text, "berth_broken{ 1\n"); /* it does look */
    assert_int_not_equal(run("promtool check metrics 2>/dev/null", &text), 0);
    buf_release(&text);
}

/* Prometheus's reader of OpenMetrics imports samples that have a time: give them one. */
static void prometheus_reads_the_open_format(void **state)
{
    if (system("command -v promtool >/dev/null") != 0)
        SKIP("promtool is not installed");
    char folder[] = "/tmp/berth-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct buf text;
    buf_init(&text, 10000);
    write_some(&text, true);
    char command[300];
    snprintf(command, sizeof command,
             "sed '/^#/!s/$/ 1750000000/' >%s/in && promtool tsdb create-blocks-from "
             "openmetrics %s/in %s/out >/dev/null",
             folder, folder, folder);
    assert_int_equal(run(command, &text), 0);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    buf_release(&text);
}

RUN_CASES(TEST(openmetrics_names_the_family_and_ends),
          TEST(the_older_format_names_the_counter), TEST(numbers_are_read_back_equal),
          TEST(the_format_is_chosen_by_what_is_accepted),
          TEST(promtool_finds_nothing_wrong), TEST(prometheus_reads_the_open_format));
