/* Waiting for berthd: how long, and who may end it. */
#include "support/cases.h"

#include <math.h>
#include <string.h>

#include "api/patience.h"
#include "base/clock.h"

static int calls;
static int calls_max; /* then it gives up */
static char said[80];

static bool count_calls(void *context, const char *sentence)
{
    snprintf(said, sizeof said, "%s", sentence);
    return ++calls < calls_max;
}

static int setup(void **state)
{
    calls = 0;
    calls_max = 1000;
    return 0;
}

static int teardown(void **state)
{
    return 0;
}

static void without_patience_nothing_is_tried_again(void **state)
{
    struct patience patience = { .seconds = 0, .wait = count_calls };
    patience_begin(&patience);
    assert_false(patience_wait(&patience, "no room"));
    assert_int_equal(calls, 0);
}

static void delays_grow_and_the_sentence_is_passed_on(void **state)
{
    struct patience patience = { .seconds = INFINITY, .wait = count_calls };
    double last_s = 0;
    patience_begin(&patience);
    for (int i = 0; i < 4; i++) {
        int64_t before_ns = clock_now_ns();
        assert_true(patience_wait(&patience, "no room"));
        double took_s = (double)(clock_now_ns() - before_ns) / 1e9;
        assert_true(patience.delay_s > last_s);
        assert_true(took_s >= 0.49 * patience.delay_s);
        last_s = patience.delay_s;
    }
    assert_true(calls >= 4);
    assert_string_equal(said, "no room");
    patience_begin(&patience); /* the next request begins anew */
    assert_true(patience_wait(&patience, "no room"));
    assert_true(patience.delay_s < last_s);
}

static void it_ends_when_the_time_is_over(void **state)
{
    struct patience patience = { .seconds = 0.1 };
    int tries = 0;
    patience_begin(&patience);
    while (patience_wait(&patience, "no room"))
        tries++;
    assert_in_range(tries, 1, 20);
}

static void the_caller_can_end_it_in_the_middle_of_a_delay(void **state)
{
    struct patience patience = { .seconds = INFINITY, .wait = count_calls };
    calls_max = 3;
    patience_begin(&patience);
    patience.delay_s = 1000; /* the longest delay comes next */
    int64_t before_ns = clock_now_ns();
    assert_false(patience_wait(&patience, "no room"));
    assert_true(patience.delay_s == 2);
    assert_true(clock_now_ns() - before_ns < INT64_C(900000000));
    assert_int_equal(calls, 3);
}

RUN_CASES(CASE(without_patience_nothing_is_tried_again),
          CASE(delays_grow_and_the_sentence_is_passed_on),
          CASE(it_ends_when_the_time_is_over),
          CASE(the_caller_can_end_it_in_the_middle_of_a_delay));
