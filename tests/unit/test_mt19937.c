/* The Mersenne Twister: the numbers that CPython 3 gives for the same seeds. */
#include "support/cases.h"

#include "base/mt19937.h"

static void fractions_are_those_of_random(void **state)
{
    struct mt19937 mt;
    mt_init(&mt, 0);
    assert_true(mt_random(&mt) == 0.8444218515250481);
    assert_true(mt_random(&mt) == 0.7579544029403025);
    assert_true(mt_random(&mt) == 0.420571580830845);
    mt_init(&mt, 0);
    assert_true(mt_uniform(&mt, 1.5, 3) == 2.766632777287572);
}

static void a_seed_of_more_than_a_word_counts_whole(void **state)
{
    struct mt19937 mt;
    mt_init(&mt, (UINT64_C(1) << 40) + 3);
    assert_int_equal(mt_u32(&mt), 943978446);
    assert_int_equal(mt_u32(&mt), 261273136);
    assert_int_equal(mt_u32(&mt), 2359950418u);
}

static void choices_are_those_of_randrange(void **state)
{
    static const uint32_t want[] = { 12, 24, 13, 1, 8, 16, 15, 12 };
    struct mt19937 mt;
    mt_init(&mt, 0);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(mt_below(&mt, 26), want[i]);
    assert_int_equal(mt_below(&mt, 1), 0);
}

static void a_shuffle_is_theirs(void **state)
{
    static const uint32_t want[3][3] = { { 0, 1, 2 }, { 0, 1, 2 }, { 1, 0, 2 } };
    struct mt19937 mt;
    mt_init(&mt, 5);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t items[] = { 0, 1, 2 };
        mt_shuffle(&mt, items, 3);
        assert_memory_equal(items, want[i], sizeof items);
    }
    uint32_t one[] = { 7 };
    mt_shuffle(&mt, one, 1);
    mt_shuffle(&mt, one, 0);
    assert_int_equal(one[0], 7);
}

static void a_sample_of_two_is_theirs_from_few_and_from_many(void **state)
{
    static const struct {
        uint32_t count, want[2];
    } cases[] = {
        { 5, { 2, 1 } },    { 5, { 3, 0 } },   { 5, { 0, 4 } },    { 5, { 2, 0 } },
        { 5, { 4, 1 } },    { 5, { 0, 4 } },   { 21, { 13, 20 } }, { 21, { 2, 7 } },
        { 21, { 2, 17 } },  { 30, { 13, 1 } }, { 30, { 26, 18 } }, { 30, { 3, 7 } },
        { 30, { 20, 18 } }, { 30, { 1, 18 } }, { 30, { 18, 12 } },
    };
    struct mt19937 mt;
    mt_init(&mt, 7);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t places[2];
        mt_sample2(&mt, cases[i].count, places);
        assert_memory_equal(places, cases[i].want, sizeof places);
    }
}

RUN_CASES(TEST(fractions_are_those_of_random),
          TEST(a_seed_of_more_than_a_word_counts_whole),
          TEST(choices_are_those_of_randrange), TEST(a_shuffle_is_theirs),
          TEST(a_sample_of_two_is_theirs_from_few_and_from_many));
