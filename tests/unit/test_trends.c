/* The last hours in fixed room, and what each group is due. */
#include "support/cases.h"

#include <string.h>

#include "base/buf.h"
#include "daemon/routes/dashboard.h"

static struct trends trends;

static int setup(void **state)
{
    trends = (struct trends){ 0 };
    return 0;
}

static void shares_are_max_min_fair(void **state)
{
    const double wanted[] = { 1, 10, 10, 0 }, even[] = { 1, 1, 1, 1 };
    const double twice[] = { 1, 2, 1, 1 };
    double due[4];
    trends_fair_shares(wanted, even, 4, 9, due);
    assert_true(due[0] == 1 && due[1] == 4 && due[2] == 4 && due[3] == 0);
    trends_fair_shares(wanted, twice, 4, 10, due);
    assert_true(due[0] == 1 && due[1] == 6 && due[2] == 3);
    trends_fair_shares(wanted, even, 4, 100, due);
    assert_true(due[0] == 1 && due[1] == 10 && due[2] == 10);
    trends_fair_shares(wanted, even, 4, 0, due);
    assert_true(due[0] == 0 && due[1] == 0);
    trends_fair_shares(wanted, even, 0, 9, due);
}

static void older_samples_are_thinned_out_in_order(void **state)
{
    const uint32_t many = 20 * TRENDS_SAMPLES;
    for (uint32_t i = 1; i <= many; i++)
        trends_add(&trends, i)->held = i;
    assert_true(trends.count <= TRENDS_SAMPLES);
    assert_int_equal(trends.samples[trends.count - 1].held, many);
    assert_int_equal(trends.samples[trends.count - 2].held, many - 1);
    assert_true(trends.samples[0].held < many / 4);
    for (uint32_t i = 1; i < trends.count; i++)
        assert_true(trends.samples[i].at_ns > trends.samples[i - 1].at_ns);
}

static void groups_beyond_the_limit_share_the_last_index(void **state)
{
    static const char *const tokens[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i",
                                          "j", "k", "l", "m", "n", "o", "p", "q", "r" };
    bool is_new;
    for (uint32_t i = 0; i < 18; i++)
        assert_int_equal(trends_find_reason(&trends, tokens[i]),
                         i < TRENDS_REASONS ? i : TRENDS_REASONS - 1);
    for (uint64_t key = 0; key < 3 * TRENDS_GROUPS; key++) {
        uint32_t place = trends_find_group(&trends, key, &is_new);
        assert_int_equal(place, key < TRENDS_GROUPS ? key : TRENDS_GROUPS - 1);
        assert_int_equal(is_new, key < TRENDS_GROUPS);
    }
    assert_string_equal(trends.groups[TRENDS_GROUPS - 1].name, "all others");
}

static void columns_begin_after_the_given_time(void **state)
{
    struct buf text;
    buf_init(&text, 10000);
    for (int i = 1; i <= 3; i++) {
        struct trends_sample *sample = trends_add(&trends, i * INT64_C(1000000000));
        sample->held = (uint32_t)i;
        sample->reasons[trends_find_reason(&trends, "order")] = (uint32_t)(10 * i);
    }
    buf_text(&text, "{");
    trends_write(&trends, &text, 1000000000);
    assert_non_null(strstr(text.bytes, "\"t\":[2.000000,3.000000]"));
    assert_non_null(strstr(text.bytes, "\"held\":[2,3]"));
    assert_non_null(strstr(text.bytes, "{\"token\":\"order\",\"jobs\":[20,30]}"));
    buf_release(&text);
}

RUN_CASES(cmocka_unit_test_setup(shares_are_max_min_fair, setup),
          cmocka_unit_test_setup(older_samples_are_thinned_out_in_order, setup),
          cmocka_unit_test_setup(groups_beyond_the_limit_share_the_last_index, setup),
          cmocka_unit_test_setup(columns_begin_after_the_given_time, setup));
