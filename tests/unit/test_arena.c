/* Arenas: zeroed, aligned, given back all at once, and no larger than needed. */
#include "support/cases.h"

#include <string.h>

#include "base/arena.h"

static void memory_is_zeroed_and_aligned(void **state)
{
    struct arena *arena = *state;

    for (int i = 0; i < 1000; i++) {
        char *odd = arena_array(arena, char, 3);
        uint64_t *words = arena_array(arena, uint64_t, 5);

        assert_int_equal((uintptr_t)words % alignof(uint64_t), 0);
        assert_int_equal(odd[0] | odd[1] | odd[2], 0);
        for (int w = 0; w < 5; w++)
            assert_int_equal(words[w], 0);
        memset(odd, 0xff, 3);
        memset(words, 0xff, 5 * sizeof *words);
    }
}

static void memory_is_zeroed_again_after_a_reset(void **state)
{
    struct arena *arena = *state;
    for (int round = 0; round < 3; round++) {
        unsigned char *bytes = arena_array(arena, unsigned char, 1001);
        uint64_t *word = arena_new(arena, uint64_t); /* after a gap for its alignment */

        for (int i = 0; i < 1001; i++)
            assert_int_equal(bytes[i], 0);
        assert_int_equal(*word, 0);

        memset(bytes, 0xff, 1001);
        *word = UINT64_MAX;
        arena_reset(arena);
    }
}

static void pieces_do_not_overlap(void **state)
{
    struct arena *arena = *state;
    enum { COUNT = 500 };
    uint32_t *pieces[COUNT];

    for (uint32_t i = 0; i < COUNT; i++) {
        pieces[i] = arena_array(arena, uint32_t, i + 1);
        for (uint32_t k = 0; k <= i; k++)
            pieces[i][k] = i;
    }
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t k = 0; k <= i; k++)
            assert_int_equal(pieces[i][k], i);
}

static void a_steady_round_asks_the_system_for_nothing(void **state)
{
    struct arena *arena = *state;
    size_t held[4];

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 100; i++)
            (void)arena_array(arena, char, 5000);
        held[round] = arena->held;
        arena_reset(arena);
    }

    assert_int_equal(held[2], held[1]);
    assert_int_equal(held[3], held[2]);
}

static void nothing_is_a_valid_size(void **state)
{
    struct arena *arena = *state;
    assert_non_null(arena_array(arena, uint64_t, 0));
    assert_non_null(arena_array(arena, char, 0));
}

static void a_huge_array_costs_nothing_until_touched(void **state)
{
    struct arena *arena = *state;
    char *bytes = arena_array(arena, char, (size_t)1 << 32);
    bytes[((size_t)1 << 32) - 1] = 1;
    assert_int_equal(bytes[12345], 0);
}

static void a_text_is_copied(void **state)
{
    struct arena *arena = *state;
    char text[] = "v100";
    char *copy = arena_text(arena, text);
    text[0] = 'k';
    assert_string_equal(copy, "v100");
    assert_string_equal(arena_text(arena, ""), "");
}

static void releasing_gives_everything_back(void **state)
{
    struct arena *arena = *state;
    (void)arena_array(arena, char, 100000);
    (void)arena_array(arena, char, 100000);
    assert_true(arena->held >= 200000);

    arena_release(arena);

    assert_int_equal(arena->held, 0);
    assert_non_null(arena_new(arena, int)); /* and it may be used again */
}

static int setup(void **state)
{
    static struct arena arena;
    arena_init(&arena, 0);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    arena_release(*state);
    return 0;
}

RUN_CASES(CASE(memory_is_zeroed_and_aligned),
          CASE(memory_is_zeroed_again_after_a_reset), CASE(pieces_do_not_overlap),
          CASE(a_steady_round_asks_the_system_for_nothing),
          CASE(nothing_is_a_valid_size), CASE(a_huge_array_costs_nothing_until_touched),
          CASE(a_text_is_copied), CASE(releasing_gives_everything_back));
