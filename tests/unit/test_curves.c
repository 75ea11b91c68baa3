/* Learning curves in a file: one or many, and what is refused. */
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "workload/curves.h"

static struct error err;

static int open_text(struct curves *curves, const char *text)
{
    return curves_open_memory(curves, "dir/loss.csv.gz", text, strlen(text), &err);
}

static void steps_and_losses_are_one_curve(void **state)
{
    struct curves curves;
    struct curves_one one;
    assert_int_equal(open_text(&curves, "step,loss\n0,2.5\n10,-1e-3\n\n20,0.5\n"), 0);
    assert_int_equal(curves_next(&curves, &one, &err), 1);
    assert_string_equal(one.id, "loss");
    assert_int_equal(one.count, 3);
    assert_near(one.step[1], 10, 0);
    assert_near(one.value[1], -1e-3, 0);
    assert_int_equal(curves_next(&curves, &one, &err), 0);
    curves_release(&curves);
}

static void two_numbers_need_no_header(void **state)
{
    struct curves curves;
    struct curves_one one;
    assert_int_equal(open_text(&curves, "1,2.5\n2,2\n"), 0);
    assert_int_equal(curves_next(&curves, &one, &err), 1);
    assert_int_equal(one.count, 2);
    assert_near(one.value[0], 2.5, 0);
    assert_int_equal(curves_next(&curves, &one, &err), 0);
    curves_release(&curves);
}

static void many_curves_come_one_by_one(void **state)
{
    struct curves curves;
    struct curves_one one;
    assert_int_equal(open_text(&curves, "run_id,algo,metric,step,value,seconds\n"
                                        "a,svm,loss,1,3,\na,svm,loss,2,2,0.5\n"
                                        "a,svm,acc,1,0.1,\nb,\"x,y\",loss,7,9,\n"),
                     0);
    const char *const ids[] = { "a/loss", "a/acc", "b/loss" };
    const uint32_t counts[] = { 2, 1, 1 };
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(curves_next(&curves, &one, &err), 1);
        assert_string_equal(one.id, ids[i]);
        assert_int_equal(one.count, counts[i]);
    }
    assert_string_equal(one.algo, "x,y");
    assert_string_equal(one.metric, "loss");
    assert_int_equal(curves_next(&curves, &one, &err), 0);
    curves_release(&curves);
}

static void assert_refused(const char *text, const char *says)
{
    struct curves curves;
    struct curves_one one;
    err.text[0] = '\0';
    int r = open_text(&curves, text);
    if (r == 0) {
        while ((r = curves_next(&curves, &one, &err)) > 0)
            ;
        curves_release(&curves);
    }
    assert_int_equal(r, -EINVAL);
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static void what_is_wrong_is_said_with_line_and_field(void **state)
{
    assert_refused("step,loss\n1,2\n1,3\n", ":3: step is \"1\", want more than");
    assert_refused("step,loss\n5,2\n4,3\n", ":3: step is \"4\"");
    assert_refused("step,loss\n1,nan\n", ":2: loss is \"nan\"");
    assert_refused("step,loss\n1,inf\n", ":2: loss is \"inf\"");
    assert_refused("step,loss\n1,1e300\n", ":2: loss is \"1e300\"");
    assert_refused("step,loss\n1,\n", ":2: loss is \"\"");
    assert_refused("step,loss\n-1,2\n", ":2: step is \"-1\"");
    assert_refused("step,loss\nx,2\n", ":2: step is \"x\"");
    assert_refused("step,loss\n1,2,3\n", ":2: 3 fields, want 2");
    assert_refused("step,loss\n", "no point in it");
    assert_refused("epoch,loss\n1,2\n", ":1: no column step");
    assert_refused("step,accuracy\n1,2\n", ":1: no column loss or value");
    assert_refused("run_id,step,value\n,1,2\n", ":2: run_id is \"\"");
    assert_refused("run_id,step,value\na,1,2\nb,1,2\na,2,1\n", ":4: run_id is \"a\"");
    assert_refused("1,2\n2,nan\n", ":2: loss is \"nan\"");
    char name[400];
    memset(name, 'n', 300);
    snprintf(name + 300, 50, ",1,2\n");
    char text[500];
    snprintf(text, sizeof text, "run_id,step,value\n%s", name);
    assert_refused(text, ":2: run_id is \"nnn");
}

RUN_CASES(TEST(steps_and_losses_are_one_curve), TEST(two_numbers_need_no_header),
          TEST(many_curves_come_one_by_one),
          TEST(what_is_wrong_is_said_with_line_and_field));
