/* Sets of small numbers against an array of flags. */
#include "support/cases.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/rng.h"

#define STEPS 400

static uint32_t next_of(const bool *flags, uint32_t size, uint32_t from)
{
    for (; from < size; from++)
        if (flags[from])
            return from;
    return BITS_NONE;
}

static void compare(uint64_t seed)
{
    struct arena arena;
    struct bits bits;
    struct rng rng;
    rng_init(&rng, seed, "bits");
    arena_init(&arena, 0);

    /* Sizes from one bit to several words of the top level, often at their edges. */
    uint32_t size = 1 + rng_below(&rng, 1u << rng_below(&rng, 20));
    if (rng_below(&rng, 4) == 0)
        size = 64u << 6 * rng_below(&rng, 3);
    bits_init(&bits, &arena, size);
    bool *flags = arena_array(&arena, bool, size);
    uint32_t count = 0;
    struct bits others; /* some that stay, to have members in common with */
    bits_init(&others, &arena, size);
    for (uint32_t i = rng_below(&rng, 200); i > 0; i--)
        bits_set(&others, rng_below(&rng, size));

    for (int i = 0; i < STEPS; i++) {
        uint32_t member = rng_below(&rng, size);
        if (rng_below(&rng, 3) == 0) /* near one that is in, so that some meet */
            member = bits_next(&bits, member) != BITS_NONE ? bits_next(&bits, member)
                                                           : size - 1;
        bool in = rng_below(&rng, 2);
        in ? bits_set(&bits, member) : bits_clear(&bits, member);
        count += (uint32_t)in - (uint32_t)flags[member];
        flags[member] = in;

        assert_int_equal(bits.count, count);
        assert_int_equal(bits_test(&bits, member), in);
        uint32_t from = rng_below(&rng, size + 70);
        assert_int_equal(bits_next(&bits, from), next_of(flags, size, from));
        assert_int_equal(bits_next(&bits, 0), next_of(flags, size, 0));
        uint32_t common = next_of(flags, size, from);
        while (common != BITS_NONE && !bits_test(&others, common))
            common = next_of(flags, size, common + 1);
        assert_int_equal(bits_next_common(&bits, &others, from), common);
        assert_int_equal(bits_next_common(&others, &bits, from), common);
    }
    arena_release(&arena);
}

static void a_set_is_an_array_of_flags(void **state)
{
    FOR_EACH_SEED(seed, 60)
    compare(seed.now);
}

RUN_CASES(TEST(a_set_is_an_array_of_flags));
