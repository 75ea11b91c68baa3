/* What a job writes down of its progress: the newest line that makes sense. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "daemon/progress.h"

static bool read_text(const char *text, struct progress_report *report)
{
    return progress_read(text, strlen(text), report);
}

static void the_newest_line_counts(void **state)
{
    struct progress_report report;
    assert_true(read_text("5 2.5\n40 0.25 100\n", &report));
    assert_true(report.step == 40 && report.loss == 0.25 && report.total == 100);
    assert_true(isnan(report.saved));
    assert_true(read_text("7\n", &report));
    assert_true(report.step == 7 && isnan(report.loss) && isnan(report.total));
    assert_true(read_text("7,-,20\r\n", &report));
    assert_true(report.step == 7 && isnan(report.loss) && report.total == 20);
}

static void a_line_without_its_end_is_not_there_yet(void **state)
{
    struct progress_report report;
    assert_true(read_text("5 2.5\n40 0.2", &report));
    assert_true(report.step == 5);
    assert_false(read_text("5 2.5", &report));
    assert_false(read_text("", &report));
}

static void what_makes_no_sense_is_passed_over(void **state)
{
    struct progress_report report;
    assert_true(read_text("3 1\nloss is nan\n-4 1\n1e99 2\n\n", &report));
    assert_true(report.step == 3);
    assert_true(read_text("3 inf 0\n", &report));
    assert_true(report.step == 3 && isnan(report.loss) && isnan(report.total));
    assert_false(progress_read("3\0 1\n", 6, &report));
    static char longer[1000];
    memset(longer, '1', sizeof longer - 2);
    longer[sizeof longer - 2] = '\n';
    assert_false(read_text(longer, &report));
}

RUN_CASES(TEST(the_newest_line_counts), TEST(a_line_without_its_end_is_not_there_yet),
          TEST(what_makes_no_sense_is_passed_over));
