/* Code points for levels: the standard ones, those of a site, and malformed lists. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "flowd/dscp.h"

static struct dscp_levels read_levels(const char *text)
{
    struct dscp_levels levels;
    struct error err = { "" };
    if (dscp_levels_parse(&levels, text, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return levels;
}

static void assert_points(const struct dscp_levels *levels, uint32_t count,
                          const char *expected)
{
    char text[128] = "", name[DSCP_NAME_MAX];
    for (uint32_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        uint32_t point = dscp_levels_point(levels, count, i);
        snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                 dscp_name(name, levels->points[point].dscp));
    }
    assert_string_equal(text, expected);
}

static void any_number_of_levels_has_points(void **state)
{
    struct dscp_levels levels = read_levels(dscp_levels_standard);
    assert_points(&levels, 2, "cs5 cs1");
    assert_points(&levels, 3, "cs5 cs3 cs1");
    assert_points(&levels, 4, "cs5 cs4 cs2 cs1");
    assert_points(&levels, 5, "cs5 cs4 cs3 cs2 cs1");
    assert_points(&levels, 6, "cs5 cs4 cs3 cs2 unmarked cs1");
    assert_points(&levels, 7, "cs5 cs5 cs4 cs3 cs2 unmarked cs1");
    assert_points(&levels, 8, "cs5 cs5 cs4 cs3 cs3 cs2 unmarked cs1");
}

static void a_better_level_never_has_a_worse_point(void **state)
{
    static const char *const lists[] = { "cs5,cs4,cs3,cs2,unmarked,cs1", "cs2,cs1",
                                         "ef,af41,af31,unmarked,12,10,8" };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct dscp_levels levels = read_levels(lists[i]);
        for (uint32_t count = DSCP_LEVELS_MIN; count <= DSCP_LEVELS_MAX; count++) {
            assert_int_equal(dscp_levels_point(&levels, count, 0), 0);
            assert_int_equal(dscp_levels_point(&levels, count, count - 1),
                             levels.count - 1);
            for (uint32_t level = 1; level < count; level++)
                assert_true(dscp_levels_point(&levels, count, level) >=
                            dscp_levels_point(&levels, count, level - 1));
        }
    }
}

/* pfifo_fast, prio and fq map these priorities to three bands by default. */
static void the_hosts_own_queues_keep_the_order(void **state)
{
    static const uint32_t band[] = { 1, 2, 2, 2, 1, 2, 0 };
    struct dscp_levels levels = read_levels(dscp_levels_standard);
    for (uint32_t i = 1; i < levels.count; i++)
        assert_true(band[levels.points[i].priority] >=
                    band[levels.points[i - 1].priority]);
    assert_true(band[levels.points[0].priority] < band[levels.points[4].priority]);
    assert_true(band[levels.points[4].priority] < band[levels.points[5].priority]);
}

static void unmarked_comes_before_the_last_by_default(void **state)
{
    assert_int_equal(read_levels(dscp_levels_standard).unmarked, 4);
    assert_int_equal(read_levels("cs3,cs2,cs1").unmarked, 2);
    assert_int_equal(read_levels("cs5,unmarked,cs2,cs1").unmarked, 1);
}

static void a_site_may_set_its_own_points(void **state)
{
    struct dscp_levels levels = read_levels("af41:5,26:3,unmarked,cs1:2");
    assert_int_equal(levels.count, 4);
    assert_int_equal(levels.points[0].dscp, 34);
    assert_int_equal(levels.points[0].priority, 5);
    assert_int_equal(levels.points[1].dscp, 26);
    assert_int_equal(levels.points[1].priority, 3);
    assert_int_equal(levels.points[2].dscp, 0);
    assert_int_equal(levels.points[3].priority, 2);
    assert_int_equal(dscp_levels_find(&levels, 26), 1);
    assert_int_equal(dscp_levels_find(&levels, 27), -1);
}

static void malformed_lists_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "no code point" },
        { "cs5", "at least 2" },
        { "cs5,", "no code point" },
        { "cs6,cs5", "network" },
        { "cs7,cs5", "network" },
        { "48,cs5", "network" },
        { "64,cs5", "no code point" },
        { "-1,cs5", "no code point" },
        { "cs5,cs5", "twice" },
        { "cs5,40", "twice" },
        { "cs5,unmarked", "cannot be last" },
        { "cs5:7,cs1", "priority" },
        { "cs5:,cs1", "priority" },
        { "cs5:x,cs1", "priority" },
        { "1,2,3,4,5,6,unmarked,7", "at most 7" },
        { "1,2,3,4,5,6,7", "at most 6" },
        { "99999999999999999999,cs1", "no code point" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dscp_levels levels = { .count = 99 };
        struct error err = { "" };
        assert_int_equal(dscp_levels_parse(&levels, cases[i].text, &err), -EINVAL);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_int_equal(levels.count, 99);
    }
    char text[400];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct dscp_levels levels;
    assert_int_equal(dscp_levels_parse(&levels, text, NULL), -EINVAL);
}

RUN_CASES(TEST(any_number_of_levels_has_points),
          TEST(a_better_level_never_has_a_worse_point),
          TEST(the_hosts_own_queues_keep_the_order),
          TEST(unmarked_comes_before_the_last_by_default),
          TEST(a_site_may_set_its_own_points), TEST(malformed_lists_are_refused));
