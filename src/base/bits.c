/* bits.c - sets of small numbers, walked in order. */
#include "base/bits.h"

#include "base/arena.h"

void bits_init(struct bits *bits, struct arena *arena, uint32_t size)
{
    uint32_t count = size;
    *bits = (struct bits){ .size = size };
    for (int level = 0; level < 3; level++) {
        count = (count + 63) / 64;
        bits->words[level] = arena_array(arena, uint64_t, count);
        bits->word_count[level] = count;
    }
}

uint32_t bits_next(const struct bits *bits, uint32_t from)
{
    /* Up until a word has something at or after 'from', then down to its first. */
    int level = 0;
    uint32_t index = from;
    uint64_t word;
    for (;;) {
        if (index >> 6 >= bits->word_count[level])
            return BITS_NONE;
        word = bits->words[level][index >> 6] & ~(uint64_t)0 << (index & 63);
        if (word)
            break;
        index = (index >> 6) + 1;
        if (level == 2)
            index <<= 6;
        else
            level++;
    }
    uint32_t member = (index & ~63u) + (uint32_t)__builtin_ctzll(word);
    while (level-- > 0)
        member = member * 64 + (uint32_t)__builtin_ctzll(bits->words[level][member]);
    return member;
}

uint32_t bits_next_common(const struct bits *a, const struct bits *b, uint32_t from)
{
    /* Each leaps to where the other is, so the smaller set decides what it costs. */
    for (;;) {
        uint32_t member = bits_next(a, from);
        if (member == BITS_NONE)
            return BITS_NONE;
        from = bits_next(b, member);
        if (from == member || from == BITS_NONE)
            return from;
    }
}
