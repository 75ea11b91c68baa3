/* Queues for hosts and switches: one per level, in order, with a floor. */
#include "support/cases.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "flowd/dscp.h"
#include "flowd/qdisc.h"

static char *print_queues(const char *list, enum qdisc_kind kind, uint32_t floor)
{
    struct dscp_levels levels;
    struct qdisc_setup setup = {
        .device = "eth7", .bits_per_s = 1000000000, .floor = floor, .kind = kind
    };
    char *text = NULL;
    size_t size;
    assert_int_equal(dscp_levels_parse(&levels, list, NULL), 0);
    assert_int_equal(qdisc_check(&setup, &levels, NULL), 0);
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    qdisc_print(&setup, &levels, file);
    fclose(file);
    return text;
}

static uint32_t count_occurrences(const char *text, const char *part)
{
    uint32_t found = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        found++;
    return found;
}

static void every_level_has_a_queue_and_a_floor(void **state)
{
    char *text = print_queues(dscp_levels_standard, QDISC_HTB, 5);
    assert_int_equal(count_occurrences(text, "tc class add dev eth7 parent 1:1 "), 7);
    assert_int_equal(count_occurrences(text, " rate 50000kbit ceil 1000000kbit "), 7);
    assert_int_equal(count_occurrences(text, "\ntc qdisc add dev eth7 parent 1:1"), 7);
    assert_non_null(strstr(text, "classid 1:10 htb prio 0 "));
    assert_non_null(strstr(text, "classid 1:16 htb prio 6 "));
    /* Control traffic first, cs5 next, unmarked before cs1, for both protocols. */
    assert_non_null(strstr(text, "match ip dsfield 0xe0 0xfc flowid 1:10\n"));
    assert_non_null(strstr(text, "match ip dsfield 0xa0 0xfc flowid 1:11\n"));
    assert_non_null(strstr(text, "match ip6 priority 0xa0 0xfc flowid 1:11\n"));
    assert_non_null(strstr(text, "match ip dsfield 0x00 0xfc flowid 1:15\n"));
    assert_non_null(strstr(text, "match ip dsfield 0x20 0xfc flowid 1:16\n"));
    assert_non_null(strstr(text, "htb default 15\n"));
    free(text);
}

static void unmarked_has_a_queue_even_if_it_is_not_listed(void **state)
{
    char *text = print_queues("cs3,cs2,cs1", QDISC_HTB, 10);
    assert_int_equal(count_occurrences(text, "tc class add dev eth7 parent 1:1 "), 5);
    assert_non_null(strstr(text, "htb default 13\n"));
    assert_non_null(strstr(text, "match ip dsfield 0x20 0xfc flowid 1:14\n"));
    free(text);
}

static void shares_fall_by_half_with_ets(void **state)
{
    char *text = print_queues("cs3,unmarked,cs1", QDISC_ETS, 5);
    assert_non_null(
        strstr(text, "ets bands 4 strict 1 quanta 8000 4000 2000 priomap 2 "));
    assert_non_null(strstr(text, "match ip dsfield 0x60 0xfc flowid 1:2\n"));
    free(text);
}

static void every_line_is_a_command_or_a_comment(void **state)
{
    char *text = print_queues(dscp_levels_standard, QDISC_HTB, 5), *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line && strncmp(line, "tc ", 3) != 0 && *line != '#')
            fail_msg("%s", line);
    free(text);
}

static void rates_and_floors_have_bounds(void **state)
{
    static const char *const wrong[] = {
        "",         "fast",   "10",
        "-1gbit",   "0mbit",  "1kbit",
        "2000gbit", "1gbitx", "99999999999999999999gbit",
        " 1gbit",
    };
    uint64_t rate = 7;
    struct dscp_levels levels;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = { "" };
        if (qdisc_parse_rate(wrong[i], &rate, &err) != -EINVAL)
            fail_msg("was taken: %s", wrong[i]);
        assert_non_null(strstr(err.text, "rate"));
        assert_int_equal(rate, 7);
    }
    assert_int_equal(qdisc_parse_rate("25gbit", &rate, NULL), 0);
    assert_int_equal(rate, 25000000000);
    assert_int_equal(dscp_levels_parse(&levels, dscp_levels_standard, NULL), 0);
    struct qdisc_setup setup = { .device = "x", .bits_per_s = rate, .floor = 14 };
    assert_int_equal(qdisc_check(&setup, &levels, NULL), 0);
    setup.floor = 15;
    assert_int_equal(qdisc_check(&setup, &levels, NULL), -EINVAL);
    setup.floor = 0;
    assert_int_equal(qdisc_check(&setup, &levels, NULL), -EINVAL);
}

RUN_CASES(TEST(every_level_has_a_queue_and_a_floor),
          TEST(unmarked_has_a_queue_even_if_it_is_not_listed),
          TEST(shares_fall_by_half_with_ets),
          TEST(every_line_is_a_command_or_a_comment),
          TEST(rates_and_floors_have_bounds));
