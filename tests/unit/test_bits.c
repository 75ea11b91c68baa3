/* Sets of small numbers: what is in them, and what comes next. */
#include "support/cases.h"

#include "base/arena.h"
#include "base/bits.h"

ARENA_FIXTURE(arena);

static struct bits set_of(uint32_t size)
{
    struct bits bits;
    bits_init(&bits, &arena, size);
    return bits;
}

static void a_new_set_is_empty(void **state)
{
    struct bits bits = set_of(1000);
    assert_int_equal(bits.count, 0);
    assert_int_equal(bits_next(&bits, 0), BITS_NONE);
}

static void a_set_without_room_has_no_members(void **state)
{
    struct bits bits = set_of(0);
    assert_int_equal(bits_next(&bits, 0), BITS_NONE);
}

static void setting_twice_counts_once(void **state)
{
    struct bits bits = set_of(100);
    bits_set(&bits, 7);
    bits_set(&bits, 7);
    assert_int_equal(bits.count, 1);
    bits_clear(&bits, 7);
    bits_clear(&bits, 7);
    assert_int_equal(bits.count, 0);
    assert_false(bits_test(&bits, 7));
}

static void members_are_walked_in_order(void **state)
{
    const uint32_t members[] = { 0, 1, 63, 64, 4095, 4096, 262143, 262144, 999999 };
    enum { COUNT = sizeof members / sizeof *members };
    struct bits bits = set_of(1000000);
    for (uint32_t i = COUNT; i-- > 0;)
        bits_set(&bits, members[i]);

    uint32_t at = 0;
    for (uint32_t i = 0; i < COUNT; i++, at++) {
        at = bits_next(&bits, at);
        assert_int_equal(at, members[i]);
    }
    assert_int_equal(bits_next(&bits, at), BITS_NONE);
}

static void next_includes_where_it_starts(void **state)
{
    struct bits bits = set_of(200);
    bits_set(&bits, 100);
    assert_int_equal(bits_next(&bits, 100), 100);
    assert_int_equal(bits_next(&bits, 101), BITS_NONE);
}

static void asking_past_the_end_finds_nothing(void **state)
{
    struct bits bits = set_of(65);
    bits_set(&bits, 64);
    assert_int_equal(bits_next(&bits, 65), BITS_NONE);
    assert_int_equal(bits_next(&bits, 128), BITS_NONE);
    assert_int_equal(bits_next(&bits, UINT32_MAX), BITS_NONE);
}

static void clearing_the_last_of_a_word_skips_the_word(void **state)
{
    struct bits bits = set_of(300000);
    bits_set(&bits, 10);
    bits_set(&bits, 270000);
    bits_clear(&bits, 10);
    assert_int_equal(bits_next(&bits, 0), 270000);
}

RUN_CASES(CASE(a_new_set_is_empty), CASE(a_set_without_room_has_no_members),
          CASE(setting_twice_counts_once), CASE(members_are_walked_in_order),
          CASE(next_includes_where_it_starts), CASE(asking_past_the_end_finds_nothing),
          CASE(clearing_the_last_of_a_word_skips_the_word));
