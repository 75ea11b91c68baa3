/* bits.h - sets of small numbers, walked in order. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;

#define BITS_NONE UINT32_MAX

/* How many bits are set; by hand, since the plain amd64 has no instruction for it. */
static inline uint32_t bits_count(uint64_t word)
{
#ifdef __POPCNT__
    return (uint32_t)__builtin_popcountll(word);
#else
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (uint32_t)(word * 0x0101010101010101u >> 56);
#endif
}

/* The lowest 'count' of the bits that are set. */
static inline uint64_t bits_lowest(uint64_t word, uint32_t count)
{
    uint64_t lowest = 0;
    for (; count > 0; count--) {
        lowest |= word & -word;
        word &= word - 1;
    }
    return lowest;
}

/*
 * Three levels of words: a bit above says that the word below is not zero, so the next
 * member is found in a few steps however sparse the set.
 */
struct bits {
    uint64_t *words[3];     /* [0] the members, [2] the top */
    uint32_t word_count[3]; /* of each level                */
    uint32_t size;          /* members are below this       */
    uint32_t count;         /* members now                  */
};

void bits_init(struct bits *bits, struct arena *arena, uint32_t size);

/* The smallest member that is at least 'from', or BITS_NONE. */
uint32_t bits_next(const struct bits *bits, uint32_t from);

/* The same, of those that are in both sets. */
uint32_t bits_next_common(const struct bits *a, const struct bits *b, uint32_t from);

static inline bool bits_test(const struct bits *bits, uint32_t member)
{
    return bits->words[0][member >> 6] >> (member & 63) & 1;
}

static inline void bits_set(struct bits *bits, uint32_t member)
{
    assert(member < bits->size);
    bits->count += !bits_test(bits, member);
    for (int level = 0; level < 3; level++) {
        uint64_t *word = &bits->words[level][member >> 6];
        uint64_t before = *word;
        *word |= (uint64_t)1 << (member & 63);
        if (before)
            return; /* the words above say so already */
        member >>= 6;
    }
}

static inline void bits_clear(struct bits *bits, uint32_t member)
{
    assert(member < bits->size);
    if (!bits_test(bits, member))
        return;
    bits->count--;
    for (int level = 0; level < 3; level++) {
        uint64_t *word = &bits->words[level][member >> 6];
        *word &= ~((uint64_t)1 << (member & 63));
        if (*word)
            return;
        member >>= 6;
    }
}
